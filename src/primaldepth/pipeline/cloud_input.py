"""A point cloud as the depth of a frame: what the guide's camera sees of it, as a sparse map."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Cameras
from primaldepth.geometry.scattered import scattered, view_note
from primaldepth.io import Unit
from primaldepth.io.scanner_clouds import read_points
from primaldepth.io.units import from_stored
from primaldepth.measurement.hidden_samples import behind_colours
from primaldepth.pipeline.request import Item, Request


@dataclass(frozen=True, slots=True, eq=False)
class CloudInput:
    """A point cloud in the view of the guide's camera.

    Args:
        item: with a sparse map in metres in place of the cloud.
        background: (1, 1, H, W) depth in metres that is assumed in the scanner's shadows, 0 elsewhere.
        note: what was done to the points.
        unit: of the file.
        unit_length: metres of that unit.
    """

    item: Item
    background: Tensor
    note: str
    unit: Unit
    unit_length: float


def cloud_input(item: Item, request: Request, image: Tensor, cameras: Cameras) -> CloudInput:
    """Read a point cloud and bring it into the guide's view, without the points that the camera does not see.

    Args:
        item: whose depth is a file of points.
        request: for the unit, and the largest depth.
        image: (1, C, H, W) of the guide.
        cameras: the guide's, and where the scanner stood.

    Raises:
        InputError: if no point falls into the view, or the request asks for radial depth or disparities.
    """
    if request.kind not in (None, "z"):
        raise InputError("kind", f"'{request.kind}' is none of a point cloud", "leave it out")
    unit = request.unit or "m"
    if unit == "disparity":
        raise InputError("unit", "'disparity' is none of a point cloud", "use mm or m")
    size = int(image.shape[2]), int(image.shape[3])
    points = read_points(Path(str(item.depth)))
    metres = float(from_stored(np.ones(()), unit))
    found = scattered(torch.from_numpy(points * metres), cameras, size)
    found = found.without(behind_colours(found.depth, found.valid, found.uncertain, image))
    background = found.gaps()
    if request.max_depth is not None:
        background = torch.where(background <= request.max_depth, background, 0.0)
    note = view_note(found, cameras, len(points), request.unit)
    sparse = replace(item, depth=found.depth, cameras=Cameras(cameras.guide), unit="m")
    return CloudInput(sparse, background, note, unit, metres)
