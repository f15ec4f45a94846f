"""Non-local differences over the pairs of a window."""

from primaldepth.operators.pairwise.reference import Offset, PairwiseDifference, PairwiseSlope, half_window

__all__ = ["Offset", "PairwiseDifference", "PairwiseSlope", "half_window"]
