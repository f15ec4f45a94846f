"""Networks as methods: normalise, run whole or in tiles, restore the unit."""

import functools
import itertools
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import pad

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame, Prediction
from primaldepth.core.settings import Settings
from primaldepth.methods.deep_holes import COARSER, blended, coarser, deep_share
from primaldepth.methods.holes import fill_holes, measured_mask
from primaldepth.methods.sparse import with_samples
from primaldepth.networks import DepthNet, from_pretrained, load
from primaldepth.networks.inference import Inference
from primaldepth.networks.normalisation import Scaling, relative_sigma
from primaldepth.networks.zoo import SCALES, SHIPPED
from primaldepth.operators.pairwise import half_window
from primaldepth.operators.sampling import Resample

MAPS_HELD, PAIRWISE_HELD = 18, 36  # bytes per pixel and map at the peak, measured, with room to spare
# Per pixel of the frame: depth 4, masks 3, stored numbers 4, the file 5. The allocator may keep what tiles
# took until after the file is written, so both have to fit together.
BYTES_OF_RESULT = 16


@dataclass(frozen=True, slots=True)
class Window:
    """A rectangle of the guide's grid: rows top..bottom, columns left..right."""

    top: int
    bottom: int
    left: int
    right: int

    def grown(self, margin: int, size: tuple[int, int], stride: int = 1) -> "Window":
        """With a margin on every side up to a multiple of the stride, cut at the frame's border."""
        return Window(
            max(0, (self.top - margin) // stride * stride),
            min(size[0], -(-(self.bottom + margin) // stride) * stride),
            max(0, (self.left - margin) // stride * stride),
            min(size[1], -(-(self.right + margin) // stride) * stride),
        )

    def cut(self, image: Tensor) -> Tensor:
        """The part of (B, C, H, W) it covers."""
        return image[:, :, self.top : self.bottom, self.left : self.right]

    def inside(self, outer: "Window") -> "Window":
        """The same rectangle in the coordinates of `outer`."""
        dy, dx = outer.top, outer.left
        return Window(self.top - dy, self.bottom - dy, self.left - dx, self.right - dx)


def tiles(size: tuple[int, int], tile: int) -> Iterator[Window]:
    """Windows of at most tile x tile that cover the frame, row by row."""
    for top in range(0, size[0], tile):
        for left in range(0, size[1], tile):
            yield Window(top, min(size[0], top + tile), left, min(size[1], left + tile))


def tile_for_memory(available: float, bytes_per_pixel: float, radius: int) -> int:
    """The largest tile whose window, margin included, stays within `available` bytes."""
    side = int(math.sqrt(max(0.0, available) / bytes_per_pixel)) - 2 * radius
    if side < 32:
        raise InputError(
            f"memory_gib: {max(0.0, available) / 2**30:.2f} GiB are left for tiles, which is too little "
            f"with a margin of {radius} px; allow more"
        )
    return side


def memory_in_use(device: torch.device) -> int:
    """Bytes this process holds on the device."""
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device)
    status = Path("/proc/self/statm")  # where there is none, only what tensors are known to take counts
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if status.exists() else 0


@dataclass(frozen=True, slots=True)
class NetworkInputs:
    """The frame in the network's unit, still at low resolution, so that any window can be made from it."""

    depth: Tensor
    sigma: Tensor
    trust: Tensor
    scaling: Scaling
    enlarge: Resample

    @classmethod
    def of(cls, frame: Frame) -> "NetworkInputs":
        """Normalised by the frame itself."""
        scaling = Scaling.of(frame)
        return cls.made(
            frame.depth,
            frame.valid,
            relative_sigma(frame, scaling),
            frame.confidence,
            scaling,
            frame.high_size,
        )

    @classmethod
    def made(
        cls,
        depth: Tensor,
        valid: Tensor,
        sigma: Tensor,
        confidence: Tensor | None,
        scaling: Scaling,
        size: tuple[int, int],
    ) -> "NetworkInputs":
        """Depth in its own unit, noise in the network's; holes are filled in both, but not trusted."""
        trust = valid.to(depth.dtype) if confidence is None else torch.where(valid, confidence, 0.0)
        scaled = torch.where(valid, scaling.apply(depth), 0.0)
        both = fill_holes(torch.cat([scaled, sigma], dim=1), valid)
        enlarge = Resample((int(depth.shape[2]), int(depth.shape[3])), size, "bilinear")
        return cls(both[:, :1], both[:, 1:], trust, scaling, enlarge)

    @property
    def ratio(self) -> Tensor:
        """(B, 1, 1, 1) log2 of the size of the guide over that of the samples, per side."""
        _, low_y, low_x = self.enlarge.in_shape
        _, high_y, high_x = self.enlarge.out_shape
        level = 0.5 * math.log2(high_y * high_x / (low_y * low_x))
        return self.depth.new_full((self.depth.shape[0], 1, 1, 1), level)

    def window(self, part: Window, guide: Tensor, colours: int = 1) -> tuple[Tensor, ...]:
        """What a network reads of one window, (B, 1, rows, columns): interpolated depth, noise and trust.

        Then the guide, as intensity or with `colours` channels, and the ratio.
        """
        enlarge = self.enlarge.window(slice(part.top, part.bottom), slice(part.left, part.right))
        maps = [enlarge(image) for image in (self.depth, self.sigma, self.trust)]
        seen = part.cut(guide)
        seen = seen.mean(dim=1, keepdim=True) if colours == 1 else seen.expand(-1, colours, -1, -1)
        return *maps, seen, self.ratio


@dataclass(frozen=True, slots=True)
class Network:
    """A network as a method.

    Args:
        tile: side of the tiles in pixels, or None for the whole frame at once. Tiles overlap by the
            network's reach, so the result is that of the whole frame.
        memory_gib: make the tiles so small that the process stays within this.
        precision: of the convolutions, and on a GPU of the stored dual variables; arithmetic of the
            primal-dual part is float32.
        ensemble: mean over the eight flips and rotations of the frame.
    """

    name: str
    net: DepthNet
    tile: int | None = None
    memory_gib: float | None = None
    precision: torch.dtype = torch.float32
    ensemble: bool = False
    _inference: Inference = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Nothing is recorded yet."""
        object.__setattr__(self, "_inference", Inference(self.net, self.precision))

    def __call__(self, frame: Frame) -> Prediction:
        """Estimate window by window."""
        return with_samples(self.predict, frame)

    def predict(self, frame: Frame, samples: Frame) -> Prediction:
        """As for `frame`, with its `samples` gathered already."""
        found = self._whole(frame, samples)
        share = deep_share(samples.valid) if self.net.is_for_any_scale else None
        if share is None or min(samples.low_size) < 2 * COARSER:
            return found
        below = coarser(samples)
        coarse = self.predict(below, below)
        sigma = None
        if found.sigma is not None and coarse.sigma is not None:
            sigma = blended(found.sigma, coarse.sigma, share)
        return replace(found, depth=blended(found.depth, coarse.depth, share), sigma=sigma)

    def _whole(self, frame: Frame, samples: Frame) -> Prediction:
        """Window by window."""
        inputs, size = NetworkInputs.of(samples), frame.high_size
        self.net.to(frame.depth.device)
        depth = frame.depth.new_empty((frame.depth.shape[0], 1, *size))
        sigma = torch.empty_like(depth) if self.gives_sigma else None
        with torch.no_grad():
            for part in tiles(size, self._tile(frame)):
                outer = part.grown(self.net.radius, size, self.net.stride)
                found = self._run(inputs.window(outer, frame.guide, self.net.settings.colours))
                inner = part.inside(outer)
                part.cut(depth)[:] = inputs.scaling.restore(inner.cut(found[:, :1]))
                if sigma is not None:
                    part.cut(sigma)[:] = inner.cut(found[:, 1:]) * inputs.scaling.spread
        everywhere = torch.ones_like(depth, dtype=torch.bool)
        return Prediction(depth, everywhere, measured_mask(frame), sigma)

    @property
    def gives_sigma(self) -> bool:
        """Whether predictions say how far they may be off."""
        return self.net.is_for_any_scale

    def _run(self, maps: tuple[Tensor, ...]) -> Tensor:
        """Depth and, where the network gives it, sigma of a window, (B, 1 or 2, rows, columns)."""
        maps = tuple(image.float() for image in maps)
        infer = self._inference if self.memory_gib is None else self._inference.run  # recordings hold memory
        if not self.ensemble:
            return infer(maps)
        rows, columns = maps[0].shape[2:]
        edge = (0, -columns % self.net.stride, 0, -rows % self.net.stride)  # as the network does it
        *images, ratio = maps
        padded = [pad(image, edge, mode="replicate") for image in images]
        total = torch.zeros(())
        for turns, flip in itertools.product(range(4), (False, True)):
            turned = [_turned(image, turns, flip) for image in padded]
            found = _turned_back(infer((*turned, ratio)), turns, flip)
            total = total.to(found) + found / 8.0
        return total[:, :, :rows, :columns]

    def _tile(self, frame: Frame) -> int:
        size = frame.high_size
        tile = max(size) if self.tile is None else self.tile
        if self.memory_gib is None:
            return tile
        settings, batch = self.net.settings, frame.depth.shape[0]
        pairs = len(half_window(settings.window)) if settings.iterations else 0
        per_pixel = batch * (MAPS_HELD * settings.maps + PAIRWISE_HELD * pairs)
        held = memory_in_use(frame.depth.device) + batch * BYTES_OF_RESULT * size[0] * size[1]
        return min(tile, tile_for_memory(self.memory_gib * 2**30 - held, per_pixel, self.net.radius))


def _turned(image: Tensor, turns: int, flip: bool) -> Tensor:
    turned = image.rot90(turns, (2, 3))
    return (turned.flip(3) if flip else turned).contiguous()


def _turned_back(image: Tensor, turns: int, flip: bool) -> Tensor:
    return (image.flip(3) if flip else image).rot90(-turns, (2, 3))


class NetworkOptions(Settings):
    """How a network is run: in tiles or whole, in which precision, once or turned eight ways.

    `iterations` of the solver other than those it was trained with get coefficients between the learned.
    """

    tile: Annotated[int, Field(ge=16)] | None = None
    memory_gib: Annotated[float, Field(gt=0)] | None = None
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    ensemble: bool = False
    iterations: Annotated[int, Field(ge=1, le=1000)] | None = None


_PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True, slots=True)
class ShippedNetwork:
    """A network by name; the frame's scale picks the weights."""

    name: str
    options: NetworkOptions

    @property
    def gives_sigma(self) -> bool:
        """Whether predictions say how far they may be off."""
        return SHIPPED[self.name].gives_sigma

    def __call__(self, frame: Frame) -> Prediction:
        """Run the network trained for the nearest scale."""
        return with_samples(self._predict, frame)

    def _predict(self, frame: Frame, samples: Frame) -> Prediction:
        ratio = math.sqrt(math.prod(frame.high_size) / math.prod(samples.low_size))
        known = SHIPPED[self.name].present
        scale = min(known, key=lambda scale: 0.0 if scale is None else abs(math.log(scale / ratio)))
        network = _loaded(self.name, scale, known[scale], self.options, frame.depth.device)
        return network.predict(frame, samples)


@functools.lru_cache(maxsize=len(SCALES))
def _loaded(
    name: str, scale: int | None, _path: Path, options: NetworkOptions, device: torch.device
) -> Network:
    """Weights of a file are read, and fitted to the options, once and not for every frame."""
    return _with_options(name, load(name, scale, device), options)


def network_method(name: str, options: Mapping[str, Any]) -> Network | ShippedNetwork:
    """The method of a shipped name, or of the path of a .safetensors file."""
    chosen = NetworkOptions.parse(options, f"method '{name}'")
    if name not in SHIPPED:
        return _with_options(name, from_pretrained(name), chosen)
    if not SHIPPED[name].present:
        load(name, next(iter(SHIPPED[name].files)))  # says that there are no weights yet
    if chosen.iterations is not None and not SHIPPED[name].has_solver:
        raise InputError(f"method '{name}': iterations: the network has no primal-dual part")
    return ShippedNetwork(name, chosen)


def _with_options(name: str, net: DepthNet, options: NetworkOptions) -> Network:
    if options.iterations is not None:
        try:
            net = net.with_iterations(options.iterations)
        except ValueError as error:
            raise InputError(f"method '{name}': iterations: {error}") from error
    precision = _PRECISIONS[options.precision]
    net = net.stored_as(precision)
    return Network(name, net, options.tile, options.memory_gib, precision, options.ensemble)
