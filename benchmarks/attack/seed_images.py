"""Small valid images of every format that is read, and what of them a checksum covers."""

import io
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.attack import exr, hdf5, png
from benchmarks.attack.cases import Files, Seed, Span, whole
from primaldepth.io.depth_writing import encode_values

SHAPE = (5, 7)


def depths(rng: random.Random, shape: tuple[int, int] = SHAPE) -> np.ndarray:
    """Metres, whole millimetres; a tenth is missing."""
    draw = np.random.default_rng(rng.randrange(2**32))
    values = draw.integers(500, 4000, shape) / 1000.0
    return np.where(draw.random(shape) < 0.9, values, 0.0)


def ours(extension: str, unit: str, values: np.ndarray) -> bytes:
    """What this package writes."""
    return encode_values(f"a{extension}", values, values > 0, unit)


def saved(save: Callable[[str], object], extension: str) -> bytes:
    """What a library writes to a file of this extension."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{extension}"
        save(str(path))
        return path.read_bytes()


def one(name: str, data: bytes, sealed: bool = False, spans: tuple[Span, ...] = ()) -> Seed:
    """A seed of a single file; `sealed` where a checksum covers all of it."""
    files: Files = {name: data}
    return Seed(files, whole(files) if sealed else {name: spans})


def picture(rng: random.Random, size: tuple[int, int] = SHAPE) -> Image.Image:
    draw = np.random.default_rng(rng.randrange(2**32))
    return Image.fromarray(draw.integers(0, 256, (*size, 3)).astype(np.uint8))


def _exif() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


def png_depths(rng: random.Random) -> list[Seed]:
    grey = Image.fromarray(np.arange(1, 36, dtype=np.uint8).reshape(SHAPE))
    values = depths(rng)
    found = [
        ours(".png", "mm", values),
        ours(".png", "disparity", np.rint(values * 10)),
        saved(grey.save, ".png"),
    ]
    return [one("depth.png", data, sealed=True) for data in found]


def png_guides(rng: random.Random) -> list[Seed]:
    colour = picture(rng)
    images = [colour, colour.convert("P"), colour.convert("RGBA"), colour.convert("LA"), colour.convert("1")]
    found = [saved(lambda path, i=image: i.save(path, exif=_exif()), ".png") for image in images]
    wide = np.random.default_rng(rng.randrange(2**32)).integers(0, 65536, (*SHAPE, 3)).astype(">u2")
    rows = b"".join(b"\0" + row.tobytes() for row in wide)
    import zlib

    parts = [png.header(7, 5, 16, 2), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return [one("guide.png", data, sealed=True) for data in (*found, png.packed(parts))]


def jpeg_guides(rng: random.Random) -> list[Seed]:
    colour = picture(rng, (17, 19))
    found = [saved(lambda path: colour.save(path, exif=_exif()), ".jpg")]
    found.append(saved(lambda path: colour.save(path, progressive=True), ".jpg"))
    found += [saved(colour.convert(mode).save, ".jpg") for mode in ("L", "CMYK")]
    return [one("guide.jpg", data) for data in found]


def _tiff_strips(data: bytes) -> tuple[Span, ...]:
    import tifffile

    with tifffile.TiffFile(io.BytesIO(data)) as file:
        page: Any = file.pages[0]
        return tuple((at, at + size) for at, size in zip(page.dataoffsets, page.databytecounts, strict=True))


def tiffs(rng: random.Random, channels: int = 1) -> list[Seed]:
    import tifffile

    draw = np.random.default_rng(rng.randrange(2**32))
    grey = draw.integers(1, 60000, SHAPE if channels == 1 else (*SHAPE, channels)).astype(np.uint16)
    name = "depth.tif" if channels == 1 else "guide.tif"
    kinds = ({}, {"tile": (16, 16)}, {"bigtiff": True}, {"byteorder": ">"}, {"rowsperstrip": 2})
    found = [saved(lambda path, o=options: tifffile.imwrite(path, grey, **o), ".tif") for options in kinds]
    image = Image.fromarray((grey >> 8).astype(np.uint8))
    found.append(saved(lambda path: image.save(path, compression="packbits"), ".tif"))
    packed = [saved(lambda path: tifffile.imwrite(path, grey, compression="zlib", rowsperstrip=2), ".tif")]
    if channels == 1:
        packed.append(ours(".tif", "m", depths(rng)))
    sealed = [one(name, data, spans=_tiff_strips(data)) for data in packed]
    return [one(name, data) for data in found] + sealed


def tiffs_apart(rng: random.Random) -> list[Seed]:
    grey = picture(rng, (40, 30)).convert("L")
    wide = Image.fromarray(np.array(grey).astype(np.uint16) * 200 + 1)
    kinds = ((grey, {}), (wide, {}), (grey, {"tiffinfo": {278: 8}}))
    return [one("depth.tif", _tiff_by_pillow(image, "tiff_lzw", **more)) for image, more in kinds]


def tiff_guides_apart(rng: random.Random) -> list[Seed]:
    colour = picture(rng, (40, 30))
    kinds = ((colour, "tiff_lzw"), (colour, "jpeg"), (colour.convert("CMYK"), "tiff_adobe_deflate"))
    return [one("guide.tif", _tiff_by_pillow(image, compression)) for image, compression in kinds]


def _tiff_by_pillow(image: Image.Image, compression: str, **more: Any) -> bytes:
    return saved(lambda path: image.save(path, compression=compression, **more), ".tif")


def exrs(rng: random.Random, names: tuple[str, ...] = ("NO", "ZIPS", "ZIP")) -> list[Seed]:
    import OpenEXR

    planes = {"Z": depths(rng).astype("f4"), "A": np.ones(SHAPE, "f2"), "id": np.ones(SHAPE, "u4")}
    found = [] if "ZIP" not in names else [ours(".exr", "m", depths(rng, (18, 3)))]
    for name in names:
        head = {"compression": getattr(OpenEXR, f"{name}_COMPRESSION"), "type": OpenEXR.scanlineimage}
        found.append(saved(OpenEXR.File(head, dict(planes)).write, ".exr"))
    return [one("depth.exr", data, spans=_exr_streams(data)) for data in found]


def _exr_streams(data: bytes) -> tuple[Span, ...]:
    """Where the deflated chunks lie: each ends with its checksum."""
    spans, at = [], len(data)
    for chunk in reversed(exr.parsed(data).chunks):
        at -= len(chunk)
        if len(chunk) > 10 and chunk[8:9] == b"\x78":
            spans.append((at + 8, at + len(chunk)))
    return tuple(spans)


def exrs_apart(rng: random.Random) -> list[Seed]:
    """Compressions of which the library alone knows the way, tiles, and two parts."""
    import OpenEXR

    planes = {"Z": depths(rng, (20, 24)).astype("f4")}
    tiles = OpenEXR.TileDescription()
    tiles.xSize = tiles.ySize = 16
    tiled = OpenEXR.File({"type": OpenEXR.tiledimage, "tiles": tiles}, dict(planes))
    parts = [
        OpenEXR.Part({"type": OpenEXR.scanlineimage}, {name: planes["Z"].copy()}, f"part {name}")
        for name in "ZA"
    ]
    found = [saved(each.write, ".exr") for each in (tiled, OpenEXR.File(parts))]
    return [*exrs(rng, ("RLE", "PIZ", "DWAA", "B44", "PXR24")), *(one("depth.exr", data) for data in found)]


def exr_guides(rng: random.Random) -> list[Seed]:
    import OpenEXR

    colour = np.random.default_rng(rng.randrange(2**32)).random((*SHAPE, 3)).astype("f2")
    head = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    return [one("guide.exr", saved(OpenEXR.File(head, {"RGB": colour}).write, ".exr"))]


def pfms(rng: random.Random) -> list[Seed]:
    return [
        one("depth.pfm", ours(".pfm", "m", depths(rng))),
        one("depth.pfm", b"Pf\n2 2\n1.0\n" + b"?\x80\0\0" * 4),
    ]


def pnms(rng: random.Random) -> list[Seed]:
    return [
        one("depth.pgm", b"P5 # comment\n3 2\n65535\n" + bytes(range(12))),
        one("depth.pgm", b"P2\n3 2\n255\n1 2 3\n4 5 6\n"),
    ]


def npys(rng: random.Random) -> list[Seed]:
    return [one("depth.npy", ours(".npy", unit, depths(rng))) for unit in ("m", "mm")]


def npzs(rng: random.Random) -> list[Seed]:
    stream = io.BytesIO()
    np.savez(stream, depth=depths(rng), extra=np.arange(3))
    found = [ours(".npz", "m", depths(rng)), ours(".npz", "mm", depths(rng)), stream.getvalue()]
    return [one("depth.npz", data, sealed=True) for data in found]


def mats(rng: random.Random) -> list[Seed]:
    import scipy.io

    found = [one("depth.mat", ours(".mat", unit, depths(rng))) for unit in ("m", "mm")]
    for packed in (False, True, True):
        values = {"depth": depths(rng), "fx": 525.0} if not packed else {"depth": depths(rng, (9, 11))}
        data = saved(lambda path, v=values, p=packed: scipy.io.savemat(path, v, do_compression=p), ".mat")
        found.append(one("depth.mat", data, spans=((136, len(data)),) if packed else ()))
    return found


def mats73(rng: random.Random) -> list[Seed]:
    values = depths(rng).T

    def checked(file: Any) -> None:
        file.create_dataset("depth", data=values, chunks=values.shape, compression="gzip", fletcher32=True)

    def plain(file: Any) -> None:
        file["depth"] = values

    found = [hdf5.written(make) for make in (plain, checked)]
    return [one(hdf5.NAME, found[0]), one(hdf5.NAME, found[1], spans=hdf5.chunk_spans(found[1]))]


def confidences(rng: random.Random) -> list[Seed]:
    draw = np.random.default_rng(rng.randrange(2**32))
    levels = Image.fromarray(draw.integers(0, 3, SHAPE).astype(np.uint8))
    wide = Image.fromarray(draw.integers(0, 256, SHAPE).astype(np.uint8))
    stream = io.BytesIO()
    np.save(stream, draw.random(SHAPE).astype(np.float32))
    found = [one("trust.png", saved(each.save, ".png"), sealed=True) for each in (levels, wide)]
    return [*found, one("trust.npy", stream.getvalue())]
