"""The queue and the workers behind it, as one thing that takes tasks and promises answers."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from primaldepth.app.problems import DRAINING, Problem
from primaldepth.app.service_settings import ServiceSettings
from primaldepth.app.task_queue import TaskQueue
from primaldepth.app.tasks import Task
from primaldepth.app.worker_thread import WorkerThread


class Engine:
    """A bounded queue, and threads that take from it, each with a worker process of its own."""

    def __init__(
        self, settings: ServiceSettings, on_done: Callable[[str, float], None] | None = None
    ) -> None:
        self._queue = TaskQueue(settings.queue)
        self.workers = [
            WorkerThread(self._queue, settings, on_done, self._worker_failed) for _ in range(settings.workers)
        ]

    def start(self) -> None:
        """Start the workers; `ready` turns True when one waits for work."""
        for worker in self.workers:
            worker.thread.start()

    def submit(self, task: Task) -> "Future[Any]":
        """Queue a task and return the future of its answer; raise when ending or when too many wait."""
        return self._queue.put(task)

    @property
    def ready(self) -> bool:
        """Whether a worker waits for work or works."""
        return any(worker.ready for worker in self.workers)

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """Requests the workers have."""
        return sum(len(worker.running) for worker in self.workers)

    @property
    def restarts(self) -> int:
        """How often a worker was started again."""
        return sum(worker.restarts for worker in self.workers)

    @property
    def draining(self) -> bool:
        """Whether new work is refused because the service ends."""
        return self._queue.draining

    def drain(self) -> None:
        """Refuse new work from now on; what was accepted is finished."""
        self._queue.draining = True

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing runs."""
        with self._queue.changed:
            return not self._queue and not self.running

    def stop(self) -> None:
        """End the workers; what is not answered by then is refused."""
        self._queue.stop()
        for worker in self.workers:
            worker.stop()
        running = [queued for worker in self.workers for queued in list(worker.running.values())]
        for queued in (*self._queue.clear(), *running):
            queued.refuse(DRAINING)

    def _worker_failed(self, problem: Problem) -> None:
        """What waits is refused only where nobody is left to compute it."""
        if not self.ready:
            for queued in self._queue.clear():
                queued.refuse(problem)
