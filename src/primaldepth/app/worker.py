"""The process that decodes and computes: it can be killed, and a crash in it ends nothing else.

It receives tickets, and reports when it starts on some of them and how each one ended. Frames with the same
method and the same sizes are computed as one batch.
"""

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import Tensor

from primaldepth.app.frame_trials import Trial, attempt
from primaldepth.app.page.result_files import Drawn, draw
from primaldepth.app.problems import INTERNAL, Problem, place_of, problem_of
from primaldepth.app.response_formats import Answer, answer_to, result_file
from primaldepth.app.service_settings import ServiceSettings
from primaldepth.app.tasks import OneFile, PageFiles, Task
from primaldepth.app.worker_messages import (
    Done,
    Failed,
    Lost,
    Preparing,
    Ready,
    Started,
    Ticket,
    receive_tickets,
    send_message,
)
from primaldepth.compute.device import pick_device
from primaldepth.compute.end_with_parent import end_with_parent
from primaldepth.core.errors import PrimalDepthError, is_out_of_memory
from primaldepth.core.frame import Frame, Prediction
from primaldepth.io.formats.base import size_limit
from primaldepth.methods import create
from primaldepth.pipeline.load import Inputs, load
from primaldepth.pipeline.outcome import outcome_of
from primaldepth.pipeline.output_checks import check_inputs, check_method


@dataclass(frozen=True, slots=True)
class _Loaded:
    ticket: Ticket
    inputs: Inputs

    @property
    def key(self) -> tuple[Any, ...]:
        frame = self.inputs.frame
        kind = frame.confidence is None, frame.sampling, frame.registered, frame.background is None
        return self.ticket.task.request.method, frame.depth.shape, frame.guide.shape, *kind

    @property
    def pixels(self) -> int:
        height, width = self.inputs.frame.high_size
        return height * width


