"""How a sensor's samples come from the image's grid: reductions of grids, and values at points."""

from primaldepth.operators.sampling.grids import (
    Kernel,
    Resample,
    nearest_index,
    resample,
    resampling_matrix,
    stretches,
)
from primaldepth.operators.sampling.mixed import MixedResample, Taps, taps_of
from primaldepth.operators.sampling.points import PointSamples
from primaldepth.operators.sampling.samples import SampleTerm

__all__ = [
    "Kernel",
    "MixedResample",
    "PointSamples",
    "Resample",
    "SampleTerm",
    "Taps",
    "nearest_index",
    "resample",
    "resampling_matrix",
    "stretches",
    "taps_of",
]
