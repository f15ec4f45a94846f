"""The documentation is true: its Python blocks run, and its tables name everything there is."""

import importlib
import inspect
import re
from operator import attrgetter
from pathlib import Path

import pytest
import typer

import primaldepth
from primaldepth.cli.main import app
from primaldepth.methods import list_methods

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page):
    """Each block, preceded by as many empty lines as put it at its place in the page."""
    text = page.read_text(encoding="utf-8")
    return ["\n" * text.count("\n", 0, match.start(1)) + match[1] for match in BLOCK.finditer(text)]


WITH_CODE = [page for page in PAGES if blocks(page)]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "docs"}
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), namespace)  # noqa: S102


def commands(group, words=("primaldepth",)):
    """(name, option strings) of every command, the root included; `--no-page` is a second name."""
    names = [name for each in group.params for name in (*each.opts, *each.secondary_opts)]
    options = [name for name in names if name.startswith("-")]
    yield " ".join(words), options
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*words, name))


def sections(page):
    """Heading of the second level -> its text; what comes before is under the empty name."""
    parts = re.split(r"^## (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_command_and_option_is_on_the_reference_page():
    found = sections(ROOT / "docs" / "reference" / "cli.md")
    for name, options in commands(typer.main.get_command(app)):
        if name == "primaldepth":
            assert all(f"`{option}`" in found[""] for option in options)
            continue
        if name == "primaldepth data":
            continue  # a group without options
        missing = [option for option in options if f"`{option}`" not in found[name] and option != "--help"]
        assert not missing, f"{name}: {missing}"


def test_the_reference_page_names_no_option_that_does_not_exist():
    found = sections(ROOT / "docs" / "reference" / "cli.md")
    known = dict(commands(typer.main.get_command(app)))
    for name, text in found.items():
        for row in re.findall(r"^\| `(-[^|]*)\|", text, flags=re.MULTILINE):
            for option in re.findall(r"`?(-[-\w]+)`", row):
                assert option in known[name or "primaldepth"] or option == "--help", f"{name}: {option}"


def test_the_readme_names_every_method_and_no_other():
    text = sections(ROOT / "README.md")["Methods"]
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert named == [info.name for info in list_methods()]


def test_pictures_in_the_readme_exist():
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target


def referenced():
    """Full names of what the Python reference documents."""
    module = ""
    for line in (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8").splitlines():
        if match := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = match[1]
        elif match := re.match(r"\.\. auto(?:function|class|exception):: ([\w.]+)", line):
            yield match[1] if match[1].startswith("primaldepth.") else f"{module}.{match[1]}"


def named(name):
    module, _, rest = name.rpartition(".")
    return attrgetter(rest)(importlib.import_module(module))


@pytest.mark.parametrize("name", sorted(referenced()))
def test_the_python_reference_names_what_exists_and_describes_its_arguments(name):
    found = named(name)
    if inspect.isfunction(found):
        _, _, described = (inspect.getdoc(found) or "").partition("Args:\n")
        assert not [each for each in inspect.signature(found).parameters if f"    {each}: " not in described]


def test_the_python_reference_has_all_of_the_packages_top():
    public = {f"primaldepth.{name}" for name in primaldepth.__all__ if not name.startswith("_")}
    assert public <= {*referenced(), "primaldepth.PrimalDepthError"}  # its home is core.errors
