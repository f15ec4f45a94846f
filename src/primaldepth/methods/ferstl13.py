"""ferstl13: anisotropic total generalised variation with its published weights (Ferstl et al. 2013)."""

import math
from dataclasses import dataclass, field

from primaldepth.core.frame import Frame, Prediction
from primaldepth.core.settings import Iterations, Positive
from primaldepth.methods.variational import MinimisationSettings, Variational, VariationalSettings
from primaldepth.variational.models import EdgeTensorSettings


class Ferstl13Settings(EdgeTensorSettings, MinimisationSettings):
    """The energy of `atgv-l2` with the published beta, gamma and alpha_0 / alpha_1 = 17 / 1.2.

    lam scale^growth weighs a sample of typical noise, for samples `scale` pixels apart: with
    longer cells the contours to pay for are longer by as many pixels, the samples are no more.
    """

    lam: Positive = 0.5
    alpha_0: Positive = 17 / 1.2
    iterations: Iterations = 120
    coarse_iterations: Iterations = 80
    ratio: Positive = 5.0


@dataclass(frozen=True, slots=True)
class Ferstl13:
    """`atgv-l2` as published."""

    settings: Ferstl13Settings = field(default_factory=Ferstl13Settings)
    name: str = "ferstl13"

    def __call__(self, frame: Frame) -> Prediction:
        """Minimise the energy, its data weight set by the scale of the frame."""
        values = self.settings.model_dump(exclude={"growth"})
        scale = math.sqrt(math.prod(frame.high_size) / math.prod(frame.low_size))
        lam = self.settings.lam * scale**self.settings.growth
        fixed = {"lam": lam, "growth": 0.0, "contrast": 0.0}
        return Variational("atgv-l2", VariationalSettings(**{**values, **fixed}))(frame)
