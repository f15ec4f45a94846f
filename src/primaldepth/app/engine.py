"""The queue before the worker: who waits, who is computed, and what happens when no answer comes."""

import itertools
import logging
import multiprocessing
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from primaldepth.app.problems import (
    BUSY_RETRY,
    DRAINING,
    INTERNAL,
    NOT_READY,
    Problem,
    RefusedError,
    place_of,
)
from primaldepth.app.settings import ServiceSettings
from primaldepth.app.tasks import Task
from primaldepth.app.worker import Done, Failed, Message, Ready, Started, Ticket, work

log = logging.getLogger("primaldepth.app")
_START_SECONDS = 300.0  # a cold machine imports torch and compiles the kernels
_PAUSE_SECONDS = 1.0  # before the next try where something failed


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """A ticket with the promise of its answer; `alone` where a batch with it has ended badly."""

    ticket: Ticket
    future: "Future[Any]" = field(default_factory=Future)
    alone: bool = False


class _Worker:
    """The process and the line to it."""

    def __init__(self, settings: ServiceSettings) -> None:
        context = multiprocessing.get_context("spawn")
        self.line: Connection
        self.line, far = context.Pipe()
        self._process: SpawnProcess = context.Process(
            target=work, args=(far, settings), name="primaldepth-worker", daemon=True
        )
        self._process.start()
        far.close()

    def hear(self, seconds: float) -> Message | None:
        """The next message, or None if it does not come in time; EOFError if the process is gone."""
        try:
            if not self.line.poll(seconds):
                return None
            message: Message = self.line.recv()
            return message
        except OSError as error:
            raise EOFError from error

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def end(self) -> None:
        with suppress(OSError):
            self.line.close()
        self._process.kill()
        self._process.join()


