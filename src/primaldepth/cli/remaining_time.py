"""Estimate how long a batch still takes."""

import time
from datetime import timedelta


class RemainingTime:
    """Counts finished items: left = (total - done) elapsed / done."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0
        self._start = time.monotonic()

    def tick(self) -> None:
        """Count one more item as done."""
        self.done += 1

    def left(self) -> float:
        """Return the seconds that are left."""
        elapsed = time.monotonic() - self._start
        return (self.total - self.done) * elapsed / max(self.done, 1)

    def __str__(self) -> str:
        """Return text such as "3 of 20, 0:01:25 left"."""
        text = f"{self.done} of {self.total}"
        return text if self.done >= self.total else f"{text}, {timedelta(seconds=round(self.left()))} left"
