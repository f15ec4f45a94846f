"""One worker process, the thread that feeds it, and what happens when no answer comes."""

import logging
import multiprocessing
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from primaldepth.app.problems import INTERNAL, NOT_READY, Problem, place_of
from primaldepth.app.service_settings import ServiceSettings
from primaldepth.app.task_queue import QueuedTask, TaskQueue
from primaldepth.app.tasks import method_names
from primaldepth.app.worker import work
from primaldepth.app.worker_messages import (
    Done,
    Failed,
    Lost,
    Message,
    Preparing,
    Ready,
    Started,
    Ticket,
    receive_message,
    send_tickets,
)
from primaldepth.app.worker_time_limit import WorkerTimeLimit
from primaldepth.compute.safe_imports import safe_imports

log = logging.getLogger("primaldepth.app")
_START_SECONDS = 300.0  # a cold machine imports torch and compiles the kernels
_PAUSE_SECONDS = 1.0  # before the next try where something failed
_BYTES_PER_PIXEL, _HEADER_BYTES = 16, 2**20  # of the largest file that a worker answers with


class _WorkerProcess:
    """The worker process and the pipe to it."""

    def __init__(self, settings: ServiceSettings) -> None:
        context = multiprocessing.get_context("spawn")
        self._unprepared = set(method_names())
        self._most_bytes = _BYTES_PER_PIXEL * settings.max_pixels + _HEADER_BYTES
        self.line: Connection
        self.line, far = context.Pipe()
        self._process: SpawnProcess = context.Process(
            target=work, args=(far, settings.for_worker()), name="primaldepth-worker", daemon=True
        )
        with safe_imports():
            self._process.start()
        far.close()

    def hear(self, seconds: float) -> Message | None:
        """Return the next message, None if it does not come in time; EOFError if the process is gone."""
        try:
            if not self.line.poll(seconds):
                return None
            return receive_message(self.line, self._most_bytes)
        except OSError as error:
            raise EOFError from error

    def may_prepare(self, method: str) -> bool:
        """Whether the process may take time to prepare for a method: once for each."""
        known = method in self._unprepared
        self._unprepared.discard(method)
        return known

    def tell(self, tickets: list[Ticket]) -> None:
        """Send tickets to the worker."""
        send_tickets(self.line, tickets)

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def end(self) -> None:
        with suppress(OSError):
            self.line.close()
        self._process.kill()
        self._process.join()


class WorkerThread:
    """Takes tasks from the queue, hands them to its worker, and passes the answers on.

    Args:
        on_done: told the method and the seconds of every frame.
        on_failure: told why the worker cannot work at present.
    """

    def __init__(
        self,
        queue: TaskQueue,
        settings: ServiceSettings,
        on_done: Callable[[str, float], None] | None,
        on_failure: Callable[[Problem], None],
    ) -> None:
        self._queue, self._settings = queue, settings
        self._on_done, self._on_failure = on_done, on_failure
        self._worker: _WorkerProcess | None = None
        self.running: dict[int, QueuedTask] = {}
        self.ready = False
        self.restarts = 0
        self.thread = threading.Thread(target=self._loop, name="primaldepth-worker-thread", daemon=True)

    @property
    def worker_pid(self) -> int | None:
        """The process that computes."""
        return None if self._worker is None else self._worker.pid

    def stop(self) -> None:
        """End the worker and wait for its thread; call it after the queue was stopped."""
        if self._worker is not None:
            self._worker.end()
        if self.thread.ident is not None:
            self.thread.join(timeout=10)

    def _loop(self) -> None:
        """Serve until the queue stops; after an unexpected failure, refuse the tasks in hand and go on."""
        while not self._queue.stopped:
            try:
                self._serve_once()
            except Exception as error:
                if not self._queue.stopped:
                    log.error("the queue failed: %s", place_of(error))
                    self._fail(INTERNAL)

    def _serve_once(self) -> None:
        if self._worker is None and not self._start_worker():
            return
        self._queue.take(self._settings.batch, self.running)
        if self.running and self._worker is not None:
            self._run(self._worker)

    def _start_worker(self) -> bool:
        try:
            worker = self._worker = _WorkerProcess(self._settings)
            if self._queue.stopped:  # `stop` may have looked before there was one to end
                worker.end()
                return False
            self.ready = isinstance(worker.hear(_START_SECONDS), Ready)
        except (EOFError, OSError):
            self.ready = False
        if not self.ready and not self._queue.stopped:
            log.error("the worker did not start")
            self._fail(NOT_READY)
        return self.ready

    def _fail(self, problem: Problem) -> None:
        """Refuse what runs here, and pause before the next try."""
        self._end_worker()
        left, self.running = self.running, {}
        for queued in left.values():
            queued.refuse(problem)
        self._on_failure(problem)
        time.sleep(_PAUSE_SECONDS)

    def _end_worker(self) -> None:
        self.ready = False
        if self._worker is not None:
            self._worker.end()
        self._worker = None
        self.restarts += 1

    def _run(self, worker: _WorkerProcess) -> None:
        """Hand the tasks over and pass the answers on, until each has one or the worker is gone."""
        current: tuple[int, ...] = ()
        watch = WorkerTimeLimit(self._settings.seconds, self.running)
        try:
            worker.tell([queued.ticket for queued in self.running.values()])
            while self.running:
                message = worker.hear(watch.left)
                if message is None:
                    self._give_up(current, self._too_slow())
                    return
                if isinstance(message, Started):
                    current = message.numbers
                    watch.turn_to(current)
                elif isinstance(message, Preparing):
                    watch.pause(_START_SECONDS if worker.may_prepare(message.method) else 0.0)
                elif isinstance(message, Lost):
                    log.error("the device failed: %s", message.trace)
                    raise EOFError
                elif isinstance(message, Done | Failed):
                    self._pass_on(message)
                    watch.finish(message.number)
        except (EOFError, OSError):
            if not self._queue.stopped:
                log.error("the worker ended by itself; it is started again")
                self._give_up(current if len(current) == 1 else (), INTERNAL)

    def _pass_on(self, message: Done | Failed) -> None:
        queued = self.running[message.number]
        if isinstance(message, Done) and self._on_done is not None:
            self._on_done(queued.ticket.task.request.method, message.seconds)
        del self.running[message.number]
        if isinstance(message, Done):
            queued.answer(message.answer)
            return
        if message.trace:
            log.error("request failed: %s", message.trace)
        queued.refuse(message.problem)

    def _give_up(self, numbers: tuple[int, ...], problem: Problem) -> None:
        """End the worker; `numbers` get the problem as answer, the others are queued again, each alone."""
        self._end_worker()
        for number in numbers:
            queued = self.running.pop(number, None)
            if queued is not None:
                queued.refuse(problem)
        self._queue.put_back(self.running.values())  # first: what is in neither would count as done
        self.running.clear()

    def _too_slow(self) -> Problem:
        message = f"not computed within {self._settings.seconds:g} seconds"
        return Problem(504, "too_slow", message, "use a smaller image or a faster method")