class Engine:
    """A bounded queue, one thread that feeds the worker, and futures for the answers."""

    def __init__(
        self, settings: ServiceSettings, on_done: Callable[[str, float], None] | None = None
    ) -> None:
        self._settings, self._on_done = settings, on_done
        self._orders: deque[_Order] = deque()
        self._running: dict[int, _Order] = {}
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        self._draining = self._stopped = False
        self._worker: _Worker | None = None
        self.ready = False
        self.restarts = 0
        self._thread = threading.Thread(target=self._loop, name="primaldepth-engine", daemon=True)

    def start(self) -> None:
        """Start the worker; `ready` turns True when it waits for work."""
        self._thread.start()

    def submit(self, task: Task) -> "Future[Any]":
        """The promise of the task's answer; refuses when ending or when too many wait."""
        with self._changed:
            if self._draining:
                raise RefusedError(DRAINING)
            if len(self._orders) >= self._settings.queue:
                message = f"{len(self._orders)} requests wait already, as many as may"
                raise RefusedError(Problem(429, "busy", message, "try again soon", BUSY_RETRY))
            order = _Order(Ticket(next(self._numbers), task))
            self._orders.append(order)
            self._changed.notify_all()
            return order.future

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._orders)

    @property
    def running(self) -> int:
        """Requests the worker has."""
        return len(self._running)

    @property
    def draining(self) -> bool:
        """Whether new work is refused because the service ends."""
        return self._draining

    @property
    def worker_pid(self) -> int | None:
        """The process that computes, for those who watch its memory."""
        return None if self._worker is None else self._worker.pid

    def drain(self) -> None:
        """From now on new work is refused; what was accepted is finished."""
        with self._changed:
            self._draining = True

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing runs."""
        with self._changed:
            return not self._orders and not self._running

    def stop(self) -> None:
        """End the worker; what is not answered by then is refused."""
        with self._changed:
            self._draining = self._stopped = True
            left = [*self._orders, *self._running.values()]
            self._orders.clear()
            self._changed.notify_all()
        worker = self._worker
        if worker is not None:
            worker.end()
        if self._thread.ident is not None:
            self._thread.join(timeout=10)
        for order in left:
            _refuse(order, DRAINING)

    def _loop(self) -> None:
        """Serve until told to stop; a failure here is answered to all and survived."""
        while not self._stopped:
            try:
                self._serve_once()
            except Exception as error:
                if not self._stopped:
                    log.error("the queue failed: %s", place_of(error))
                    self._end_worker()
                    self._refuse_all(INTERNAL)
                    time.sleep(_PAUSE_SECONDS)

    def _serve_once(self) -> None:
        if self._worker is None and not self._start_worker():
            return
        self._take_orders()
        if self._running and self._worker is not None:
            self._run(self._worker)

    def _start_worker(self) -> bool:
        try:
            worker = self._worker = _Worker(self._settings)
            if self._stopped:  # `stop` may have looked before there was one to end
                worker.end()
                return False
            self.ready = isinstance(worker.hear(_START_SECONDS), Ready)
        except (EOFError, OSError):
            self.ready = False
        if not self.ready and not self._stopped:
            log.error("the worker did not start")
            self._end_worker()
            self._refuse_all(NOT_READY)
            time.sleep(_PAUSE_SECONDS)
        return self.ready

    def _refuse_all(self, problem: Problem) -> None:
        with self._changed:
            left = [*self._running.values(), *self._orders]
            self._running.clear()
            self._orders.clear()
        for order in left:
            _refuse(order, problem)

    def _end_worker(self) -> None:
        self.ready = False
        if self._worker is not None:
            self._worker.end()
        self._worker = None
        self.restarts += 1

    def _take_orders(self) -> None:
        """Wait for work; take as much as one batch may have, less what its client has given up."""
        with self._changed:
            while not self._orders and not self._stopped:
                self._changed.wait()
            while self._orders and len(self._running) < self._settings.batch:
                if self._running and self._orders[0].alone:
                    return
                order = self._orders.popleft()
                if order.future.running() or order.future.set_running_or_notify_cancel():
                    self._running[order.ticket.number] = order
                if order.alone:
                    return

    def _run(self, worker: _Worker) -> None:
        """Hand the orders over and pass the answers on, until each has one or the worker is gone."""
        current: tuple[int, ...] = ()
        try:
            worker.line.send([order.ticket for order in self._running.values()])
            while self._running:
                message = worker.hear(self._settings.seconds * max(1, len(current)))
                if message is None:
                    self._give_up(current, self._too_slow())
                    return
                if isinstance(message, Started):
                    current = message.numbers
                elif isinstance(message, Done | Failed):
                    self._pass_on(message)
        except (EOFError, OSError):
            if not self._stopped:
                log.error("the worker ended by itself; it is started again")
                self._give_up(current if len(current) == 1 else (), INTERNAL)

    def _pass_on(self, message: Done | Failed) -> None:
        order = self._running[message.number]
        if isinstance(message, Done) and self._on_done is not None:
            self._on_done(order.ticket.task.method, message.seconds)
        del self._running[message.number]
        if isinstance(message, Done):
            with suppress(InvalidStateError):
                order.future.set_result(message.answer)
            return
        if message.trace:
            log.error("request failed: %s", message.trace)
        _refuse(order, message.problem)

    def _give_up(self, numbers: tuple[int, ...], problem: Problem) -> None:
        """End the worker; `numbers` get the problem as answer, the others are queued again, each alone."""
        self._end_worker()
        for number in numbers:
            order = self._running.pop(number, None)
            if order is not None:
                _refuse(order, problem)
        with self._changed:
            again = [replace(order, alone=True) for order in self._running.values()]
            self._running.clear()
            self._orders.extendleft(reversed(again))

    def _too_slow(self) -> Problem:
        message = f"not computed within {self._settings.seconds:g} seconds"
        return Problem(504, "too_slow", message, "use a smaller image or a faster method")


def _refuse(order: _Order, problem: Problem) -> None:
    with suppress(InvalidStateError):  # its client has given it up
        order.future.set_exception(RefusedError(problem))
