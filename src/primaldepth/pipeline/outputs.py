"""Everything that can be written of a result: one table, over which all front ends loop.

To add an output, write its writer here and add a row to `OUTPUTS`.
"""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from primaldepth.core.errors import InputError, Worded
from primaldepth.geometry.backproject import point_cloud
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.clouds import PointCloud
from primaldepth.geometry.meshing import depth_mesh
from primaldepth.geometry.normals import surface_normals
from primaldepth.io import DepthMap, Unit, output_unit, write_bytes
from primaldepth.io.depth_writing import largest_stored, write_values
from primaldepth.io.formats import CODECS, png
from primaldepth.io.formats.base import row_blocks
from primaldepth.io.mesh import write_mesh
from primaldepth.io.pointcloud import write_cloud
from primaldepth.io.rrd import Recorded, write_rrd
from primaldepth.io.units import per_metre, whole_stored
from primaldepth.measurement.lone_samples import cells_of
from primaldepth.pipeline.load import Inputs
from primaldepth.pipeline.outcome import Outcome, first, first_mask

Need = Literal["metric", "sigma", "cameras"]


@dataclass(frozen=True, slots=True)
class Output:
    """One thing that can be written of a result.

    Args:
        title: what it is, for messages.
        suffixes: of the formats it can be written in; the first is that of a batch.
        write: makes the file.
        help: for the command line.
        needs: metric depth, a method that says how far it may be off, or the guide's camera.
        guesses_camera: whether it assumes a camera where none is given.
        most_pixels: up to which the page makes it.
        package: that it needs, brought by the extra of the same name; empty for none.
    """

    title: str
    suffixes: tuple[str, ...]
    write: Callable[[Path, Outcome], object]
    help: str
    needs: tuple[Need, ...] = ()
    guesses_camera: bool = False
    most_pixels: int = 2**40
    package: str = ""

    @property
    def installed(self) -> bool:
        """Whether the package that it needs is there."""
        return not self.package or find_spec(self.package) is not None

    @property
    def metavar(self) -> str:
        """The formats as one word of the command line's help."""
        return "FILE" if len(self.suffixes) > 2 else "|".join(each[1:].upper() for each in self.suffixes)


@dataclass(frozen=True, slots=True)
class DepthResult:
    """What is written as depth: (H, W) values, where they count, and the unit of the file.

    Args:
        rounded_off: estimates that are holes only because the format would round them to its invalid 0.
        beyond: estimates that are holes only because they are larger than the format can hold.
    """

    values: NDArray[np.floating[Any]]
    valid: NDArray[np.bool_]
    unit: Unit
    rounded_off: int = 0
    beyond: int = 0


def depth_result(path: Path, outcome: Outcome) -> DepthResult:
    """Return the first depth map of the outcome, as it is to be written to `path`.

    An estimate that is not finite and positive, that an integer format would round to its invalid 0, or that
    is larger than such a format can hold, is a hole.

    Args:
        path: whose extension picks the format.
        outcome: of one frame or more.
    """
    inputs = outcome.inputs
    unit, largest = output_unit(path, inputs.unit or "m", inputs.kind), largest_stored(path)
    values = outcome.prediction.depth[0, 0].cpu().numpy()
    valid = np.array(first_mask(outcome.kept.valid))
    rounded_off = beyond = 0
    for rows in row_blocks(*values.shape):
        block = values[rows].astype(np.float64)
        valid[rows] &= np.isfinite(block) & (block > 0)
        if np.isfinite(largest):
            stored = whole_stored(block, unit)
            rounded_off += int((valid[rows] & (stored < 1)).sum())
            beyond += int((valid[rows] & (stored > largest)).sum())
            valid[rows] &= (stored >= 1) & (stored <= largest)
    return DepthResult(values, valid, unit, rounded_off, beyond)


def write_depth(path: Path, outcome: Outcome) -> DepthResult:
    """Write the depth file and return what it holds.

    Raises:
        InputError: if no estimate can be held by the format, or all are less sure than was asked for.
    """
    result = depth_result(path, outcome)
    if outcome.uncertain and not bool(outcome.prediction.valid.any()):
        raise _too_uncertain(outcome)
    write_values(path, result.values, result.valid, result.unit)
    return result


