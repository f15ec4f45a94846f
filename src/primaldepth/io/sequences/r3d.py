"""Record3D's own file, .r3d: a zip with metadata, images N.jpg, and depth and confidence packed by LZFSE.

Depth is float32 in metres, NaN where there is none; confidence holds the levels 0, 1 and 2. Needs the extra
`record3d`.
"""

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.documents import RECORDED, parse_json
from primaldepth.core.errors import FileFormatError
from primaldepth.io.files import as_object, open_file, optional
from primaldepth.io.formats.base import MAX_FILE_BYTES, Source
from primaldepth.io.formats.isolated import read_array
from primaldepth.io.picture_files import open_picture
from primaldepth.io.sequences.base import Content, Recording, Shot, natural_order, same_number
from primaldepth.io.sequences.record3d import cameras_of, pose_of

_END, _TAIL = b"PK\x05\x06", 2**16 + 22  # of a zip: its last record, and how far from the end that may begin
_MOST_LISTED = 2**24  # bytes of the list of members, each of which takes several times as much memory
_SIZES = ((192, 256), (480, 640))  # of depth maps that lie, LiDAR and TrueDepth, if the metadata say none
_SIDES = range(1, 2**13)  # pixels
_HIGHEST = 2.0  # level of confidence


def recognise(root: Path) -> bool:
    """Return whether it is a file with the extension .r3d."""
    return root.is_file() and root.suffix.lower() == ".r3d"


def read(root: Path, time_apart: float | None = None) -> Recording:
    """Pair each depth map with the image and the confidence of its number."""
    optional("lzfse", "record3d", root)
    with open_file(root) as file:
        _check_list(file, root)
    names, values = _opened(root)
    depths = sorted((Path(name) for name in names if name.endswith(".depth")), key=natural_order)
    images = {name.removesuffix(".jpg") for name in names if name.endswith(".jpg")}
    found, notes = same_number(root, [str(depth.with_suffix("")) for depth in depths], images)
    shots = [_shot(root, Path(f"{name}.depth"), f"{name}.conf" in names, values) for name in found]
    return Recording("Record3D file", root, shots, None, notes)


def _check_list(file: Any, root: Path) -> None:
    """Refuse a zip whose list of members is so long that reading it takes all memory."""
    file.seek(0, 2)
    file.seek(max(0, file.tell() - _TAIL))
    tail = file.read(_TAIL)
    place = tail.rfind(_END)
    if place < 0 or len(tail) < place + 22:
        raise FileFormatError(root, "not a whole .r3d file", "copy it again")
    if int.from_bytes(tail[place + 12 : place + 16], "little") > _MOST_LISTED:
        raise FileFormatError(root, "a zip with too many files", "export it as EXR and JPG")


def _opened(root: Path) -> tuple[set[str], dict[str, Any]]:
    """Return the names of the members, and the metadata."""
    try:
        with zipfile.ZipFile(root) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise FileFormatError(
            root, f"not a readable .r3d file ({str(error)[:60]})", "copy it again"
        ) from error
    what = "readable JSON file of metadata"
    return names, as_object(parse_json(_member(root, "metadata"), root, what=what, limits=RECORDED), root)


def _member(root: Path, name: str) -> bytes:
    """Return the bytes of one member; raise if it is larger than a file may be."""
    try:
        with zipfile.ZipFile(root) as archive:
            info = archive.getinfo(name)
            if info.file_size > MAX_FILE_BYTES:
                raise FileFormatError(root, f"{name[:60]} has {info.file_size} bytes")
            with archive.open(info) as file:
                return file.read(MAX_FILE_BYTES)
    except (KeyError, zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, RuntimeError) as error:
        raise FileFormatError(
            root, f"{name[:60]} cannot be read ({str(error)[:60]})", "copy it again"
        ) from error


def _shot(root: Path, depth: Path, has_trust: bool, values: dict[str, Any]) -> Shot:
    def content() -> Content:
        source = Source(root, _member(root, str(depth.with_suffix(".jpg"))))
        image = np.asarray(open_picture(source.data, root, formats=("JPEG",)).convert("RGB"))
        size = image.shape[1], image.shape[0]
        shape, upright = _depth_shape(root, values), size[1] > size[0]
        metres = _unpacked(root, str(depth), shape, np.dtype("<f4"), upright)
        trust = None
        if has_trust:
            levels = _unpacked(root, str(depth.with_suffix(".conf")), shape, np.dtype("u1"), upright)
            trust = np.minimum(levels / np.float32(_HIGHEST), np.float32(1.0))
        cameras, pose = cameras_of(root, values, depth.stem, size), pose_of(root, values, depth.stem)
        return Content(metres.astype(np.float32), image, trust, cameras, pose=pose)

    return Shot(depth.stem, content, (root,))


def _depth_shape(root: Path, values: dict[str, Any]) -> tuple[int, int] | None:
    """Return (height, width) from the metadata, or None where older files do not state it."""
    height, width = values.get("dh"), values.get("dw")
    if height is None and width is None:
        return None
    if isinstance(height, int) and isinstance(width, int) and height in _SIDES and width in _SIDES:
        return height, width
    found = f"'dw' and 'dh' are {str((width, height))[:60]}, expected a size in pixels"
    raise FileFormatError(root, found)


def _unpacked(
    root: Path, name: str, shape: tuple[int, int] | None, kind: np.dtype[Any], upright: bool
) -> NDArray[Any]:
    """Return (h, w) of a packed member, upright as the image is; a separate process unpacks it."""
    most = math.prod(shape or max(_SIZES, key=math.prod)) * kind.itemsize
    data = read_array(Source(root, _member(root, name)), "lzfse", most)[0]
    known = [shape] if shape else [each[::-1] if upright else each for each in _SIZES]
    fits = [size for size in known if math.prod(size) * kind.itemsize == data.nbytes]
    if not fits:
        raise FileFormatError(root, f"{name[:60]} holds {data.nbytes} bytes, which is no size of depth maps")
    return np.frombuffer(data.tobytes(), kind).reshape(fits[0])
