"""Cameras that match two views: fat and ragged edges, shadows, and holes where matching fails."""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, max_pool2d

from primaldepth.core.settings import NotNegative, Positive, Share
from primaldepth.sensors.base import Samples, Sensor
from primaldepth.sensors.draws import Noise, smooth_field
from primaldepth.sensors.noise import local_mean
from primaldepth.sensors.shadow import shadow
from primaldepth.sensors.tof import check_amplitude

LIGHT_WINDOW = 5  # pixels a side over which returned light is averaged
RAGGED = 8  # pixels over which the width of fat edges, and what is lost at them, varies
JUMP = 1.0  # pixels of disparity between two surfaces
SLANT = 0.25  # pixels of disparity per pixel that are not yet a jump
FAT_IN_TRAINING = (0.1, 1.0)
"""Range of drawn `fat`: where samples are often too fat, networks learn to take true ones for background."""


class Triangulation(Sensor):
    """Depth z of a camera whose map is registered to the image, of which one pixel of each block is kept.

    d = baseline_focal / z, in pixels of the truth
    d' = the largest d within r(x) <= `fat` pixels, if it belongs to a nearer surface, else d
    z' = baseline_focal / (step round((d' + noise n) / step)) + relative z m, n and m standard normal

    The matching window widens nearer surfaces by r, which varies along their edges. The second device does
    not see shadows beside nearer surfaces, nor, in images at the border of the frame, a strip beyond its
    own view. Surfaces are not measured on which d changes by more than `grazing` per pixel, nor what is
    nearer than `near` or beyond `far`. Where light is given, neither are surfaces that return less than
    `dark` times its median, and shiny ones, which are more than `shiny` times as bright as the median. A
    share `edge_loss` of the places beside fat edges is lost, and a share `loss` anywhere.

    Args:
        scale: the truth has scale times the samples per side.
        baseline_focal: baseline in metres times focal length in pixels of the truth, so that shadows have
            their width in the image whatever the scale.
        noise: standard deviation of the disparity, in pixels of the truth.
        relative: standard deviation of what else is wrong with the depth, in parts of it.
        step: of the disparity, in pixels of the truth.
        fat: largest number of pixels by which nearer surfaces are widened.
        offset: largest number of pixels by which the map is off the image, each way, for each image anew.
        to_left: share of the images whose second device stands to the left; shadows then lie to the right.
        at_border: share of the images that lie at the border of the frame.
        near: least depth, in metres.
        far: largest depth, in metres.
    """

    kind = "z"
    sampling = "point"

    baseline_focal: Positive
    noise: NotNegative
    relative: NotNegative
    step: Positive
    fat: NotNegative
    grazing: Positive
    dark: NotNegative
    shiny: Positive
    edge_loss: Share
    loss: Share
    near: Positive
    far: Positive
    offset: NotNegative = 0.0
    to_left: Share = 0.0
    at_border: Share = 0.0

    def measure(self, depth: Tensor, seen: Tensor, noise: Noise, amplitude: Tensor | None = None) -> Samples:
        """Return samples of (B, 1, H, W) depth in metres.

        Args:
            depth: z in metres.
            seen: where it may be read.
            noise: makes all random numbers.
            amplitude: (B, 1, H, W) returned light in any unit; None: no surface is dark or shiny.
        """
        disparity = torch.where(seen, self.baseline_focal / torch.where(seen, depth, 1.0), 0.0)
        side, border, up, right = noise.uniform(disparity.new_empty((4, len(depth), 1, 1, 1)))
        hidden = self._unseen_from_beside(disparity, seen, side < self.to_left, border < self.at_border)
        matched = seen & ~hidden & ~self._too_steep(disparity, seen)
        if amplitude is not None:
            check_amplitude(amplitude, depth)
            matched = matched & ~self._badly_lit(amplitude, torch.where(seen, depth, 0.0), seen)
        found, matched = self._fattened(disparity, matched, noise)
        d, there = (self._sampled(each, up, right) for each in (found, (matched & seen).to(found.dtype)))
        return self._measured(d, there, noise)

    def _measured(self, d: Tensor, matched: Tensor, noise: Noise) -> Samples:
        """Turn matched disparities into samples with noise, in the sensor's steps and within its range."""
        stepped = ((d + self.noise * noise.normal(d)) / self.step).round() * self.step
        z = self.baseline_focal / stepped.clamp_min(self.step)
        z = z * (1.0 + self.relative * noise.normal(z)).clamp_min(0.1)
        lost = noise.uniform(z) < self.loss
        measured = (matched > 0) & ~lost & (z >= self.near) & (z <= self.far)
        z = torch.where(measured, z, 0.0)
        return Samples(z, measured, self._sigma(local_mean(z, measured), noise.gain))

    def _sigma(self, z: Tensor, gain: Tensor | None) -> Tensor:
        """Return the standard deviation of the depth, from its local mean z.

        Sigma_z^2 = (z^2 / baseline_focal)^2 (noise^2 + step^2 / 12) + (relative z)^2
        """
        noise, relative = (each if gain is None else each * gain for each in (self.noise, self.relative))
        matching = z.square() / self.baseline_focal * (noise**2 + self.step**2 / 12.0) ** 0.5
        return torch.sqrt(matching.square() + (relative * z).square())

    def _unseen_from_beside(self, disparity: Tensor, seen: Tensor, to_left: Tensor, border: Tensor) -> Tensor:
        """Return True in shadows, and beyond the second view's border in images that lie there."""
        d, known_there = (torch.where(to_left, each.flip(3), each) for each in (disparity, seen))
        hidden = shadow(d, known_there, reach=int(self.baseline_focal / self.near) + 1)
        x = torch.arange(d.shape[3], device=d.device, dtype=d.dtype)
        hidden = hidden | (border & (x < d))
        return torch.where(to_left, hidden.flip(3), hidden)

    def _too_steep(self, disparity: Tensor, seen: Tensor) -> Tensor:
        """Return True where the disparity changes by more than `grazing` to both sides along the row."""
        both = seen[..., 1:] & seen[..., :-1]
        steep = both & ((disparity[..., 1:] - disparity[..., :-1]).abs() > self.grazing)
        steep = torch.nn.functional.pad(steep, (1, 1))
        return steep[..., 1:] & steep[..., :-1]

    def _badly_lit(self, light: Tensor, depth: Tensor, seen: Tensor) -> Tensor:
        """Return True where little light returns, and where a surface is bright: z^2 times the light."""
        little = _in_parts_of_median(light, seen) < self.dark
        return little | (_in_parts_of_median(light * depth.square(), seen) > self.shiny)

    def _fattened(self, disparity: Tensor, matched: Tensor, noise: Noise) -> tuple[Tensor, Tensor]:
        """Return the disparities that matching finds, and where; nearer surfaces grow up to `fat` pixels."""
        radius = (self.fat * smooth_field(disparity, RAGGED, noise.generator)).round()
        front = wide = torch.where(matched, disparity, 0.0)
        for r in range(1, round(self.fat) + 1):
            wide = max_pool2d(wide, 3, 1, 1)
            front = torch.where(radius >= r, wide, front)
        grown = front > disparity + JUMP + SLANT * radius
        beside = max_pool2d(grown.to(disparity.dtype), 3, 1, 1) > 0
        ragged = beside & (smooth_field(disparity, RAGGED, noise.generator) > 1.0 - self.edge_loss)
        return torch.where(grown, front, disparity), (matched | grown) & ~ragged

    def _sampled(self, image: Tensor, up: Tensor, right: Tensor) -> Tensor:
        """Return (B, 1, h, w): the pixel in the middle of each block, or up to `offset` pixels beside it."""
        sides = (int(side) for side in image.shape[2:])
        rows, columns = (
            (
                torch.arange(self.scale // 2, side, self.scale, device=image.device)
                + (self.offset * (2.0 * u.flatten()[:, None] - 1.0)).round().long()
            ).clamp(0, side - 1)
            for side, u in zip(sides, (up, right), strict=True)
        )
        which = torch.arange(len(image), device=image.device)[:, None, None]
        return image[which, 0, rows[:, :, None], columns[:, None, :]][:, None]


def _in_parts_of_median(light: Tensor, seen: Tensor) -> Tensor:
    """Return (B, 1, H, W): the mean light around each pixel, divided by its median over the image."""
    known_light = torch.where(seen, light, 0.0)
    mean = avg_pool2d(known_light, LIGHT_WINDOW, 1, LIGHT_WINDOW // 2, count_include_pad=False)
    usual = torch.where(seen, mean, torch.nan).flatten(1).nanmedian(1).values
    return mean / usual.view(-1, 1, 1, 1).clamp_min(1e-12)


class StructuredLightRegistered(Triangulation):
    """A camera with a projector beside it, such as the first Kinect, whose map is registered to the image."""

    name = "structured-light-v2"
    ranges: ClassVar[dict[str, tuple[float, float]]] = {
        "baseline_focal": (8.0, 60.0),
        "noise": (0.02, 0.2),
        "relative": (0.0005, 0.01),
        "step": (1 / 32, 1 / 4),
        "fat": FAT_IN_TRAINING,
        "dark": (0.02, 0.2),
        "shiny": (2.5, 10.0),
        "edge_loss": (0.1, 0.8),
        "loss": (0.0002, 0.01),
        "near": (0.1, 0.4),
        "far": (3.0, 10.0),
        "offset": (0.1, 1.0),
        "to_left": (0.5, 0.5),
        "at_border": (0.1, 0.1),
    }

    baseline_focal: Positive = 0.075 * 580.0
    noise: NotNegative = 0.05
    relative: NotNegative = 0.001
    step: Positive = 0.125
    fat: NotNegative = 3.0
    grazing: Positive = 0.5
    dark: NotNegative = 0.1
    shiny: Positive = 4.0
    edge_loss: Share = 0.3
    loss: Share = 0.001
    near: Positive = 0.4
    far: Positive = 8.0


class Stereo(Triangulation):
    """Two cameras, such as a RealSense D400: finer steps, fatter edges, and a longer range at both ends."""

    name = "stereo-v1"
    ranges: ClassVar[dict[str, tuple[float, float]]] = {
        "baseline_focal": (8.0, 60.0),
        "noise": (0.02, 0.3),
        "relative": (0.001, 0.02),
        "step": (1 / 64, 1 / 8),
        "fat": FAT_IN_TRAINING,
        "dark": (0.01, 0.15),
        "shiny": (2.5, 10.0),
        "edge_loss": (0.05, 0.6),
        "loss": (0.0002, 0.01),
        "offset": (0.1, 1.0),
        "to_left": (0.25, 0.25),
        "at_border": (0.2, 0.2),
    }

    baseline_focal: Positive = 0.05 * 610.0
    noise: NotNegative = 0.08
    relative: NotNegative = 0.003
    step: Positive = 1 / 32
    fat: NotNegative = 4.0
    grazing: Positive = 0.7
    dark: NotNegative = 0.05
    shiny: Positive = 6.0
    edge_loss: Share = 0.2
    loss: Share = 0.001
    near: Positive = 0.15
    far: Positive = 20.0
