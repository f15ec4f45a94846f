"""Inputs that once took the package down, made anew: each runs first, by its name.

The names begin with the reader they are for. Sizes are as small as the fault allows.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attack import bomb_files, hdf5
from benchmarks.attack.cases import Files, Promise, Seed, write_files
from benchmarks.attack.seed_images import ours

Make = Callable[[Path, Seed], None]


@dataclass(frozen=True)
class Bomb:
    """One known attack; `make` puts its files into a folder, given the reader's first seed."""

    name: str
    make: Make
    promise: Promise = "refused"

    @property
    def reader(self) -> str:
        return self.name.partition(":")[0]


def _files(make: Callable[[], Files]) -> Make:
    return lambda folder, seed: write_files(folder, make())


def _instead(name: str, data: Callable[[], bytes]) -> Make:
    """The seed with one file replaced."""
    return lambda folder, seed: write_files(folder, {**seed.files, name: data()})


def _long_json() -> bytes:
    return b'{"guide": {"fx": [' + b"1," * 25_000_000 + b"1]}}"


def _long_matrix() -> bytes:
    return b"1 " * 25_000_000


def _card(**settings: Any) -> Make:
    def make(folder: Path, seed: Seed) -> None:
        card = json.loads(seed.files["net.json"])
        card["settings"] |= settings
        write_files(folder, {**seed.files, "net.json": json.dumps(card).encode()})

    return make


def _special(name: str, put: Callable[[Path], None]) -> Make:
    """The seed with something that is no file in the place of one."""

    def make(folder: Path, seed: Seed) -> None:
        write_files(folder, {key: data for key, data in seed.files.items() if key != name})
        put(folder / name)

    return make


def _fifo(name: str) -> Make:
    return _special(name, os.mkfifo)


def _device(name: str) -> Make:
    return _special(name, lambda path: path.symlink_to("/dev/zero"))


def _text(name: str, text: str) -> Make:
    return _instead(name, lambda: text.encode("utf-8", "surrogatepass"))


def _metadata(**values: Any) -> Make:
    return _text("metadata.json", json.dumps({"w": 64, "h": 48, **values}))


_DEEP = "[" * 100_000
_DIGITS = "9" * 5000
BOMBS: tuple[Bomb, ...] = (
    *(
        Bomb(f"mat73:{n.replace(' ', '-')}", _files(lambda m=m: hdf5.beside(m)))
        for n, m in hdf5.OUTWARD.items()
    ),
    Bomb("png:endless-stream", _instead("depth.png", bomb_files.png_flush)),
    Bomb("png:two-headers", _instead("depth.png", bomb_files.png_headers)),
    Bomb("png:empty-chunks", _instead("depth.png", bomb_files.png_crowd), "any"),
    Bomb("exr:overlap", _instead("depth.exr", bomb_files.exr_overlap), "any"),
    Bomb("tiff:overlap", _instead("depth.tif", bomb_files.tiff_overlap), "any"),
    Bomb("tiff:shared-table", _instead("depth.tif", bomb_files.tiff_pages), "any"),
    Bomb("jpeg:scans", _instead("guide.jpg", bomb_files.jpeg_scans), "any"),
    Bomb("npz:channels", _instead("depth.npz", bomb_files.npz_channels)),
    Bomb("cameras:long", _instead("cameras.json", _long_json)),
    Bomb("matrix:long", _instead("cameras.txt", _long_matrix)),
    Bomb("weights:layers", _card(layers=3_000_000)),
    Bomb("weights:maps", _card(maps=3_000_000)),
    Bomb("weights:iterations", _card(iterations=50_000_000)),
    Bomb("weights:blocks", _card(backbone="unet", widths=[8, 8], blocks=[3_000_000, 0])),
    Bomb("mat5:lengthened", _instead("depth.mat", bomb_files.mat_longer)),
    Bomb("record3d:deep", _text("metadata.json", '{"K": ' + _DEEP)),
    Bomb("record3d:digits", _text("metadata.json", f'{{"K": {_DIGITS}}}')),
    Bomb("record3d:infinite", _metadata(K=[float("inf")] * 9), "any"),
    Bomb("record3d:huge-number", _metadata(K=[10**400] * 9), "any"),
    Bomb("record3d:object", _metadata(perFrameIntrinsicCoeffs={"0": 1}), "any"),
    Bomb("film:language", _instead("rgb.mp4", bomb_files.film_with_latin1), "any"),
    Bomb("ros-image:bomb", _files(lambda: {"color.png": bomb_files.png_headers()})),
    Bomb("ros-image:cut", _files(lambda: {"color.png": ours(".png", "mm", np.ones((40, 50)))[:-40]})),
    Bomb("recipe:deep", _text("recipe.toml", "a = " + _DEEP)),
    Bomb("recipe:digits", _text("recipe.toml", f"seed = {_DIGITS}")),
    Bomb("recipe:keys", _text("recipe.toml", "a." * 50_000 + "b = 1")),
    Bomb("shards:deep", _text("manifest.json", _DEEP)),
    Bomb("shards:digits", _text("manifest.json", f'{{"count": {_DIGITS}}}')),
    Bomb("part:deep", _instead("part.safetensors", lambda: bomb_files.safetensors(_DEEP))),
    Bomb("part:digits", _instead("part.safetensors", lambda: bomb_files.safetensors(f'{{"a": {_DIGITS}}}'))),
    Bomb("card:deep", _text("net.json", _DEEP)),
    Bomb("card:digits", _text("net.json", f'{{"scale": {_DIGITS}}}')),
    Bomb("card:half-character", _text("net.json", '{"name": "\\ud800", "x": 1}')),
    Bomb("weights:fifo", _fifo("net.safetensors")),
    Bomb("weights:device", _device("net.safetensors")),
    Bomb("weights:card-fifo", _fifo("net.json")),
    Bomb("cameras:fifo", _fifo("cameras.json")),
    Bomb("cameras:device", _device("cameras.json")),
    Bomb("matrix:device", _device("cameras.txt")),
    Bomb("token:fifo", _fifo("token.txt")),
    Bomb("token:device", _device("token.txt")),
    Bomb("recipe:fifo", _fifo("recipe.toml")),
    Bomb("shards:fifo", _fifo("manifest.json")),
    Bomb("png:fifo", _fifo("depth.png")),
    Bomb("png:device", _device("depth.png")),
)


def bomb_for(name: str) -> Bomb:
    return next(each for each in BOMBS if each.name == name)
