"""What is not answered when the service ends is refused, wherever it is at that moment."""

import pytest

from primaldepth.app.engine import Engine
from primaldepth.app.problems import RefusedError
from primaldepth.app.service_settings import ServiceSettings
from primaldepth.app.tasks import OneFile, Task
from primaldepth.pipeline.request import Request

PNG = OneFile("image/png")


class _LettingGo:
    """A worker whose thread puts its tasks back into the queue just when one looks for them."""

    def __init__(self, queue):
        self._queue, self._held = queue, {}
        queue.take(2, self._held)

    @property
    def running(self):
        self._queue.put_back(self._held.values())
        self._held.clear()
        return self._held

    def stop(self):
        """It has no worker."""


def test_tasks_that_a_worker_lets_go_of_are_refused(tmp_path):
    engine = Engine(ServiceSettings(device="cpu"))
    promises = [engine.submit(Task(tmp_path, Request("nearest"), wanted=PNG)) for _ in range(3)]
    engine.workers = [_LettingGo(engine)]
    engine.stop()
    for promise in promises:
        with pytest.raises(RefusedError, match="end"):
            promise.result(timeout=1)
