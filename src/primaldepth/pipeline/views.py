"""A result as people look at it: colours, a point cloud, a mesh, a picture of everything."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primaldepth.geometry.backproject import point_cloud
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.clouds import Mesh, PointCloud
from primaldepth.geometry.meshing import depth_mesh
from primaldepth.io import DepthMap
from primaldepth.io.rrd import Recorded
from primaldepth.io.units import per_metre
from primaldepth.measurement.lone_samples import cells_of
from primaldepth.pipeline.load import Inputs
from primaldepth.pipeline.run import Outcome, first, first_mask


@dataclass(frozen=True, slots=True)
class Scale:
    """Metres or pixels as people read them; `factor` takes metres or pixels to `unit`."""

    name: str
    unit: str
    factor: float

    @classmethod
    def of(cls, inputs: Inputs) -> "Scale":
        """Choose millimetres where the input's file resolves them, else metres; pixels for disparity."""
        if inputs.kind == "disparity":
            return cls("Disparity", "px", 1.0)
        small = per_metre(inputs.unit or "m") >= 1000.0
        return cls("Depth", "mm", 1000.0) if small else cls("Depth", "m", 1.0)


def guide_rgb(inputs: Inputs) -> NDArray[np.uint8]:
    """Return the first guide as 8-bit colours, (H, W, 3)."""
    planes = [np.rint(plane * 255).astype(np.uint8) for plane in inputs.frame.guide[0].cpu().numpy()]
    return np.stack(planes * (3 // len(planes)), axis=-1)


def guide_camera(inputs: Inputs) -> Intrinsics:
    """Return the guide's camera, or if it is not known one that is 60 degrees wide."""
    height, width = inputs.frame.high_size
    known = inputs.cameras
    return Intrinsics.guess(width, height) if known is None else known.guide.scaled_to(width, height)


def cloud_of(outcome: Outcome) -> PointCloud:
    """Return every estimate as a coloured point in metres, seen by `guide_camera`."""
    kept, inputs = outcome.kept, outcome.inputs
    depth = first(kept.depth)
    valid = first_mask(kept.valid) & (depth > 0)
    measured, colors = first_mask(kept.measured), guide_rgb(inputs)
    return point_cloud(depth, valid, guide_camera(inputs), colors=colors, measured=measured)


def mesh_of(outcome: Outcome) -> Mesh:
    """Return the mesh in metres, cut where neighbours differ by more than `mesh_jump` of the nearer one."""
    kept, inputs = outcome.kept, outcome.inputs
    depth = first(kept.depth)
    valid = first_mask(kept.valid) & (depth > 0)
    jump = outcome.request.mesh_jump
    return depth_mesh(depth, valid, guide_camera(inputs), colors=guide_rgb(inputs), max_jump=jump)


def recorded_of(outcome: Outcome) -> Recorded:
    """Image, samples, result, sigma where it is known, and the cloud, for the viewer of rerun."""
    inputs, kept = outcome.inputs, outcome.kept
    maps = {
        "samples": np.where(first_mask(inputs.frame.valid), first(inputs.frame.depth), 0.0),
        "result": np.where(first_mask(kept.valid), first(kept.depth), 0.0),
    }
    if kept.sigma is not None:
        maps["sigma"] = np.where(first_mask(kept.valid), first(kept.sigma), 0.0)
    return Recorded(guide_rgb(inputs), maps, cloud_of(outcome), guide_camera(inputs), inputs.pose)


def sample_reach(inputs: Inputs) -> int:
    """Return by how many pixels to draw samples larger: a quarter of the distance of lone ones, else 0."""
    cells = cells_of(inputs.frame)[0]
    return 0 if cells is None else max(1, round(cells.size[0] / cells.grid[0] / 4))


def preview_of(outcome: Outcome, truth: DepthMap | None = None) -> NDArray[np.uint8]:
    """Return a picture of guide, input and result side by side, with truth and error where known."""
    from primaldepth.pictures.preview import overview

    inputs, prediction, scale = outcome.inputs, outcome.prediction, Scale.of(outcome.inputs)
    return overview(
        guide_rgb(inputs),
        first(inputs.frame.depth) * scale.factor,
        first_mask(inputs.frame.valid),
        first(prediction.depth) * scale.factor,
        first_mask(prediction.valid),
        name=scale.name,
        unit=scale.unit,
        measured=first_mask(prediction.measured),
        truth=None if truth is None else truth.values * scale.factor,
        truth_valid=None if truth is None else truth.valid,
        reach=sample_reach(inputs),
    )
