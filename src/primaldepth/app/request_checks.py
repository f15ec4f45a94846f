"""Checks that every request passes first: host, site, token and the limits on its head and body."""

import asyncio
import base64
import contextlib
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from primaldepth.app.host_checks import HostChecks, check_site
from primaldepth.app.problems import GONE, INTERNAL, Problem, RefusedError, place_of
from primaldepth.app.service_metrics import Metrics
from primaldepth.app.service_settings import ServiceSettings
from primaldepth.app.upload_slots import UploadSlots

log = logging.getLogger("primaldepth.app")
_SWALLOWED_BYTES, _SWALLOWED_SECONDS = 4 * 2**20, 1.0
_MOST_HEADERS, _MOST_HEAD_BYTES = 100, 32 * 2**10
PART_BYTES = 256 * 2**10  # of an answer, that lie here unsent
OPEN_PATHS = ("/healthz", "/readyz")
_ROUTES = ("/v1/upsample", "/v1/methods", "/healthz", "/readyz", "/metrics", "/openapi.json")


class BodyError(HTTPException):
    """A body is refused while it is read; frameworks let this through where they hide other exceptions."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.status, problem.message)
        self.problem = problem


def json_answer(problem: Problem) -> JSONResponse:
    """Return the HTTP answer for a problem."""
    return JSONResponse(problem.body(), problem.status, problem.headers)


@dataclass
class _Exchange:
    """State of one request: bytes received so far, status of its answer."""

    started: float
    status: int = 0
    received: int = 0
    complete: bool = False

    def count(self, message: Message) -> None:
        """Count a part of the body that has arrived."""
        self.received += len(message.get("body", b""))
        self.complete = not message.get("more_body", False)


class RequestChecks:
    """ASGI middleware around the whole service, which passes a request on or answers it."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings, metrics: Metrics, slots: UploadSlots) -> None:
        self._app, self._settings, self._metrics, self._slots = app, settings, metrics, slots
        self._hosts = HostChecks(settings.host, settings.allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] == "websocket":  # nothing here speaks it
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(time.perf_counter())
        out = _watched(send, exchange)
        try:
            self._check(scope)
            with self._slots.place(scope["method"]):
                await self._app(scope, self._limited(receive, exchange), out)
        except (RefusedError, BodyError) as error:
            await self._answer(error.problem, exchange, scope, receive, out)
        except ClientDisconnect:  # nobody is left to answer
            exchange.status = exchange.status or GONE
        except Exception as error:
            log.error("request failed: %s", place_of(error))
            await self._answer(INTERNAL, exchange, scope, receive, out)
        finally:
            self._note(scope, exchange)

    async def _answer(
        self, problem: Problem, exchange: _Exchange, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if exchange.status == 0:
            await _swallow(receive, exchange)
            await json_answer(problem)(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        _check_head(scope, headers)
        self._hosts.check(headers)
        check_site(scope["method"], scope["path"], headers)
        if scope["path"] not in OPEN_PATHS and not self._may_enter(headers):
            wanted = {"WWW-Authenticate": 'Basic realm="primaldepth", Bearer'}
            hint = "send the header 'Authorization: Bearer TOKEN'; browsers: any name, the token as password"
            raise RefusedError(Problem(401, "unauthorized", "the token is missing or wrong", hint, wanted))
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > self._settings.max_bytes:
            raise RefusedError(self._too_large())

    def _may_enter(self, headers: Headers) -> bool:
        token = self._settings.token
        if token is None:
            return True
        given = _credential(headers.get("authorization", ""))
        return hmac.compare_digest(given.encode(), token.get_secret_value().encode())

    def _limited(self, receive: Receive, exchange: _Exchange) -> Receive:
        """Return a `receive` that raises if the body is too long or takes too long to arrive."""

        async def limited() -> Message:
            if exchange.complete:
                return await receive()
            message = await self._in_time(receive, exchange)
            exchange.count(message)
            if exchange.received > self._settings.max_bytes:
                raise BodyError(self._too_large())
            return message

        return limited

    async def _in_time(self, receive: Receive, exchange: _Exchange) -> Message:
        left = exchange.started + self._settings.upload_seconds - time.perf_counter()
        try:
            return await asyncio.wait_for(receive(), max(left, 0.001))
        except asyncio.TimeoutError:
            message = f"the body did not arrive within {self._settings.upload_seconds:g} seconds"
            problem = Problem(
                408, "too_slow_upload", message, "send it faster, or less", {"Connection": "close"}
            )
            raise BodyError(problem) from None

    def _too_large(self) -> Problem:
        message = f"the body has more than {self._settings.max_bytes} bytes"
        return Problem(413, "too_large", message, "send less", {"Connection": "close"})

    def _note(self, scope: Scope, exchange: _Exchange) -> None:
        """Log one line on a request and its end, without names, fields or queries of the client."""
        seconds = time.perf_counter() - exchange.started
        route = scope["path"] if scope["path"] in _ROUTES else "other"
        self._metrics.answered(route, exchange.status, seconds)
        level = logging.INFO if route != "other" else logging.DEBUG
        log.log(
            level,
            "%s %s %d, %d bytes in, %.3f s",
            scope["method"] if scope["method"].isalpha() else "?",
            route,
            exchange.status,
            exchange.received,
            seconds,
        )


def _check_head(scope: Scope, headers: Headers) -> None:
    """Raise if the head of a request is too long, or its length can be read in two ways."""
    if not scope["path"].startswith("/"):
        message = "the target of the request is no path"
        raise RefusedError(Problem(400, "bad_request", message, "ask for a path such as /v1/methods"))
    if "transfer-encoding" in headers and "content-length" in headers:
        message, close = "the length of the body is given in two ways", {"Connection": "close"}
        raise RefusedError(Problem(400, "bad_request", message, "send Content-Length alone", close))
    size = len(scope["path"]) + len(scope.get("query_string", b""))
    size += sum(len(name) + len(value) for name, value in headers.raw)
    if len(headers.raw) > _MOST_HEADERS or size > _MOST_HEAD_BYTES:
        message = f"the head of the request has more than {_MOST_HEADERS} headers or {_MOST_HEAD_BYTES} bytes"
        raise RefusedError(Problem(431, "too_large", message, "send fewer or shorter headers"))


async def _swallow(receive: Receive, exchange: _Exchange) -> None:
    """Read on for a moment: a client that still sends would lose the connection before the answer."""

    async def swallow() -> None:
        while not exchange.complete and exchange.received < _SWALLOWED_BYTES:
            exchange.count(await receive())

    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(swallow(), _SWALLOWED_SECONDS)


def _watched(send: Send, exchange: _Exchange) -> Callable[[Any], Awaitable[None]]:
    async def watched(message: Message) -> None:
        if message["type"] == "http.response.start":
            exchange.status = message["status"]
        for part in _parts(message):
            await send(part)

    return watched


def _parts(message: Message) -> Iterator[Message]:
    """Yield a long body in pieces; the server waits before each of them until the last one was sent."""
    body = message.get("body", b"")
    if len(body) <= PART_BYTES:
        yield message
        return
    for start in range(0, len(body), PART_BYTES):
        end = start + PART_BYTES
        more = end < len(body) or message.get("more_body", False)
        yield {**message, "body": body[start:end], "more_body": more}


def _credential(header: str) -> str:
    """Return the token of `Bearer TOKEN`, or the password of `Basic`, which browsers can send."""
    scheme, _, rest = header.partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(rest, validate=True).decode().partition(":")[2]
    except ValueError:  # neither base64 nor text
        return ""
