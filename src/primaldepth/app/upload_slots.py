"""Limit the requests with a body that are open at a time: each keeps its uploads on disk until its answer."""

from collections.abc import Iterator
from contextlib import contextmanager

from primaldepth.app.problems import BUSY_RETRY, DRAINING, Problem, RefusedError

_CLOSING = {"Connection": "close"}  # the body is not read
_WITHOUT_BODY = ("GET", "HEAD", "OPTIONS")


class UploadSlots:
    """Slots for requests with a body, each held from before the body is read until the answer is sent.

    Args:
        most: requests that have one at a time.
    """

    def __init__(self, most: int) -> None:
        self._most, self._closed = most, False
        self.taken = 0

    def close(self) -> None:
        """Refuse every request with a body from now on."""
        self._closed = True

    @contextmanager
    def place(self, method: str) -> Iterator[None]:
        """Hold a slot for a request whose HTTP method may have a body; raise if none is left."""
        if method in _WITHOUT_BODY:
            yield
            return
        self._check()
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1

    def _check(self) -> None:
        if self._closed:
            problem = DRAINING
        elif self.taken >= self._most:
            message = f"{self.taken} requests are under way already, as many as may"
            problem = Problem(429, "busy", message, "try again soon", BUSY_RETRY)
        else:
            return
        raise RefusedError(problem.with_headers(_CLOSING))
