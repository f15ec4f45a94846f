"""Previews and point clouds of a prediction, as files."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from primaldepth.api import Inputs
from primaldepth.core.errors import InputError
from primaldepth.core.frame import Prediction
from primaldepth.geometry.backproject import point_cloud
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.io import DepthMap
from primaldepth.io.pointcloud import write_cloud
from primaldepth.io.preview import overview, write_preview

_SCALE = {"mm": 1000.0, "5000": 1000.0, "256": 1.0, "m": 1.0, "disparity": 1.0}


def guide_rgb(inputs: Inputs) -> NDArray[np.uint8]:
    """(H, W, 3) of the first guide."""
    image = inputs.frame.guide[0].permute(1, 2, 0).cpu().numpy()
    return np.repeat(np.rint(image * 255).astype(np.uint8), 3 // image.shape[2], axis=2)


def _first(values: Tensor) -> NDArray[np.float64]:
    return values[0, 0].double().cpu().numpy()


def write_preview_file(
    path: Path, inputs: Inputs, prediction: Prediction, *, truth: DepthMap | None = None
) -> None:
    """Guide, input and result side by side, with truth and error where known."""
    unit = inputs.unit or "m"
    scale = _SCALE[unit]
    label = "px" if unit == "disparity" else ("mm" if scale == 1000.0 else "m")
    picture = overview(
        guide_rgb(inputs),
        _first(inputs.frame.depth) * scale,
        np.asarray(inputs.frame.valid.cpu())[0, 0],
        _first(prediction.depth) * scale,
        np.asarray(prediction.valid.cpu())[0, 0],
        name="Disparity" if unit == "disparity" else "Depth",
        unit=label,
        measured=np.asarray(prediction.measured.cpu())[0, 0],
        truth=None if truth is None else truth.values * scale,
        truth_valid=None if truth is None else truth.valid,
    )
    write_preview(path, picture)


def write_cloud_file(path: Path, inputs: Inputs, prediction: Prediction) -> bool:
    """Metric point cloud; returns False if the camera had to be guessed (60 degrees wide)."""
    if inputs.kind == "disparity":
        raise InputError(f"{path}: a point cloud needs metric depth, but the input is disparity")
    height, width = inputs.frame.high_size
    known = inputs.cameras is not None
    camera = (
        inputs.cameras.guide.scaled_to(width, height) if inputs.cameras else Intrinsics.guess(width, height)
    )
    depth = _first(prediction.depth)
    valid = np.asarray(prediction.valid.cpu())[0, 0] & (depth > 0)
    measured = np.asarray(prediction.measured.cpu())[0, 0]
    write_cloud(path, point_cloud(depth, valid, camera, colors=guide_rgb(inputs), measured=measured))
    return known
