"""Non-local differences over the pairs of a window."""

from primaldepth.operators.pairwise.backends import (
    available_backends,
    pick_backend,
    refuse_forced_backend,
    use_backend,
)
from primaldepth.operators.pairwise.reference import Offset, PairwiseDifference, PairwiseSlope, half_window

__all__ = [
    "Offset",
    "PairwiseDifference",
    "PairwiseSlope",
    "available_backends",
    "half_window",
    "pick_backend",
    "refuse_forced_backend",
    "use_backend",
]
