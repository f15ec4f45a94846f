"""The queue before the workers, with a future for the answer of each task."""

import itertools
import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from primaldepth.app.problems import BUSY_RETRY, DRAINING, Problem, RefusedError
from primaldepth.app.tasks import Task
from primaldepth.app.worker_messages import Ticket


@dataclass(frozen=True, slots=True, eq=False)
class QueuedTask:
    """A ticket with the future of its answer; `alone` if a batch with it has failed."""

    ticket: Ticket
    future: "Future[Any]" = field(default_factory=Future)
    alone: bool = False

    def answer(self, answer: Any) -> None:
        """Set the answer, unless the client has given up."""
        with suppress(InvalidStateError):
            self.future.set_result(answer)

    def refuse(self, problem: Problem) -> None:
        """Set the problem as answer, unless the client has given up."""
        with suppress(InvalidStateError):
            self.future.set_exception(RefusedError(problem))


class TaskQueue:
    """A bounded queue from which several threads take; `changed` guards it and what they have taken."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: deque[QueuedTask] = deque()
        self._numbers = itertools.count()
        self.changed = threading.Condition()
        self.draining = self.stopped = False

    @property
    def waiting(self) -> int:
        """Tasks in the queue."""
        return len(self._waiting)

    def drain(self) -> None:
        """Refuse new work from now on; what was accepted is finished."""
        self.draining = True

    def submit(self, task: Task) -> "Future[Any]":
        """Queue a task and return the future of its answer; raise when ending or when too many wait."""
        with self.changed:
            if self.draining:
                raise RefusedError(DRAINING)
            if len(self._waiting) >= self._limit:
                message = f"{len(self._waiting)} requests wait already, as many as may"
                raise RefusedError(Problem(429, "busy", message, "try again soon", BUSY_RETRY))
            queued = QueuedTask(Ticket(next(self._numbers), task))
            self._waiting.append(queued)
            self.changed.notify()
            return queued.future

    def take(self, most: int, running: dict[int, QueuedTask]) -> None:
        """Wait for work; move up to `most` tasks into `running`, less what its client has given up."""
        with self.changed:
            while not self._waiting and not self.stopped:
                self.changed.wait()
            while self._waiting and len(running) < most:
                if running and self._waiting[0].alone:
                    return
                queued = self._waiting.popleft()
                if queued.future.running() or queued.future.set_running_or_notify_cancel():
                    running[queued.ticket.number] = queued
                if queued.alone:
                    return

    def put_back(self, tasks: Iterable[QueuedTask]) -> None:
        """Put tasks first in line again, each to be computed alone."""
        with self.changed:
            self._waiting.extendleft(reversed([replace(queued, alone=True) for queued in tasks]))
            self.changed.notify_all()

    def clear(self) -> list[QueuedTask]:
        """Take out and return everything that waits."""
        with self.changed:
            left = list(self._waiting)
            self._waiting.clear()
        return left

    def stop(self) -> None:
        """Wake all threads that wait for work, and let none wait again."""
        with self.changed:
            self.draining = self.stopped = True
            self.changed.notify_all()
