"""What the page shows of one result: pictures, charts, meshes and files, made where it was computed."""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from primaldepth.app.page.charts import colour_bar, histogram
from primaldepth.app.response_formats import file_name, reported
from primaldepth.core.errors import PrimalDepthError
from primaldepth.core.frame import Prediction
from primaldepth.geometry.meshing import MAX_JUMP, depth_mesh
from primaldepth.io.mesh import write_mesh
from primaldepth.io.picture_files import write_preview
from primaldepth.measurement.residual import least_residual
from primaldepth.operators.sampling import resample
from primaldepth.pictures.preview import (
    ERROR_COLORS,
    RGB,
    colorize,
    draw_samples,
    enlarge,
    error_map,
    mark_filled,
    robust_error,
    robust_limits,
)
from primaldepth.pipeline.frame_report import report_of
from primaldepth.pipeline.load import Inputs
from primaldepth.pipeline.outcome import Outcome, first, first_mask
from primaldepth.pipeline.outputs import (
    OUTPUTS,
    DisplayUnit,
    depth_result,
    guide_camera,
    possible,
    rgb_of,
    sample_reach,
)
from primaldepth.pipeline.warnings import Advice

FORMATS = (".png", ".exr", ".tiff", ".pfm", ".npy", ".npz", ".mat")
ADVICE = Advice(
    unit="'Unit of the depth'",
    noise="'Noise'",
    cameras="'Cameras'",
    robust="the method nlh-l1",
    keep_spikes="choose 'Keep spikes'",
    keep_small="only the PNG has them, every other format keeps what was estimated",
    invalid="0 in its place",
)
_SHOWN_SIDE = 1280  # pixels of a picture on the page
_MESH_PIXELS = 250_000  # what a phone can turn
_COARSE_JUMP = 0.08  # between samples, which lie far apart


@dataclass(frozen=True, slots=True)
class Drawn:
    """Paths and texts for the page; None where there is nothing to show."""

    before: Path
    after: Path
    guide: Path
    bar: str
    residual: Path
    residual_bar: str
    sigma: Path | None
    sigma_bar: str
    histogram: str
    mesh_before: Path | None
    mesh_after: Path | None
    files: tuple[Path, ...]
    report: dict[str, Any]


def draw(outcome: Outcome, *, folder: Path, prefix: str) -> Drawn:
    """Make everything in `folder`, in files whose names begin with `prefix`.

    Args:
        outcome: of one frame.
        folder: for the files.
        prefix: of their names.
    """
    inputs, prediction, scale = outcome.inputs, outcome.prediction, DisplayUnit.of(outcome.inputs)
    low, low_valid = first(inputs.frame.depth) * scale.factor, first_mask(inputs.frame.valid)
    depth, valid = first(prediction.depth) * scale.factor, first_mask(prediction.valid)
    limits = robust_limits(low, low_valid)
    size = _shown_size(depth.shape)
    filled = mark_filled(colorize(depth, valid, limits), first_mask(prediction.measured) | ~valid)
    label = f"{scale.name} [{scale.unit}]"
    residual, residual_bar = _residual(inputs, prediction, scale, size)
    sigma, sigma_bar = _sigma(prediction, scale, size)
    save = partial(_save, folder, prefix)
    return Drawn(
        before=save("before", draw_samples(low, low_valid, limits, size, sample_reach(inputs))),
        after=save("after", _shrunk(filled, size)),
        guide=save("guide", _shrunk(rgb_of(inputs.frame.guide), size)),
        bar=colour_bar(label, limits),
        residual=save("residual", residual),
        residual_bar=residual_bar,
        sigma=None if sigma is None else save("sigma", sigma),
        sigma_bar=sigma_bar,
        histogram=histogram(label, limits, low[low_valid], depth[valid]),
        mesh_before=_mesh(folder / f"{prefix}mesh-before.glb", _before(outcome), _COARSE_JUMP),
        mesh_after=_mesh(folder / f"{prefix}mesh.glb", outcome, MAX_JUMP),
        files=tuple(_files(outcome, folder, prefix)),
        report=reported(report_of(outcome, ADVICE, depth_result(Path("depth.png"), outcome))),
    )


