"""A prediction as people want it: depth in a file's unit, colours, a cloud, a mesh, a residual."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from primaldepth.api import Inputs
from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame, Prediction
from primaldepth.data.lone_samples import lone_samples
from primaldepth.data.noise import AUTO_FLOOR, least_sigma
from primaldepth.evaluation.metrics import sensor_errors
from primaldepth.geometry.backproject import point_cloud
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.meshing import MAX_JUMP, depth_mesh
from primaldepth.io import DepthMap, Unit, output_unit
from primaldepth.io.formats import writer_for
from primaldepth.io.mesh import Mesh
from primaldepth.io.pointcloud import PointCloud
from primaldepth.io.preview import RGB, overview
from primaldepth.io.row_blocks import row_blocks
from primaldepth.io.storage import stored_pixels
from primaldepth.io.units import per_metre, whole_stored

LARGEST = 65535  # what a 16-bit file can hold
MANY_BELOW = 0.95  # of the samples
FEW = 16  # samples: the noise of fewer is a guess


@dataclass(frozen=True, slots=True)
class Result:
    """What is written as depth: (H, W) values, where they count, and the unit of the file.

    Args:
        rounded_off: estimates that are holes only because the format would round them to its invalid 0.
    """

    values: NDArray[np.floating[Any]]
    valid: NDArray[np.bool_]
    unit: Unit
    rounded_off: int = 0


def result_unit(path: Path, inputs: Inputs) -> Unit:
    """The unit `path` is written in: the input's, where the format can mean it."""
    unit = output_unit(path, inputs.unit or "m")
    return "disparity" if inputs.kind == "disparity" and unit == "m" else unit


def median_depth(frame: Frame) -> float:
    """Of the valid samples; NaN where there is none."""
    return float(frame.depth[frame.valid].median()) if bool(frame.valid.any()) else math.nan


def check_fits(path: Path, inputs: Inputs) -> None:
    """Raise, before the work is done, if the format of `path` cannot hold what many samples are."""
    middle = median_depth(inputs.frame)
    try:
        _store_one(path, inputs, middle)
        _store_far(path, inputs)
    except InputError as error:
        if inputs.kind == "disparity":
            raise
        raise InputError(f"{error}; the median depth is {middle:.4g} m: is the unit right?") from error


def _store_far(path: Path, inputs: Inputs) -> None:
    """The farthest sample, or that which few are beyond: those may be false, and gone from the result."""
    try:
        _store_one(path, inputs, float(inputs.frame.clean_depth().max()))
    except InputError:
        samples = inputs.frame.depth[inputs.frame.valid]
        _store_one(path, inputs, float(samples.kthvalue(math.ceil(MANY_BELOW * len(samples))).values))


def _store_one(path: Path, inputs: Inputs, value: float) -> None:
    one = np.full((1, 1), value), np.ones((1, 1), bool)
    stored_pixels(path, writer_for(path), *one, result_unit(path, inputs))


def largest_samples(inputs: Inputs) -> int:
    """Distances that are the largest number of a 16-bit file, by which some cameras mean none."""
    if inputs.kind == "disparity":
        return 0
    largest = np.float32(LARGEST / per_metre(inputs.unit or "m"))
    return int((inputs.frame.depth[inputs.frame.valid] == float(largest)).sum())


@contextmanager
def doubting_largest(inputs: Inputs) -> Iterator[None]:
    """A result that does not fit its file may do so because the largest number was meant for no depth."""
    try:
        yield
    except InputError as error:
        if count := largest_samples(inputs):
            text = f"{count} of the samples hold {LARGEST}: if that means no depth, store 0 instead"
            raise InputError(f"{error}; {text}") from error
        raise


def result_for(path: Path, prediction: Prediction, inputs: Inputs) -> Result:
    """The first depth map of the prediction, as it is to be written to `path`.

    An estimate that is not finite and positive, or that an integer format would round to its invalid 0,
    is a hole.
    """
    unit = result_unit(path, inputs)
    rounds = not any(name.startswith("float") for name in writer_for(path).dtypes)
    values = prediction.depth[0, 0].cpu().numpy()
    valid = np.array(first_mask(prediction.valid))
    rounded_off = 0
    for rows in row_blocks(*values.shape):
        block = values[rows].astype(np.float64)
        valid[rows] &= np.isfinite(block) & (block > 0)
        if rounds:
            lost = valid[rows] & (whole_stored(block, unit) < 1)
            valid[rows] &= ~lost
            rounded_off += int(lost.sum())
    return Result(values, valid, unit, rounded_off)


def first(values: Tensor) -> NDArray[np.float64]:
    """(H, W) of the first image."""
    return values[0, 0].double().cpu().numpy()


def first_mask(values: Tensor) -> NDArray[np.bool_]:
    """(H, W) of the first mask."""
    return np.asarray(values[0, 0].cpu(), dtype=bool)


