"""Shared by the whole tree: one thread per worker, and where the benchmark folders lie."""

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that spin starve the other workers

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("primaldepth", deadline=None, derandomize=True, database=None)
settings.load_profile("primaldepth")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked `gpu` are skipped where there is none."""
    if item.get_closest_marker("gpu") is not None and not torch.cuda.is_available():
        pytest.skip("no CUDA device")


@pytest.fixture(scope="session")
def benchmark_data() -> Path:
    """The folder with the benchmark's files; the test is skipped where there is none."""
    beside = Path(__file__).parents[1].parent / "shared" / "data"
    folder = Path(os.environ.get("PRIMALDEPTH_DATA") or beside)
    if not folder.is_dir():
        pytest.skip(f"no benchmark files: PRIMALDEPTH_DATA is not set and {beside} does not exist")
    return folder


@pytest.fixture
def no_waiting() -> Callable[[], AbstractContextManager[None]]:
    """A block in which waiting for the GPU is an error."""

    @contextmanager
    def block() -> Iterator[None]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that such checks are a prototype
            torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode("default")

    return block
