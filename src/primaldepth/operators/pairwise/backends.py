"""Which code runs the fused pairwise update: chosen by device, forced by name, never silently replaced."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from typing import Literal, get_args

from torch import Tensor

from primaldepth.core.errors import InputError, MissingDependencyError

Backend = Literal["auto", "torch", "numba"]
_forced: ContextVar[Backend] = ContextVar("pairwise_backend", default="auto")


@cache
def available_backends() -> tuple[str, ...]:
    """Backends that can run here."""
    return ("torch", "numba") if find_spec("numba") else ("torch",)


@contextmanager
def use_backend(name: Backend) -> Iterator[None]:
    """Force a backend inside the block; asking for one that is missing is an error."""
    if name not in get_args(Backend):
        raise InputError(f"pairwise backend '{name}' is not one of {', '.join(get_args(Backend))}")
    if name not in ("auto", *available_backends()):
        raise MissingDependencyError(
            f"pairwise backend '{name}' is not installed: pip install 'primaldepth[fast]'"
        )
    token = _forced.set(name)
    try:
        yield
    finally:
        _forced.reset(token)


def pick_backend(like: Tensor) -> str:
    """The backend for tensors like this one."""
    forced = _forced.get()
    if forced == "torch":
        return "torch"
    if forced == "numba":
        if like.device.type != "cpu":
            raise InputError(f"pairwise backend 'numba' runs on the CPU, the data is on {like.device}")
        return "numba"
    return "numba" if like.device.type == "cpu" and "numba" in available_backends() else "torch"
