"""Public functions of the mathematical rooms say what they take, return and raise.

Public is what has no underscore and is used outside its own file. A method that a base class documents, a
property and a compiled kernel need no sections of their own, nor does a result that the first sentence names.
"""

import ast
import functools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "primaldepth"
ROOMS = ("core", "export", "measurement", "methods", "networks", "operators", "sensors", "variational")
EXEMPT = ("jit", "property", "validator")  # decorators


def parsed(*folders: Path) -> dict[Path, ast.Module]:
    paths = (path for folder in folders for path in folder.rglob("*.py"))
    return {path: ast.parse(path.read_text()) for path in paths}


def names_used(trees: dict[Path, ast.Module]) -> tuple[dict[str, set[Path]], dict[str, set[Path]]]:
    """Files that use a name as a function, and those that use it as a method."""
    functions: dict[str, set[Path]] = defaultdict(set)
    methods: dict[str, set[Path]] = defaultdict(set)
    for path, tree in trees.items():
        imported: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    functions[alias.name].add(path)
                    imported.add(alias.asname or alias.name)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                methods[node.attr].add(path)
                if isinstance(node.value, ast.Name) and node.value.id in imported:
                    functions[node.attr].add(path)
    return functions, methods


def bases(node: ast.ClassDef) -> list[str]:
    return [ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases]


def is_inherited(owner: ast.ClassDef, name: str, classes: dict[str, ast.ClassDef]) -> bool:
    """Whether a base class has the method too; autograd's functions are called through `apply`."""
    for base in bases(owner):
        if base == "Function":
            return True
        above = classes.get(base)
        if above is None or above is owner:
            continue
        if name in {f.name for f in functions(above)} or is_inherited(above, name, classes):
            return True
    return False


def functions(node: ast.Module | ast.ClassDef) -> list[ast.FunctionDef]:
    return [each for each in node.body if isinstance(each, ast.FunctionDef)]


def parameters(function: ast.FunctionDef, is_method: bool) -> list[str]:
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args)]
    is_static = any(ast.unparse(each) == "staticmethod" for each in function.decorator_list)
    names = names[1:] if is_method and not is_static else names
    rest = (given.vararg, *given.kwonlyargs, given.kwarg)
    return names + [each.arg for each in rest if each is not None]


def missing(function: ast.FunctionDef, is_method: bool) -> Iterator[str]:
    """Yield what the docstring of a function lacks."""
    text = ast.get_docstring(function) or ""
    listed = text.partition("Args:")[2].partition("\n\n")[0]
    yield from (name for name in parameters(function, is_method) if f"{name}: " not in listed)
    returns = "None" if function.returns is None else ast.unparse(function.returns)
    if returns != "None" and "Returns:" not in text and not text.startswith(("Return", "True if", "Whether")):
        yield "Returns"
    raises = any(isinstance(node, ast.Raise) and node.exc is not None for node in ast.walk(function))
    if raises and "Raises:" not in text:
        yield "Raises"


@functools.cache
def everything() -> tuple[dict[Path, ast.Module], dict[str, set[Path]], dict[str, set[Path]]]:
    trees = parsed(PACKAGE, ROOT / "benchmarks", ROOT / "scripts", ROOT / "examples")
    return trees, *names_used(trees)


def public_functions(room: str) -> Iterator[tuple[str, ast.FunctionDef, bool]]:
    trees, used_functions, used_methods = everything()
    classes = {
        node.name: node for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef)
    }
    for path, tree in trees.items():
        if PACKAGE / room not in path.parents:
            continue
        owners = [None, *(node for node in tree.body if isinstance(node, ast.ClassDef))]
        for owner in owners:
            if owner is not None and owner.name.startswith("_"):
                continue
            for function in functions(tree if owner is None else owner):
                decorators = " ".join(map(ast.unparse, function.decorator_list))
                hidden = function.name.startswith("_") or any(each in decorators for each in EXEMPT)
                inherited = owner is not None and is_inherited(owner, function.name, classes)
                used = used_functions if owner is None else used_methods
                if not hidden and not inherited and used[function.name] - {path}:
                    yield f"{path.relative_to(PACKAGE)}:{function.lineno}", function, owner is not None


@pytest.mark.parametrize("room", ROOMS)
def test_public_functions_say_what_they_take_return_and_raise(room: str) -> None:
    found = [
        f"{where} {function.name}: {', '.join(lacks)}"
        for where, function, is_method in public_functions(room)
        if (lacks := list(missing(function, is_method)))
    ]
    assert not found, "\n".join(found)
