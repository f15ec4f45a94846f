"""Read randomly damaged files: each must give one of our errors or a well-formed result.

Run as a program, `damage.py FORMAT COUNT SEED`, so that a crash, a hang or a bomb is seen from outside.
"""

import io
import json
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from primaldepth.core.errors import PrimalDepthError
from primaldepth.io import DepthMap, read_confidence, read_depth, read_guide, write_depth

FORMATS = ("png", "exr", "pfm", "npy", "npz", "tiff", "mat")
GUIDES = ("guide-png", "guide-jpeg", "guide-tiff", "guide-exr")
SLOW = ("exr-apart", "tiff-apart", "mat73")  # decoded in a process of their own
SECONDS = 20
LENGTHS = (0, 1, 0xFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFF0, 2**16, 2**24)


def depth_map(unit="mm", shape=(5, 7), seed=0):
    steps = np.random.default_rng(seed).integers(0, 200, shape)
    return DepthMap.from_array(steps if unit == "disparity" else steps / 50, unit=unit)


def _ours(extension, units=("mm",), shape=(5, 7)):
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for unit in units:
            path = Path(folder) / f"a{extension}"
            write_depth(path, depth_map(unit, shape))
            found.append(path.read_bytes())
        return found


def _saved(save: Callable[[str], object], extension: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{extension}"
        save(str(path))
        return path.read_bytes()


def _seeds_png():
    from PIL import Image

    grey = Image.fromarray(np.arange(35, dtype=np.uint8).reshape(5, 7))
    return [*_ours(".png", ("mm", "disparity")), _saved(grey.save, ".png")]


def _seeds_exr(names=("NO", "ZIPS", "ZIP")):
    import OpenEXR

    planes = {"Z": np.ones((5, 7), "f4"), "A": np.ones((5, 7), "f2"), "id": np.ones((5, 7), "u4")}
    found = [] if "ZIP" not in names else _ours(".exr", ("m", "mm"), (18, 3))
    for name in names:
        header = {"compression": getattr(OpenEXR, f"{name}_COMPRESSION"), "type": OpenEXR.scanlineimage}
        found.append(_saved(OpenEXR.File(header, planes).write, ".exr"))
    return found


def _seeds_tiff(channels=1):
    import tifffile
    from PIL import Image

    shape = (5, 7) if channels == 1 else (5, 7, channels)
    grey = np.random.default_rng(0).integers(1, 60000, shape).astype(np.uint16)
    found = _ours(".tiff", ("m", "mm")) if channels == 1 else []
    for options in ({}, {"tile": (16, 16)}, {"bigtiff": True}, {"byteorder": ">"}, {"rowsperstrip": 2}):
        found.append(_saved(lambda path, options=options: tifffile.imwrite(path, grey, **options), ".tif"))
    small = (grey >> 8).astype(np.uint8)
    image = Image.fromarray(small)
    for compression in ("packbits", "tiff_adobe_deflate"):
        found.append(_saved(lambda path, c=compression: image.save(path, compression=c), ".tif"))
    return found


def _seeds_tiff_apart():
    from PIL import Image

    image = Image.fromarray(np.arange(35, dtype=np.uint8).reshape(5, 7))
    return [_saved(lambda path: image.save(path, compression="tiff_lzw"), ".tif")]


def _seeds_mat():
    import scipy.io

    array = {"depth": depth_map().values, "fx": 525.0}
    found = _ours(".mat", ("m", "mm"))
    for packed in (False, True):
        found.append(_saved(lambda path, p=packed: scipy.io.savemat(path, array, do_compression=p), ".mat"))
    return found


def _seeds_mat73():
    import h5py

    def save(path: str) -> None:
        with h5py.File(path, "w") as file:
            file["depth"] = depth_map().values.T

    return [_saved(save, ".mat")]


def _seeds_npz():
    stream = io.BytesIO()
    np.savez(stream, depth=depth_map().values, extra=np.arange(3))
    return [*_ours(".npz", ("m", "mm")), stream.getvalue()]


def _seeds_guide_png():
    from PIL import Image

    rng = np.random.default_rng(0)
    colour = Image.fromarray(rng.integers(0, 255, (5, 7, 3)).astype(np.uint8))
    exif = Image.Exif()
    exif[0x0112] = 6
    wide = np.random.default_rng(1).integers(0, 65536, (5, 7, 3)).astype(">u2")
    rows = b"".join(b"\0" + row.tobytes() for row in wide)
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", 7, 5, 16, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    sixteen = b"\x89PNG\r\n\x1a\n" + b"".join(_png_chunk(*part) for part in parts)
    images = [colour, colour.convert("P"), colour.convert("RGBA"), colour.convert("LA"), colour.convert("1")]
    found = [_saved(lambda path, i=image: i.save(path, exif=exif), ".png") for image in images]
    return [*found, sixteen]


def _seeds_guide_jpeg():
    from PIL import Image

    rng = np.random.default_rng(0)
    colour = Image.fromarray(rng.integers(0, 255, (17, 19, 3)).astype(np.uint8))
    exif = Image.Exif()
    exif[0x0112] = 6
    found = [_saved(lambda path: colour.save(path, exif=exif), ".jpg")]
    found.append(_saved(lambda path: colour.save(path, progressive=True), ".jpg"))
    found += [_saved(colour.convert(mode).save, ".jpg") for mode in ("L", "CMYK")]
    return found


def _seeds_guide_exr():
    import OpenEXR

    rgb = np.random.default_rng(0).random((5, 7, 3)).astype("f2")
    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    return [_saved(OpenEXR.File(header, {"RGB": rgb}).write, ".exr")]


SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "png": _seeds_png,
    "exr": _seeds_exr,
    "pfm": lambda: [*_ours(".pfm", ("m",)), b"Pf\n2 2\n1.0\n" + bytes([63, 128, 0, 0] * 4)],
    "npy": lambda: _ours(".npy", ("m", "mm")),
    "npz": _seeds_npz,
    "tiff": _seeds_tiff,
    "mat": _seeds_mat,
    "exr-apart": lambda: _seeds_exr(("RLE", "PIZ", "DWAA", "B44", "PXR24")),
    "mat73": _seeds_mat73,
    "tiff-apart": _seeds_tiff_apart,
    "guide-png": _seeds_guide_png,
    "guide-jpeg": _seeds_guide_jpeg,
    "guide-tiff": lambda: _seeds_tiff(3),
    "guide-exr": _seeds_guide_exr,
}


