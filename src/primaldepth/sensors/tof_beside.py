"""A time-of-flight camera beside the guide's: what it measures, drawn in the guide's view."""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import avg_pool2d

from primaldepth.core.settings import NotNegative
from primaldepth.sensors.base import Samples
from primaldepth.sensors.degradations import fill_occlusions
from primaldepth.sensors.draws import Noise
from primaldepth.sensors.tof import TimeOfFlight, check_amplitude

NOTHING = 1e-4  # inverse depth of what is not known: it lies behind everything and is not measured


class TofBeside(TimeOfFlight):
    """A time-of-flight camera beside the guide's, whose samples are registered into the guide's view.

    The guide's pixel x lies at x' = s x + o + p (1/z - m) in the other camera, m the mean of 1/z.

    p is drawn for each image between -parallax and parallax, s between 1 - coarser and 1, o below one
    sample. There the camera measures as `tof-v1` does; what the guide does not see is taken to be the farther
    of what lies beside it. Each sample then goes back to the pixel where its own distance puts it, the
    nearest stays, and each cell of scale x scale pixels gets their mean. So background mixes with the
    foreground beside it, and cells stay empty: as in frames registered by their calibration alone.
    A surface is as bright in the other camera as in the guide's.

    Args:
        parallax: focal length of the guide in pixels times the distance of the cameras, in px m.
        coarser: largest share by which a sample is wider than a cell.
    """

    name = "tof-beside-v1"

    parallax: NotNegative = 80.0
    coarser: Annotated[float, Field(ge=0, lt=1)] = 0.15

    def measure(self, depth: Tensor, seen: Tensor, noise: Noise, amplitude: Tensor | None = None) -> Samples:
        """Return samples on cells of the guide's pixels.

        Args:
            depth: (B, 1, scale h, scale w) radial distance.
            seen: where it may be read.
            noise: makes all random numbers.
            amplitude: as a camera in the guide's place would see it, same shape; None: white surfaces.
        """
        u = noise.uniform(depth.new_empty((4, depth.shape[0], 1, 1, 1)))
        inverse = torch.where(seen, 1.0 / torch.where(seen, depth, 1.0), NOTHING)
        mean = (inverse * seen).sum((2, 3), keepdim=True) / seen.sum((2, 3), keepdim=True).clamp_min(1)
        view = _OtherCamera(
            self.parallax * (2.0 * u[0] - 1.0), mean, 1.0 - self.coarser * u[1], self.scale * u[2:]
        )
        points = view.there(inverse)
        drawn = _draw(inverse, *points, inverse > 0)
        other, inside = view.filled(drawn)
        light = None
        if amplitude is not None:
            check_amplitude(amplitude, depth)
            albedo = torch.where(seen, amplitude * depth.square(), 0.0)
            light = _nearest(albedo, inverse, points, drawn) / torch.where(inside, other, 1.0).square()
        samples = super().measure(other, inside, noise, amplitude=light)
        return view.drawn_here(samples, self.scale)


