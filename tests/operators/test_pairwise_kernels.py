"""Every fused backend computes what the definition computes, gradients included."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import kernel_cases
import pytest
import torch
from kernel_cases import (
    AFFINITY_CASES,
    CASES,
    SAMPLE_CASES,
    affinity_errors,
    case_id,
    errors,
    problem,
    run,
    sample_case_id,
    sample_errors,
    worst,
)

from primaldepth.core.errors import InputError, MissingDependencyError
from primaldepth.operators.pairwise import backends, half_window, use_backend
from primaldepth.variational.huber_iterations import huber_iterations
from primaldepth.variational.primal_dual import State

TOLERANCE = 2e-5


def check(report):
    name, error = worst(report)
    assert error <= TOLERANCE, f"{name}: {error:.2g}"


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_numba_is_the_definition(case):
    pytest.importorskip("numba")
    check(errors("numba", case))


@pytest.mark.parametrize("case", SAMPLE_CASES, ids=sample_case_id)
def test_numba_with_samples_is_the_definition(case):
    pytest.importorskip("numba")
    check(sample_errors("numba", case))


@pytest.mark.parametrize(("size", "window"), AFFINITY_CASES)
def test_numba_makes_the_weights(size, window):
    pytest.importorskip("numba")
    check(affinity_errors("numba", size, window))


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
def test_interpreted_triton_is_the_definition():
    child = subprocess.run(
        [sys.executable, str(Path(kernel_cases.__file__)), "triton"],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-2000:]
    reports = json.loads(child.stdout)
    assert len(reports) == len(CASES) + len(SAMPLE_CASES) + len(AFFINITY_CASES)
    found = {name: worst(report) for name, report in reports.items()}
    assert {name: pair for name, pair in found.items() if not pair[1] <= TOLERANCE} == {}


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_compiled_triton_is_the_definition(case):
    check(errors("triton", case, device="cuda"))


@pytest.mark.gpu
@pytest.mark.parametrize("case", SAMPLE_CASES, ids=sample_case_id)
def test_compiled_triton_with_samples_is_the_definition(case):
    check(sample_errors("triton", case, device="cuda"))


@pytest.mark.gpu
@pytest.mark.parametrize(("size", "window"), AFFINITY_CASES)
def test_compiled_triton_makes_the_weights(size, window):
    check(affinity_errors("triton", size, window, device="cuda"))


@pytest.mark.gpu
def test_gradients_with_half_precision_storage_stay_close():
    """Where p comes near w, rounding decides whether a pair is free, so single gradients may be off."""
    name, error = worst(affinity_errors("triton", (63, 63), 7, device="cuda", storage=torch.bfloat16))
    assert error < 0.1, f"{name}: {error:.2g}"


@pytest.mark.gpu
def test_half_precision_storage_stays_close():
    from primaldepth.operators.pairwise.triton import run as fused

    arguments = [a.cuda() for a in problem((63, 63), 7, 2)]
    exact, rounded = fused(*arguments)[0], fused(*arguments, storage=torch.bfloat16)[0]
    assert (exact - rounded).abs().max() < 0.02


def test_numba_bands_meet_without_a_seam():
    """Several threads split the rows into bands; the result does not depend on how many."""
    cpu = pytest.importorskip("primaldepth.operators.threads")
    if cpu.MAX_THREADS < 2:
        pytest.skip("one core")
    arguments, before = problem((63, 9), 7, 2), torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            with torch.no_grad(), use_backend("numba"):
                results.append(run(arguments, 7))
    finally:
        torch.set_num_threads(before)
    for one, two in zip(*results, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_numba_takes_both_float_types(dtype):
    pytest.importorskip("numba")
    arguments = [a.to(dtype) for a in problem((9, 8), 5, 1)]
    with torch.no_grad(), use_backend("torch"):
        expected = run(arguments, 5)
    with torch.no_grad(), use_backend("numba"):
        found = run(arguments, 5)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == dtype
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_views_are_read_correctly():
    pytest.importorskip("numba")
    arguments = problem((7, 9), 5, 2)
    views = [a.mT.contiguous().mT if a.ndim == 4 else a for a in arguments]
    assert not views[2].is_contiguous()
    with torch.no_grad(), use_backend("numba"):
        for a, b in zip(run(views, 5), run(arguments, 5), strict=True):
            assert a.equal(b)


@pytest.mark.parametrize("name", ["numba", "triton"])
def test_a_missing_backend_is_not_replaced(name, monkeypatch):
    monkeypatch.setattr(backends, "available_backends", lambda: ("torch",))
    with pytest.raises(MissingDependencyError, match=f"'{name}' cannot run here"), use_backend(name):
        pass


@pytest.fixture
def gpu(monkeypatch):
    """A machine with a GPU and Triton, as far as the choice of a backend can see."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(backends, "find_spec", lambda name: name)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    backends.available_backends.cache_clear()
    yield
    backends.available_backends.cache_clear()


@pytest.mark.parametrize(("compiler", "headers"), [(True, True), (False, True), (True, False)])
def test_triton_gives_way_with_a_word_where_it_cannot_compile(
    gpu, monkeypatch, caplog, tmp_path, compiler, headers
):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(backends.shutil, "which", lambda name: name if compiler else None)
    monkeypatch.setattr(backends.sysconfig, "get_path", lambda name, scheme: str(tmp_path))
    if headers:
        (tmp_path / "Python.h").touch()
    assert ("triton" in backends.available_backends()) is (compiler and headers)
    said = "" if compiler and headers else "Python's headers" if compiler else "a C compiler"
    assert said in caplog.text
    assert bool(caplog.text) is bool(said)


def test_an_unknown_backend_is_an_error():
    with (
        pytest.raises(InputError, match="'cuda' is not one of auto, torch, numba, triton"),
        use_backend("cuda"),
    ):
        pass


def test_triton_refuses_data_on_the_cpu(monkeypatch):
    monkeypatch.setattr(backends, "available_backends", lambda: ("torch", "triton"))
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    arguments = problem((3, 3), 3, 1)
    with (
        use_backend("triton"),
        pytest.raises(InputError, match="runs on cuda, but the data is on cpu"),
    ):
        run(arguments, 3)


def test_numba_refuses_data_elsewhere():
    pytest.importorskip("numba")
    arguments = [a.to("meta") for a in problem((3, 3), 3, 1)]
    with (
        use_backend("numba"),
        pytest.raises(InputError, match="runs on cpu, but the data is on meta"),
    ):
        run(arguments, 3)


def test_the_choice_ends_with_its_block():
    with use_backend("torch"):
        assert backends.pick_backend(torch.zeros(1)) == "torch"
    native = "numba" if "numba" in backends.available_backends() else "torch"
    assert backends.pick_backend(torch.zeros(1)) == native
    assert backends.pick_backend(torch.zeros(1, device="meta")) == "torch"


def test_a_forced_backend_does_not_give_way():
    pytest.importorskip("numba")
    u, u_bar, p, w, f, c, rows = problem((5, 6), 3, 1)
    some = half_window(3)[:2]
    state = State(u, u_bar, (p[:, :2],))
    with (
        use_backend("numba"),
        pytest.raises(InputError, match="'numba' cannot do this: it takes a half window"),
    ):
        huber_iterations(state, w[:, :2], f, c, rows, some)
    assert huber_iterations(state, w[:, :2], f, c, rows, some).u.shape == u.shape
