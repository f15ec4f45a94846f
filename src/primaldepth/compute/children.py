"""Start processes of Python that import nothing from the current folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_SAFE = "PYTHONSAFEPATH"


@contextmanager
def safe_imports() -> Iterator[None]:
    """Keep the current folder off the module path of the Python processes that are started in this block.

    Whoever starts `python -c`, as `multiprocessing` does, has it import from the current folder first: in a
    folder of a stranger a file `multiprocessing.py` would run. What this process can import, a process that
    `multiprocessing` starts can import too.
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
