"""Parts are added up by name, for whoever collects, and cost nothing where nobody does."""

from primaldepth.core.part_seconds import Seconds, add_parts, collected, part, spend


def test_parts_are_added_up_in_the_order_in_which_they_began():
    with collected() as parts:
        for name in ("build", "render", "build"):
            with part(name):
                sum(range(1000))
        spend("render", Seconds(clock=100.0, processor=3.0))
    assert list(parts) == ["build", "render"]
    assert parts["build"].clock > 0
    assert parts["render"].clock >= 100
    assert parts["render"].processor >= 3


def test_a_part_that_fails_counts():
    with collected() as parts:
        try:
            with part("build"):
                raise ValueError
        except ValueError:
            pass
    assert list(parts) == ["build"]


def test_only_the_innermost_collects_and_nobody_outside():
    with collected() as outer:
        with collected() as inner, part("a"):
            pass
        with part("b"):
            pass
    with part("c"):
        pass
    assert (list(outer), list(inner)) == (["b"], ["a"])


def test_parts_of_several_scenes():
    total = {"a": Seconds(1.0, 0.5)}
    add_parts(total, {"a": Seconds(2.0, 1.0), "b": Seconds(3.0)})
    assert total == {"a": Seconds(3.0, 1.5), "b": Seconds(3.0, 0.0)}