def _shown_size(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return (height, width) of the pictures: those of the result, shrunk to what the page needs."""
    ratio = min(1.0, _SHOWN_SIDE / max(shape))
    return max(1, round(shape[0] * ratio)), max(1, round(shape[1] * ratio))


def _shrunk(rgb: RGB, size: tuple[int, int]) -> RGB:
    if rgb.shape[:2] == size:
        return rgb
    return np.asarray(Image.fromarray(rgb).resize(size[::-1], Image.Resampling.BOX))


def _save(folder: Path, prefix: str, what: str, rgb: RGB) -> Path:
    path = folder / f"{prefix}{what}.png"
    write_preview(path, rgb)
    return path


def _residual(
    inputs: Inputs, prediction: Prediction, scale: DisplayUnit, size: tuple[int, int]
) -> tuple[RGB, str]:
    """Return the map of the residual (result, seen as the samples are, minus samples) and its colour bar."""
    frame = inputs.frame
    errors = first(least_residual(prediction.depth.to(frame.depth), frame)) * scale.factor
    none, valid = np.zeros_like(errors), first_mask(frame.valid) & np.isfinite(errors)
    limit = robust_error(errors, none, valid)
    title = f"Result less samples [{scale.unit}]"
    picture = error_map(errors, none, valid, limit)
    return enlarge(picture, *size), colour_bar(title, (-limit, limit), ERROR_COLORS)


def _sigma(prediction: Prediction, scale: DisplayUnit, size: tuple[int, int]) -> tuple[RGB | None, str]:
    if prediction.sigma is None:
        return None, ""
    sigma, valid = first(prediction.sigma) * scale.factor, first_mask(prediction.valid)
    high = float(np.percentile(sigma[valid], 99)) if valid.any() else 1.0
    limits = (0.0, high or 1.0)
    picture = _shrunk(colorize(sigma, valid, limits), size)
    return picture, colour_bar(f"68 % of the errors are below [{scale.unit}]", limits)


def _before(outcome: Outcome) -> Outcome:
    """Return the samples as if they were the result, with the guide reduced to their grid."""
    frame = outcome.inputs.frame
    small = replace(frame, guide=resample(frame.guide, frame.low_size, "area").clamp(0.0, 1.0))
    prediction = Prediction(frame.depth, frame.valid, frame.valid)
    return replace(outcome, inputs=replace(outcome.inputs, frame=small), prediction=prediction)


def _mesh(path: Path, outcome: Outcome, jump: float) -> Path | None:
    """Write a mesh small enough for a phone; return None if depth is not metric or no mesh is left."""
    inputs, prediction = outcome.inputs, outcome.prediction
    if inputs.kind == "disparity":
        return None
    step = int(np.ceil(np.sqrt(prediction.depth.numel() / _MESH_PIXELS)))
    depth = first(prediction.depth)[step // 2 :: step, step // 2 :: step]
    valid = first_mask(prediction.valid)[step // 2 :: step, step // 2 :: step] & (depth > 0)
    colors = np.ascontiguousarray(rgb_of(inputs.frame.guide)[step // 2 :: step, step // 2 :: step])
    camera = guide_camera(inputs).scaled_to(depth.shape[1], depth.shape[0])
    try:
        write_mesh(path, depth_mesh(depth, valid, camera, colors=colors, max_jump=jump * step))
    except PrimalDepthError:
        return None
    return path


def _files(outcome: Outcome, folder: Path, prefix: str) -> list[Path]:
    """Write every output that can be made of the result, the depth in every format that can hold it."""
    found = []
    for name, output in OUTPUTS.items():
        for suffix in FORMATS if name == "out" else output.suffixes[:1]:
            path = folder / f"{prefix}{file_name(name)}{suffix}"
            if possible(name, outcome):
                with suppress(PrimalDepthError):  # PNG cannot hold every depth
                    output.write(path, outcome)
                    found.append(path)
    return found
