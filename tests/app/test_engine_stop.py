"""What is not answered when the service ends is refused, wherever it is at that moment."""

import pytest

from primaldepth.app.engine import Engine
from primaldepth.app.problems import RefusedError
from primaldepth.app.settings import ServiceSettings
from primaldepth.app.tasks import OneFile, Task
from primaldepth.pipeline.request import Request

PNG = OneFile("image/png")


class _LettingGo:
    """A lane whose thread puts its orders back into the queue just when one looks for them."""

    def __init__(self, orders):
        self._orders, self._held = orders, {}
        orders.take(2, self._held)

    @property
    def running(self):
        self._orders.put_back(self._held.values())
        self._held.clear()
        return self._held

    def stop(self):
        """It has no worker."""


def test_orders_that_a_lane_lets_go_of_are_refused(tmp_path):
    engine = Engine(ServiceSettings(device="cpu"))
    promises = [engine.submit(Task(tmp_path, Request("nearest"), wanted=PNG)) for _ in range(3)]
    engine.lanes = [_LettingGo(engine._orders)]
    engine.stop()
    for promise in promises:
        with pytest.raises(RefusedError, match="end"):
            promise.result(timeout=1)
