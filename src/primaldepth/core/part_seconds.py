"""Where the time of a scene goes: seconds on the clock and of the processor, part by part.

Code marks what it is doing by `with part("build")`; whoever wants to know collects by `with collected()`.
Nothing is measured where nobody collects.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seconds:
    """Time of one part.

    Args:
        clock: seconds that passed; they include waiting, for the GPU or for a turn on the processor.
        processor: seconds that the calling thread computed.
    """

    clock: float = 0.0
    processor: float = 0.0

    def __add__(self, other: "Seconds") -> "Seconds":
        return Seconds(self.clock + other.clock, self.processor + other.processor)


PartSeconds = dict[str, Seconds]
_collected: ContextVar[PartSeconds | None] = ContextVar("collected", default=None)


@contextmanager
def part(name: str) -> Iterator[None]:
    """Add the time of this block to the part `name` of the scene that is being measured.

    Args:
        name: of the part.

    Returns:
        A context manager.
    """
    if _collected.get() is None:
        yield
        return
    clock, processor = time.perf_counter(), time.thread_time()
    try:
        yield
    finally:
        spend(name, Seconds(time.perf_counter() - clock, time.thread_time() - processor))


def spend(name: str, seconds: Seconds) -> None:
    """Add seconds to the part `name` of the scene that is being measured, if any is.

    Args:
        name: of the part.
        seconds: that are added.
    """
    parts = _collected.get()
    if parts is not None:
        parts[name] = parts.get(name, Seconds()) + seconds


@contextmanager
def collected() -> Iterator[PartSeconds]:
    """Collect the parts of what is done in this block, in the order in which they began.

    Returns:
        A context manager that gives the seconds by part.
    """
    parts: PartSeconds = {}
    token = _collected.set(parts)
    try:
        yield parts
    finally:
        _collected.reset(token)


def add_parts(total: PartSeconds, more: Mapping[str, Seconds]) -> None:
    """Add the seconds of each part to those in `total`.

    Args:
        total: is added to.
        more: by part.
    """
    for name, seconds in more.items():
        total[name] = total.get(name, Seconds()) + seconds
