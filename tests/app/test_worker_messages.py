"""What travels between the service and its workers is JSON and raw bytes; a pickle is not even opened."""

import os
from multiprocessing import Pipe
from pathlib import Path

import pytest
import torch
from malformed import good_files

from primaldepth.app import worker_thread
from primaldepth.app.engine import Engine
from primaldepth.app.page.result_files import Drawn
from primaldepth.app.problems import NOT_READY, RefusedError
from primaldepth.app.response_formats import Answer
from primaldepth.app.service_settings import ServiceSettings
from primaldepth.app.tasks import OneFile, PageFiles, Task
from primaldepth.app.worker import _WorkerLoop
from primaldepth.app.worker_messages import (
    Done,
    Failed,
    Lost,
    Preparing,
    Ready,
    Started,
    Ticket,
    receive_message,
    receive_tickets,
    send_message,
    send_tickets,
)
from primaldepth.pipeline.request import Request

MARK = "PRIMALDEPTH_PICKLE_MARK"
DRAWN = Drawn(
    before=Path("/a/before.png"),
    after=Path("/a/after.png"),
    guide=Path("/a/guide.png"),
    bar="<b>ä</b>",
    residual=Path("/a/residual.png"),
    residual_bar="",
    sigma=None,
    sigma_bar="",
    histogram="<svg/>",
    mesh_before=None,
    mesh_after=Path("/a/mesh.glb"),
    files=(Path("/a/depth.png"), Path("/a/depth.exr")),
    report={"method": "bilinear", "input_size": [8, 6], "median_depth": None, "warnings": ["w"]},
)
MESSAGES = [
    Ready(),
    Started((1, 2)),
    Preparing("nearest"),
    Done(3, Answer(bytes(range(256)) * 64, "image/png", "{}"), 0.25),
    Done(3, Answer(b"", "image/png", "{}"), 0.25),
    Done(4, DRAWN, 1.5),
    Failed(5, NOT_READY, "ValueError at a.py:1"),
    Lost("RuntimeError at b.py:2"),
]


@pytest.fixture
def line():
    near, far = Pipe()
    with near, far:
        yield near, far


@pytest.mark.parametrize("message", MESSAGES, ids=lambda each: each.says)
def test_a_message_arrives_as_it_was_sent(line, message):
    near, far = line
    send_message(far, message)
    assert receive_message(near, 2**20) == message


def test_tickets_arrive_as_they_were_sent(line):
    near, far = line
    plain = Task(Path("/u"), Request("nearest", "mm", "z", "5", holes="keep"), OneFile("image/png"))
    page = Task(Path("/u"), Request("nearest", spikes="keep"), PageFiles(Path("/r"), "a-"))
    tickets = [Ticket(7, plain), Ticket(8, page)]
    send_tickets(near, tickets)
    assert receive_tickets(far) == tickets


@pytest.mark.parametrize("words", [b"", b"{}", b"[]", b'{"says": "ready', b'{"says": "run"}', b"\x80\x04."])
def test_what_is_no_message_is_the_end_of_the_worker(line, words):
    near, far = line
    far.send_bytes(words)
    with pytest.raises(EOFError):
        receive_message(near, 2**20)


def test_an_answer_that_is_too_long_is_not_taken(line):
    near, far = line
    send_message(far, Done(1, Answer(bytes(2000), "image/png", "{}"), 0.0))
    with pytest.raises(OSError, match="bad message length"):
        receive_message(near, 1000)


class _Touch:
    """Makes a file where it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path(os.environ[MARK]),)


def send_pickle(connection, settings):
    """A worker that somebody has taken over."""
    connection.send(_Touch())
    connection.recv()


def test_a_worker_cannot_run_code_in_the_service(tmp_path, monkeypatch):
    mark = tmp_path / "mark"
    monkeypatch.setenv(MARK, str(mark))
    monkeypatch.setattr("primaldepth.app.worker_thread.work", send_pickle)
    engine = Engine(ServiceSettings(device="cpu"))
    promise = engine.submit(Task(tmp_path, Request("nearest"), OneFile("image/png")))
    engine.start()
    with pytest.raises(RefusedError, match="starting"):
        promise.result(timeout=60)
    engine.stop()
    assert not mark.exists()


def test_a_worker_is_not_told_the_token():
    settings = ServiceSettings(token="0123456789abcdef")  # noqa: S106 - of this test
    assert settings.for_worker().token is None
    assert settings.for_worker() == settings.model_copy(update={"token": None})


def test_a_method_is_prepared_once_before_the_clock_of_a_request_runs(tmp_path):
    for name, (_, data) in good_files().items():
        (tmp_path / name).write_bytes(data)
    near, far = Pipe()
    worker = _WorkerLoop(far, ServiceSettings(method="bilinear", device="cpu"), torch.device("cpu"))
    task = Task(tmp_path, Request("nearest"), OneFile("image/png"))
    for number in (1, 2):
        worker.serve([Ticket(number, task)])
    said = [receive_message(near, 2**20) for _ in range(7)]
    kinds = [type(message).__name__ for message in said]
    assert kinds == ["Started", "Preparing", "Started", "Done", "Started", "Started", "Done"]
    assert said[1] == Preparing("nearest")


def test_a_worker_may_take_its_time_once_for_each_method_there_is():
    worker = object.__new__(worker_thread._WorkerProcess)
    worker._unprepared = {"nearest", "nlh-l2"}
    asked = ["nearest", "nearest", "nlh-l2", "another"]
    assert [worker.may_prepare(method) for method in asked] == [True, False, True, False]
