"""What a kept result depends on: the code that its row passes through, and nothing else."""

import ast
import sys

import pytest

from primaldepth.evaluation import code_version as module
from primaldepth.evaluation.code_version import code_version, reachable
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.evaluation.run import ScoringTask
from primaldepth.methods import create, list_methods

CACHES = ("_version", "_files", "_tree", "_digest", "_imports")


def forget():
    for name in CACHES:
        getattr(module, name).cache_clear()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package in place of ours: (write a file of it, the version of the module a)."""
    forget()
    monkeypatch.setattr(module.resources, "files", lambda _: tmp_path)

    def write(name, text):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)

    def version():
        forget()
        return code_version(["primaldepth.a"])

    write("__init__.py", "from primaldepth.other import z\n")
    write("a.py", "from primaldepth.room import f\n\ndef g():\n    import primaldepth.late\n")
    write("late.py", "X = 'primaldepth.named', 'primaldepth'\n")
    write("named.py", "P = 'program.py'\n")
    write("program.py", "1\n")
    write("room/__init__.py", "from primaldepth.room.one import f\nfrom primaldepth.room.two import h\n")
    write("room/one.py", "def f(): ...\n")
    write("room/two.py", "def h(): ...\n")
    write("other.py", "z = 1\n")
    yield write, version
    forget()


@pytest.mark.parametrize("name", ["a.py", "room/one.py", "late.py", "named.py", "program.py"])
def test_code_that_is_reached_counts(package, name):
    write, version = package
    first = version()
    write(name, "from primaldepth.room import f\nchanged = 2\n")
    assert version() != first


@pytest.mark.parametrize("name", ["room/two.py", "other.py", "new.py"])
def test_code_that_is_not_reached_does_not_count(package, name):
    write, version = package
    first = version()
    write(name, "changed = 2\n")
    assert version() == first


def test_how_code_is_explained_does_not_count(package):
    write, version = package
    first = version()
    write("room/one.py", '"""Docstring."""\n\n\ndef f():  # comment\n    """Docstring."""\n    ...\n')
    write("room/__init__.py", "from primaldepth.room.one import f\n__all__ = ['f']\n")
    assert version() == first


def test_code_of_the_packages_around_counts(package):
    write, version = package
    first = version()
    write("__init__.py", "from primaldepth.other import z\nimport os\nos.environ['X'] = 'y'\n")
    assert version() != first


def test_a_method_from_elsewhere_may_use_everything(package):
    _write, _ = package
    forget()
    assert "primaldepth.other" in reachable(["somewhere.else", "primaldepth.a"])


def task(method, protocol):
    return ScoringTask(get_protocol(protocol), create(method), None, "", 4, "cpu")


@pytest.mark.parametrize("info", list_methods(), ids=lambda info: info.name)
def test_all_code_that_runs_can_be_reached(info, small):
    """Whatever of the package is called while a row is computed."""
    protocol, data = small
    own = ScoringTask(protocol, create(info.name), data, "art", 4, "cpu")
    modules = {name for name in own.modules() if name.startswith("primaldepth.")}
    called = set()

    def watch(frame, event, _):
        if event == "call":
            called.add(frame.f_globals.get("__name__", ""))

    sys.setprofile(watch)
    try:
        own()
    finally:
        sys.setprofile(None)
    ours = {name for name in called if name.startswith("primaldepth.")} - {own.__module__}
    assert ours
    assert ours <= reachable(modules)


def test_rows_of_filters_do_not_depend_on_networks_nor_on_other_formats():
    found = reachable(task("he10", "noisy-middlebury").modules())
    assert not any(name.startswith("primaldepth.networks") for name in found)
    assert "primaldepth.io.formats.png" in found
    assert not any(name.startswith("primaldepth.io.sequences") for name in found)


def test_rows_of_networks_depend_on_kernels_that_are_loaded_by_name():
    found = reachable(task("pdn-any", "noisy-middlebury").modules())
    assert "primaldepth.operators.pairwise.cpu_iterations" in found
    assert "primaldepth.variational.numba_kernels" in found


def test_modules_do_nothing_to_others_when_they_are_imported():
    """So code that nothing reaches cannot change a number."""
    own = {"primaldepth", "primaldepth.__main__", "primaldepth.operators.threads"}
    for name in reachable(["all of the package"]) - own:
        if not name.startswith(("primaldepth.cli.", "primaldepth.training.losses")):
            for node in ast.parse(module._files()[name].read_bytes()).body:
                is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
                assert is_text or not isinstance(node, ast.Expr | ast.For | ast.While | ast.With | ast.Delete)


def test_protocols_of_ones_own_files_depend_on_a_part_of_the_package(small):
    protocol, data = small
    own = ScoringTask(protocol, create("nearest"), data, "art", 4, "cpu")
    assert len(reachable(own.modules())) < len(reachable(["all of the package"])) / 2
