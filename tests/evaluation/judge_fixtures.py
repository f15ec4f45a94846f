"""What the judge's tests share."""

import pytest
from small_benchmark import freeze


@pytest.fixture
def small(tmp_path):
    """(protocol, data): noisy-middlebury on two small scenes."""
    return freeze(tmp_path), tmp_path


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """No test sees what another one, or the user, has computed."""
    monkeypatch.setenv("PRIMALDEPTH_CACHE", str(tmp_path / "cache"))
