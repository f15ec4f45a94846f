"""A worker that keeps every frame for METHOD until it is let go, or for two minutes if that is forgotten."""

import os
from pathlib import Path

from primaldepth.app import worker
from waiting import wait_until

METHOD = "nearest"
_FOLDER = "PRIMALDEPTH_HELD_WORKER"  # the worker finds its files in the folder that this variable names


class Gate:
    """What a test sees of such workers; those started after it was made look at it."""

    def __init__(self, folder, monkeypatch):
        self._folder = folder
        monkeypatch.setenv(_FOLDER, str(folder))
        monkeypatch.setattr("primaldepth.app.worker_thread.work", work)

    @property
    def holds(self):
        """Whether a frame has come so far."""
        return (self._folder / "held").exists()

    def let_go(self):
        (self._folder / "go").touch()


def work(connection, settings):
    create = worker.create

    def create_when_let_go(name):
        if name == METHOD:
            _wait(Path(os.environ[_FOLDER]))
        return create(name)

    worker.create = create_when_let_go
    worker._WorkerLoop._prepare = lambda self, method: None
    worker.work(connection, settings)


def _wait(folder):
    (folder / "held").touch()
    wait_until((folder / "go").exists)
