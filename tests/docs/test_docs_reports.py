"""The reference pages name every number that is reported, and every field that can be sent."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from primaldepth.app.response_formats import REPORTED
from primaldepth.pipeline.frame_report import Report
from primaldepth.pipeline.request import Item, Request, declarations

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def section(page: str, start: str, end: str) -> str:
    text = (REFERENCE / page).read_text(encoding="utf-8")
    return text[text.index(start) :].split(end)[0]


@pytest.mark.parametrize("name", [each.name for each in fields(Report) if each.name != "method"])
def test_the_command_line_s_page_names_what_a_pair_reports(name: str) -> None:
    assert f'"{name}"' in section("cli.md", '{"depth", "guide", "out"', "```")


@pytest.mark.parametrize("name", REPORTED)
def test_the_page_on_http_names_what_the_header_reports(name: str) -> None:
    assert f"`{name}`" in section("http.md", "The header `Primaldepth-Report`", "From Python")


def test_the_page_on_http_names_the_fields_of_the_form() -> None:
    declared = {name: each for of in (Item, Request) for name, each in declarations(of).items()}
    rows = re.findall(r"^\| `(\w+)` \|", section("http.md", "| field |", "Every field occurs once"), re.M)
    assert set(rows) == {name for name, each in declared.items() if not each.local} | {"output"}
