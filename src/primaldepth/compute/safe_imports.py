"""Start processes of Python that import nothing from the current folder."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_SAFE = "PYTHONSAFEPATH"


@contextmanager
def safe_imports() -> Iterator[None]:
    """Keep the current folder off the module path of the Python processes that are started in this block.

    Whoever starts `python -c`, as `multiprocessing` does, has it import from the current folder first: in a
    folder of a stranger a file `multiprocessing.py` would run. What this process can import, a process that
    `multiprocessing` starts can import too. Python 3.10 knows no such setting: there nothing changes.
    """
    before = os.environ.get(_SAFE)
    os.environ[_SAFE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE]
        else:
            os.environ[_SAFE] = before


def python_command(code: str, *arguments: str) -> list[str]:
    """Return the command for code in a Python of its own that imports nothing from the current folder.

    Args:
        code: for `python -c`.
        arguments: `sys.argv[1:]` of the code.
    """
    # The option -P does the same from Python 3.11 on.
    return [sys.executable, "-c", f"import sys; sys.path[:] = filter(None, sys.path)\n{code}", *arguments]
