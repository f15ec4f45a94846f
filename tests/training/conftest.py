"""Scenes that all runs of the tests learn from."""

from pathlib import Path

import pytest
from toy_runs import recipe, run, write_scenes

from primaldepth.training import callbacks


@pytest.fixture(scope="session")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scenes(tmp_path_factory.mktemp("scenes") / "toy")


@pytest.fixture(scope="session")
def finished(shards: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run of the toy recipe, with a line of log every 5 steps."""
    out = tmp_path_factory.mktemp("run") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(callbacks, "LOG_EVERY", 5)
        run(recipe(), shards, out)
    return out


@pytest.fixture(autouse=True)
def frequent_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks, "LOG_EVERY", 5)
