"""Let only those requests reach Gradio that the page needs, with only what their routes need.

Gradio offers some eighty routes: to fetch addresses, to call functions, to reload the program, to look at its
state. A browser with the page open uses the few listed here; all others are answered 404. Uploads and
downloads do not reach Gradio at all.
"""

import asyncio
import re
from http import HTTPStatus
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from primaldepth.app.page.abandoned_visitors import Sessions
from primaldepth.app.page.event_checks import MOST_BYTES, SESSION, rewritten
from primaldepth.app.page.readable_files import ReadableFiles
from primaldepth.app.page.transfers import Transfers
from primaldepth.app.problems import Problem, RefusedError, problem_of_status

_API = "/gradio_api"
_PASSED = re.compile(
    rf"/|/config|/theme\.css|/robots\.txt|/favicon\.ico|/manifest\.json|{_API}/info|"
    r"/(assets|static)(/[A-Za-z0-9_@-][A-Za-z0-9_.@-]{0,100}){1,4}"
)
_HEARTBEAT = re.compile(rf"{_API}/heartbeat/(?P<session>{SESSION})")
_QUERY = re.compile(rf"session_hash=(?P<session>{SESSION})".encode())
_HEADERS = (
    b"host",
    b"x-forwarded-host",
    b"x-forwarded-proto",
    b"accept",
    b"accept-encoding",
    b"if-none-match",
)


class RouteChecks:
    """An ASGI application around Gradio's that passes on only what the page needs.

    Args:
        gradio: the application that it mounts.
        events: of the page, by number.
        sessions: of visitors.
        files: uploads and results.
        sources: where files may lie.
    """

    def __init__(
        self,
        gradio: ASGIApp,
        events: dict[int, Any],
        sessions: Sessions,
        files: Transfers,
        sources: ReadableFiles,
    ) -> None:
        self._gradio, self._events, self._files, self._sources = gradio, events, files, sources
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, pass it on in part, or refuse it."""
        if scope["type"] != "http":
            return
        try:
            await self._answer(scope, receive, send)
        except RefusedError as error:
            await _refusal(error.problem)(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        request = Request(scope, receive)
        if path == f"{_API}/queue/join":
            _allow(method, "POST")
            await self._join(request, send)
        elif path == f"{_API}/upload":
            _allow(method, "POST")
            await (await self._files.upload(request))(scope, receive, send)
        elif path == f"{_API}/upload_progress":
            _allow(method, "GET")
            await self._files.progress()(scope, receive, send)
        elif path.startswith(f"{_API}/file="):
            _allow(method, "GET", "HEAD")
            whole = {**scope, "headers": []}  # no ranges of it
            await self._files.download(path.removeprefix(f"{_API}/file="))(whole, receive, send)
        elif path == f"{_API}/queue/data":
            _allow(method, "GET")
            await self._listen(scope, receive, send)
        elif (heartbeat := _HEARTBEAT.fullmatch(path)) is not None:
            _allow(method, "GET")
            await self._stay_open(heartbeat["session"], scope, receive, send)
        elif _PASSED.fullmatch(path):
            _allow(method, "GET", "HEAD")
            await self._pass_on(scope, receive, send)
        else:
            raise HTTPException(404)

    async def _join(self, request: Request, send: Send) -> None:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BYTES:
                raise RefusedError(Problem(413, "too_large", f"more than {MOST_BYTES} bytes", "send less"))
        session, join = rewritten(bytes(body), self._events, self._sources)
        self._sessions.note(session)
        await self._pass_on(request.scope, _body(join), send)

    async def _listen(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = _QUERY.fullmatch(scope["query_string"])
        if query is None or query["session"].decode() not in self._sessions:
            raise RefusedError(Problem(404, "not_found", "nothing was asked for", "load the page again"))
        with self._sessions.listening(query["session"].decode()):
            await self._pass_on(scope, receive, send)

    async def _stay_open(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a heartbeat on until the browser leaves, or its place is given to another visitor."""
        task: asyncio.Task[None] | None = None
        try:
            with self._sessions.open_page(session, lambda: task and task.cancel()):
                task = asyncio.create_task(self._pass_on(scope, receive, send))
                await asyncio.wait({task})
        finally:
            if task is not None:
                task.cancel()
        if not task.cancelled():
            task.result()

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let Gradio answer, as if nothing but the path and a few headers had been sent."""
        headers = [(name, value) for name, value in scope["headers"] if name in _HEADERS]
        if scope["method"] == "POST":
            headers.append((b"content-type", b"application/json"))
        query = scope["query_string"]
        small = {**scope, "headers": headers, "query_string": query if _QUERY.fullmatch(query) else b""}
        answer = _AnswerInParts(scope, receive, send)
        try:
            await self._gradio(small, receive, answer.send)
        except HTTPException:
            if not answer.started:  # else it is a stream, which has told of it
                raise


class _AnswerInParts:
    """Sends Gradio's answer on, but replaces the text of its errors, which may quote the client."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self.started = self._replaced = False

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self.started = True
            if message["status"] >= 400:
                self._replaced = True
                status = HTTPStatus(message["status"])
                problem = problem_of_status(status, status.phrase)
                await _refusal(problem)(self._scope, self._receive, self._send)
        if not self._replaced:
            await self._send(message)


def _allow(method: str, *methods: str) -> None:
    if method not in methods:
        raise HTTPException(405, headers={"Allow": ", ".join(methods)})


def _refusal(problem: Problem) -> JSONResponse:
    """Return the answer for a problem; `detail` repeats it for Gradio's program in the browser."""
    detail = f"{problem.message}; {problem.hint}" if problem.hint else problem.message
    return JSONResponse({**problem.body(), "detail": detail}, problem.status, problem.headers)


def _body(body: bytes) -> Receive:
    """Return a `receive` that gives this body, which was read already, and then a disconnect."""
    parts = [body]

    async def receive() -> Message:
        if parts:
            return {"type": "http.request", "body": parts.pop(), "more_body": False}
        return {"type": "http.disconnect"}

    return receive
