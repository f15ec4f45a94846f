"""One client's connection, which is broken where the client keeps the service waiting."""

import asyncio
import json
import logging
import sys
from http import HTTPStatus
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from primaldepth.app.problems import Problem

log = logging.getLogger("primaldepth.app")
_TOO_LONG = Problem(431, "too_large", "the head of the request is too long", "send fewer or shorter headers")
_NO_HTTP = Problem(400, "bad_request", "this is no valid HTTP request", "send HTTP/1.1")
_REFUSED_SECONDS = 1.0  # for a client to read that it was refused


class _ClientConnection(H11Protocol):
    """Holds one part of an answer at a time for its client, and no longer than `seconds`.

    It waits no longer than `head_seconds` for the head of a request. It is broken, not closed, where an
    answer is not read: to close means to wait until all is sent.
    """

    seconds: ClassVar[float]
    head_seconds: ClassVar[float]
    _deadline: asyncio.TimerHandle | None = None
    _head_deadline: asyncio.TimerHandle | None = None
    _refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Set the limit of the write buffer to 0: `pause_writing` is called as soon as anything is unsent."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request; the time for its head runs from its first byte."""
        if self._refused:
            return
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._await_head()
        else:
            self._stop_head_clock()

    def pause_writing(self) -> None:
        """Start the time within which the client has to read what was sent."""
        super().pause_writing()
        self._deadline = self.loop.call_later(self.seconds, self._break)

    def resume_writing(self) -> None:
        """Stop the client's time: all is sent."""
        self._stop_clock()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop both clocks and release whoever waits to send."""
        self._stop_clock()
        self._stop_head_clock()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP as everything is refused, unless an answer is on its way already."""
        error = sys.exc_info()[1]
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
            return
        self._refuse(_TOO_LONG if getattr(error, "error_status_hint", 0) == 431 else _NO_HTTP)
        self._refused = True  # from now on what comes is dropped: a client that still sends shall read this
        self.transport.write_eof()
        self.loop.call_later(_REFUSED_SECONDS, self.transport.abort)

    def _refuse(self, problem: Problem) -> None:
        body = json.dumps(problem.body()).encode()
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            ("X-Content-Type-Options", "nosniff"),
            ("Cache-Control", "no-store"),
            ("Connection", "close"),
        ]
        reason = HTTPStatus(problem.status).phrase
        for event in (
            h11.Response(status_code=problem.status, headers=headers, reason=reason),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")

    def _await_head(self) -> None:
        if self._head_deadline is None:
            self._head_deadline = self.loop.call_later(self.head_seconds, self.transport.abort)

    def _stop_head_clock(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
        self._head_deadline = None

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None

    def _break(self) -> None:
        log.info("an answer was not read for %g seconds: its line is broken", self.seconds)
        self.transport.abort()


def connection_type(seconds: float, head_seconds: float) -> type[H11Protocol]:
    """Return the class of connections of one service.

    Args:
        seconds: that a client may leave a part of its answer unread.
        head_seconds: that the head of a request may take to arrive.
    """
    return type("ClientConnection", (_ClientConnection,), {"seconds": seconds, "head_seconds": head_seconds})
