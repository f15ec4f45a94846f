"""park11: a Markov random field with non-local means regularisation (Park et al. 2011)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from primaldepth.core.frame import Frame, Prediction
from primaldepth.core.settings import Few, NotNegative, Positive
from primaldepth.methods.gaussian_field import FieldSettings, SampledDepth
from primaldepth.operators.differences import difference
from primaldepth.operators.pairwise import Offset, half_window
from primaldepth.operators.pairwise.reference import ends
from primaldepth.variational.affinities import smooth
from primaldepth.variational.models import WindowSize


class Park11Settings(FieldSettings):
    """E(u) = sum c / sigma^2 (A u - f)^2 + mu sum over pairs (w + reach k) s (u(x) - u(y))^2.

    w = exp(-|g(x) - g(y)|^2 / (2 contrast^2)) / sqrt(1 + e^2)              of 8 neighbours
    k = exp(-|P(x) - P(y)|^2 / (2 patch^2) - d' J d / (2 structure^2))      of a window, d = y - x
    s = 1 / (1 + |v(x) - v(y)|^2 / step^2)                                  1 in the first round

    e: edge strength of the two pixels over `edge`; P: 3x3 patches; J: structure tensor; v: the
    depth of the round before. w + reach k is at least `floor`; mu = smoothness scale^-decay for
    samples `scale` pixels apart; depth in units of the noise.
    """

    smoothness: Positive = 3.3
    decay: NotNegative = 1.2
    reach: Positive = 0.036
    contrast: Positive = 0.19
    edge: Positive = 0.16
    patch: Positive = 0.048
    structure: Positive = 0.21
    step: Positive = 0.21
    rounds: Few = 4
    floor: Positive = 1e-3
    window: WindowSize = 5


def squared_differences(guide: Tensor, offset: Offset) -> Tensor:
    """Return |g(x) - g(x + d)|^2, (B, C, H, W) -> (B, 1, H, W); 0 where x + d lies outside."""
    return (guide - partner(guide, offset)).square().sum(dim=1, keepdim=True)


def structure_tensor(guide: Tensor) -> Tensor:
    """Return J = (g_y g_y, g_y g_x, g_x g_x), summed over channels and smoothed, (B, 3, H, W)."""
    g_y, g_x = difference(guide, -2), difference(guide, -1)
    products = torch.stack([g_y * g_y, g_y * g_x, g_x * g_x], dim=1).sum(dim=2)
    return smooth(products, passes=4)


def partner(image: Tensor, offset: Offset) -> Tensor:
    """Return image(x + d), and image(x) where x + d lies outside."""
    x, y = ends(offset, (int(image.shape[2]), int(image.shape[3])))
    out = image.clone()
    out[:, :, x[0], x[1]] = image[:, :, y[0], y[1]]
    return out


def pair_weights(guide: Tensor, offsets: Sequence[Offset], settings: Park11Settings) -> Tensor:
    """Return both sums of the energy as one weight per pair, (B, N, H, W)."""
    q, J = settings, structure_tensor(guide)
    edge = (J[:, :1] + J[:, 2:]) / q.edge**2
    out = guide.new_empty((guide.shape[0], len(offsets), *guide.shape[2:]))
    for k, (dy, dx) in enumerate(offsets):
        squares = squared_differences(guide, (dy, dx))
        across = J.new_tensor([dy * dy, 2 * dy * dx, dx * dx]).view(1, 3, 1, 1)
        turn = (across * (J + partner(J, (dy, dx)))).sum(dim=1, keepdim=True) / 2
        patch = avg_pool2d(squares, 3, 1, 1, count_include_pad=False)
        weight = q.reach * torch.exp(-patch / (2 * q.patch**2) - turn / (2 * q.structure**2))
        if max(abs(dy), abs(dx)) == 1:
            colour = torch.exp(-squares / (2 * q.contrast**2))
            weight += colour / (1 + (edge + partner(edge, (dy, dx))) / 2).sqrt()
        out[:, k : k + 1] = weight.clamp_min(q.floor)
    return out


def keep_steps(w: Tensor, offsets: Sequence[Offset], depth: Tensor, step: float) -> Tensor:
    """Return w s: pairs on two sides of a step of the depth (B, 1, H, W) hold less."""
    parts = [1 + squared_differences(depth, offset) / step**2 for offset in offsets]
    return w / torch.cat(parts, dim=1)


@dataclass(frozen=True, slots=True)
class Park11:
    """The minimiser of the energy, by conjugate gradients."""

    settings: Park11Settings = field(default_factory=Park11Settings)
    name: str = "park11"

    def __call__(self, frame: Frame) -> Prediction:
        """Solve one linear system per round."""
        q, offsets = self.settings, half_window(self.settings.window)
        with torch.no_grad():
            data = SampledDepth.of(frame, q.sensor)
            w = pair_weights(frame.guide, offsets, q).mul_(data.smoothness(q))
            found = data.minimised(w, offsets, data.start, q)
            for _ in range(q.rounds - 1):
                found = data.minimised(keep_steps(w, offsets, found.u, q.step), offsets, found.u, q)
            return data.prediction(frame, found)
