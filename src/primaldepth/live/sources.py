"""Where live frames come from, behind one interface: real cameras, recordings, and a simulated camera."""

import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import Self

from primaldepth.core.errors import InputError, MissingFileError
from primaldepth.io.sequences.base import time_stamp
from primaldepth.pipeline.pairing import NamedFiles, list_items
from primaldepth.pipeline.request import Item

FRAMES_PER_SECOND = 30.0
LONGEST_GAP = 1.0  # seconds between frames of a recording that are waited for
CAMERAS = ("simulated", "realsense", "oak", "orbbec")


class LiveSource(ABC):
    """A running camera as a stream of frames; a slow reader misses some, as with any camera."""

    title: str

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:  # noqa: B027 - most have nothing to close
        """Leave nothing open."""

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[str, Item]]:
        """Yield the name and the inputs of each frame; end where there are no more."""


class SdkCamera(LiveSource):
    """A source whose frames come from an SDK.

    The class method `opened` of each starts its streams. It raises an InputError if there is no camera, or if
    the file cannot be played, and a MissingDependencyError without the SDK.

    Args:
        title: for people to read.
        wait: gives the next set of frames, or None at the end.
        stop: ends the streams.
    """

    def __init__(self, title: str, wait: Callable[[], Any], stop: Callable[[], None]) -> None:
        self.title, self._wait, self._stop = title, wait, stop

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


class Played(LiveSource):
    """Frames of a recording or of folders, at the rate at which they were taken.

    A frame is waited for until its time has come. Frames whose time has passed are skipped, unless `every`.

    Args:
        title: for people to read.
        items: in order.
        rate: frames per second where names are no time stamps.
        every: skip none.
        clock: seconds.
        sleep: waits so many seconds.
    """

    def __init__(
        self,
        title: str,
        items: Sequence[Item],
        *,
        rate: float = FRAMES_PER_SECOND,
        every: bool = False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not rate > 0:
            raise InputError("--rate", f"{rate:g} frames per second", "give a number above 0")
        self.title, self._items, self._every = title, items, every
        self._times = _times([_name(item) for item in items], rate)
        self._clock, self._sleep = clock, sleep

    def __iter__(self) -> Iterator[tuple[str, Item]]:
        """Yield each frame at its time."""
        start = self._clock()
        ends = [*self._times[1:], float("inf")]
        for item, due, end in zip(self._items, self._times, ends, strict=True):
            now = self._clock() - start
            if now < due:
                self._sleep(due - now)
            elif now >= end and not self._every:
                continue
            yield _name(item), item


def open_source(
    name: str,
    images: str | None = None,
    *,
    rate: float = FRAMES_PER_SECOND,
    every: bool = False,
    note: Callable[[str], None] = print,
) -> LiveSource:
    """Open the source of live frames that a name stands for.

    Args:
        name: "simulated", "realsense", "oak", "orbbec", "realsense:FILE.bag" or "orbbec:FILE.bag" (played
            by the SDK), or a recording, a folder or a glob of depth files.
        images: folder or glob of the images of depth files.
        rate: frames per second of files whose names are no time stamps, and of the simulated camera.
        every: skip no frame of a recording, however slow.
        note: called with each assumption, in words.

    Raises:
        InputError: if there is no such source.
        MissingDependencyError: if the camera's package is not installed.
    """
    kind, _, file = name.partition(":")
    if images is None and (camera := _camera(kind, Path(file) if file else None, rate)) is not None:
        return camera
    if images is None and not Path(name).exists():
        found = "neither a camera nor a file or folder"
        raise InputError(name, found, f"give a recording, depth files with IMAGES, or {', '.join(CAMERAS)}")
    items, _ = list_items(NamedFiles(name, images, {}, note=note, guide_argument="IMAGES"))
    return Played(name, items, rate=rate, every=every)


def _camera(kind: str, file: Path | None, rate: float) -> LiveSource | None:
    """Return the camera of a name, or what its SDK plays; each SDK is imported only if it is asked for."""
    if kind in ("realsense", "orbbec") and file is not None and not file.is_file():
        raise MissingFileError(file, "no such file")
    if kind == "realsense":
        from primaldepth.live.realsense import RealSense

        return RealSense.opened(file)
    if kind == "orbbec":
        from primaldepth.live.orbbec import Orbbec

        return Orbbec.opened(file)
    if kind == "oak" and file is None:
        from primaldepth.live.oak import Oak

        return Oak.opened()
    if kind == "simulated" and file is None:
        from primaldepth.live.simulated import Simulated

        return Simulated(rate=rate)
    return None


def _name(item: Item) -> str:
    return item.shot.name if item.shot is not None else Path(str(item.depth)).stem


def _times(names: Sequence[str], rate: float) -> list[float]:
    """Return the time of each file in seconds after the first: by time stamps in its name, or by the rate."""
    stamps = [time_stamp(Path(f"{name}.x")) for name in names]
    known = [stamp for stamp in stamps if stamp is not None]
    if len(known) < len(names) or known != sorted(known):
        return [index / rate for index in range(len(names))]
    times = [0.0]
    for before, now in itertools.pairwise(known):
        times.append(times[-1] + min(now - before, LONGEST_GAP))
    return times
