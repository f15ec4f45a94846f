"""Frames of a video, decoded in order; needs the extra `video`."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import FileFormatError
from primaldepth.io.sequences.base import Content, Recording, Shot, missing_numbers, optional

EXTENSIONS = (".mp4", ".mov", ".mkv", ".avi", ".webm", ".m4v")
Image = NDArray[np.uint8]


class Video:
    """Frame number n as (H, W, 3); going forward is cheap, going back starts again.

    Args:
        path: of the file; opened when the first frame is asked for.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._frames: Iterator[Any] | None = None
        self._next = 0

    def reader(self, index: int) -> Callable[[], Image]:
        """A function that gives frame `index`."""
        return lambda: self.frame(index)

    def frame(self, index: int) -> Image:
        """Decode up to frame `index`."""
        if self._frames is None or index < self._next:
            self._frames, self._next = self._open(), 0
        for frame in self._frames:
            self._next += 1
            if self._next > index:
                return _upright(frame)
        raise FileFormatError(
            f"{self.path}: ends after {self._next} frames, but frame {index + 1} is needed; "
            "there must be one for each depth map"
        )

    def count(self) -> int:
        """Frames in the file, without decoding them."""
        with self._container() as container:
            packets = container.demux(video=0)  # the last is empty, and some are not to be shown
            return sum(packet.size > 0 and not packet.is_discard for packet in packets)

    def unpaired(self, frames: int, depths: int) -> FileFormatError:
        """That nothing says which of the frames belong to the depth maps."""
        return FileFormatError(
            f"{self.path}: {frames} frames, but there are {depths} depth maps; extract the frame of each "
            "depth map into a folder, named by the same number or time, and give that folder"
        )

    def _open(self) -> Iterator[Any]:
        with self._container() as container:
            yield from container.decode(video=0)

    @contextmanager
    def _container(self) -> Iterator[Any]:
        av = optional("av", "video", self.path)
        try:
            with av.open(str(self.path)) as container:
                yield container
        except (av.error.FFmpegError, IndexError) as error:
            raise FileFormatError(f"{self.path}: not a readable video ({error})") from error


def _upright(frame: Any) -> Image:
    """Phones store how the picture has to be turned beside it."""
    turns = round(getattr(frame, "rotation", 0) / 90) % 4
    return np.ascontiguousarray(np.rot90(frame.to_ndarray(format="rgb24"), turns))


def with_depths(depths: Sequence[Path], film: Path, trusts: Sequence[Path | None]) -> Recording:
    """Depth files with the frames of a video, as many of each, in the order of both."""
    video = Video(film)
    frames = video.count()
    if frames != len(depths):
        raise video.unpaired(frames, len(depths))
    shots = [
        _shot(depth, video.reader(index), film, trust)
        for index, (depth, trust) in enumerate(zip(depths, trusts, strict=True))
    ]
    return Recording("depth and video", film, shots, notes=missing_numbers(depths))


def _shot(depth: Path, image: Callable[[], Image], film: Path, trust: Path | None) -> Shot:
    files = (depth, film) if trust is None else (depth, film, trust)
    return Shot(depth.stem, lambda: Content(depth, image(), trust), files)
