"""Which code runs the fused pairwise update: chosen by device, forced by name, never silently replaced."""

import logging
import os
import shutil
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

import torch
from torch import Tensor

from primaldepth.core.errors import InputError, MissingDependencyError

Backend = Literal["auto", "torch", "numba", "triton"]
_DEVICE = {"numba": "cpu", "triton": "cuda"}
log = logging.getLogger("primaldepth.operators")
_forced: ContextVar[Backend] = ContextVar("pairwise_backend", default="auto")


@cache
def available_backends() -> tuple[str, ...]:
    """Return the backends that can run here; Triton also on the CPU if its interpreter is switched on."""
    found = ["torch"]
    if find_spec("numba"):
        found.append("numba")
    if find_spec("triton") and (torch.cuda.is_available() or interpreted()):
        if missing := missing_for_triton():
            log.warning("the fast kernels for GPUs need %s; the slower definition is used", missing)
        else:
            found.append("triton")
    return tuple(found)


def missing_for_triton() -> str:
    """Name the tool that Triton needs to compile and that is not installed; empty if all are."""
    if interpreted():
        return ""
    if not (os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")):
        return "a C compiler (Debian, Ubuntu: apt install gcc libc6-dev)"
    scheme = sysconfig.get_default_scheme().replace("posix_local", "posix_prefix")  # as Triton looks
    if not Path(sysconfig.get_path("include", scheme), "Python.h").exists():
        return "Python's headers (Debian, Ubuntu: apt install python3-dev)"
    return ""


def interpreted() -> bool:
    """True if Triton kernels run in its interpreter (TRITON_INTERPRET=1)."""
    return os.environ.get("TRITON_INTERPRET") == "1"


@contextmanager
def use_backend(name: Backend) -> Iterator[None]:
    """Force a backend inside the block; asking for one that is missing is an error.

    Args:
        name: "auto", "torch", "numba" or "triton".

    Returns:
        A context manager.

    Raises:
        InputError: there is no backend of that name.
        MissingDependencyError: the backend cannot run here.
    """
    if name not in get_args(Backend):
        raise InputError(f"pairwise backend '{name}' is not one of {', '.join(get_args(Backend))}")
    if name not in ("auto", *available_backends()):
        raise MissingDependencyError(
            f"pairwise backend '{name}' cannot run here; numba needs pip install 'primaldepth[fast]', "
            "triton needs its package, a CUDA device, a C compiler and Python's headers"
        )
    token = _forced.set(name)
    try:
        yield
    finally:
        _forced.reset(token)


def pick_backend(like: Tensor) -> str:
    """Return the backend for tensors like this one.

    Args:
        like: tensor whose device decides, unless `use_backend` is in force.

    Raises:
        InputError: the backend that was asked for does not run on that device.
    """
    forced, device = _forced.get(), like.device.type
    if forced != "auto":
        wanted = _DEVICE.get(forced, device)
        if wanted != device and not (forced == "triton" and interpreted()):
            raise InputError(
                f"pairwise backend '{forced}' runs on {wanted}, but the data is on {like.device}"
            )
        return forced
    native = {"cpu": "numba", "cuda": "triton"}.get(device, "torch")
    return native if native in available_backends() else "torch"


def refuse_forced_backend(why: str) -> None:
    """Raise if a faster backend was asked for by name; chosen by device, it may give way to the definition.

    Args:
        why: for the error's text: what the backend cannot do.

    Raises:
        InputError: `use_backend` is in force with a backend other than auto and torch.
    """
    forced = _forced.get()
    if forced not in ("auto", "torch"):
        raise InputError(f"pairwise backend '{forced}' cannot do this", why, "use auto or torch")
