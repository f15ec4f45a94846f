"""Find out which of Mitsuba's back ends works here, in a child process that may crash.

A wrong LLVM library does not raise, it aborts the process; a CUDA driver without ray tracing may do the
same. So each candidate first renders a few pixels in a program of its own.
"""

import ctypes
import functools
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from primaldepth.compute.safe_imports import python_command
from primaldepth.core.errors import InputError, MissingDependencyError

VARIANTS = {"cuda": "cuda_ad_rgb", "llvm": "llvm_ad_rgb", "scalar": "scalar_rgb"}
"""Our names, and Mitsuba's."""

LLVM_PATH = "DRJIT_LIBLLVM_PATH"
OLDEST_LLVM = 17  # 15 and 16 were seen to abort the process
LLVM_HINT = (
    "install LLVM 17 or newer (Debian, Ubuntu: apt install libllvm19; macOS: brew install llvm; "
    f"conda: conda install -c conda-forge llvmdev) or name the library in {LLVM_PATH}"
)
CUDA_PATH = "DRJIT_LIBCUDA_PATH"
CUDA_DRIVER = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"
_BLOCKING_SYNC = 4  # CU_CTX_SCHED_BLOCKING_SYNC
_PLACES = (
    "/usr/lib/*-linux-gnu/libLLVM*.so*",
    "/usr/lib/llvm-*/lib/libLLVM*.so*",
    "/usr/lib64/libLLVM*.so*",
    "/usr/local/lib/libLLVM*.so*",
    "/opt/homebrew/opt/llvm*/lib/libLLVM*.dylib",
    "/usr/local/opt/llvm*/lib/libLLVM*.dylib",
)
_TEST = "from primaldepth.scenes.renderer import self_test; self_test({variant!r})"
_LIMIT_S = 300
_KNOWN = "PRIMALDEPTH_WORKING_VARIANTS"  # what this process found to work, for the workers it starts


@dataclass(frozen=True, slots=True)
class VariantTrial:
    """The result of trying one back end in a child process.

    Args:
        variant: the back end that was tried.
        works: whether it rendered what it should.
        reason: where it did not, why, in one line.
    """

    variant: str
    works: bool
    reason: str = ""


def choose(wanted: str = "auto") -> str:
    """Choose the back end: the one asked for, or the first that works of cuda, llvm, scalar.

    One that is asked for by name and does not work is an error; "auto" goes on to the next.

    Args:
        wanted: "auto", "cuda", "llvm" or "scalar".

    Returns:
        The name of the back end.

    Raises:
        InputError: if there is no back end of that name.
        MissingDependencyError: if the one asked for, or each of all, does not work here.
    """
    if wanted != "auto" and wanted not in VARIANTS:
        raise InputError(f"variant '{wanted}' is unknown; known: auto, {', '.join(VARIANTS)}")
    trials = []
    for variant in VARIANTS if wanted == "auto" else (wanted,):
        trials.append(tried(variant))
        if trials[-1].works:
            return variant
    raise MissingDependencyError("; ".join(f"variant {t.variant}: {t.reason}" for t in trials))


@functools.cache
def tried(variant: str) -> VariantTrial:
    """Return how a self-test with `variant` ended; remembered for this process and its children."""
    prepare(variant)
    known = os.environ.get(_KNOWN, "").split(",")
    if variant in known:
        return VariantTrial(variant, True)
    trial = trial_of(variant, python_command(_TEST.format(variant=variant)))
    if trial.works:
        os.environ[_KNOWN] = ",".join([*filter(None, known), variant])
    return trial


def trial_of(variant: str, command: list[str], limit_s: float = _LIMIT_S) -> VariantTrial:
    """Run a self-test program; it works if it ends with 0, and not if it fails, crashes or hangs."""
    try:
        done = subprocess.run(  # noqa: S603  our own interpreter
            command, capture_output=True, text=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        return VariantTrial(variant, False, f"the self-test did not end within {limit_s:.0f} s")
    except OSError as error:
        return VariantTrial(variant, False, f"the self-test could not be started ({error})")
    if done.returncode == 0:
        return VariantTrial(variant, True)
    lines = done.stderr.strip().splitlines()
    said = lines[-1][:300] if lines else f"the self-test ended with status {done.returncode}"
    return VariantTrial(variant, False, said + (f"; {LLVM_HINT}" if variant == "llvm" else ""))


def prepare(variant: str) -> None:
    """Point Dr.Jit to a usable LLVM, before Mitsuba is imported; what the user set is kept."""
    if variant == "llvm" and not os.environ.get(LLVM_PATH):
        found = find_llvm()
        if found is not None:
            os.environ[LLVM_PATH] = str(found)


def sleep_while_waiting(driver: str = CUDA_DRIVER) -> bool:
    """Let threads of this process sleep while they wait for a GPU; by default they keep a processor busy.

    It must be called before Mitsuba is imported. Where there is no driver nothing is done: Dr.Jit reports
    what is missing.

    Args:
        driver: library of the CUDA driver.

    Returns:
        Whether it was set for every GPU.
    """
    try:
        cuda = ctypes.CDLL(os.environ.get(CUDA_PATH) or driver)
    except OSError:
        return False
    count = ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return False
    results = [cuda.cuDevicePrimaryCtxSetFlags_v2(gpu, _BLOCKING_SYNC) for gpu in range(count.value)]
    return not any(results)


def find_llvm(places: tuple[str, ...] = _PLACES) -> Path | None:
    """Return the newest LLVM library of a version that is known to work, or None."""
    candidates = [
        (version, path.name, path)
        for place in places
        for path in sorted(Path("/").glob(place.lstrip("/")))
        if (version := llvm_version(path)) >= OLDEST_LLVM
    ]
    return max(candidates)[-1] if candidates else None


def llvm_version(path: Path) -> int:
    """Return the major version in a library's name or folder; 0 if there is none."""
    found = re.search(r"libLLVM(?:-C)?(?:-|\.so\.|\.)(\d+)", path.name) or re.search(
        r"llvm[-@](\d+)", str(path)
    )
    return int(found.group(1)) if found else 0
