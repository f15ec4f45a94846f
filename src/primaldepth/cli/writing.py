"""The results of a prediction as files: depth, preview, point cloud, mask of what was measured."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from primaldepth.api import Inputs
from primaldepth.cli.batch import Job
from primaldepth.core.errors import InputError
from primaldepth.core.frame import Prediction
from primaldepth.geometry.backproject import point_cloud
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.meshing import depth_mesh
from primaldepth.io import DepthMap, Unit, output_unit, write_bytes
from primaldepth.io.depth import write_values
from primaldepth.io.formats import png, writer_for
from primaldepth.io.mesh import write_mesh
from primaldepth.io.pointcloud import write_cloud
from primaldepth.io.preview import overview, write_preview
from primaldepth.io.row_blocks import row_blocks
from primaldepth.io.storage import stored_pixels
from primaldepth.io.units import whole_stored

_MILLIMETRES: tuple[Unit, ...] = ("mm", "5000")


def guide_rgb(inputs: Inputs) -> NDArray[np.uint8]:
    """(H, W, 3) of the first guide."""
    planes = [np.rint(plane * 255).astype(np.uint8) for plane in inputs.frame.guide[0].cpu().numpy()]
    return np.stack(planes * (3 // len(planes)), axis=-1)


def _first(values: Tensor) -> NDArray[np.float64]:
    return values[0, 0].double().cpu().numpy()


def _first_mask(values: Tensor) -> NDArray[np.bool_]:
    return np.asarray(values[0, 0].cpu(), dtype=bool)


def result_unit(path: Path, inputs: Inputs) -> Unit:
    """The unit `path` is written in: the input's, where the format can mean it."""
    unit = output_unit(path, inputs.unit or "m")
    return "disparity" if inputs.kind == "disparity" and unit == "m" else unit


def check_fits(path: Path, inputs: Inputs) -> None:
    """Raise, before the work is done, if the format of `path` cannot hold even the input's median."""
    middle = float(inputs.frame.depth[inputs.frame.valid].median())
    stored_pixels(
        path, writer_for(path), np.full((1, 1), middle), np.ones((1, 1), bool), result_unit(path, inputs)
    )


@dataclass(frozen=True, slots=True)
class Result:
    """What is written as depth: (H, W) values, where they count, and the unit of the file."""

    values: NDArray[np.floating[Any]]
    valid: NDArray[np.bool_]
    unit: Unit


def result_for(path: Path, prediction: Prediction, inputs: Inputs, *, fill: bool) -> Result:
    """The first depth map of the prediction, as it is to be written to `path`.

    An estimate that is not finite and positive, or that an integer format would round to its invalid 0,
    is a hole; with `fill` False so is what was not measured.
    """
    unit = result_unit(path, inputs)
    rounds = not any(name.startswith("float") for name in writer_for(path).dtypes)
    values = prediction.depth[0, 0].cpu().numpy()
    valid = np.array(_first_mask(prediction.valid))
    if not fill:
        valid &= _first_mask(prediction.measured)
    for rows in row_blocks(*values.shape):
        block = values[rows].astype(np.float64)
        positive = whole_stored(block, unit) >= 1 if rounds else block > 0
        valid[rows] &= np.isfinite(block) & positive
    return Result(values, valid, unit)


def write_measured(path: Path, prediction: Prediction) -> None:
    """8-bit PNG: 255 where a valid sample covers the pixel, 0 where the depth was filled in."""
    mask = _first_mask(prediction.measured)
    if png.CODEC.encode is not None:
        write_bytes(path, png.CODEC.encode(mask * np.uint8(255), mask))


def write_sigma(path: Path, prediction: Prediction, inputs: Inputs) -> None:
    """Standard deviation of the result in metres, or pixels of disparity."""
    if prediction.sigma is not None:
        values = prediction.sigma[0, 0].cpu().numpy()
        write_values(path, values, np.isfinite(values) & (values > 0), result_unit(path, inputs))


def write_preview_file(
    path: Path, inputs: Inputs, prediction: Prediction, *, truth: DepthMap | None = None
) -> None:
    """Guide, input and result side by side, with truth and error where known."""
    disparity = inputs.kind == "disparity"
    small = not disparity and inputs.unit in _MILLIMETRES
    scale = 1000.0 if small else 1.0
    picture = overview(
        guide_rgb(inputs),
        _first(inputs.frame.depth) * scale,
        _first_mask(inputs.frame.valid),
        _first(prediction.depth) * scale,
        _first_mask(prediction.valid),
        name="Disparity" if disparity else "Depth",
        unit="px" if disparity else ("mm" if small else "m"),
        measured=_first_mask(prediction.measured),
        truth=None if truth is None else truth.values * scale,
        truth_valid=None if truth is None else truth.valid,
    )
    write_preview(path, picture)


def check_metric(job: Job, inputs: Inputs) -> None:
    """Raise unless the input is metric, where a point cloud or a mesh is asked for."""
    for option, path, what in (("--cloud", job.cloud, "point cloud"), ("--mesh", job.mesh, "mesh")):
        if path is not None and inputs.kind == "disparity":
            raise InputError(f"{option} {path}: a {what} needs metric depth, but the input is disparity")


def _guide_camera(inputs: Inputs) -> Intrinsics:
    """The guide's camera, or one that is 60 degrees wide."""
    height, width = inputs.frame.high_size
    known = inputs.cameras
    return Intrinsics.guess(width, height) if known is None else known.guide.scaled_to(width, height)


def write_cloud_file(path: Path, inputs: Inputs, prediction: Prediction) -> None:
    """Metric point cloud; without cameras one that is 60 degrees wide is assumed."""
    depth = _first(prediction.depth)
    valid = _first_mask(prediction.valid) & (depth > 0)
    measured, colors = _first_mask(prediction.measured), guide_rgb(inputs)
    write_cloud(path, point_cloud(depth, valid, _guide_camera(inputs), colors=colors, measured=measured))


def write_mesh_file(path: Path, inputs: Inputs, prediction: Prediction, jump: float) -> None:
    """Metric mesh, cut where neighbouring depths differ by more than `jump` of the nearer one."""
    depth = _first(prediction.depth)
    valid = _first_mask(prediction.valid) & (depth > 0)
    mesh = depth_mesh(depth, valid, _guide_camera(inputs), colors=guide_rgb(inputs), max_jump=jump)
    write_mesh(path, mesh)
