"""The one place where Pillow opens a picture whose origin is not known.

Only the formats that are meant are tried, sizes are checked before anything is decoded, and whatever the
decoder raises becomes an `InputError` that names the file.
"""

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import FileFormatError
from primaldepth.io.atomic import write_bytes
from primaldepth.io.formats import jpeg, png, tiff
from primaldepth.io.formats.base import MAX_FILE_BYTES, Source, library_errors

if TYPE_CHECKING:
    from PIL import Image

PictureFormat = Literal["PNG", "JPEG", "WEBP", "BMP", "TIFF"]
RECORDED: tuple[PictureFormat, ...] = ("PNG", "JPEG")
_BY_PILLOW: tuple[PictureFormat, ...] = ("WEBP", "BMP")
_BMP_RUNS = (1, 2)  # run-lengths of a BMP, which Pillow decodes in a loop of Python


def open_picture(
    source: bytes | BinaryIO,
    name: str | os.PathLike[str],
    *,
    formats: tuple[PictureFormat, ...] = RECORDED,
    at_least: tuple[int, int] | None = None,
) -> "Image.Image":
    """Decode a picture completely.

    Args:
        source: the bytes of the file, or a stream of them.
        name: of the file, for messages.
        formats: those that are accepted.
        at_least: (width, height) that is enough; a JPEG is then decoded at a fraction of its size.

    Returns:
        The picture, loaded, in the mode it is stored in and not turned.

    Raises:
        InputError: if it is of another format, larger than the limits, or damaged.
    """
    opened = _source(source, name)
    with library_errors(opened, " or ".join(formats)):
        if "PNG" in formats and png.CODEC.recognises(opened.data[:8]):
            return png.load(opened, png.screen(opened))
        if "JPEG" in formats and jpeg.CODEC.recognises(opened.data[:8]):
            return jpeg.load(opened, jpeg.screen(opened), at_least)
        if "TIFF" in formats and tiff.CODEC.recognises(opened.data[:8]):
            from PIL import Image

            return Image.fromarray(tiff.CODEC.read(opened).pixels)
        return _open_other(opened, [each for each in formats if each in _BY_PILLOW])


def picture_size(source: bytes | BinaryIO, name: str | os.PathLike[str]) -> tuple[int, int]:
    """Return (width, height) of a PNG or JPEG from its header, as it is stored and not turned.

    Raises:
        InputError: if it is of another format, larger than the limits, or damaged.
    """
    opened = _source(source, name)
    with library_errors(opened, " or ".join(RECORDED)):
        if png.CODEC.recognises(opened.data[:8]):
            header = png.read_header(opened)
            return header.width, header.height
        if jpeg.CODEC.recognises(opened.data[:8]):
            height, width = jpeg.read_size(opened)
            return width, height
    raise opened.damaged(f"not a {' or '.join(RECORDED)} file")


def _source(source: bytes | BinaryIO, name: str | os.PathLike[str]) -> Source:
    data = source if isinstance(source, bytes) else source.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise FileFormatError(name, f"has more than the limit of {MAX_FILE_BYTES} bytes", "split it")
    return Source(Path(name), data, "guide")


def _open_other(source: Source, formats: list[str]) -> "Image.Image":
    """Decode a format that only Pillow reads, once the size that its header claims is checked."""
    from PIL import Image

    if not formats:
        raise ValueError("of another format")
    image = Image.open(io.BytesIO(source.data), formats=formats)
    source.check_size(image.height, image.width, stored_bytes=4 * image.height * image.width)
    if image.format == "BMP" and image.info.get("compression") in _BMP_RUNS:
        raise source.error("BMP in run-lengths", "save it without compression")
    image.load()
    return image


def write_film(path: str | Path, pictures: Sequence[NDArray[np.uint8]], seconds: float = 0.1) -> None:
    """Write pictures (H, W, 3) as a GIF or WebP, by the extension, that shows them again and again.

    Args:
        path: of the file.
        pictures: at least one.
        seconds: that each is shown.
    """
    from PIL import Image

    first, *rest = (Image.fromarray(picture) for picture in pictures)
    with io.BytesIO() as stream:
        kind, each = Path(path).suffix[1:].upper(), round(1000 * seconds)
        first.save(stream, kind, save_all=True, append_images=rest, duration=each, loop=0)
        write_bytes(path, stream.getvalue())


def write_preview(path: str | Path, rgb: NDArray[np.uint8]) -> None:
    """Write a picture (H, W, 3) as PNG.

    Args:
        path: ends in `.png`.
        rgb: (H, W, 3).

    Raises:
        FileFormatError: the extension is not `.png`.

    Example:
        >>> import numpy as np
        >>> from primaldepth.io.picture_files import write_preview
        >>> from primaldepth.pictures.preview import overview
        >>> image = np.zeros((60, 80, 3), np.uint8)
        >>> low, depth = np.full((15, 20), 1.5), np.full((60, 80), 1.5)
        >>> write_preview("preview.png", overview(image, low, low > 0, depth, depth > 0, unit="m"))
    """
    if Path(path).suffix.lower() != ".png":
        raise FileFormatError(path, f"extension '{Path(path).suffix}', but a preview is written as .png")
    write_bytes(path, png_bytes(rgb))


def jpeg_bytes(rgb: NDArray[np.uint8], quality: int) -> bytes:
    """Return a picture (H, W, 3) as a JPEG."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(rgb).save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


def png_bytes(rgb: NDArray[np.uint8]) -> bytes:
    """Return a picture (H, W, 3) as a PNG, compressed for people to keep."""
    from PIL import Image  # most calls write no picture

    buffer = io.BytesIO()
    Image.fromarray(rgb).save(buffer, "PNG")
    return buffer.getvalue()
