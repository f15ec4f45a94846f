"""Every benchmark can be imported and stands in the table of `benchmarks/README.md`."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"
PURPOSES = ("speed", "quality", "robustness", "tuning", "pages")
PROGRAMS = sorted(
    f"{path.parent.name}.{path.stem}"
    for purpose in PURPOSES
    for path in (FOLDER / purpose).glob("*.py")
    if path.stem != "__init__"
)
README = (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_fits_the_package(name, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    assert callable(importlib.import_module(f"benchmarks.{name}").main)


def test_the_readme_lists_every_program_and_no_other():
    listed = {
        re.split("[ `]", command)[0] for command in re.findall(r"^\| `([\w.]+[ `])", README, re.MULTILINE)
    }
    assert listed == {*PROGRAMS, "attack"}


def test_the_readme_names_results_that_exist():
    for name in re.findall(r"`(results/[^`]+)`", README):
        assert list(FOLDER.glob(name)), name


def test_nothing_but_what_programs_share_lies_outside_of_a_purpose():
    assert {path.stem for path in FOLDER.glob("*.py")} == {"__init__", "service_process"}
