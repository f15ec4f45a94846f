"""How long a worker may still take, so that no request gets more seconds than one request may."""

import time
from collections.abc import Callable, Collection


class Stopwatch:
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

    def turn_to(self, numbers: Collection[int]) -> None:
        """Charge the time that follows to these requests."""
        self._charge()
        self._current = self._left.keys() & set(numbers) or set(self._left)

    def finish(self, number: int) -> None:
        """Charge nothing more to a request: it has its answer."""
        self._charge()
        self._left.pop(number, None)
        self._current.discard(number)
        self._current = self._current or set(self._left)

    @property
    def left(self) -> float:
        """Seconds that the requests of now have left together; 0 if that is none."""
        self._charge()
        return max(sum(self._left[number] for number in self._current), 0.0)

    def _charge(self) -> None:
        now = self._clock()
        for number in self._current:
            self._left[number] -= (now - self._since) / len(self._current)
        self._since = now
