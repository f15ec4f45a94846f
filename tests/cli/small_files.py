"""What the command line's tests share: the outcome of a call, and small files to call it on."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from primaldepth.io import DepthMap, write_depth

CAMERA = {"fx": 30.0, "fy": 30.0, "cx": 16.0, "cy": 12.0, "width": 32, "height": 24}


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.err.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Outcome]


def depth_values() -> np.ndarray:
    """(6, 8) in metres, whole millimetres between 1 and 1.2."""
    return np.random.default_rng(0).integers(1000, 1200, (6, 8)) / 1000.0


def image(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)


def write_good_files() -> None:
    """8x6 depth maps, a 32x24 guide and its camera, in the working folder."""
    values = depth_values()
    write_depth("depth.png", DepthMap.from_array(values, unit="mm"))
    with_hole = values.copy()
    with_hole[2:4, 3:5] = 0
    write_depth("holes.png", DepthMap.from_array(with_hole, unit="mm"))
    Image.fromarray(image((24, 32, 3))).save("guide.png")
    Image.fromarray(np.rint(values * 100).astype(np.uint8)).save("disparity.png")
    Path("cameras.json").write_text(json.dumps({"guide": CAMERA}))


def write_bad_files() -> None:
    """Files that must be refused; needs the good ones."""
    Path("truncated.png").write_bytes(Path("depth.png").read_bytes()[:60])
    Path("empty.png").touch()
    Path("text.png").write_text("this is no picture\n")
    Path("folder").mkdir()
    Image.fromarray(image((6, 8, 3))).save("color.png")
    Image.fromarray(np.zeros((6, 8), np.uint16)).save("zero.png")
    Image.fromarray(image((4, 4, 3))).save("small.png")
    Image.fromarray(np.full((5, 8), 255, np.uint8)).save("confidence.png")
    np.save("three.npy", np.ones((6, 8, 3), np.float32))
    np.save("far.npy", np.full((6, 8), 70.0, np.float32))
    nan = np.full((24, 32), np.nan, np.float32)
    np.save("nan.npy", nan)
    Path("nan.pfm").write_bytes(b"Pf\n32 24\n-1.0\n" + nan.astype("<f4").tobytes())
    Path("broken.json").write_text("{")
    Path("bare.json").write_text('{"fx": 1.0, "fy": 1.0, "cx": 1.0, "cy": 1.0, "width": 8, "height": 6}')
    Path("partial.json").write_text('{"guide": {"fx": 1.0}}')
