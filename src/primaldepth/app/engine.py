"""The queue and the workers behind it, as one thing that takes tasks and promises answers."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from primaldepth.app.problems import DRAINING, Problem
from primaldepth.app.settings import ServiceSettings
from primaldepth.app.task_queue import TaskQueue
from primaldepth.app.tasks import Task
from primaldepth.app.worker_thread import WorkerThread


class Engine:
    """A bounded queue, and lanes that take from it, each with a worker of its own."""

    def __init__(
        self, settings: ServiceSettings, on_done: Callable[[str, float], None] | None = None
    ) -> None:
        self._orders = TaskQueue(settings.queue)
        self.lanes = [
            WorkerThread(self._orders, settings, on_done, self._lane_failed) for _ in range(settings.workers)
        ]

    def start(self) -> None:
        """Start the workers; `ready` turns True when one waits for work."""
        for lane in self.lanes:
            lane.thread.start()

    def submit(self, task: Task) -> "Future[Any]":
        """The promise of the task's answer; refuses when ending or when too many wait."""
        return self._orders.put(task)

    @property
    def ready(self) -> bool:
        """Whether a worker waits for work or works."""
        return any(lane.ready for lane in self.lanes)

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._orders)

    @property
    def running(self) -> int:
        """Requests the workers have."""
        return sum(len(lane.running) for lane in self.lanes)

    @property
    def restarts(self) -> int:
        """How often a worker was started again."""
        return sum(lane.restarts for lane in self.lanes)

    @property
    def draining(self) -> bool:
        """Whether new work is refused because the service ends."""
        return self._orders.draining

    def drain(self) -> None:
        """From now on new work is refused; what was accepted is finished."""
        self._orders.draining = True

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing runs."""
        with self._orders.changed:
            return not self._orders and not self.running

    def stop(self) -> None:
        """End the workers; what is not answered by then is refused."""
        self._orders.stop()
        for lane in self.lanes:
            lane.stop()
        running = [order for lane in self.lanes for order in list(lane.running.values())]
        for order in (*self._orders.clear(), *running):
            order.refuse(DRAINING)

    def _lane_failed(self, problem: Problem) -> None:
        """What waits is refused only where nobody is left to compute it."""
        if not self.ready:
            for order in self._orders.clear():
                order.refuse(problem)
