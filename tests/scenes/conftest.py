"""A renderer's back end, or the reason why there is none."""

import pytest

from primaldepth.core.errors import MissingDependencyError
from primaldepth.scenes.mitsuba_variants import choose


def _works(variant: str) -> str:
    pytest.importorskip("mitsuba", reason="Mitsuba is not installed")
    try:
        return choose(variant)
    except MissingDependencyError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def llvm() -> str:
    """The fast back end of the CPU; skipped where it does not work."""
    return _works("llvm")


@pytest.fixture(scope="session", params=["llvm", "scalar"])
def cpu_variant(request: pytest.FixtureRequest) -> str:
    """Each back end of the CPU; skipped where it does not work."""
    return _works(request.param)
