"""What is not answered when the service ends is refused, wherever it is at that moment."""

import pytest

from primaldepth.app.engine import Engine
from primaldepth.app.problems import RefusedError
from primaldepth.app.settings import ServiceSettings
from primaldepth.app.tasks import Task


class _Leaving:
    """A lane that, told to stop, first ends what its worker was at."""

    def __init__(self, engine, running, end):
        self._engine, self.running, self._end = engine, running, end

    def stop(self):
        self._end(self)

    def put_back(self):
        self._engine._orders.put_back(self.running.values())
        self.running.clear()


@pytest.mark.parametrize("end", [_Leaving.put_back, lambda lane: None])
def test_orders_that_a_lane_lets_go_of_are_refused(tmp_path, end):
    engine = Engine(ServiceSettings(device="cpu"))
    promises = [engine.submit(Task(tmp_path, "nearest", finish=print)) for _ in range(3)]
    running = {}
    engine._orders.take(2, running)
    engine.lanes = [_Leaving(engine, running, end)]
    engine.stop()
    for promise in promises:
        with pytest.raises(RefusedError, match="end"):
            promise.result(timeout=1)
