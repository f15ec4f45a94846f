"""The time a worker has left, so that no request takes longer than its limit."""

import time
from collections.abc import Callable, Collection


class WorkerTimeLimit:
    """Charges the seconds that pass to the requests that a worker has in hand; those in a batch share them.

    Args:
        seconds: each request may take in all, whatever steps they are spent on.
        numbers: of the requests that the worker was given; time that it spends on none of them in particular
            is charged to all.
        clock: gives seconds.
    """

    def __init__(
        self, seconds: float, numbers: Collection[int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock, self._since = clock, clock()
        self._left = dict.fromkeys(numbers, seconds)
        self._current = set(self._left)
        self._pause = 0.0

    def pause(self, seconds: float) -> None:
        """Charge the following seconds to no request, until the worker turns to requests again.

        Args:
            seconds: it may take.
        """
        self._charge()
        self._pause = seconds

    def turn_to(self, numbers: Collection[int]) -> None:
        """Charge the time that follows to these requests."""
        self._charge()
        self._pause = 0.0
        self._current = self._left.keys() & set(numbers) or set(self._left)

    def finish(self, number: int) -> None:
        """Charge nothing more to a request, which has its answer."""
        self._charge()
        self._left.pop(number, None)
        self._current.discard(number)
        self._current = self._current or set(self._left)

    @property
    def left(self) -> float:
        """Seconds left to the requests that are computed now, or to the pause; at least 0."""
        self._charge()
        if self._pause:
            return self._pause
        return max(sum(self._left[number] for number in self._current), 0.0)

    def _charge(self) -> None:
        now = self._clock()
        passed, self._since = now - self._since, now
        if self._pause and passed < self._pause:
            self._pause -= passed
            return
        passed, self._pause = passed - self._pause, 0.0
        for number in self._current:
            self._left[number] -= passed / len(self._current)