def _too_uncertain(outcome: Outcome) -> InputError:
    """Return the error of a result without an estimate that is as sure as `Request.max_sigma` asks for."""
    found = f"no estimate is as sure as {outcome.request.max_sigma:g}"
    if outcome.prediction.sigma is not None:
        least = float(outcome.prediction.sigma.min()) / outcome.inputs.number
        found += f", the smallest sigma is {least:.3g}"
    hint = "nothing is written; give a larger number, in the unit of the depth file"
    return InputError(Worded("--max-sigma", "max_sigma"), found, hint)


@dataclass(frozen=True, slots=True)
class DisplayUnit:
    """Metres or pixels as people read them; `factor` takes metres or pixels to `unit`."""

    name: str
    unit: str
    factor: float

    @classmethod
    def of(cls, inputs: Inputs) -> "DisplayUnit":
        """Choose millimetres where the input's file resolves them, else metres; pixels for disparity."""
        if inputs.kind == "disparity":
            return cls("Disparity", "px", 1.0)
        small = per_metre(inputs.unit or "m") >= 1000.0
        return cls("Depth", "mm", 1000.0) if small else cls("Depth", "m", 1.0)


def rgb_of(guide: Tensor) -> NDArray[np.uint8]:
    """Return the first image of a guide, (B, C, H, W) in [0, 1], as 8-bit colours, (H, W, 3)."""
    planes = [np.rint(plane * 255).astype(np.uint8) for plane in guide[0].cpu().numpy()]
    return np.stack(planes * (3 // len(planes)), axis=-1)


def guide_camera(inputs: Inputs) -> Intrinsics:
    """Return the guide's camera, or if it is not known one that is 60 degrees wide."""
    height, width = inputs.frame.high_size
    known = inputs.cameras
    return Intrinsics.guess(width, height) if known is None else known.guide.scaled_to(width, height)


def sample_reach(inputs: Inputs) -> int:
    """Return by how many pixels to enlarge drawn samples: a quarter of their distance if lone, else 0."""
    cells = cells_of(inputs.frame)[0]
    return 0 if cells is None else max(1, round(cells.size[0] / cells.grid[0] / 4))


def preview_of(outcome: Outcome, truth: DepthMap | None = None) -> NDArray[np.uint8]:
    """Return a picture of guide, input and result side by side, with truth and error where known.

    Args:
        outcome: of one frame.
        truth: the true depth, (H, W), or None where it is not known.

    Returns:
        (h, w, 3).
    """
    from primaldepth.pictures.preview import overview  # Pillow takes time to import

    inputs, prediction, scale = outcome.inputs, outcome.prediction, DisplayUnit.of(outcome.inputs)
    return overview(
        rgb_of(inputs.frame.guide),
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


def _metric(outcome: Outcome) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the result in metres, and where it is an estimate."""
    depth = first(outcome.kept.depth)
    return depth, first_mask(outcome.kept.valid) & (depth > 0)


def _write_preview(path: Path, outcome: Outcome) -> None:
    from primaldepth.io.picture_files import png_bytes

    write_bytes(path, png_bytes(preview_of(outcome)))


def _cloud(outcome: Outcome) -> PointCloud:
    """Return every estimate as a coloured point in metres, seen by `guide_camera`."""
    depth, valid = _metric(outcome)
    measured, colors = first_mask(outcome.kept.measured), rgb_of(outcome.inputs.frame.guide)
    return point_cloud(depth, valid, guide_camera(outcome.inputs), colors=colors, measured=measured)


def _write_cloud(path: Path, outcome: Outcome) -> None:
    write_cloud(path, _cloud(outcome))


def _write_measured(path: Path, outcome: Outcome) -> None:
    mask = first_mask(outcome.prediction.measured)
    if png.CODEC.encode is not None:
        write_bytes(path, png.CODEC.encode(mask * np.uint8(255), mask))


def _write_mesh(path: Path, outcome: Outcome) -> None:
    """Write the mesh in metres, cut where neighbours differ by more than `mesh_jump` of the nearer one."""
    (depth, valid), colors = _metric(outcome), rgb_of(outcome.inputs.frame.guide)
    camera, jump = guide_camera(outcome.inputs), outcome.request.mesh_jump
    write_mesh(path, depth_mesh(depth, valid, camera, colors=colors, max_jump=jump))


def _write_sigma(path: Path, outcome: Outcome) -> None:
    if outcome.prediction.sigma is not None:
        values, inputs = outcome.prediction.sigma[0, 0].cpu().numpy(), outcome.inputs
        unit = output_unit(path, inputs.unit or "m", inputs.kind)
        write_values(path, values, np.isfinite(values) & (values > 0), unit)


def _write_normals(path: Path, outcome: Outcome) -> None:
    normals = surface_normals(*_metric(outcome), guide_camera(outcome.inputs))
    if path.suffix.lower() == ".npy":
        with io.BytesIO() as stream:
            np.save(stream, normals)
            write_bytes(path, stream.getvalue())
    elif png.CODEC.encode is not None:
        known = np.asarray(np.isfinite(normals).all(-1))
        stored = np.where(known[..., None], np.rint((normals + 1.0) * 32767.5), 0.0)
        write_bytes(path, png.CODEC.encode(stored.astype(np.uint16), known))


def _write_rerun(path: Path, outcome: Outcome) -> None:
    """Write image, samples, result, sigma where it is known, and the cloud, for the viewer of rerun."""
    inputs, kept = outcome.inputs, outcome.kept
    masked = {
        "samples": (inputs.frame.depth, inputs.frame.valid),
        "result": (kept.depth, kept.valid),
        **({} if kept.sigma is None else {"sigma": (kept.sigma, kept.valid)}),
    }
    maps = {name: np.where(first_mask(mask), first(values), 0.0) for name, (values, mask) in masked.items()}
    camera = guide_camera(inputs)
    write_rrd(path, Recorded(rgb_of(inputs.frame.guide), maps, _cloud(outcome), camera, inputs.pose))


_DEPTH = tuple(name for codec in CODECS if codec.encode is not None for name in codec.extensions)
_FRACTIONS = (".npy", ".npz", ".exr", ".pfm", ".tif", ".tiff")
OUTPUTS: dict[str, Output] = {
    "out": Output("a depth map", _DEPTH, write_depth, "Output file; a folder for a batch."),
    "preview": Output(
        "a picture", (".png",), _write_preview, "Picture of input and result; a folder for a batch."
    ),
    "cloud": Output(
        "a point cloud",
        (".ply", ".glb"),
        _write_cloud,
        "Point cloud in metres; a folder (of PLY) for a batch.",
        needs=("metric",),
        guesses_camera=True,
        most_pixels=2**22,
    ),
    "measured": Output(
        "a mask", (".png",), _write_measured, "8-bit mask: 255 measured, 0 filled in; a folder for a batch."
    ),
    "mesh": Output(
        "a mesh",
        (".glb", ".ply"),
        _write_mesh,
        "Triangle mesh in metres; a folder (of GLB) for a batch.",
        needs=("metric",),
        guesses_camera=True,
        most_pixels=0,  # the page shows one of its own
    ),
    "sigma": Output(
        "a map of certainty",
        _FRACTIONS,
        _write_sigma,
        "Expected error of the result (.npy, .exr, ...), of methods that estimate it; a folder for a batch.",
        needs=("sigma",),
    ),
    "normals": Output(
        "a map of normals",
        (".png", ".npy"),
        _write_normals,
        "Surface normals in the camera's frame, 16-bit PNG or .npy; a folder for a batch.",
        needs=("metric", "cameras"),
    ),
    "rerun": Output(
        "a recording of rerun",
        (".rrd",),
        _write_rerun,
        "Image, samples, result, sigma and cloud for the viewer of rerun; a folder for a batch.",
        needs=("metric",),
        guesses_camera=True,
        most_pixels=0,  # only the owner of the machine has the viewer
        package="rerun",
    ),
}


def write_outputs(outputs: Mapping[str, Path], outcome: Outcome) -> DepthResult:
    """Write every output, the depth map first; return that.

    Args:
        outputs: files by names of `OUTPUTS`, "out" among them.
        outcome: of one frame.

    Raises:
        InputError: if one cannot be made or written.
    """
    result = write_depth(outputs["out"], outcome)
    for name, path in outputs.items():
        if name != "out":
            OUTPUTS[name].write(path, outcome)
    return result


def possible(name: str, outcome: Outcome) -> bool:
    """Whether an output can be made of this result, and is small enough for the page.

    Args:
        name: of the output.
        outcome: of one frame.
    """
    output, prediction = OUTPUTS[name], outcome.prediction
    metric = outcome.inputs.kind != "disparity" or "metric" not in output.needs
    sure = prediction.sigma is not None or "sigma" not in output.needs
    seen = outcome.inputs.cameras is not None or "cameras" not in output.needs
    return metric and sure and seen and prediction.depth.numel() <= output.most_pixels
