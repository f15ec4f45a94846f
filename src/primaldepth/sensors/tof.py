"""A continuous-wave time-of-flight camera: phasors, shot noise, mixed pixels, dropouts."""

import math
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import avg_pool2d, pad

from primaldepth.core.errors import InputError
from primaldepth.core.settings import NotNegative, Positive
from primaldepth.sensors.base import Samples, Sensor
from primaldepth.sensors.draws import Noise
from primaldepth.sensors.noise import TOF_READ, TOF_SHOT, phasor_sigma

SPEED_OF_LIGHT = 299_792_458.0


class TimeOfFlight(Sensor):
    """Radial distance r from the phase of the returned light.

    P = mean of a exp(i k r) over the footprint, k = 4 pi frequency / c
    noise = complex normal, variance of each part = read^2 + shot^2 |P|
    r' = angle(P + noise) / k

    Near and far surfaces in one footprint give distances between or even outside the two, as in real
    cameras (mixed pixels). Amplitude 1 is a white surface that faces the camera in 1 m. Samples whose
    amplitude is below `min_amplitude` are dropped, and so is what lies beyond c / (2 frequency), where
    the phase would start anew.

    Args:
        scale: sub-samples of the footprint per side: the truth has scale times the camera's pixels.
        frequency: of the modulation, in Hz.
        read: noise that does not depend on the signal: electronics and ambient light.
        shot: noise of the signal's own photons.
        spread: share of a pixel's light that falls on each of its four neighbours.
        min_amplitude: dropped below.
    """

    name = "tof-v1"
    kind = "radial"
    ranges: ClassVar[dict[str, tuple[float, float]]] = {
        "read": (TOF_READ / 4, 4 * TOF_READ),
        "shot": (TOF_SHOT / 4, 4 * TOF_SHOT),
        "spread": (0.005, 0.05),
        "min_amplitude": (0.01, 0.05),
    }

    frequency: Positive = 20e6
    read: NotNegative = TOF_READ
    shot: NotNegative = TOF_SHOT
    spread: Annotated[float, Field(ge=0, le=0.2)] = 0.01
    min_amplitude: NotNegative = 0.02

    @property
    def wave_number(self) -> float:
        """Phase per metre of distance, k = 4 pi frequency / c."""
        return 4.0 * math.pi * self.frequency / SPEED_OF_LIGHT

    @property
    def unambiguous_range(self) -> float:
        """Distance at which the phase starts anew, c / (2 frequency), in metres."""
        return SPEED_OF_LIGHT / (2.0 * self.frequency)

    def measure(self, depth: Tensor, seen: Tensor, noise: Noise, amplitude: Tensor | None = None) -> Samples:
        """Return samples of radial distances in metres.

        Args:
            depth: (B, 1, scale h, scale w) radial distance.
            seen: where it may be read.
            noise: makes all random numbers.
            amplitude: of the returned light, same shape; None: a white surface facing the camera, 1 / r^2.
        """
        seen = seen & (depth < self.unambiguous_range)
        phasor = self._phasor(torch.where(seen, depth, 1.0), seen, amplitude)
        strength = phasor.square().sum(1, keepdim=True).sqrt()
        deviation = torch.sqrt(self.read**2 + self.shot**2 * strength)
        noisy = phasor + deviation * noise.normal(phasor)
        distance, measured_amplitude = self._distance(noisy)
        covered = avg_pool2d(seen.to(depth.dtype), self.scale) >= 0.5
        measured = covered & (measured_amplitude >= self.min_amplitude) & (distance > 0)
        sigma = phasor_sigma(measured_amplitude, self.wave_number, self.read, self.shot)
        return Samples(
            torch.where(measured, distance, 0.0), measured, noise.scaled(sigma), amplitude=measured_amplitude
        )

    def _phasor(self, distance: Tensor, seen: Tensor, amplitude: Tensor | None) -> Tensor:
        """Return real and imaginary part of the mean phasor of each pixel, (B, 2, h, w)."""
        if amplitude is None:
            amplitude = distance.square().reciprocal()
        check_amplitude(amplitude, distance)
        light = torch.where(seen, amplitude, 0.0)
        phase = self.wave_number * distance
        phasor = avg_pool2d(torch.cat([light * phase.cos(), light * phase.sin()], 1), self.scale)
        return _spread(phasor, self.spread) if self.spread else phasor

    def _distance(self, phasor: Tensor) -> tuple[Tensor, Tensor]:
        """Return distance in [0, unambiguous range) and amplitude of a phasor."""
        phase = torch.atan2(phasor[:, 1:], phasor[:, :1])
        phase = torch.where(phase < 0, phase + 2.0 * math.pi, phase)
        return phase / self.wave_number, phasor.square().sum(1, keepdim=True).sqrt()


def check_amplitude(amplitude: Tensor, depth: Tensor) -> None:
    """Raise an error unless the amplitude has the shape of the depth.

    Args:
        amplitude: of the returned light.
        depth: (B, 1, H, W).

    Raises:
        InputError: the shapes differ.
    """
    if amplitude.shape != depth.shape:
        raise InputError(
            "amplitude", f"shape {tuple(amplitude.shape)}, but the depth has {tuple(depth.shape)}"
        )


def _spread(image: Tensor, share: float) -> Tensor:
    """Let each pixel give `share` of its value to each of its four neighbours; the border mirrors."""
    wide = pad(image, (1, 1, 1, 1), mode="replicate")
    neighbours = wide[..., :-2, 1:-1] + wide[..., 2:, 1:-1] + wide[..., 1:-1, :-2] + wide[..., 1:-1, 2:]
    return (1.0 - 4.0 * share) * image + share * neighbours
