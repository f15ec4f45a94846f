"""Linear operators: forward, adjoint and norm bound travel as one object."""

from primaldepth.operators.base import Composition, LinearOperator, dot_test
from primaldepth.operators.differences import ForwardDifference, GradientMinusField, SymmetrizedGradient
from primaldepth.operators.pairwise import PairwiseDifference, PairwiseSlope, half_window
from primaldepth.operators.pointwise import EdgeTensor, Mask, SelectChannels
from primaldepth.operators.sampling import Kernel, PointSamples, Resample

__all__ = [
    "Composition",
    "EdgeTensor",
    "ForwardDifference",
    "GradientMinusField",
    "Kernel",
    "LinearOperator",
    "Mask",
    "PairwiseDifference",
    "PairwiseSlope",
    "PointSamples",
    "Resample",
    "SelectChannels",
    "SymmetrizedGradient",
    "dot_test",
    "half_window",
]
