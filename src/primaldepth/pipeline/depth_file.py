"""The result as one depth file: its unit, what the format can hold, and what becomes a hole."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import InputError
from primaldepth.io import Unit, output_unit
from primaldepth.io.depth import write_values
from primaldepth.io.formats import writer_for
from primaldepth.io.row_blocks import row_blocks
from primaldepth.io.storage import stored_pixels
from primaldepth.io.units import whole_stored
from primaldepth.pipeline.load import LARGEST, Inputs
from primaldepth.pipeline.run import Outcome, first_mask

MANY_BELOW = 0.95  # of the samples


@dataclass(frozen=True, slots=True)
class DepthResult:
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


def check_fits(path: Path, inputs: Inputs) -> None:
    """Raise, before the work is done, if the format of `path` cannot hold what many samples are."""
    middle = inputs.median_depth
    try:
        _store_one(path, inputs, middle)
        _store_far(path, inputs)
    except InputError as error:
        if inputs.kind == "disparity":
            raise
        raise error.advised(f"the median depth is {middle:.4g} m: is the unit right?") from error


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


def depth_result(path: Path, outcome: Outcome) -> DepthResult:
    """The first depth map of the outcome, as it is to be written to `path`.

    An estimate that is not finite and positive, or that an integer format would round to its invalid 0,
    is a hole.
    """
    unit = result_unit(path, outcome.inputs)
    rounds = not any(name.startswith("float") for name in writer_for(path).dtypes)
    values = outcome.prediction.depth[0, 0].cpu().numpy()
    valid = np.array(first_mask(outcome.kept.valid))
    rounded_off = 0
    for rows in row_blocks(*values.shape):
        block = values[rows].astype(np.float64)
        valid[rows] &= np.isfinite(block) & (block > 0)
        if rounds:
            lost = valid[rows] & (whole_stored(block, unit) < 1)
            valid[rows] &= ~lost
            rounded_off += int(lost.sum())
    return DepthResult(values, valid, unit, rounded_off)


def write_depth(path: Path, outcome: Outcome) -> DepthResult:
    """Write the depth file and return what it holds.

    Raises:
        InputError: if the format cannot hold it, perhaps as the largest number was meant for no depth.
    """
    result = depth_result(path, outcome)
    try:
        write_values(path, result.values, result.valid, result.unit)
    except InputError as error:
        if count := outcome.inputs.largest_samples:
            text = f"{count} of the samples hold {LARGEST}: if that means no depth, store 0 instead"
            raise error.advised(text) from error
        raise
    return result
