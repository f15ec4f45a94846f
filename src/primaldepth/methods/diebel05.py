"""diebel05: a Markov random field whose edges the guide weakens (Diebel and Thrun 2005)."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from primaldepth.core.frame import Frame, Prediction
from primaldepth.core.settings import Iterations, NotNegative, Positive
from primaldepth.methods.gaussian_field import FieldSettings, SampledDepth
from primaldepth.operators.pairwise import Offset
from primaldepth.variational.affinities import guide_distance

NEIGHBOURS: tuple[Offset, ...] = ((-1, 0), (0, -1))


class Diebel05Settings(FieldSettings):
    """E(u) = sum c / sigma^2 (A u - f)^2 + mu sum over 4 neighbours w(x, y) (u(x) - u(y))^2.

    w(x, y) = exp(-|g(x) - g(y)|^2 / (2 contrast^2)), at least `floor`, and
    mu = smoothness scale^-decay for samples `scale` pixels apart; depth in units of the noise.
    """

    smoothness: Positive = 2.0
    decay: NotNegative = 0.5
    contrast: Positive = 0.055
    iterations: Iterations = 300


def neighbour_weights(guide: Tensor, contrast: float, floor: float) -> Tensor:
    """Return the weights of the pairs of `NEIGHBOURS`: (B, C, H, W) -> (B, 2, H, W)."""
    distance = guide_distance(guide, NEIGHBOURS)
    return torch.exp(-0.5 * (distance / contrast) ** 2).clamp_min(floor)


@dataclass(frozen=True, slots=True)
class Diebel05:
    """The most probable depth of a Gaussian Markov random field, by conjugate gradients."""

    settings: Diebel05Settings = field(default_factory=Diebel05Settings)
    name: str = "diebel05"

    def __call__(self, frame: Frame) -> Prediction:
        """Solve one linear system."""
        q = self.settings
        with torch.no_grad():
            data = SampledDepth.of(frame, q.sensor)
            w = data.smoothness(q) * neighbour_weights(frame.guide, q.contrast, q.floor)
            return data.prediction(frame, data.minimised(w, NEIGHBOURS, data.start, q))
