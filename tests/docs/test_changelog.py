"""The changelog is sorted by release, and the version is the same wherever it is written."""

import re
from pathlib import Path

import tomllib

ROOT = Path(__file__).parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
GROUPS = ["Added", "Changed", "Removed", "Fixed", "Security"]


def releases():
    """(version, date) of each release, in the order of the page."""
    return re.findall(r"^## (\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)$", CHANGELOG, flags=re.MULTILINE)


def test_the_newest_release_comes_first_after_what_is_unreleased():
    headings = re.findall(r"^## (.*)$", CHANGELOG, flags=re.MULTILINE)
    assert headings == ["Unreleased", *(f"{version} - {date}" for version, date in releases())]
    numbers = [tuple(map(int, version.split("."))) for version, _ in releases()]
    assert numbers == sorted(numbers, reverse=True)


def test_each_release_has_each_group_once_and_in_order():
    for text in re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)[1:]:
        found = re.findall(r"^### (.*)$", text, flags=re.MULTILINE)
        assert found == [name for name in GROUPS if name in found]


def test_the_version_is_that_of_the_newest_release_everywhere():
    version, date = releases()[0]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == version
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {version}\ndate-released: {date}\n" in citation
