"""What the folders of a scan have in common: a frame, and its image and depth map as files."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from primaldepth.geometry.views import PosedView
from primaldepth.io.atomic import write_bytes
from primaldepth.io.depth_writing import write_values
from primaldepth.io.files import read_file
from primaldepth.io.formats import jpeg, png
from primaldepth.io.formats.base import MAX_FILE_BYTES, Source
from primaldepth.io.formats.orientation import UPRIGHT
from primaldepth.io.picture_files import jpeg_bytes, picture_size
from primaldepth.io.rasters import read_guide
from primaldepth.io.sequences.base import Picture
from primaldepth.io.units import per_metre

_QUALITY = 95  # of a JPEG made from a frame of a video
_LARGEST = 65535 / per_metre("mm")  # metres that a 16-bit PNG can hold


@dataclass(frozen=True, slots=True, eq=False)
class ScanFrame:
    """One frame of a scan.

    Args:
        name: unique in the scan, without an extension.
        image: its file, or (H, W, 3) or (H, W).
        view: depth, camera and pose; the depth map may be smaller than the image.
    """

    name: str
    image: Picture
    view: PosedView

    @property
    def file_name(self) -> str:
        """The name without spaces, which lists of files cannot hold."""
        return "_".join(self.name.split())


def rgb(image: Picture) -> NDArray[np.uint8]:
    """Return an image or its file as (H, W, 3)."""
    found = np.rint(read_guide(image) * 255).astype(np.uint8) if isinstance(image, Path) else image
    planes = found[..., None] if found.ndim == 2 else found
    return np.ascontiguousarray(np.broadcast_to(planes, (*planes.shape[:2], 3)))


def write_image(folder: Path, frame: ScanFrame) -> tuple[Path, tuple[int, int]]:
    """Write the image of a frame, as it was recorded where possible; return file and (width, height)."""
    path, data = folder / f"{frame.file_name}.jpg", None
    if isinstance(frame.image, Path):
        data = _upright_file(frame.image)
        path = path if data is None else path.with_suffix(frame.image.suffix.lower())
    data = data or jpeg_bytes(rgb(frame.image), _QUALITY)
    write_bytes(path, data)
    return path, picture_size(data, path)


def write_depth_png(folder: Path, frame: ScanFrame) -> Path:
    """Write the depth map of a frame in millimetres, holes as 0; return the file."""
    path, view = folder / f"{frame.file_name}.png", frame.view
    held = (view.depth * per_metre("mm") >= 0.5) & (view.depth <= _LARGEST)
    write_values(path, view.depth, view.valid & held, "mm")
    return path


def _upright_file(path: Path) -> bytes | None:
    """Return the bytes of a PNG or JPEG that is not to be turned; None for all others."""
    data = read_file(path, MAX_FILE_BYTES)
    if jpeg.CODEC.recognises(data[:8]):
        upright = jpeg.screen(Source(path, data, "guide")).orientation == UPRIGHT
        return data if upright else None
    return data if png.CODEC.recognises(data[:8]) else None