def _png_chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _mend_png(data: bytes) -> bytes:
    """Correct the checksums, so that damage reaches what lies behind them."""
    found, at = bytearray(data[:8]), 8
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        if at + 12 + length > len(data):
            break
        found += _png_chunk(bytes(data[at + 4 : at + 8]), bytes(data[at + 8 : at + 8 + length]))
        at += 12 + length
    return bytes(found + data[at:])


def _mutate_once(rng: random.Random, data: bytearray) -> None:
    head = rng.random() < 0.6
    at = rng.randrange(min(len(data), 420) if head else len(data))
    choice = rng.random()
    if choice < 0.3:
        data[at] ^= 1 << rng.randrange(8)
    elif choice < 0.5:
        data[at] = rng.randrange(256)
    elif choice < 0.75:
        form = rng.choice(("<I", ">I", "<H", ">H", "<Q"))
        number = rng.choice((*LENGTHS, rng.getrandbits(32), rng.randrange(300)))
        packed = struct.pack(form, number % (1 << 8 * struct.calcsize(form)))
        data[at : at + len(packed)] = packed
    elif choice < 0.83:
        data[at : at + rng.randrange(1, 40)] = rng.randbytes(rng.randrange(1, 40))
    elif choice < 0.9:
        data[at : at + rng.randrange(1, 60)] = bytes([rng.choice((0, 255, 0x39, 0x41))]) * rng.randrange(
            1, 60
        )
    elif choice < 0.95:
        data[at:at] = data[at : at + rng.randrange(1, 40)]
    else:
        del data[rng.randrange(len(data)) :]


def mutate(rng: random.Random, seed: bytes) -> bytes:
    data = bytearray(seed)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        if data:
            _mutate_once(rng, data)
    if data[:4] == b"\x89PNG" and rng.random() < 0.8:
        return _mend_png(bytes(data))
    return bytes(data)


def _check(name: str, path: Path, index: int) -> bool:
    """True if it was read, False if refused with our error; anything else is raised."""
    try:
        if name.startswith("guide"):
            guide = read_guide(path)
            ok = guide.ndim == 3 and guide.dtype == np.float32 and guide.shape[2] in (1, 3)
            if not (ok and np.isfinite(guide).all() and guide.min() >= 0 and guide.max() <= 1):
                raise RuntimeError(f"guide {guide.shape} {guide.dtype} is not well-formed")
        elif index % 10 == 9:
            read_confidence(path, (5, 7))
        else:
            depth = read_depth(path)
            if not depth.valid.any():
                raise RuntimeError("no valid pixel")
    except PrimalDepthError as error:
        if "\n" in str(error) or str(path) not in str(error) or len(str(error)) > 600 + len(str(path)):
            raise RuntimeError(f"message is not one short line about the file: {error}") from error
        return False
    return True


def run(name: str, count: int, seed: int) -> dict[str, object]:
    seeds = SEEDS[name]()
    summary: dict[str, object] = {"read": 0, "refused": 0, "failures": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.bin"
        for data in seeds:
            path.write_bytes(data)
            if not _check(name, path, 0):
                raise RuntimeError(f"a seed of {name} was refused")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for index in range(count):
            rng = random.Random(f"{name} {seed} {index}")  # noqa: S311
            path.write_bytes(mutate(rng, rng.choice(seeds)))
            signal.alarm(SECONDS)
            try:
                summary["read" if _check(name, path, index) else "refused"] += 1  # type: ignore[operator]
            except Exception as error:
                summary["failures"].append([index, repr(error)[:300]])  # type: ignore[attr-defined]
        signal.alarm(0)
    summary["growth_mib"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    summary["children_mib"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    return summary


def main(name: str, count: int, seed: int) -> None:
    """Print the summary; whatever else reached standard error is in it, for it would reach the user."""
    kept = os.dup(2)
    with tempfile.TemporaryFile() as errors:
        os.dup2(errors.fileno(), 2)
        result = run(name, count, seed)
        os.dup2(kept, 2)
        errors.seek(0)
        result["noise"] = errors.read().decode("utf-8", "replace")[:400]
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
