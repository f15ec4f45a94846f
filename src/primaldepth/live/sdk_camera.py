"""What the cameras of all makers share: frames that an SDK hands out until the streams end."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from typing_extensions import Self

from primaldepth.pipeline.request import Item


class SdkCamera(ABC):
    """A source whose frames come from an SDK.

    Args:
        title: for people to read.
        wait: gives the next set of frames, or None at the end.
        stop: ends the streams.
    """

    def __init__(self, title: str, wait: Callable[[], Any], stop: Callable[[], None]) -> None:
        self.title, self._wait, self._stop = title, wait, stop

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the streams."""
        self._stop()

    def __iter__(self) -> Iterator[tuple[str, Item]]:
        """Yield the newest pair of frames; end where no more come."""
        while (frames := self._wait()) is not None:
            if (found := self.frame(frames)) is not None:
                yield found

    @abstractmethod
    def frame(self, frames: Any) -> tuple[str, Item] | None:
        """Return name and inputs of a set of frames, or None if it has no depth or no colour."""
