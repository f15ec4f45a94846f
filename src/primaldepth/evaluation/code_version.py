"""The code that a result depends on: all modules that those that compute it import, directly or not.

Every import counts, wherever it stands in a file, and so does every text that is the name of a module or of a
file beside it: kernels are loaded by name. A package that only passes names on is passed through. Nothing in
the package acts on other modules when it is imported, so what cannot be reached cannot change a result.
"""

import ast
import hashlib
from collections.abc import Collection, Iterator
from functools import cache
from importlib import resources
from pathlib import Path

PACKAGE = "primaldepth"
# scenes are rendered once and known by their content
_RENDERING = ("primaldepth.scenes.", "primaldepth.data.shard_writer")


def code_version(modules: Collection[str]) -> str:
    """Return the SHA-256 of the code that can be reached from some modules, without comments and docstrings.

    Args:
        modules: names of modules. From one that is not of this package, all of the package may be reached.
    """
    return _version(tuple(sorted(set(modules))))


@cache
def _version(modules: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for name in sorted(reachable(modules)):
        digest.update(f"{name} {_digest(name)}\n".encode())
    return digest.hexdigest()


def reachable(modules: Collection[str]) -> set[str]:
    """Return the modules of the package that some modules import, directly or not, and their packages."""
    known, found = _files(), set[str]()
    waiting = list(modules if all(name in known for name in modules) else known)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _imports(name)
    return found | {parent for name in found for parent in _packages(name)}


def _packages(name: str) -> Iterator[str]:
    """Yield the packages that a module lies in, whose code runs before its own."""
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


@cache
def _files() -> dict[str, Path]:
    """Return the file of every module of the package."""
    root = Path(str(resources.files(PACKAGE)))
    found = {}
    for path in root.rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join((PACKAGE, *parts)).removesuffix(".__init__")] = path
    return found


@cache
def _tree(name: str) -> ast.Module:
    """Return the syntax tree of a module without its docstrings."""
    tree = ast.parse(_files()[name].read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            del node.body[0]
    return tree


@cache
def _digest(name: str) -> str:
    """Return the SHA-256 of a module's code; of a package's, without imports and `__all__`."""
    body = _tree(name).body
    if _is_package(name):
        body = [node for node in body if not _passes_on(node)]
    return hashlib.sha256("\n".join(map(ast.dump, body)).encode()).hexdigest()


def _passes_on(node: ast.stmt) -> bool:
    """Return whether a statement is an import or `__all__ = ...`."""
    lists_names = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    return lists_names or isinstance(node, ast.Import | ast.ImportFrom)


def _is_package(name: str) -> bool:
    return _files()[name].name == "__init__.py"


@cache
def _imports(name: str) -> frozenset[str]:
    """Return the modules that a module imports directly, or names in a text."""
    found: set[str] = set()
    for node in ast.walk(_tree(name)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.update(_defining(node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {node.value, _beside(name, node.value)} - {PACKAGE}  # which names its files of data
    return frozenset(each for each in found if each in _files() and not each.startswith(_RENDERING))


def _beside(name: str, text: str) -> str:
    """Return the module that a text such as "program.py" names, in the folder of a module; else ""."""
    package = name if _is_package(name) else name.rpartition(".")[0]
    return f"{package}.{text.removesuffix('.py')}" if text.endswith(".py") else ""


def _defining(module: str, name: str) -> str:
    """Return the module that `from module import name` takes the name from."""
    inner = f"{module}.{name}"
    if inner in _files():
        return inner
    if module in _files() and _is_package(module):
        for node in _tree(module).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return _defining(node.module, alias.name)
    return module