def guide_rgb(inputs: Inputs) -> NDArray[np.uint8]:
    """(H, W, 3) of the first guide."""
    planes = [np.rint(plane * 255).astype(np.uint8) for plane in inputs.frame.guide[0].cpu().numpy()]
    return np.stack(planes * (3 // len(planes)), axis=-1)


def guide_camera(inputs: Inputs) -> Intrinsics:
    """The guide's camera, or one that is 60 degrees wide."""
    height, width = inputs.frame.high_size
    known = inputs.cameras
    return Intrinsics.guess(width, height) if known is None else known.guide.scaled_to(width, height)


def cloud_of(inputs: Inputs, prediction: Prediction) -> PointCloud:
    """Every estimate as a coloured point in metres; see `guide_camera`."""
    depth = first(prediction.depth)
    valid = first_mask(prediction.valid) & (depth > 0)
    measured, colors = first_mask(prediction.measured), guide_rgb(inputs)
    return point_cloud(depth, valid, guide_camera(inputs), colors=colors, measured=measured)


def mesh_of(inputs: Inputs, prediction: Prediction, jump: float = MAX_JUMP) -> Mesh:
    """Metric mesh, cut where neighbouring depths differ by more than `jump` of the nearer one."""
    depth = first(prediction.depth)
    valid = first_mask(prediction.valid) & (depth > 0)
    return depth_mesh(depth, valid, guide_camera(inputs), colors=guide_rgb(inputs), max_jump=jump)


@dataclass(frozen=True, slots=True)
class Scale:
    """Metres or pixels as people read them; `factor` takes metres or pixels to `unit`."""

    name: str
    unit: str
    factor: float

    @classmethod
    def of(cls, inputs: Inputs) -> "Scale":
        """Millimetres where the input's file resolves them."""
        if inputs.kind == "disparity":
            return cls("Disparity", "px", 1.0)
        small = per_metre(inputs.unit or "m") >= 1000.0
        return cls("Depth", "mm", 1000.0) if small else cls("Depth", "m", 1.0)


def sample_reach(inputs: Inputs) -> int:
    """Pixels by which pictures draw each sample larger: a quarter of the distance of lone ones, else 0."""
    cells = lone_samples(inputs.frame.valid[:1])
    return 0 if cells is None else max(1, round(cells.size[0] / cells.grid[0] / 4))


def preview_of(inputs: Inputs, prediction: Prediction, truth: DepthMap | None = None) -> RGB:
    """Guide, input and result side by side, with truth and error where known."""
    scale = Scale.of(inputs)
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


def length_text(value: float, kind: str) -> str:
    """Metres as millimetres, disparity as pixels, to three digits or whole."""
    number, unit = (value, "px") if kind == "disparity" else (1000 * value, "mm")
    return f"{number:.0f} {unit}" if number >= 1000 else f"{number:.3g} {unit}"


def noise_facts(frame: Frame, noise: str) -> dict[str, Any]:
    """The median sigma of the samples, where it comes from and how many samples it rests on.

    Args:
        noise: as asked for: auto, a number or a sensor's name.
    """
    sigma = None if frame.sigma is None else float(frame.sigma[frame.valid].median())
    return {
        "noise_sigma": plain(sigma),
        "noise_source": noise[:60],  # a number may be written with any count of zeros
        "noise_is_least": noise == "auto" and _is_least(frame),
        "samples": int(frame.valid.sum()),
    }


def _is_least(frame: Frame) -> bool:
    """Whether no sample is noisier than is assumed anyway, which is never more than at the farthest one."""
    most = 1.01 * AUTO_FLOOR * frame.depth.max()
    if frame.sigma is None or bool(((frame.sigma > most) & frame.valid).any()):
        return False
    return bool((frame.sigma <= least_sigma(frame.depth, frame.valid))[frame.valid].all())


def noise_origin(report: Mapping[str, Any]) -> str:
    """Where the noise of `noise_facts` comes from, in a word or two."""
    source = str(report["noise_source"])
    if source != "auto":
        return "given" if source.replace(".", "", 1).isdecimal() else source
    if report["noise_is_least"]:
        return "the least assumed"
    return "estimated" if report["samples"] >= FEW else f"a guess from {report['samples']} samples"


def residual(inputs: Inputs, prediction: Prediction) -> dict[str, float | None]:
    """The result, reduced to the samples' grid, less those that are trusted: RMS in their unit and in sigmas.

    And the median of the absolute value in sigmas.
    """
    frame = replace(inputs.frame, valid=inputs.frame.trusted)
    errors = sensor_errors(prediction.depth.to(frame.depth), frame)
    sigma = None if frame.sigma is None else frame.sigma[frame.valid].double()
    rms, median = None, None
    if sigma is not None and bool((sigma > 0).all()):
        rms, median = _rms(errors / sigma), float((errors / sigma).abs().median())
    return {
        "residual_rms": plain(_rms(errors)),
        "residual_sigmas": plain(rms),
        "residual_median": plain(median),
    }


def _rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt())


def plain(value: Any) -> Any:
    """The same value for JSON; a number that is not finite becomes None."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
