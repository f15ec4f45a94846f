"""One client's connection, which is broken where the client does not read what it is sent."""

import asyncio
import logging
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

log = logging.getLogger("primaldepth.app")


class _Line(H11Protocol):
    """Holds one part of an answer at a time for its client, and no longer than `seconds`.

    It is broken, not closed: to close means to wait until all is sent.
    """

    seconds: ClassVar[float]
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """From now on writing is paused whenever something is unsent."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)

    def pause_writing(self) -> None:
        """The client has not read all; its time runs."""
        super().pause_writing()
        self._deadline = self.loop.call_later(self.seconds, self._break)

    def resume_writing(self) -> None:
        """All is sent."""
        self._stop_clock()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Whoever waits to send is let go."""
        self._stop_clock()
        super().connection_lost(exc)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None

    def _break(self) -> None:
        log.info("an answer was not read for %g seconds: its line is broken", self.seconds)
        self.transport.abort()


def line_type(seconds: float) -> type[H11Protocol]:
    """The protocol of connections whose clients have so long to read on."""
    return type("Line", (_Line,), {"seconds": seconds})
