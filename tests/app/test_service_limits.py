"""Limits, the token, and how the service ends."""

import asyncio
import base64
import gc
import logging
import threading
import time
from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import pytest
import slow_worker
import uvicorn
from held_worker import METHOD, Gate
from malformed import good_files, png

from primaldepth.app.engine import Engine
from primaldepth.app.problems import INTERNAL, RefusedError
from primaldepth.app.request_checks import RequestChecks
from primaldepth.app.routes import _awaited
from primaldepth.app.server import Server
from primaldepth.app.service_metrics import Metrics
from primaldepth.app.service_settings import ServiceSettings
from primaldepth.app.tasks import OneFile, Task
from primaldepth.app.upload_slots import UploadSlots
from primaldepth.app.worker import _groups, _joined, _Loaded
from primaldepth.core.errors import InputError
from primaldepth.pipeline.request import Request
from waiting import wait_until

PNG = OneFile("image/png")


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """The workers of services started with it hold what asks for METHOD."""
    return Gate(tmp_path, monkeypatch)


def held_answer(client):
    return client.post("/v1/upsample", files=good_files(), data={"method": METHOD})


def code(answer):
    return answer.json()["error"]["code"]


def test_a_body_longer_than_the_limit_is_refused(service):
    answer = service.post("/v1/upsample", files=good_files(depth=("d", bytes(4_000_000))))
    assert (answer.status_code, code(answer)) == (413, "too_large")


def test_a_body_without_a_length_is_counted(service):
    def chunks():
        yield b'--b\r\nContent-Disposition: form-data; name="depth"; filename="d"\r\n\r\n'
        for _ in range(8):
            yield bytes(500_000)

    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    answer = service.post("/v1/upsample", content=chunks(), headers=headers)
    assert (answer.status_code, code(answer)) == (413, "too_large")


@pytest.mark.parametrize("size", [(5000, 10), (2000, 2000)], ids=["too wide", "too many"])
def test_the_header_of_an_image_decides_before_it_is_decoded(service, size):
    answer = service.post(
        "/v1/upsample", files=good_files(guide=("g", png(*size, b"no deflate stream", 8, 2)))
    )
    assert (answer.status_code, code(answer)) == (413, "too_many_pixels")
    assert answer.json()["error"]["message"].startswith("guide: claims")


def test_what_takes_too_long_is_ended_and_the_next_request_is_served(start, gate):
    client = start(seconds=3.0)
    before = client.app.state.engine.workers[0].worker_pid
    answer = held_answer(client)
    assert (answer.status_code, code(answer)) == (504, "too_slow")
    assert gate.holds
    assert client.post("/v1/upsample", files=good_files()).status_code == 200
    assert client.app.state.engine.workers[0].worker_pid != before


def test_the_steps_of_a_request_share_its_seconds(start, monkeypatch):
    monkeypatch.setattr("primaldepth.app.worker_thread.work", slow_worker.work)
    client = start(seconds=1.5 * slow_worker.SECONDS)
    answer = client.post("/v1/upsample", files=good_files(), data={"method": slow_worker.METHOD})
    assert (answer.status_code, code(answer)) == (504, "too_slow")
    assert client.post("/v1/upsample", files=good_files()).status_code == 200


def asked(client, gate, answers):
    """A thread whose request is being computed until it is let go; the answer goes into `answers`."""
    asking = threading.Thread(target=lambda: answers.append(held_answer(client)))
    asking.start()
    wait_until(lambda: gate.holds)
    return asking


def test_a_full_queue_refuses_and_what_waits_is_answered(start, gate):
    client = start(queue=1, batch=1)
    engine = client.app.state.engine
    answers = []
    first = asked(client, gate, answers)
    second = threading.Thread(target=lambda: answers.append(client.post("/v1/upsample", files=good_files())))
    second.start()
    wait_until(lambda: engine.waiting == 1)
    third = client.post("/v1/upsample", files=good_files())
    assert (third.status_code, code(third)) == (429, "busy")
    assert int(third.headers["retry-after"]) > 0
    assert not answers
    gate.let_go()
    first.join()
    second.join()
    assert [answer.status_code for answer in answers] == [200, 200]


def test_a_worker_that_dies_is_replaced_and_hurts_one_request_at_most(start, gate):
    client = start()
    answers = []
    asking = asked(client, gate, answers)
    client.app.state.engine.workers[0]._worker._process.kill()
    asking.join()
    assert answers[0].status_code == 500
    assert code(answers[0]) == "internal"
    assert client.post("/v1/upsample", files=good_files()).status_code == 200


def test_a_second_worker_computes_beside_the_first(start, gate):
    client = start(workers=2, batch=1)
    engine = client.app.state.engine
    wait_until(lambda: all(worker.ready for worker in engine.workers))
    before = engine.restarts  # a worker that did not start at once was started again
    answers = []
    asking = asked(client, gate, answers)
    busy = next(worker for worker in engine.workers if worker.running)
    assert client.post("/v1/upsample", files=good_files()).status_code == 200
    assert not answers
    busy._worker._process.kill()
    assert client.post("/v1/upsample", files=good_files()).status_code == 200
    asking.join()
    assert [answer.status_code for answer in answers] == [500]
    assert engine.restarts == before + 1