class _OtherCamera:
    """The other camera's image, of the same size as the guide's."""

    def __init__(self, parallax: Tensor, mean: Tensor, zoom: Tensor, offset: Tensor) -> None:
        self.parallax, self.mean, self.zoom, self.offset = parallax, mean, zoom, offset

    def there(self, inverse: Tensor) -> tuple[Tensor, Tensor]:
        """Return where the guide's pixels lie in the other camera, as rows and columns."""
        y, x = _grid(inverse)
        there_x = self.zoom * x + self.offset[0] + self.parallax * (inverse - self.mean)
        return (self.zoom * y + self.offset[1]).expand_as(there_x), there_x

    def filled(self, drawn: Tensor) -> tuple[Tensor, Tensor]:
        """Return the other camera's depth, with gaps filled, and True where the guide's image reaches."""
        y, x = _grid(drawn)
        height, width = drawn.shape[2:]
        reach_x, reach_y = (
            (at >= offset) & (at <= self.zoom * (length - 1) + offset)
            for at, length, offset in ((x, width, self.offset[0]), (y, height, self.offset[1]))
        )
        filled = fill_occlusions(drawn, drawn > 0)
        usable = torch.isfinite(filled) & (filled > 2.0 * NOTHING)
        depth = torch.where(usable, 1.0 / torch.where(usable, filled, 1.0), 0.0)
        return depth, usable & reach_x & reach_y

    def drawn_here(self, samples: Samples, scale: int) -> Samples:
        """Return the other camera's samples on cells of the guide's pixels."""
        q = torch.where(samples.valid, 1.0 / torch.where(samples.valid, samples.depth, 1.0), 0.0)
        y, x = (scale * (axis + 0.5) - 0.5 for axis in _grid(q))
        here_x = (x - self.offset[0] - self.parallax * (q - self.mean)) / self.zoom
        here_y = ((y - self.offset[1]) / self.zoom).expand_as(here_x)
        height, width = (scale * int(side) for side in q.shape[2:])
        nearest = _draw(q, here_y, here_x, samples.valid, (height, width))
        hit = (nearest > 0).to(q.dtype)
        share = avg_pool2d(hit, scale)
        measured = share > 0
        z = avg_pool2d(hit / torch.where(nearest > 0, nearest, 1.0), scale) / share.clamp_min(1e-6)
        variance = _mean_on(samples.sigma.square(), here_y, here_x, samples.valid, scale)
        sigma = torch.sqrt(variance / (share * scale**2).clamp_min(1.0))
        usual = samples.sigma.mean((2, 3), keepdim=True)
        return Samples(torch.where(measured, z, 0.0), measured, torch.where(measured, sigma, usual))


def _grid(like: Tensor) -> tuple[Tensor, Tensor]:
    """Return the row numbers, (1, 1, H, 1), and the column numbers, (1, 1, 1, W), of an image."""
    y, x = (torch.arange(n, device=like.device, dtype=like.dtype) for n in like.shape[2:])
    return y.view(1, 1, -1, 1), x.view(1, 1, 1, -1)


def _places(y: Tensor, x: Tensor, use: Tensor, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Return the flat index of the pixel that each point falls on, (B, n), and whether it falls on one."""
    row, column = torch.floor(y + 0.5), torch.floor(x + 0.5)
    inside = use & (row >= 0) & (row < size[0]) & (column >= 0) & (column < size[1])
    index = torch.where(inside, row * size[1] + column, 0.0).long()
    return index.flatten(1), inside.flatten(1)


def _draw(q: Tensor, y: Tensor, x: Tensor, use: Tensor, size: tuple[int, int] | None = None) -> Tensor:
    """Return the largest q of the points that fall on each pixel, (B, 1, H, W), 0 where none does."""
    height, width = (int(side) for side in q.shape[2:]) if size is None else size
    index, inside = _places(y, x, use, (height, width))
    flat = q.new_zeros((q.shape[0], height * width))
    flat = flat.scatter_reduce(1, index, torch.where(inside, q.flatten(1), 0.0), "amax")
    return flat.view(-1, 1, height, width)


def _nearest(values: Tensor, q: Tensor, points: tuple[Tensor, Tensor], drawn: Tensor) -> Tensor:
    """Return the value of the point drawn on each pixel, (B, 1, H, W), or the mean of all where none was."""
    index, inside = _places(*points, q > 0, (int(drawn.shape[2]), int(drawn.shape[3])))
    front = inside & (q.flatten(1) == drawn.flatten(1).gather(1, index))
    seen = torch.zeros_like(values).flatten(1)
    seen = seen.scatter_reduce(1, index, torch.where(front, values.flatten(1), 0.0), "amax")
    return torch.where(drawn > 0, seen.view_as(values), values.mean((2, 3), keepdim=True))


def _mean_on(values: Tensor, y: Tensor, x: Tensor, use: Tensor, scale: int) -> Tensor:
    """Return the mean of the values in each cell of scale x scale pixels, (B, 1, h, w), 0 where none is."""
    height, width = (int(side) for side in values.shape[2:])
    cell_y, cell_x = (torch.floor((torch.floor(at + 0.5)) / scale) for at in (y, x))
    index, inside = _places(cell_y, cell_x, use, (height, width))
    both = torch.stack([torch.where(inside, values.flatten(1), 0.0), inside.to(values.dtype)])
    total = both.new_zeros(both.shape[0], len(values), height * width).scatter_add(
        2, index.expand(2, -1, -1), both
    )
    return (total[0] / total[1].clamp_min(1.0)).view(-1, 1, height, width)
