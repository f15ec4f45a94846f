"""Frames of a video, decoded in order; needs the extra `video`."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import FileFormatError, PrimalDepthError
from primaldepth.io.files import open_file, optional
from primaldepth.io.formats.base import Source, decoding
from primaldepth.io.sequences.base import Content, Recording, Shot, missing_numbers

EXTENSIONS = (".mp4", ".mov", ".mkv", ".avi", ".webm", ".m4v")
_CONTAINERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi"
# A playlist in a file of any name makes the library open other files and addresses. The file is handed over
# as bytes, so that its name is never read as an address, and none that it names is opened.
_OPTIONS = {"format_whitelist": _CONTAINERS, "protocol_whitelist": "none"}
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
        self._damaged: tuple[int, PrimalDepthError] | None = None  # first frame that cannot be had, and why

    def reader(self, index: int) -> Callable[[], Image]:
        """Return a function that gives frame `index`."""
        return lambda: self.frame(index)

    def frame(self, index: int) -> Image:
        """Decode up to frame `index`; frames after damage are refused without another try."""
        if self._damaged is not None and index >= self._damaged[0]:
            raise self._damaged[1]
        if self._frames is None or index < self._next:
            self._frames, self._next = self._open(), 0
        try:
            for frame in self._frames:
                self._next += 1
                if self._next > index:
                    with decoding(self.path, "not a readable video", "copy or convert it again"):
                        return _upright(frame)
        except PrimalDepthError as error:
            self._frames, self._damaged = None, (min(index, self._next), error)
            raise
        raise FileFormatError(
            self.path,
            f"ends after {self._next} frames, but frame {index + 1} is needed",
            "there must be one for each depth map",
        )

    def count(self) -> int:
        """Return the number of frames in the file, without decoding them."""
        with self._container() as container:
            packets = container.demux(video=0)  # the last is empty, and some are not to be shown
            return sum(packet.size > 0 and not packet.is_discard for packet in packets)

    def unpaired(self, frames: int, depths: int) -> FileFormatError:
        """Return the error for a video whose frames and depth files differ in number."""
        return FileFormatError(
            self.path,
            f"{frames} frames, but there are {depths} depth maps",
            "extract the frame of each "
            "depth map into a folder, named by the same number or time, and give that folder",
        )

    def _open(self) -> Iterator[Any]:
        with self._container() as container:
            stream = container.streams.video[0]
            self._check_size(stream.codec_context)
            for frame in container.decode(stream):
                self._check_size(frame)  # it may change within a film
                yield frame

    @contextmanager
    def _container(self) -> Iterator[Any]:
        av = optional("av", "video", self.path)
        with (
            open_file(self.path) as file,
            decoding(self.path, "not a readable video", "copy or convert it again"),
            av.open(file, options=_OPTIONS, metadata_errors="replace") as container,
        ):
            yield container

    def _check_size(self, picture: Any) -> None:
        """Refuse frames larger than images may be."""
        Source(self.path, b"").check_size(max(picture.height, 1), max(picture.width, 1))


def _upright(frame: Any) -> Image:
    """Return a frame turned by the angle that phones store beside it; one without a valid angle as it is."""
    angle = float(getattr(frame, "rotation", 0) or 0)
    turns = round(angle / 90) % 4 if math.isfinite(angle) else 0
    return np.ascontiguousarray(np.rot90(frame.to_ndarray(format="rgb24"), turns))


def with_depths(depths: Sequence[Path], film: Path, trusts: Sequence[Path | None]) -> Recording:
    """Pair depth files with the frames of a video, as many of each, in the order of both."""
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
