"""Make Gradio forget visitors who never fetch what they asked for.

Gradio keeps the messages to a visitor until they are fetched, some of them for ever. At its own limit it
drops the oldest visitor, even one for whom something is still computed.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from primaldepth.app.problems import BUSY_RETRY, Problem, RefusedError

_MOST_KEPT = 256  # visitors whose last messages wait; Gradio's own limit is far beyond
_MOST_LISTENING = 256  # who have the page open, and who wait for a result


class Sessions:
    """Counts open streams, and forgets the oldest visitors who wait for nothing.

    Args:
        queue: Gradio's.
    """

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self._kept: OrderedDict[str, None] = OrderedDict()
        self._listening: Counter[str] = Counter()
        self._fetching: Counter[str] = Counter()

    def note(self, session: str) -> None:
        """A visitor asks for something."""
        self._kept[session] = None
        self._kept.move_to_end(session)
        if len(self._kept) > _MOST_KEPT:
            self._forget(len(self._kept) - _MOST_KEPT)

    def __contains__(self, session: str) -> bool:
        return session in self._kept

    @contextmanager
    def listening(self, kind: str, session: str = "") -> Iterator[None]:
        """Count a listener while its connection lasts; refuse if there are too many of this kind."""
        if self._listening[kind] >= _MOST_LISTENING:
            message = f"{_MOST_LISTENING} visitors listen already, as many as may"
            raise RefusedError(Problem(429, "busy", message, "try again soon", BUSY_RETRY))
        self._listening[kind] += 1
        self._fetching[session] += 1
        try:
            yield
        finally:
            self._listening[kind] -= 1
            self._fetching[session] -= 1
            self._fetching += Counter()  # leaves out those at 0

    def _forget(self, count: int) -> None:
        busy = {event.session_hash for event in self._queue.event_ids_to_events.values()}
        done = [each for each in self._kept if each not in busy and not self._fetching[each]]
        for session in done[:count]:
            del self._kept[session]
            self._queue.pending_messages_per_session.pop(session, None)
            self._queue.pending_event_ids_session.pop(session, None)
