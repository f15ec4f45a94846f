"""Make Gradio forget visitors who never fetch what they asked for.

Gradio keeps the messages to a visitor until they are fetched, some of them for ever. At its own limit it
drops the oldest visitor, even one for whom something is still computed.
"""

import itertools
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from primaldepth.app.problems import BUSY_RETRY, Problem, RefusedError

_MOST_KEPT = 256  # visitors whose last messages wait; Gradio's own limit is far beyond
_MOST_LISTENING = 256  # who wait for a result
_MOST_OPEN = 256  # who have the page open


class Sessions:
    """Counts open streams, and gives up the oldest visitors who wait for nothing.

    Args:
        queue: Gradio's.
    """

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self._kept: OrderedDict[str, None] = OrderedDict()
        self._fetching: Counter[str] = Counter()
        self._open: dict[int, tuple[str, Callable[[], object]]] = {}
        self._numbers = itertools.count()

    def note(self, session: str) -> None:
        """Note that a visitor has asked for something."""
        self._kept[session] = None
        self._kept.move_to_end(session)
        if len(self._kept) > _MOST_KEPT:
            self._forget(len(self._kept) - _MOST_KEPT)

    def __contains__(self, session: str) -> bool:
        return session in self._kept

    @contextmanager
    def listening(self, session: str) -> Iterator[None]:
        """Count who waits for a result while the connection lasts; refuse if there are too many."""
        if self._fetching.total() >= _MOST_LISTENING:
            raise _too_many(_MOST_LISTENING)
        self._fetching[session] += 1
        try:
            yield
        finally:
            self._fetching[session] -= 1
            self._fetching += Counter()  # leaves out those at 0

    @contextmanager
    def open_page(self, session: str, end: Callable[[], object]) -> Iterator[None]:
        """Count a page that is open in a browser while its connection lasts.

        Anyone can open connections under any names and keep them. So a new one is not refused if there are
        too many: the oldest one of a visitor for whom nothing is computed ends instead.

        Args:
            session: the visitor.
            end: ends the connection.

        Raises:
            RefusedError: if there are too many, and something is computed for each of them.
        """
        if len(self._open) >= _MOST_OPEN:
            self._end_oldest()
        number = next(self._numbers)
        self._open[number] = session, end
        try:
            yield
        finally:
            self._open.pop(number, None)

    def _end_oldest(self) -> None:
        busy = self._busy()
        idle = (number for number, (session, _) in self._open.items() if session not in busy)
        oldest = next(idle, None)
        if oldest is None:
            raise _too_many(_MOST_OPEN)
        _, end = self._open.pop(oldest)
        end()

    def _busy(self) -> set[str]:
        """Return the visitors for whom something is computed or queued."""
        return {event.session_hash for event in self._queue.event_ids_to_events.values()}

    def _forget(self, count: int) -> None:
        busy = self._busy()
        done = [each for each in self._kept if each not in busy and not self._fetching[each]]
        for session in done[:count]:
            del self._kept[session]
            self._queue.pending_messages_per_session.pop(session, None)
            self._queue.pending_event_ids_session.pop(session, None)


def _too_many(most: int) -> RefusedError:
    message = f"{most} visitors are here already, as many as may"
    return RefusedError(Problem(429, "busy", message, "try again soon", BUSY_RETRY))
