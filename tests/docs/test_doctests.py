"""The examples in docstrings run, and the names that people use most have one."""

import ast
import doctest
import importlib
from pathlib import Path

import pytest

import primaldepth

SOURCE = Path(primaldepth.__file__).parent
FEWEST = 40
FLAGS = doctest.NORMALIZE_WHITESPACE


def modules_with_examples():
    """Names of the modules whose source has an example; nothing is imported to find them."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, documented)]
        if any(">>> " in (ast.get_docstring(node) or "") for node in nodes):
            yield ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    for name in modules_with_examples():
        yield from finder.find(importlib.import_module(name), name)


EXAMPLES = {test.name.removeprefix("primaldepth."): test for test in examples() if test.examples}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_runs_as_printed(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    test = EXAMPLES[name]
    test.globs = {"__name__": "__main__"}  # what it does not import, a reader does not have
    report = []
    failures = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=report.append)
    assert not failures.failed, "".join(report)


def test_the_names_people_use_most_have_an_example():
    assert len(EXAMPLES) >= FEWEST
    public = [name for name in primaldepth.__all__ if not name.startswith("_")]
    homes = {name: getattr(primaldepth, name).__module__.removeprefix("primaldepth.") for name in public}
    assert not [name for name, home in homes.items() if f"{home}.{name}" not in EXAMPLES]
