"""Calibrations of RealSense cameras: the text of `rs-enumerate-devices -c`, or JSON with the SDK's names.

The JSON is what a few lines around `get_intrinsics()` and `get_extrinsics_to()` write::

    {"depth": {"width": 640, "height": 480, "ppx": ..., "ppy": ..., "fx": ..., "fy": ...,
               "model": "brown_conrady", "coeffs": [0, 0, 0, 0, 0]},
     "color": {...},
     "extrinsics": {"rotation": [nine numbers, column by column], "translation": [metres]}}

Pixel centres are integers there. The SDK projects `inverse_brown_conrady` with the same formula as
`modified_brown_conrady`, and so is it read here.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from primaldepth.core.documents import DEFAULT
from primaldepth.core.errors import FileFormatError, InputError, shortened
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.distortion import Distortion, Model
from primaldepth.geometry.motion import as_tuples
from primaldepth.io.cameras.calibration_values import Keys, read_keys
from primaldepth.io.files import PathLike, naming, read_text

Size = tuple[int, int]
_MODELS: dict[str, Model | None] = {
    "none": None,
    "brown_conrady": "plumb_bob",
    "modified_brown_conrady": "modified_plumb_bob",
    "inverse_brown_conrady": "modified_plumb_bob",
    "kannala_brandt4": "fisheye",
}


def read_realsense(
    path: PathLike, *, depth_size: Size | None = None, guide_size: Size | None = None
) -> Cameras:
    """Read the depth and the colour camera of a RealSense's calibration.

    Args:
        path: text of `rs-enumerate-devices -c`, or JSON (see the top of this module).
        depth_size: (width, height) of the depth stream; needed where a text lists several.
        guide_size: (width, height) of the colour stream; likewise.

    Returns:
        The cameras, and the motion between them.

    Raises:
        FileFormatError: if the file is no such calibration, or has no such stream.
    """
    text = read_text(path)
    if "Intrinsic of" in text:
        return realsense_cameras(_from_text(path, text, {"depth": depth_size, "color": guide_size}), path)
    return realsense_cameras(read_keys(path).values, path)


def realsense_cameras(values: Mapping[str, Any], path: PathLike) -> Cameras:
    """Return the depth and the colour camera of values with the SDK's names.

    Args:
        values: as the JSON at the top of this module.
        path: where they come from, for errors.

    Raises:
        FileFormatError: if a value is missing or cannot be.
    """
    keys = Keys(values, str(path))
    motion = keys.part("extrinsics", "depth_to_color")
    R = np.reshape(motion.numbers("rotation", length=9), (3, 3)).T
    t = motion.numbers("translation", length=3)
    depth, guide = _camera(keys.part("depth")), _camera(keys.part("color", "colour"))
    with naming(motion.where):
        return Cameras(guide, depth, as_tuples(R), as_tuples(t))


def _camera(keys: Keys) -> Intrinsics:
    fx, fy, ppx, ppy = (keys.number(name) for name in ("fx", "fy", "ppx", "ppy"))
    width, height = keys.count("width"), keys.count("height")
    model, coefficients = str(keys.item("model")), keys.numbers("coeffs")
    with naming(keys.where):
        lens = sdk_lens(model, coefficients)
        return Intrinsics(fx, fy, ppx + 0.5, ppy + 0.5, width, height, lens)


def sdk_lens(name: str, coefficients: Sequence[float]) -> Distortion | None:
    """Return the lens that the SDK calls so; None if all coefficients are 0.

    Raises:
        InputError: if the model is not known, or has another number of coefficients.
    """
    name = name.lower().replace(" ", "_").removeprefix("distortion.")
    if not any(coefficients):
        return None
    if name not in _MODELS:
        raise InputError("", f"model {shortened(name)}, expected one of {', '.join(_MODELS)}")
    model = _MODELS[name]
    used = coefficients[:4] if model == "fisheye" else coefficients
    return None if model is None else Distortion(model, tuple(used))


_INTRINSIC = re.compile(
    r'Intrinsic of "(\w+)" / (\d{1,6})x(\d{1,6}) / (\S+)\s*\n(.*?)(?=\n\s*\n|\Z)', re.DOTALL
)
_EXTRINSIC = re.compile(
    r'Extrinsic from "Depth"\s+To\s+"Color"\s*:\s*Rotation Matrix:(.{0,999}?)Translation Vector:([^\n]*)',
    re.DOTALL,
)
_KEYS = {"Width": "width", "Height": "height", "PPX": "ppx", "PPY": "ppy", "Fx": "fx", "Fy": "fy"}


def _from_text(path: PathLike, text: str, sizes: Mapping[str, Size | None]) -> dict[str, Any]:
    """Read the text that `rs-enumerate-devices -c` prints, into the keys of the JSON form."""
    found: dict[str, dict[Size, dict[str, Any]]] = {"depth": {}, "color": {}}
    for stream, width, height, _, body in _INTRINSIC.findall(text):
        if stream.lower() in found:
            found[stream.lower()].setdefault((int(width), int(height)), _fields(body))
    motion = _EXTRINSIC.search(text)
    if motion is None:
        raise FileFormatError(path, 'no \'Extrinsic from "Depth" To "Color"\'', "use rs-enumerate-devices -c")
    rotation = np.reshape(_words(path, motion[1], 9), (3, 3)).T  # printed row by row
    values: dict[str, Any] = {name: _pick(path, name, found[name], sizes[name]) for name in found}
    translation = _words(path, motion[2], 3)
    return values | {"extrinsics": {"rotation": rotation.ravel().tolist(), "translation": translation}}


def _fields(body: str) -> dict[str, Any]:
    pairs = dict(line.split(":", 1) for line in body.splitlines() if ":" in line)
    pairs = {name.strip(): value.strip() for name, value in pairs.items()}
    values: dict[str, Any] = {
        key: float(pairs[name]) for name, key in _KEYS.items() if _is_float(pairs.get(name, ""))
    }
    coefficients = pairs.get("Coeffs", "").split()
    values["coeffs"] = [float(word) for word in coefficients if _is_float(word)]
    return values | ({"model": pairs["Distortion"]} if "Distortion" in pairs else {})


def _words(path: PathLike, text: str, expected: int) -> list[float]:
    found = [float(word) for word in text.split() if _is_float(word)]
    if len(found) != expected:
        raise FileFormatError(path, f"extrinsics have {len(found)} numbers in a row, expected {expected}")
    return found


def _is_float(word: str) -> bool:
    known = len(word) <= DEFAULT.digits and re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", word)
    return bool(known) and math.isfinite(float(word))


def _pick(
    path: PathLike, name: str, found: Mapping[Size, dict[str, Any]], size: Size | None
) -> dict[str, Any]:
    known = ", ".join(f"{w}x{h}" for w, h in found) or "none"
    option = "depth_size" if name == "depth" else "guide_size"
    if size is None and len(found) == 1:
        return next(iter(found.values()))
    if size is None or size not in found:
        wanted = "" if size is None else f" without {size[0]}x{size[1]}"
        raise FileFormatError(
            path,
            f"{name} streams: {known}{wanted}",
            f"use images of such a size, or name one of them with {option}",
        )
    return found[size]
