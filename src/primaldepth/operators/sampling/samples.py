"""The samples of a sensor as the iterations read them."""

from dataclasses import dataclass

from torch import Tensor

from primaldepth.operators.base import LinearOperator


@dataclass(frozen=True, slots=True, eq=False)
class SampleTerm:
    """The sample term 1/2 sum_i lam_i ((A u)_i - d_i)^2 with lam_i = omega_i / sigma_i^2.

    With a dual variable q on the sensor's grid and step s, one iteration updates
    q+ = prox_{s F*}(q + s A u_bar) = lam (q + s (A u_bar - d)) / (lam + s) and pulls u by A' q+.

    Args:
        A: how samples come from the image, (1, H, W) -> (1, h, w).
        d: (B, 1, h, w) samples; any finite value in holes.
        lam: (B, 1, h, w) precision of each sample, >= 0; 0 in holes.
    """

    A: LinearOperator
    d: Tensor
    lam: Tensor
