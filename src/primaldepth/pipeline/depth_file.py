"""The result as one depth file: its unit, what the format can hold, and what becomes a hole."""

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
from primaldepth.io.units import per_metre, whole_stored
from primaldepth.pipeline.load import Inputs
from primaldepth.pipeline.run import Outcome, first_mask


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


def result_unit(path: Path, inputs: Inputs) -> Unit:
    """The unit `path` is written in: the input's, where the format can mean it."""
    unit = output_unit(path, inputs.unit or "m")
    return "disparity" if inputs.kind == "disparity" and unit == "m" else unit


def check_fits(path: Path, inputs: Inputs) -> None:
    """Raise, before the work is done, if the format of `path` cannot hold the samples.

    What is too large for it becomes a hole later; so only a map without any smaller sample is refused.
    """
    middle = inputs.median_depth
    fits = middle <= _largest(path, inputs)
    try:
        _store_one(path, inputs, middle if fits else float(inputs.frame.depth[inputs.frame.valid].min()))
    except InputError as error:
        if inputs.kind == "disparity":
            raise
        raise error.advised(f"the median depth is {middle:.4g} m: is the unit right?") from error


def _largest(path: Path, inputs: Inputs) -> float:
    """Metres, or pixels of disparity, of the largest number that the format of `path` can hold."""
    return _largest_stored(path) / per_metre(result_unit(path, inputs))


def _largest_stored(path: Path) -> float:
    """The largest number of a format of integers; floating point numbers have room for every depth."""
    names = writer_for(path).dtypes
    if any(name.startswith("float") for name in names):
        return float("inf")
    return float(np.iinfo(names[-1]).max)


def _store_one(path: Path, inputs: Inputs, value: float) -> None:
    one = np.full((1, 1), value), np.ones((1, 1), bool)
    stored_pixels(path, writer_for(path), *one, result_unit(path, inputs))


def depth_result(path: Path, outcome: Outcome) -> DepthResult:
    """The first depth map of the outcome, as it is to be written to `path`.

    An estimate that is not finite and positive, that an integer format would round to its invalid 0, or that
    is larger than such a format can hold, is a hole.
    """
    unit, largest = result_unit(path, outcome.inputs), _largest_stored(path)
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
        InputError: if no estimate can be held by the format.
    """
    result = depth_result(path, outcome)
    write_values(path, result.values, result.valid, result.unit)
    return result
