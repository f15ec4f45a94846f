"""The documentation names files, modules and rooms that exist."""

import importlib
import re
from functools import reduce
from pathlib import Path

import pytest
import tomllib

import primaldepth

ROOT = Path(__file__).parents[2]
SOURCE = Path(primaldepth.__file__).parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ROOMS = "|".join(sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()))
FILE = re.compile(r"`((?:[\w-]+/)+[\w-]+\.(?:py|md|toml))`")
NAME = re.compile(rf"`(?:primaldepth\.)?((?:{ROOMS})(?:\.\w+)+)(?:\([^`]*\))?`")


def exists(name):
    """Whether a dotted name of the package is a module, or something in one."""
    parts = ["primaldepth", *name.split(".")]
    for end in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        try:
            return reduce(getattr, parts[end:], module) is not None
        except AttributeError:
            return False
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_files_and_modules_that_exist(page):
    text = page.read_text(encoding="utf-8")
    places = (ROOT, SOURCE, page.parent)
    files = [name for name in FILE.findall(text) if "NAME" not in name]
    assert not [name for name in files if not any((place / name).exists() for place in places)]
    names = [name for name in NAME.findall(text) if not name.endswith((".json", ".html", ".md", ".npy"))]
    assert not [name for name in names if not exists(name)]


def test_the_tour_stops_at_functions_that_exist():
    text = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    stops = re.findall(r"`([\w/]+\.py): ([\w.]+)`", text)
    assert len(stops) > 10
    for file, name in stops:
        source = (SOURCE / file).read_text(encoding="utf-8")
        defined = [rf"^\s*(?:def|class) {part}\b" for part in name.split(".")]
        assert all(re.search(pattern, source, re.MULTILINE) for pattern in defined), f"{file}: {name}"


def test_extras_that_pages_and_messages_name_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [path.read_text(encoding="utf-8") for path in [*PAGES, *SOURCE.rglob("*.py")]]
    named = {extra for text in texts for extra in re.findall(r"primaldepth\[([\w,]+)\]", text)}
    assert {each for extras in named for each in extras.split(",")} <= set(project["optional-dependencies"])


def test_the_table_of_rooms_is_the_order_of_imports():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## ")[0]
    rooms = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = [each for each in project["tool"]["importlinter"]["contracts"] if each["type"] == "layers"]
    assert [f"primaldepth.{room}" for room in rooms] == layers["layers"]
