"""The queue and its workers as one object: tasks go in, futures of their answers come out."""

from collections.abc import Callable

from primaldepth.app.problems import DRAINING, Problem
from primaldepth.app.service_settings import ServiceSettings
from primaldepth.app.task_queue import TaskQueue
from primaldepth.app.worker_thread import WorkerThread


class Engine(TaskQueue):
    """A bounded queue with threads that take from it, each with a worker process of its own.

    Args:
        settings: of the service.
        on_done: told the method and the seconds of every frame.
    """

    def __init__(
        self, settings: ServiceSettings, on_done: Callable[[str, float], None] | None = None
    ) -> None:
        super().__init__(settings.queue)
        self.workers = [
            WorkerThread(self, settings, on_done, self._worker_failed) for _ in range(settings.workers)
        ]

    def start(self) -> None:
        """Start the workers; `ready` turns True when one waits for work."""
        for worker in self.workers:
            worker.thread.start()

    @property
    def ready(self) -> bool:
        """Whether a worker has started and can take work."""
        return any(worker.ready for worker in self.workers)

    @property
    def running(self) -> int:
        """Number of requests that the workers are computing."""
        return sum(len(worker.running) for worker in self.workers)

    @property
    def restarts(self) -> int:
        """How often a worker was started again."""
        return sum(worker.restarts for worker in self.workers)

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing runs."""
        with self.changed:
            return not self.waiting and not self.running

    def stop(self) -> None:
        """End the workers; what is not answered by then is refused."""
        super().stop()
        for worker in self.workers:
            worker.stop()
        running = [queued for worker in self.workers for queued in list(worker.running.values())]
        for queued in (*self.clear(), *running):
            queued.refuse(DRAINING)

    def _worker_failed(self, problem: Problem) -> None:
        """Refuse the tasks in the queue if no worker is left to compute them."""
        if not self.ready:
            for queued in self.clear():
                queued.refuse(problem)