def test_draining_refuses_new_work_and_finishes_what_runs(start, gate):
    client = start()
    engine = client.app.state.engine
    answers = []
    asking = asked(client, gate, answers)
    engine.drain()
    late = client.post("/v1/upsample", files=good_files())
    assert (late.status_code, code(late)) == (503, "draining")
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200
    assert not engine.idle
    gate.let_go()
    asking.join()
    assert answers[0].status_code == 200
    wait_until(lambda: engine.idle)


def test_a_token_is_required_where_one_is_set(start):
    token = "0123456789abcdef"  # noqa: S105 - of this test
    client = start(token=token)
    assert code(client.get("/v1/methods")) == "unauthorized"
    assert "Basic" in client.get("/metrics").headers["www-authenticate"]
    assert client.get("/healthz").status_code == 200
    basic = base64.b64encode(f"me:{token}".encode()).decode()
    for header in (f"Bearer {token}", f"bearer  {token}", f"Basic {basic}"):
        assert client.get("/v1/methods", headers={"Authorization": header}).status_code == 200
    for header in ("Bearer x", "Basic !!", b"Basic \xe9", f"Basic {token}", f"Digest {token}", "Bearer"):
        assert client.get("/v1/methods", headers={"Authorization": header}).status_code == 401


def test_a_slow_sender_is_refused():
    """The body comes byte by byte; after the time for an upload the answer is 408."""

    async def app(scope, receive, send):
        while (await receive()).get("more_body"):
            pass

    async def receive():
        await asyncio.sleep(0.05)
        return {"type": "http.request", "body": b"x", "more_body": True}

    sent = []

    async def send(message):
        sent.append(message)

    guard = RequestChecks(app, ServiceSettings(upload_seconds=0.2), Metrics(), UploadSlots(1))
    scope = {"type": "http", "method": "POST", "path": "/v1/upsample", "headers": []}
    asyncio.run(guard(scope, receive, send))
    assert sent[0]["status"] == 408
    assert b"too_slow_upload" in sent[1]["body"]


def test_a_failure_of_ours_is_json_and_its_text_stays_out_of_the_log(caplog):
    async def app(scope, receive, send):
        raise ValueError("what the client sent")

    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/upsample", "headers": []}
    with caplog.at_level(logging.DEBUG):
        asyncio.run(RequestChecks(app, ServiceSettings(), Metrics(), UploadSlots(1))(scope, arrived, send))
    assert sent[0]["status"] == 500
    assert "ValueError" in caplog.text
    assert "what the client sent" not in caplog.text


def test_the_log_has_no_name_of_the_clients(service, caplog):
    with caplog.at_level(logging.DEBUG, logger="primaldepth.app"):
        service.post("/v1/upsample?secret=1", files=good_files(depth=("my-face.png", b"x")))
    assert "POST /v1/upsample 422" in caplog.text
    assert "my-face" not in caplog.text
    assert "secret" not in caplog.text


def test_settings_say_what_is_wrong():
    with pytest.raises(InputError, match="max_pixels"):
        ServiceSettings.parse({"max_pixels": 0}, "serve")
    with pytest.raises(InputError, match="did you mean 'queue'"):
        ServiceSettings.parse({"queues": 1}, "serve")


def test_a_batch_is_cut_apart_as_it_was_put_together(tmp_path):
    from primaldepth.api import load_inputs
    from primaldepth.app.worker_messages import Ticket
    from primaldepth.methods import create

    rng = np.random.default_rng(3)
    guide = rng.uniform(size=(12, 16, 3))
    inputs = [load_inputs(rng.uniform(1, 2, (6, 8)), guide, noise=0.01) for _ in range(3)]
    inputs.append(load_inputs(rng.uniform(1, 2, (3, 4)), guide, noise=0.01))
    held = [
        _Loaded(Ticket(index, Task(tmp_path, Request("nlh-l2"), wanted=PNG)), each)
        for index, each in enumerate(inputs)
    ]
    groups = list(_groups(held))
    assert [[each.ticket.number for each in group] for group in groups] == [[0, 1, 2], [3]]
    method = create("nlh-l2")
    together = method(_joined([each.inputs.frame for each in groups[0]]))
    for index, each in enumerate(inputs[:3]):
        alone = method(each.frame).depth
        np.testing.assert_allclose(together.image(index).depth, alone, rtol=1e-5)


def test_a_worker_that_cannot_start_leaves_no_one_waiting(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "primaldepth.app.worker_thread.work", int
    )  # ends at once: it is no function of a worker
    engine = Engine(ServiceSettings(device="cpu"))
    promise = engine.submit(Task(tmp_path, Request("nearest"), wanted=PNG))
    engine.start()
    with pytest.raises(RefusedError, match="starting"):
        promise.result(timeout=60)
    assert not engine.ready
    engine.stop()


