"""Requests to the service inside of this process: its routes, its limits and its parser, without a worker."""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.attack.cases import WrongResult
from benchmarks.attack.forms import NAME
from primaldepth.core.errors import InputError

_SCOPE: dict[str, Any] = {
    "type": "http",
    "asgi": {"version": "3.0"},
    "http_version": "1.1",
    "method": "POST",
    "scheme": "http",
    "path": "/v1/upsample",
    "raw_path": b"/v1/upsample",
    "root_path": "",
    "query_string": b"",
    "client": ("127.0.0.1", 1),
    "server": ("127.0.0.1", 80),
}


@cache
def _service() -> tuple[Any, asyncio.AbstractEventLoop]:
    """The service in this process; what it would compute is what arrived."""
    from primaldepth.app.response_formats import Answer
    from primaldepth.app.routes import create_app
    from primaldepth.app.service_settings import ServiceSettings

    app = create_app(ServiceSettings(page=False, method="bilinear", device="cpu", max_bytes=2**22))

    def submit(task: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        asked = task.request
        files = {path.name: len(path.read_bytes()) for path in task.folder.iterdir()}
        body = json.dumps([files, asked.method, asked.unit, asked.kind, asked.noise, asked.spikes]).encode()
        future.set_result(Answer(body, "image/png", "{}"))
        return future

    app.state.engine.submit = submit
    return app, asyncio.new_event_loop()


def read_form(folder: Path) -> Any:
    """Post the form in a folder to the service; what arrived there, or the refusal as an error."""
    app, loop = _service()
    kind, _, body = (folder / NAME).read_bytes().partition(b"\n")
    status, answer = loop.run_until_complete(_post(app, kind, body))
    if status == 200:
        return answer
    try:
        error = json.loads(answer)["error"]
        told = bool(400 <= status < 500 and error["code"] and error["message"])
    except (ValueError, KeyError, TypeError):
        told = False
    if not told:
        raise WrongResult(f"status {status}: {answer[:200]!r}")
    raise InputError(f"{folder}: {' '.join(error['message'].split())[:500]}")


async def _post(app: Any, kind: bytes, body: bytes) -> tuple[int, bytes]:
    """One request, its body in two pieces."""
    half = len(body) // 2
    pieces: Iterator[tuple[bytes, bool]] = iter(((body[:half], True), (body[half:], False)))
    headers = [(b"host", b"localhost"), (b"content-type", kind), (b"content-length", str(len(body)).encode())]
    scope = {**_SCOPE, "headers": headers}
    status, answer = 0, b""

    async def receive() -> dict[str, Any]:
        piece, more = next(pieces, (None, False))
        if piece is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": piece, "more_body": more}

    async def send(message: Any) -> None:
        nonlocal status, answer
        status = message.get("status", status)
        answer += message.get("body", b"")

    await app(scope, receive, send)
    return status, answer
