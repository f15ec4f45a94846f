"""The results of a prediction as files: depth, preview, point cloud, mask of what was measured."""

from pathlib import Path

import numpy as np

from primaldepth.api import Inputs
from primaldepth.cli.batch import Job
from primaldepth.core.errors import InputError
from primaldepth.core.frame import Prediction
from primaldepth.io import DepthMap, write_bytes
from primaldepth.io.depth import write_values
from primaldepth.io.formats import png
from primaldepth.io.mesh import write_mesh
from primaldepth.io.pointcloud import write_cloud
from primaldepth.io.preview import write_preview
from primaldepth.results import (
    Result,
    check_fits,
    cloud_of,
    first_mask,
    mesh_of,
    preview_of,
    result_for,
    result_unit,
)

__all__ = [
    "Result",
    "check_fits",
    "check_metric",
    "result_for",
    "write_cloud_file",
    "write_measured",
    "write_mesh_file",
    "write_preview_file",
    "write_sigma",
]


def write_measured(path: Path, prediction: Prediction) -> None:
    """8-bit PNG: 255 where a valid sample covers the pixel, 0 where the depth was filled in."""
    mask = first_mask(prediction.measured)
    if png.CODEC.encode is not None:
        write_bytes(path, png.CODEC.encode(mask * np.uint8(255), mask))


def write_sigma(path: Path, prediction: Prediction, inputs: Inputs) -> None:
    """How far the result may be off, in metres or pixels of disparity."""
    if prediction.sigma is not None:
        values = prediction.sigma[0, 0].cpu().numpy()
        write_values(path, values, np.isfinite(values) & (values > 0), result_unit(path, inputs))


def write_preview_file(
    path: Path, inputs: Inputs, prediction: Prediction, *, truth: DepthMap | None = None
) -> None:
    """Guide, input and result side by side, with truth and error where known."""
    write_preview(path, preview_of(inputs, prediction, truth))


def check_metric(job: Job, inputs: Inputs) -> None:
    """Raise unless the input is metric, where a point cloud or a mesh is asked for."""
    for option, path, what in (("--cloud", job.cloud, "point cloud"), ("--mesh", job.mesh, "mesh")):
        if path is not None and inputs.kind == "disparity":
            raise InputError(f"{option} {path}: a {what} needs metric depth, but the input is disparity")


def write_cloud_file(path: Path, inputs: Inputs, prediction: Prediction) -> None:
    """Metric point cloud; without cameras one that is 60 degrees wide is assumed."""
    write_cloud(path, cloud_of(inputs, prediction))


def write_mesh_file(path: Path, inputs: Inputs, prediction: Prediction, jump: float) -> None:
    """Metric mesh, cut where neighbouring depths differ by more than `jump` of the nearer one."""
    write_mesh(path, mesh_of(inputs, prediction, jump))
