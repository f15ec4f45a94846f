"""The bytes of the known bombs, none of which is ever held in memory at its full size."""

import struct
import zlib
from pathlib import Path

import numpy as np

from benchmarks.attack import arrays, jpeg, png
from benchmarks.attack.seed_images import saved


def deflated_zeros(mebibytes: int, before: bytes = b"", wbits: int = 15) -> bytes:
    """`before` and so many zeros in one stream, made without ever holding them."""
    deflate = zlib.compressobj(9, wbits=-15)
    head = deflate.compress(before) + deflate.flush(zlib.Z_FULL_FLUSH)
    block = deflate.compress(bytes(2**20)) + deflate.flush(zlib.Z_FULL_FLUSH)
    body = head + block * mebibytes + deflate.flush()
    if wbits < 0:
        return body
    low, high = (part % 65521 for part in divmod(zlib.adler32(before), 65536)[::-1])
    return b"\x78\xda" + body + struct.pack(">HH", (high + low * (mebibytes << 20)) % 65521, low)


def png_flush() -> bytes:
    """A stream that goes on after the pixels: inflating the rest takes a thousand times the file."""
    return png.packed([png.header(64, 64), (b"IDAT", deflated_zeros(2000)), (b"IEND", b"")])


def png_headers() -> bytes:
    """The first header is checked, the second one decoded: as many bytes, sixteen times as many pixels."""
    rows = zlib.compress((b"\0" + b"\xaa" * 2048) * 8192, 9)
    parts = [png.header(1024, 8192), png.header(16384, 8192, 1), (b"IDAT", rows), (b"IEND", b"")]
    return png.packed(parts)


def png_crowd() -> bytes:
    rows = zlib.compress(bytes(16 * 33), 9)
    return png.packed([png.header(16, 16), *([(b"IDAT", b"")] * 2_000_000), (b"IDAT", rows), (b"IEND", b"")])


def exr_overlap() -> bytes:
    """Deflated chunks of one row that each claim the rest of a large file."""
    rows, tail = 12_000, 8_000_000
    window = struct.pack("<4i", 0, 0, 0, rows - 1)
    attributes = (("channels", "chlist", b"Z\0" + struct.pack("<iIii", 2, 0, 1, 1) + b"\0"),
                  ("compression", "compression", b"\2"), ("dataWindow", "box2i", window),
                  ("displayWindow", "box2i", window))  # fmt: skip
    head = b"\x76\x2f\x31\x01" + struct.pack("<I", 2)
    head += b"".join(f"{n}\0{k}\0".encode() + struct.pack("<i", len(b)) + b for n, k, b in attributes) + b"\0"
    first = len(head) + 8 * rows
    row_of_ones = zlib.compress(b"\0\x00\x00\x00")
    size = 8 + len(row_of_ones)
    offsets = struct.pack(f"<{rows}Q", *(first + size * row for row in range(rows)))
    chunks = b"".join(struct.pack("<iI", row, tail) + row_of_ones for row in range(rows))
    return head + offsets + chunks + bytes(tail)


def _tiff(entries: list[tuple[int, int, int, int]], following: int = 0) -> bytes:
    lines = b"".join(struct.pack("<HHII", *entry) for entry in sorted(entries))
    return struct.pack("<H", len(entries)) + lines + struct.pack("<I", following)


def tiff_overlap() -> bytes:
    """Deflated strips of one row that all lie in the same eight megabytes."""
    rows, tail = 20_000, 8_000_000
    strip = zlib.compress(b"\1\2" * 4)
    data = 8 + 8 * rows
    body = struct.pack(f"<{rows}I", *([data] * rows)) + struct.pack(f"<{rows}I", *([tail] * rows))
    entries = [
        (256, 4, 1, 4),
        (257, 4, 1, rows),
        (258, 3, 1, 16),
        (259, 3, 1, 8),
        (262, 3, 1, 1),
        (277, 3, 1, 1),
    ]
    entries += [(273, 4, rows, 8), (278, 4, 1, 1), (279, 4, rows, 8 + 4 * rows), (339, 3, 1, 1)]
    end = data + tail
    return b"II*\0" + struct.pack("<I", end) + body + strip.ljust(tail, b"\0") + _tiff(entries)


def tiff_pages() -> bytes:
    """Sixty pages, each of which has the same table of a million numbers."""
    many, table = 1_000_000, 4_000_000
    out = bytearray(b"II*\0" + struct.pack("<I", 8 + table) + struct.pack("<I", 8) * many)
    base = [(256, 4, 1, 4), (257, 4, 1, 2), (258, 3, 1, 16), (259, 3, 1, 1), (262, 3, 1, 1), (277, 3, 1, 1)]
    for page in range(60):
        last, wide = page == 59, page > 0
        entries = [*base, (254, 4, 1, int(wide)), (278, 4, 1, 2), (339, 3, 1, 1)]
        entries += [(273, 4, many, 8), (279, 4, many, 8)] if wide else [(273, 4, 1, 8), (279, 4, 1, 16)]
        size = len(_tiff(entries))
        out += _tiff(entries, 0 if last else len(out) + size)
    return bytes(out)


def jpeg_scans() -> bytes:
    """A progressive image whose last scan is there twenty thousand times, without data."""
    from PIL import Image

    image = Image.new("L", (2048, 2048), 90)
    parts = jpeg.segments(saved(lambda path: image.save(path, progressive=True), ".jpg"))
    last = max(index for index, part in enumerate(parts) if part[0] == 0xDA)
    empty = (0xDA, parts[last][1], b"")
    return jpeg.packed([*parts[: last + 1], *([empty] * 20_000), *parts[last + 1 :]])


def npz_channels() -> bytes:
    """Four channels of 4096x6400 numbers: no depth map, which the header alone tells."""
    head, mebibytes, crc = arrays.npy((4096, 6400, 4)), 800, 0
    crc = zlib.crc32(head)
    for _ in range(mebibytes):
        crc = zlib.crc32(bytes(2**20), crc)
    sizes = (("crc", crc), ("size", len(head) + (mebibytes << 20)))
    stream = deflated_zeros(mebibytes, head, wbits=-15)
    return arrays.zipped([arrays.Member(b"depth.npy", head, True, sizes, sizes, stream)])


def mat_longer() -> bytes:
    """One bit of the stream flipped so that it holds more, and other, numbers than before."""
    import scipy.io

    values = np.arange(1.0, 100.0).reshape(9, 11)
    data = saved(lambda path: scipy.io.savemat(path, {"depth": values}, do_compression=True), ".mat")
    whole = zlib.decompress(data[136:])
    for at in range(8 * 140, 8 * (len(data) - 5)):
        changed = bytearray(data)
        changed[at // 8] ^= 1 << at % 8
        try:
            found = zlib.decompressobj().decompress(bytes(changed[136:]), len(whole) + 16)
        except zlib.error:
            continue
        if len(found) >= len(whole) and found[:100] == whole[:100] and found != whole:
            return bytes(changed)
    raise RuntimeError("no bit of the stream makes it longer")


def film_with_latin1() -> bytes:
    """A video whose title is no UTF-8."""
    from benchmarks.attack.seed_recordings import recording_files

    data = saved(lambda path: recording_files.write_film(Path(path)), ".mp4")
    return data.replace(b"Lavf", b"\xff\xfe\xfd\xfc")


def safetensors(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()
