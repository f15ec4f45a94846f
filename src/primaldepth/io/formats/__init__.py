"""The formats this package reads and writes. A new one is one file and one line in `CODECS`."""

from pathlib import Path

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.io.formats import exr, jpeg, mat, numpy_files, pfm, png, pnm, tiff
from primaldepth.io.formats.base import Codec, Raster, Role, Source
from primaldepth.io.formats.budget import MAX_FILE_BYTES

CODECS: tuple[Codec, ...] = (
    png.CODEC,
    exr.CODEC,
    pfm.CODEC,
    pnm.CODEC,
    numpy_files.NPY,
    numpy_files.NPZ,
    tiff.CODEC,
    mat.CODEC,
    jpeg.CODEC,
)
_HEAD = 520


def read_raster(path: Path, role: Role) -> Raster:
    """Read a file by what it contains; its extension is not trusted."""
    source = Source(path, read_file(path), role)
    for codec in CODECS:
        if codec.recognises(source.data[:_HEAD]):
            return codec.read(source)
    raise source.error(
        "not a format this package reads (begins with {})",
        repr(source.data[:8]),
        hint=f"use one of {', '.join(codec.name for codec in CODECS)}",
    )


def writer_for(path: Path) -> Codec:
    """The codec an output's extension asks for."""
    known = [codec for codec in CODECS if codec.encode is not None]
    for codec in known:
        if path.suffix.lower() in codec.extensions:
            return codec
    names = ", ".join(extension for codec in known for extension in codec.extensions)
    raise InputError(path, f"cannot write depth as '{path.suffix}'", f"use one of {names}")


def read_file(path: Path) -> bytes:
    """Return the whole content of a regular file.

    Raises:
        InputError: if there is none, it cannot be read, is empty, or is larger than the limit.
    """
    try:
        if path.is_dir():
            raise InputError(path, "is a directory", "give the name of a file")
        if not path.exists():
            raise InputError(path, "no such file", "check the name")
        if not path.is_file():
            raise InputError(path, "is not a regular file", "copy its content to one first")
        size = path.stat().st_size
        if size == 0:
            raise FileFormatError(path, "is empty (0 bytes)", "copy or export it again")
        if size > MAX_FILE_BYTES:
            raise FileFormatError(
                path, f"has {size} bytes, more than the limit of {MAX_FILE_BYTES}", "split it"
            )
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            path, f"cannot be read ({error.strerror or error})", "check the name and its rights"
        ) from error
