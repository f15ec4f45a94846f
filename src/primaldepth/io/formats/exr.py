"""OpenEXR: 32-bit floats, halves or integers; 0 marks an invalid pixel, as renderers leave a miss.

The header and the table of chunks are checked here, on purpose: a claimed size is refused before anything of
that size is allocated, and OpenEXR accepts chunks that overlap. The OpenEXR package decodes the pixels in a
process of its own, since damaged files can crash it or take any amount of memory. Files are written here:
OpenEXR 3.5 can wait for ever for its own threads when it writes to memory, and a temporary file would lie
outside the one folder that the service writes to.
Depth is the channel Z, else one called depth (or in a layer of that name), else Y, else the only one.
"""

import io
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from primaldepth.io.formats.base import (
    DEFLATE_RATIO,
    LEVEL,
    Codec,
    Pixels,
    Raster,
    Source,
    library_errors,
    listing,
)
from primaldepth.io.formats.exr_header import LINES, MAGIC, Channel, ExrHeader, parse_header

_RATIO = {"NONE": 1, "ZIPS": DEFLATE_RATIO, "ZIP": DEFLATE_RATIO}
_LOOSE_RATIO = 2**16  # the other compressions have no bound as firm as deflate's


def _pick(source: Source, header: ExrHeader) -> list[Channel]:
    """Return the channels wanted: red, green and blue for a guide, else one."""
    named = {channel.name: channel for channel in header.channels}
    if source.role == "guide" and {"R", "G", "B"} <= named.keys():
        return [named["R"], named["G"], named["B"]]
    single = _pick_name(source.role, list(named))
    if single is None:
        hint = "R, G and B, or Y" if source.role == "guide" else "Z" if source.role == "depth" else "Y"
        raise source.error("EXR holds the channels {}", f"name the wanted one {hint}", listing(list(named)))
    return [named[single]]


def _pick_name(role: str, names: list[str]) -> str | None:
    """Return the name that the first rule with exactly one match picks."""
    rules = (
        [name for name in names if name == "Z" and role == "depth"],
        [name for name in names if name.lower() == role],
        [name for name in names if role in name.lower().split(".")],
        [name for name in names if name == "Y"],
        names,
    )
    return next((found[0] for found in rules if len(found) == 1), None)


def _read(source: Source) -> Raster:
    from primaldepth.io.formats.isolated import read_array

    header = parse_header(source)
    wanted = _pick(source, header)
    _check_one_part(source, header, wanted)
    ratio = _RATIO.get(header.compression, _LOOSE_RATIO)
    source.check_size(header.height, header.width, stored_bytes=header.nbytes, ratio=ratio)
    source.check_parts(-(-header.height // LINES[header.compression]), "chunks of rows")
    with library_errors(source, "EXR"):
        if header.simple and header.compression in _RATIO:
            _check_chunks(source, header)
        planes = read_array(source, "exr", header.nbytes, *(channel.name for channel in wanted))
    if planes.shape != (len(wanted), header.height, header.width):
        raise source.damaged(f"EXR pixels have the shape {planes.shape}, which its header does not say")
    return Raster(planes[0] if len(planes) == 1 else np.moveaxis(planes, 0, -1))


def _check_one_part(source: Source, header: ExrHeader, wanted: list[Channel]) -> None:
    """Refuse a file with the wanted channel in several parts: nothing says which of them is meant."""
    for channel in wanted:
        count = 1 + sum(channel.name in names for names in header.other_parts)
        if count > 1:
            raise source.error(
                f"EXR holds {{}} in {count} parts", "save the one part alone", repr(channel.name)
            )


def _check_chunks(source: Source, header: ExrHeader) -> None:
    """Refuse a table of chunks unless each row is there once and no two chunks share bytes."""
    lines = LINES[header.compression]
    count = -(-header.height // lines)
    if header.end + 8 * count > len(source.data):
        raise source.damaged("EXR ends in its table of chunks")
    found = []
    for offset in struct.unpack_from(f"<{count}Q", source.data, header.end):
        if offset + 8 > len(source.data):
            raise source.damaged("EXR has a chunk past its end")
        y, size = struct.unpack_from("<ii", source.data, offset)
        first, end = y - header.top, offset + 8 + size
        if first % lines or not 0 <= first < header.height or size < 0 or end > len(source.data):
            raise source.damaged("EXR has a chunk in a wrong place")
        found.append((first, offset + 8, end))
    if len({first for first, _, _ in found}) < count:
        raise source.damaged("EXR has the same rows twice")
    source.check_apart(((start, end) for _, start, end in found), "chunks of rows")


def _pack(rows: bytes) -> bytes:
    """Take halves, then differences, and deflate them; rows that do not shrink stay as they are."""
    flat = np.frombuffer(rows, np.uint8)
    halves = np.concatenate([flat[0::2], flat[1::2]])
    steps = halves.copy()
    steps[1:] = halves[1:] - halves[:-1] + np.uint8(128)
    packed = zlib.compress(steps.tobytes(), LEVEL)
    return packed if len(packed) < len(rows) else rows


def _attribute(name: str, kind: str, body: bytes) -> bytes:
    return f"{name}\0{kind}\0".encode() + struct.pack("<i", len(body)) + body


def _encode(pixels: Pixels, valid: NDArray[np.bool_]) -> bytes:
    """Return the bytes of a file with one part of scan lines and one channel Z, compressed by ZIP."""
    height, width = pixels.shape
    code = 0 if pixels.dtype.kind == "u" else 2
    window = struct.pack("<4i", 0, 0, width - 1, height - 1)
    attributes = (
        ("channels", "chlist", b"Z\0" + struct.pack("<iIii", code, 0, 1, 1) + b"\0"),
        ("compression", "compression", b"\3"),
        ("dataWindow", "box2i", window),
        ("displayWindow", "box2i", window),
        ("lineOrder", "lineOrder", b"\0"),
        ("pixelAspectRatio", "float", struct.pack("<f", 1.0)),
        ("screenWindowCenter", "v2f", struct.pack("<2f", 0.0, 0.0)),
        ("screenWindowWidth", "float", struct.pack("<f", 1.0)),
    )
    head = MAGIC + struct.pack("<I", 2) + b"".join(_attribute(*each) for each in attributes) + b"\0"
    return _with_chunks(head, pixels.astype(pixels.dtype.newbyteorder("<"), copy=False))


def _with_chunks(head: bytes, pixels: Pixels) -> bytes:
    """Return the header, the table of where each chunk of 16 rows begins, and the chunks."""
    stream, offsets = io.BytesIO(), []
    starts = range(0, len(pixels), 16)
    stream.write(head + bytes(8 * len(starts)))
    for y in starts:
        offsets.append(stream.tell())
        body = _pack(pixels[y : y + 16].tobytes())
        stream.write(struct.pack("<ii", y, len(body)) + body)
    stream.seek(len(head))
    stream.write(struct.pack(f"<{len(offsets)}Q", *offsets))
    return stream.getvalue()


CODEC = Codec("EXR", (".exr",), lambda head: head[:4] == MAGIC, _read, ("uint32", "float32"), encode=_encode)
