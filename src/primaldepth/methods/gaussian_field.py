"""What quadratic methods make of a frame: samples in units of their noise, trust, a first estimate."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from primaldepth.core.frame import Frame, Prediction
from primaldepth.core.settings import Iterations, NotNegative, Positive, Settings
from primaldepth.methods.holes import everywhere, fill_holes
from primaldepth.methods.variational import Normalised
from primaldepth.operators.pairwise import Offset
from primaldepth.operators.sampling import Kernel, Resample, resample
from primaldepth.variational.conjugate_gradients import LinearSolution
from primaldepth.variational.quadratic import PairedQuadratic


class FieldSettings(Settings):
    """Parameters that the quadratic methods share.

    The regulariser has the weight smoothness scale^-decay for samples `scale` pixels apart, and no weight of
    a method falls below `floor`. `iterations` and `tolerance` end the linear solver; `sensor` is the kernel
    by which samples come from the image.
    """

    smoothness: Positive
    decay: NotNegative
    floor: Positive = 0.01
    iterations: Iterations = 150
    tolerance: NotNegative = 3e-4
    sensor: Kernel = "bicubic"


@dataclass(frozen=True, slots=True)
class SampledDepth:
    """Samples f with weights lam = c / sigma^2, seen through A; u is in units of the typical noise.

    Args:
        f: (B, 1, h, w) centred depth; 0 where invalid.
        lam: (B, 1, h, w) inverse variance times confidence; 0 where invalid.
        sigma: (B, 1, h, w) noise of the samples, about 1.
        start: (B, 1, H, W) holes filled, bilinear.
        A: from the guide's grid to the samples'.
    """

    f: Tensor
    lam: Tensor
    sigma: Tensor
    start: Tensor
    A: Resample
    normal: Normalised

    @classmethod
    def of(cls, frame: Frame, sensor: Kernel) -> "SampledDepth":
        """Normalise the frame and weigh its samples.

        Args:
            frame: one or more images.
            sensor: kernel by which samples come from the image.

        Returns:
            What the quadratic methods read.
        """
        normal = Normalised.of(frame)
        lam = frame.trust / normal.sigma**2
        start = resample(fill_holes(normal.depth, frame.trusted), frame.high_size, "bilinear")
        A = Resample(frame.high_size, frame.low_size, sensor)
        return cls(normal.depth, lam, normal.sigma, start, A, normal)

    def image(self, index: int) -> "SampledDepth":
        """Return one image of the batch, with its maps only.

        Args:
            index: of the image.
        """
        one = slice(index, index + 1)
        return replace(self, f=self.f[one], lam=self.lam[one], sigma=self.sigma[one], start=self.start[one])

    @property
    def scale(self) -> float:
        """Pixels per sample along one side, the geometric mean of both."""
        pixels, samples = self.start[0].numel(), self.f[0].numel()
        return math.sqrt(pixels / samples)

    def smoothness(self, settings: FieldSettings) -> float:
        """Return the weight of the regulariser.

        Args:
            settings: of the method.
        """
        return float(settings.smoothness * self.scale**-settings.decay)

    def minimised(
        self, w: Tensor, offsets: Sequence[Offset], start: Tensor, settings: FieldSettings
    ) -> LinearSolution:
        """Minimise the energy of the samples and of pairs by conjugate gradients.

        Args:
            w: (B, N, H, W) weights of the pairs.
            offsets: of the N pairs.
            start: (B, 1, H, W) first estimate.
            settings: of the method.

        Returns:
            The minimiser, (B, 1, H, W), and how it was found.
        """
        energy = PairedQuadratic(self.f, self.lam, w, offsets, self.A)
        return energy.minimise(start, iterations=settings.iterations, tolerance=settings.tolerance)

    def prediction(self, frame: Frame, found: LinearSolution) -> Prediction:
        """Return the solution in the frame's unit, and how it was found.

        Args:
            frame: what it was made of.
            found: the solution in units of the noise.
        """
        info = {"iterations": found.iterations, "residual": found.residual}
        return everywhere(self.normal.restore(found.u), frame, info=info)
