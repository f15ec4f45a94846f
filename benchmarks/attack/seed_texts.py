"""Small valid camera files, cards, recipes and tables, in every form that is read."""

import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attack.cases import Seed
from benchmarks.attack.seed_images import one

_TURN = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
_CAMERA = {"fx": 600.0, "fy": 600.0, "cx": 320.0, "cy": 240.0, "width": 640, "height": 480}
CAMERA_INFO = """image_width: 640
image_height: 480
camera_name: color
camera_matrix:
  rows: 3
  cols: 3
  data: [600.0, 0.0, 319.5, 0.0, 600.0, 239.5, 0.0, 0.0, 1.0]
distortion_model: plumb_bob
distortion_coefficients:
  rows: 1
  cols: 5
  data: [0.1, -0.05, 0.001, 0.002, 0.0]
roi: {x_offset: 0, y_offset: 0, width: 0, height: 0}
binning_x: 0
binning_y: 0
"""
_LISTED = """Intrinsic of "Depth" / 640x480 / {Z16}
  Width:        640
  Height:       480
  PPX:          318.5
  PPY:          238.5
  Fx:           380.0
  Fy:           380.0
  Distortion:   Brown Conrady
  Coeffs:       0  0  0  0  0
  FOV (deg):    80.0 x 64.0

Intrinsic of "Color" / 640x480 / {YUYV}
  Width:        640
  Height:       480
  PPX:          320.1
  PPY:          240.2
  Fx:           600.0
  Fy:           600.0
  Distortion:   Inverse Brown Conrady
  Coeffs:       0.1  -0.05  0.001  0.002  0

Extrinsic from "Depth"	  To	  "Color" :
 Rotation Matrix:
   1                0                0
   0                1                0
   0                0                1

 Translation Vector: 0.015  0.0001  0.0002

"""


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode()


def cameras(rng: random.Random) -> list[Seed]:
    lens = {"model": "plumb_bob", "coefficients": [0.1, -0.05, 0.001, 0.002, 0.0]}
    motion = {"rotation": _TURN, "translation": [15.0, 0.1, 0.2]}
    both = {"guide": {**_CAMERA, "distortion": lens}, "depth": _CAMERA, "depth_to_guide": motion}
    info = {"width": 640, "height": 480, "k": [600.0, 0, 319.5, 0, 600.0, 239.5, 0, 0, 1.0], "d": [0.0] * 5}
    found = [{"guide": _CAMERA}, {**both, "units": "mm", "pixel_centres": "integer"}]
    seeds = [one("cameras.json", _json(each)) for each in (*found, {**info, "distortion_model": "plumb_bob"})]
    return [*seeds, one("cameras.yaml", CAMERA_INFO.encode())]


def matrices(rng: random.Random) -> list[Seed]:
    rows = "600.0 0 319.5\n0 600.0 239.5\n0 0 1\n"
    as_list = "[[600.0, 0, 319.5], [0, 600.0, 239.5], [0, 0, 1]]"
    return [one("cameras.txt", rows.encode()), one("cameras.txt", as_list.encode())]


def realsenses(rng: random.Random) -> list[Seed]:
    stream = {"width": 640, "height": 480, "ppx": 320.0, "ppy": 240.0, "fx": 600.0, "fy": 600.0}
    stream |= {"model": "brown_conrady", "coeffs": [0.0] * 5}
    motion = {"rotation": [1.0, 0, 0, 0, 1.0, 0, 0, 0, 1.0], "translation": [0.015, 0.0, 0.0]}
    values = {"depth": stream, "color": stream, "extrinsics": motion}
    return [one("rig.json", _json(values)), one("rig.txt", _LISTED.encode())]


def azures(rng: random.Random) -> list[Seed]:
    def camera(place: str) -> dict[str, Any]:
        numbers = [0.5, 0.5, 0.5, 0.6, 0.1, -0.05, 0.01, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0001, 0.0002]
        inner = {"ModelType": "CALIBRATION_LensDistortionModelBrownConrady", "ModelParameters": numbers}
        motion = {"Rotation": [1.0, 0, 0, 0, 1.0, 0, 0, 0, 1.0], "Translation": [0.0, 0.0, 0.0]}
        return {"Location": f"CALIBRATION_CameraLocation{place}", "Intrinsics": inner, "Rt": motion}

    values = {"CalibrationInformation": {"Cameras": [camera("D0"), camera("PV0")]}}
    return [one("rig.json", _json(values))]


def ros_rigs(rng: random.Random) -> list[Seed]:
    turn = {
        "translation": {"x": 0.01, "y": 0.0, "z": 0.0},
        "rotation": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0},
    }
    info = CAMERA_INFO.encode()
    return [Seed({"guide.yaml": info, "depth.yaml": info, "transform.json": _json({"transform": turn})})]


def recipes(rng: random.Random) -> list[Seed]:
    folder = Path(__file__).parents[2] / "configs"
    shipped = [path.read_bytes() for path in sorted(folder.glob("*.toml"))]
    alone = [data for data in shipped if b"extends" not in data]
    extended = Seed({"recipe.toml": b'extends = "base.toml"\nseed = 3\n', "base.toml": rng.choice(alone)})
    return [*(one("recipe.toml", data) for data in alone), extended]


def tokens(rng: random.Random) -> list[Seed]:
    return [one("token.txt", b"0123456789abcdef0123456789abcdef\n")]


def journals(rng: random.Random) -> list[Seed]:
    lines = [{"key": f"{n:064x}", "outputs": {"-o": [10, n]}, "report": {"depth": "a.png"}} for n in range(3)]
    return [one("journal.jsonl", "\n".join(map(json.dumps, lines)).encode())]


def clouds(rng: random.Random) -> list[Seed]:
    head = "ply\nformat binary_little_endian 1.0\nelement vertex 4\n"
    head += "".join(f"property float {axis}\n" for axis in "xyz")
    head += (
        "".join(f"property uchar {name}\n" for name in ("red", "green", "blue", "measured")) + "end_header\n"
    )
    body = io.BytesIO()
    for _ in range(4):
        body.write(np.random.default_rng(0).random(3).astype("<f4").tobytes() + b"\1\2\3\1")
    return [one("cloud.ply", head.encode() + body.getvalue())]
