"""A back end that crashes takes its own process down and no other."""

import ctypes
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from primaldepth.core.errors import InputError, MissingDependencyError
from primaldepth.scenes import mitsuba_variants
from primaldepth.scenes.mitsuba_variants import (
    VariantTrial,
    find_llvm,
    llvm_version,
    sleep_while_waiting,
    trial_of,
)


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def test_a_child_that_crashes_is_a_variant_that_does_not_work() -> None:
    trial = trial_of("llvm", python("import os; os.abort()"))
    assert not trial.works
    assert "libllvm19" in trial.reason  # what to install


def test_a_child_that_raises_hands_on_its_last_line() -> None:
    trial = trial_of("cuda", python("raise RuntimeError('no device')"))
    assert trial == VariantTrial("cuda", False, "RuntimeError: no device")


def test_a_child_that_hangs_or_is_missing_is_given_up() -> None:
    assert "did not end" in trial_of("cuda", python("import time; time.sleep(60)"), limit_s=0.5).reason
    assert "could not be started" in trial_of("cuda", ["/nowhere/python"]).reason


def test_a_child_that_ends_well_works() -> None:
    assert trial_of("scalar", python("")) == VariantTrial("scalar", True)


def test_auto_goes_on_and_a_name_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        mitsuba_variants, "tried", lambda name: VariantTrial(name, name == "scalar", f"{name} is broken")
    )
    assert mitsuba_variants.choose("auto") == "scalar"
    with pytest.raises(MissingDependencyError, match="variant llvm: llvm is broken"):
        mitsuba_variants.choose("llvm")
    with pytest.raises(InputError, match="'vulkan' is unknown; known: auto, cuda, llvm, scalar"):
        mitsuba_variants.choose("vulkan")


def test_what_works_is_remembered_for_child_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(
        mitsuba_variants, "trial_of", lambda name, _: (calls.append(name), VariantTrial(name, True))[1]
    )
    monkeypatch.setenv("PRIMALDEPTH_WORKING_VARIANTS", "")
    mitsuba_variants.tried.cache_clear()
    try:
        assert mitsuba_variants.choose("scalar") == "scalar"
        assert os.environ["PRIMALDEPTH_WORKING_VARIANTS"] == "scalar"
        mitsuba_variants.tried.cache_clear()  # as in a process started from here
        assert mitsuba_variants.choose("scalar") == "scalar"
        assert calls == ["scalar"]
    finally:
        mitsuba_variants.tried.cache_clear()


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("libLLVM.so.19.1", 19),
        ("libLLVM-15.so.1", 15),
        ("libLLVM-14.0.6.so.1", 14),
        ("libLLVM.18.dylib", 18),
        ("llvm-17/lib/libLLVM.so", 17),
        ("llvm@20/lib/libLLVM.dylib", 20),
        ("libLLVM.so", 0),
    ],
)
def test_versions_are_read_from_names(name: str, version: int) -> None:
    assert llvm_version(Path("/usr/lib") / name) == version


def test_the_newest_usable_library_is_found(tmp_path: Path) -> None:
    place = (f"{tmp_path}/libLLVM*.so*",)
    for name in ("libLLVM-15.so.1", "libLLVM-16.so.1"):
        (tmp_path / name).touch()
    assert find_llvm(place) is None
    for name in ("libLLVM-17.so.1", "libLLVM.so.19.1", "libLLVM-18.so.1"):
        (tmp_path / name).touch()
    assert find_llvm(place) == tmp_path / "libLLVM.so.19.1"


def test_a_library_the_user_names_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRJIT_LIBLLVM_PATH", "/my/libLLVM.so")
    mitsuba_variants.prepare("llvm")
    assert os.environ["DRJIT_LIBLLVM_PATH"] == "/my/libLLVM.so"


def driver(flags: dict[int, int], initialised: int = 0) -> SimpleNamespace:
    """A CUDA driver that notes the flags set for each of its two GPUs."""

    def count_gpus(count: Any) -> int:
        count._obj.value = 2
        return 0

    def set_flags(gpu: int, value: int) -> int:
        flags[gpu] = value
        return 0

    return SimpleNamespace(
        cuInit=lambda _: initialised,
        cuDeviceGetCount=count_gpus,
        cuDevicePrimaryCtxSetFlags_v2=set_flags,
    )


def test_every_gpu_is_waited_for_asleep(monkeypatch: pytest.MonkeyPatch) -> None:
    flags: dict[int, int] = {}
    monkeypatch.setattr(ctypes, "CDLL", lambda _: driver(flags))
    assert sleep_while_waiting()
    assert flags == {0: 4, 1: 4}  # CU_CTX_SCHED_BLOCKING_SYNC


def test_without_a_driver_or_a_gpu_nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not sleep_while_waiting("libnowhere.so")
    flags: dict[int, int] = {}
    monkeypatch.setattr(ctypes, "CDLL", lambda _: driver(flags, initialised=100))  # CUDA_ERROR_NO_DEVICE
    assert not sleep_while_waiting()
    assert not flags