def work(connection: Connection, settings: ServiceSettings) -> None:
    """Serve tickets until the other end is closed, the service has died or the device is lost.

    Args:
        connection: to the service.
        settings: of the service.
    """
    end_with_parent()
    for name in (signal.SIGINT, signal.SIGTERM):  # meant for the service, which lets this process finish
        signal.signal(name, signal.SIG_IGN)
    torch.set_num_threads(max(1, torch.get_num_threads() // settings.workers))
    worker = _WorkerLoop(connection, settings, pick_device(settings.device))
    try:
        worker.warm_up()
        send_message(connection, Ready())
        while True:
            worker.serve(receive_tickets(connection))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


class _WorkerLoop:
    def __init__(self, connection: Connection, settings: ServiceSettings, device: torch.device) -> None:
        self._connection, self._settings, self._device = connection, settings, device
        self._prepared: set[str] = set()  # methods whose kernels are compiled

    def warm_up(self) -> None:
        """Run the default method once, so that its kernels are compiled before the first request."""
        self._compute_little(self._settings.method)
        if self._device.type == "cpu":
            _limit_memory(self._settings.memory_gib / self._settings.workers)

    def _compute_little(self, method: str) -> None:
        """Compute a small frame, so that kernels are compiled, which can take most of a minute."""
        self._prepared.add(method)
        depth = torch.linspace(1.0, 2.0, 64).view(1, 1, 8, 8)
        frame = Frame(depth, depth > 0, torch.rand(1, 3, 16, 16), None, torch.full_like(depth, 0.01))
        with torch.no_grad():
            create(method)(frame.to(self._device))

    def _prepare(self, method: str) -> None:
        """Compile what a method needs, and report it: this time is not charged to the request that waits."""
        if method not in self._prepared:
            self._say(Preparing(method))
            with suppress(Exception):  # the request meets it again, and is told
                self._compute_little(method)

    def serve(self, tickets: Sequence[Ticket]) -> None:
        """Answer every ticket; hold no more pixels in memory at a time than the limit allows."""
        held: list[_Loaded] = []
        for ticket in tickets:
            if isinstance(ticket.task.wanted, Trial):
                self._attempt(ticket, ticket.task.wanted)
                continue
            loaded = self._load(ticket)
            if loaded is None:
                continue
            if sum(each.pixels for each in held) + loaded.pixels > self._settings.max_pixels:
                self._compute_all(held)
                held = []
            held.append(loaded)
        self._compute_all(held)

    def _say(self, message: Started | Preparing | Done | Failed | Lost) -> None:
        send_message(self._connection, message)

    def _load(self, ticket: Ticket) -> _Loaded | None:
        self._say(Started((ticket.number,)))
        try:
            with size_limit(self._settings.max_pixels, self._settings.max_side):
                loaded = _Loaded(ticket, load(ticket.task.item, ticket.task.request))
                _check_output(ticket.task, loaded.inputs)
                return loaded
        except Exception as error:
            self._say(_failed(ticket, error))
        return None

    def _attempt(self, ticket: Ticket, trial: Trial) -> None:
        """Answer a trial, which shares no batch."""
        task = ticket.task
        self._prepare(task.request.method)
        self._say(Started((ticket.number,)))
        start = time.perf_counter()
        try:
            with size_limit(self._settings.max_pixels, self._settings.max_side), torch.no_grad():
                files = task.folder / "depth", task.folder / "guide"
                tried = attempt(trial, create(task.request.method), files, task.request.unit, self._device)
        except Exception as error:
            self._check_device(error)
            self._say(_failed(ticket, error))
            return
        self._say(Done(ticket.number, tried, time.perf_counter() - start))

    def _check_device(self, error: Exception) -> None:
        """If this error means that the device is lost, report it and end the process."""
        if not is_out_of_memory(error) and _is_lost(self._device):
            self._say(Lost(place_of(error)))
            raise EOFError from error

    def _compute_all(self, held: Sequence[_Loaded]) -> None:
        for group in _groups(held):
            self._prepare(group[0].ticket.task.request.method)
            self._say(Started(tuple(each.ticket.number for each in group)))
            try:
                answers = self._compute(group)
            except Exception as error:
                self._check_device(error)
                if len(group) > 1:  # one of them may be at fault: none shall suffer for it
                    for each in group:
                        self._compute_all([each])
                    continue
                answers = [_failed(group[0].ticket, error)]
            for answer in answers:
                self._say(answer)

    def _compute(self, group: Sequence[_Loaded]) -> list[Done | Failed]:
        start = time.perf_counter()
        frame = _joined([each.inputs.frame for each in group]).to(self._device)
        with torch.no_grad():
            prediction = create(group[0].ticket.task.request.method)(frame)
        if self._device.type == "cuda":
            torch.cuda.synchronize()
        seconds = (time.perf_counter() - start) / len(group)
        results = (prediction.image(index).to("cpu").depths_only() for index in range(len(group)))
        return [_finished(each, result, seconds) for each, result in zip(group, results, strict=True)]


def _is_lost(device: torch.device) -> bool:
    """Whether CUDA refuses this process for good, as after an illegal access or a failed assertion."""
    if device.type != "cuda":
        return False
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def _finished(loaded: _Loaded, prediction: Prediction, seconds: float) -> Done | Failed:
    task = loaded.ticket.task
    answer: Answer | Drawn
    try:
        outcome = outcome_of(task.request, loaded.inputs, prediction, seconds)
        if isinstance(task.wanted, OneFile):
            answer = answer_to(task.wanted, task.folder, outcome)
        elif isinstance(task.wanted, PageFiles):
            answer = draw(outcome, folder=task.wanted.folder, prefix=task.wanted.prefix)
        else:
            raise TypeError("trials are answered before a frame is loaded")
    except Exception as error:
        return _failed(loaded.ticket, error)
    return Done(loaded.ticket.number, answer, seconds)


def _check_output(task: Task, inputs: Inputs) -> None:
    """Raise, before the work is done, if the output that is asked for could not be made or stored."""
    outputs = {}
    if isinstance(task.wanted, OneFile):
        outputs[task.wanted.output] = result_file(task.folder, task.wanted)
    check_method(outputs, task.request, create(task.request.method))
    check_inputs(outputs, inputs)


def _failed(ticket: Ticket, error: Exception) -> Failed:
    if isinstance(error, PrimalDepthError):
        return Failed(ticket.number, problem_of(error, ticket.task.folder))
    if is_out_of_memory(error):
        hint = "use smaller images or another method"
        return Failed(
            ticket.number, Problem(413, "out_of_memory", "not enough memory for this request", hint)
        )
    return Failed(ticket.number, INTERNAL, place_of(error))


def _groups(held: Sequence[_Loaded]) -> Iterator[list[_Loaded]]:
    """Yield the frames that can be computed as one batch, in the order in which the first of each came."""
    found: dict[tuple[Any, ...], list[_Loaded]] = {}
    for each in held:
        found.setdefault(each.key, []).append(each)
    yield from found.values()


def _joined(frames: Sequence[Frame]) -> Frame:
    if len(frames) == 1:
        return frames[0]
    return Frame(
        depth=torch.cat([frame.depth for frame in frames]),
        valid=torch.cat([frame.valid for frame in frames]),
        guide=torch.cat([frame.guide for frame in frames]),
        confidence=_all_or_none([frame.confidence for frame in frames]),
        sigma=_all_or_none([frame.sigma for frame in frames]),
        sampling=frames[0].sampling,
        registered=frames[0].registered,
        background=_all_or_none([frame.background for frame in frames]),
    )


def _all_or_none(maps: Sequence[Tensor | None]) -> Tensor | None:
    found = [each for each in maps if each is not None]
    return torch.cat(found) if len(found) == len(maps) else None


def _limit_memory(gib: float) -> None:
    try:
        import resource
    except ImportError:  # not on this platform: the limits on bytes and pixels remain
        return
    most = int(gib * 2**30)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(
        resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
    )
