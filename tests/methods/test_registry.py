import pytest

from primaldepth.core.errors import InputError
from primaldepth.methods import create, list_methods


def test_names_are_unique_and_summarised():
    infos = list_methods()
    assert len({info.name for info in infos}) == len(infos)
    assert all(info.summary for info in infos)
    assert {"nearest", "bilinear", "bicubic", "nlh-l2", "nltgv-l1"} <= {info.name for info in infos}


def test_listed_settings_are_what_a_method_takes():
    for info in list_methods():
        assert create(info.name, info.settings).name == info.name


def test_unknown_methods_name_the_nearest():
    with pytest.raises(InputError, match=r"unknown method 'bicubc'; did you mean 'bicubic'.*known: nearest"):
        create("bicubc")


def test_names_near_nothing_list_the_known():
    with pytest.raises(InputError, match=r"unknown method 'zzzz' \(known: nearest, bilinear") as caught:
        create("zzzz")
    assert "did you mean" not in str(caught.value)


def test_unknown_options_name_the_nearest():
    with pytest.raises(
        InputError, match="method 'nlh-l2': unknown key 'iteration'; did you mean 'iterations'"
    ):
        create("nlh-l2", {"iteration": 3})


def test_interpolation_has_no_options():
    with pytest.raises(InputError, match="method 'bilinear' has no options, got window"):
        create("bilinear", {"window": 3})


WRONG = {
    "text": ("iterations", "many"),
    "kernel": ("sensor", "lanczos"),
    "no-iterations": ("iterations", 0),
    "no-coarse-iterations": ("coarse_iterations", 0),
    "no-levels": ("levels", 0),
    "even-window": ("window", 4),
    "tiny-window": ("window", 1),
    "negative-weight": ("lam", -1.0),
    "undefined-weight": ("lam", float("nan")),
    "no-reach": ("sigma_d", 0.0),
    "no-contrast": ("sigma_v", 0.0),
    "negative-width": ("eps", -0.1),
    "no-ratio": ("ratio", 0.0),
}


@pytest.mark.parametrize(("key", "value"), WRONG.values(), ids=WRONG.keys())
def test_values_no_energy_can_have_are_refused_by_name(key, value):
    with pytest.raises(InputError, match=f"method 'nlh-l2': '{key}'"):
        create("nlh-l2", {key: value})


@pytest.mark.parametrize("info", list_methods(), ids=lambda info: info.name)
def test_work_without_end_is_refused(info):
    """Every setting that counts repetitions has a largest value."""
    repeated = {"iterations", "coarse_iterations", "levels", "rounds", "shifts", "taps", "hypotheses"}
    for key in repeated & info.settings.keys():
        for value in (10**9, "1000000000"):
            with pytest.raises(
                InputError, match=rf"'{key}': Input should be less than or equal to|no primal-dual"
            ):
                create(info.name, {key: value})