def test_a_process_that_cannot_be_made_leaves_no_one_waiting(tmp_path, monkeypatch):
    def no_more(self, settings):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("primaldepth.app.worker_thread._WorkerProcess.__init__", no_more)
    engine = Engine(ServiceSettings(device="cpu"))
    promise = engine.submit(Task(tmp_path, Request("nearest"), wanted=PNG))
    engine.start()
    with pytest.raises(RefusedError, match="starting"):
        promise.result(timeout=60)
    assert engine.workers[0].thread.is_alive()
    engine.stop()


def test_a_failure_of_the_queue_is_answered_and_survived(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("primaldepth.app.worker_thread._PAUSE_SECONDS", 0.01)
    engine = Engine(ServiceSettings(device="cpu"))

    def fail():
        raise ValueError("what the client sent")

    monkeypatch.setattr(engine.workers[0], "_serve_once", fail)
    with caplog.at_level(logging.ERROR):
        engine.start()
        for _ in range(2):
            with pytest.raises(RefusedError, match="failed on this request"):
                engine.submit(Task(tmp_path, Request("nearest"), wanted=PNG)).result(timeout=60)
    engine.stop()
    assert "the queue failed: ValueError at" in caplog.text
    assert "what the client sent" not in caplog.text


def test_a_worker_made_while_the_engine_stops_is_ended(monkeypatch):
    """The process is made after `stop` has looked for one to end."""
    ended = []
    engine = Engine(ServiceSettings(device="cpu"))

    def late(settings):
        engine.stopped = True
        return SimpleNamespace(end=lambda: ended.append(True))

    monkeypatch.setattr("primaldepth.app.worker_thread._WorkerProcess", late)
    assert not engine.workers[0]._start_worker()
    assert ended == [True]


async def arrived():
    """The whole body, which is empty."""
    return {"type": "http.request", "body": b"", "more_body": False}


def exchange(guard, method="POST"):
    """One request through the guard; the statuses of its answers."""
    statuses = []

    async def send(message):
        statuses.append(message.get("status"))

    scope = {"type": "http", "method": method, "path": "/gradio_api/upload", "headers": []}
    asyncio.run(guard(scope, arrived, send))
    return statuses[0]


def test_a_client_that_still_sends_may_finish_before_it_is_refused():
    left = [b"x" * 2**20] * 3

    async def receive():
        return {"type": "http.request", "body": left.pop(), "more_body": bool(left)}

    sent = []

    async def send(message):
        sent.append(message)

    slots = UploadSlots(1)
    slots.close()
    scope = {"type": "http", "method": "POST", "path": "/v1/upsample", "headers": []}
    asyncio.run(RequestChecks(None, ServiceSettings(), Metrics(), slots)(scope, receive, send))
    assert sent[0]["status"] == 503
    assert not left


def test_no_body_is_read_where_too_many_are_under_way():
    slots = UploadSlots(1)
    reached = []

    async def app(scope, receive, send):
        reached.append(scope["method"])
        await send({"type": "http.response.start", "status": 204, "headers": []})

    guard = RequestChecks(app, ServiceSettings(), Metrics(), slots)
    with slots.place("POST"):
        assert exchange(guard) == 429
        assert exchange(guard, "GET") == 204
    assert exchange(guard) == 204
    assert reached == ["GET", "POST"]
    slots.close()
    assert exchange(guard) == 503
    assert slots.taken == 0


class Connection:
    """What the server knows of a client."""

    def __init__(self, transport):
        self.transport = transport


def test_it_does_not_end_before_the_last_byte_is_sent():
    places, unsent = UploadSlots(1), [10]
    server = Server(uvicorn.Config(None), SimpleNamespace(idle=True), places, grace_seconds=60.0)
    server._told_at = time.monotonic()
    line = SimpleNamespace(get_write_buffer_size=lambda: unsent[0])
    server.server_state.connections.add(Connection(line))
    with places.place("POST"):
        assert not asyncio.run(server.on_tick(1))
    assert not asyncio.run(server.on_tick(1))
    unsent[0] = 0
    assert asyncio.run(server.on_tick(1))


def test_a_failure_after_the_client_left_is_not_logged(caplog):
    """asyncio tells of exceptions that no one has asked for, with their text."""

    class Gone:
        async def is_disconnected(self):
            return True

    async def leave_then_fail():
        future = Future()
        future.set_running_or_notify_cancel()
        with pytest.raises(RefusedError, match="closed the connection"):
            await _awaited(Gone(), future)
        future.set_exception(RefusedError(INTERNAL))
        await asyncio.sleep(0.01)

    with caplog.at_level(logging.DEBUG):
        asyncio.run(leave_then_fail())
        gc.collect()
    assert "never retrieved" not in caplog.text
