"""How the view moved between two images of a still scene, found from the images and the depth alone.

A small motion of a pinhole camera moves the pixel at (x, y) by a sum of eight fields (Longuet-Higgins and
Prazdny): a turn of the camera by (1, 0), (0, 1), (-y, x), (x^2, xy), (xy, y^2), and a shift by q (1, 0),
q (0, 1), q (x, y) with the inverse depth q. The focal length only scales their coefficients, so it need not
be known.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import grid_sample, interpolate

LONGEST_SIDE, SHORTEST_SIDE = 512, 16  # pixels of the finest and of the coarsest images that are compared
STEPS = 6  # of Gauss-Newton on each level
STILL = 0.03  # pixels; a motion that moves no pixel further than this is none
BETTER = 0.9  # a motion must lower the misfit to this: interpolation alone lowers it by averaging noise
_DAMPING = 1e-4  # keeps shift and turn apart where the scene is nearly flat
_NO_MOTION = (0.0,) * 8 + (1.0, 0.0)


@dataclass(frozen=True, slots=True)
class Motion:
    """A motion of the view: where each pixel was in the image before, and how the brightness changed.

    Args:
        flow: (1, 2, H, W) pixels to the right and down; pixel p of this image was at p + flow.
        gain: before = gain now + offset.
        offset: as above.
    """

    flow: Tensor
    gain: float = 1.0
    offset: float = 0.0

    @property
    def still(self) -> bool:
        """Whether no pixel moved."""
        return not bool(self.flow.any())


def ego_motion(before: Tensor, now: Tensor, inverse_depth: Tensor) -> Motion:
    """Estimate the motion that makes `before` look like `now`; none if no motion explains them as well.

    Minimises sum rho(before(p + flow) - gain now(p) - offset) over eight coefficients, gain and offset, from
    coarse to fine; rho is Geman and McClure's, so that things that move by themselves have no say.

    Args:
        before: (1, 1, H, W) image.
        now: (1, 1, H, W) image.
        inverse_depth: (1, 1, H, W) of `now`, in any unit.
    """
    q = inverse_depth / inverse_depth.abs().median().clamp_min(1e-30)
    height, width = int(now.shape[2]), int(now.shape[3])
    still = torch.tensor(_NO_MOTION, dtype=torch.float64, device=now.device)
    theta, pair = still, _Pair(before, now, q)
    for size in _levels(height, width):
        pair = _Pair(*(interpolate(image.double(), size, mode="area") for image in (before, now, q)))
        for _ in range(STEPS):
            theta = theta + pair.step(theta)
    if not pair.misfit(theta) < BETTER * pair.misfit(still):
        theta = still
    flow = _flow(q.double(), theta).to(now.dtype) * width
    if not float(flow.norm(dim=1).max()) >= STILL:
        flow = torch.zeros_like(flow)
    return Motion(flow, float(theta[8]), float(theta[9]))


def carried(image: Tensor, flow: Tensor, mode: str = "bicubic") -> Tensor:
    """Return the image before as seen from now, image(p + flow), (1, C, H, W); the border is continued."""
    grid = _places(image, flow / image.shape[3])
    return grid_sample(image, grid, mode=mode, padding_mode="border", align_corners=False)


def in_view(flow: Tensor) -> Tensor:
    """Return True, (1, 1, H, W), where the pixel was inside the image before."""
    return (_places(flow, flow / flow.shape[3]).abs() <= 1.0).all(dim=3)[:, None]


def coordinates(image: Tensor) -> tuple[Tensor, Tensor]:
    """Return (H, W) x and y of the pixel centres, in image widths from the middle."""
    height, width = int(image.shape[2]), int(image.shape[3])
    x = (torch.arange(width, dtype=image.dtype, device=image.device) + 0.5) / width - 0.5
    y = (torch.arange(height, dtype=image.dtype, device=image.device) + 0.5 - height / 2) / width
    return x.expand(height, width), y[:, None].expand(height, width)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two images and the inverse depth of the second, (1, 1, H, W) each, at one level of the pyramid."""

    before: Tensor
    now: Tensor
    q: Tensor

    def step(self, theta: Tensor) -> Tensor:
        """Damped Gauss-Newton: (J'WJ + damping) step = -J'W r, with the mean gradient of both images."""
        seen, r, inside = self._compare(theta)
        scale = 1.4826 * r[inside].abs().median() + 1e-4 if bool(inside.any()) else 1.0
        w = inside / (1.0 + (r / (2.0 * scale)).square()).square()
        mean = (seen + theta[8] * self.now)[0, 0] / 2.0
        slope_y, slope_x = torch.gradient(mean * mean.shape[1])
        fields = _fields(self.q)
        moved = fields[:, 0] * slope_x + fields[:, 1] * slope_y
        J = torch.cat([moved, -self.now[0], -torch.ones_like(self.now[0])]).flatten(1)
        H = (J * w.flatten()) @ J.T
        damping = torch.diag(_DAMPING * H.diagonal() + 1e-9 * H.diagonal().max() + 1e-30)
        found: Tensor = torch.linalg.solve(H + damping, -(J * w.flatten()) @ r.flatten())
        return found

    def misfit(self, theta: Tensor) -> float:
        """Return the median absolute difference of the images; pixels out of view count as the worst."""
        _, difference, inside = self._compare(theta)
        return float(torch.where(inside, difference.abs(), torch.inf).median())

    def _compare(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the image before as seen from now, its difference from now, and what was in view."""
        flow = _flow(self.q, theta) * self.now.shape[3]
        seen = carried(self.before, flow)
        return seen, seen - theta[8] * self.now - theta[9], in_view(flow)


def _levels(height: int, width: int) -> list[tuple[int, int]]:
    """Return the sizes of the images that are compared, coarse to fine."""
    finest = min(1.0, LONGEST_SIDE / max(height, width))
    sizes = [(max(2, round(finest * height)), max(2, round(finest * width)))]
    while min(sizes[-1]) >= 2 * SHORTEST_SIDE:
        sizes.append((sizes[-1][0] // 2, sizes[-1][1] // 2))
    return sizes[::-1]


def _fields(q: Tensor) -> Tensor:
    """Return the eight flow fields of the module's text, (8, 2, H, W)."""
    x, y = coordinates(q)
    one, zero, q = torch.ones_like(x), torch.zeros_like(x), q[0, 0]
    turns = ((one, zero), (zero, one), (-y, x), (x * x, x * y), (x * y, y * y))
    shifts = ((q, zero), (zero, q), (q * x, q * y))
    return torch.stack([torch.stack(pair) for pair in (*turns, *shifts)])


def _flow(q: Tensor, theta: Tensor) -> Tensor:
    """Return the flow as a sum of the fields, (1, 2, H, W), in image widths."""
    return torch.einsum("k,kchw->chw", theta[:8], _fields(q))[None]


def _places(image: Tensor, flow: Tensor) -> Tensor:
    """Return p + flow for `grid_sample`, (1, H, W, 2): -1 to 1 from border to border."""
    x, y = coordinates(image)
    ratio = image.shape[3] / image.shape[2]
    return torch.stack([2.0 * (x + flow[0, 0]), 2.0 * ratio * (y + flow[0, 1])], dim=-1)[None]
