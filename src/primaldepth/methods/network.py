"""Networks as methods: normalise, run whole or in tiles, restore the unit."""

import functools
import itertools
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame, Prediction
from primaldepth.core.settings import Settings
from primaldepth.methods.deep_holes import COARSER, blended, coarser, deep_share
from primaldepth.methods.holes import everywhere
from primaldepth.methods.low_noise import refined
from primaldepth.methods.network_inputs import NetworkInputs, tiles, turned_back, turned_input
from primaldepth.methods.paired import is_for_two, mean_of_two
from primaldepth.methods.sparse import with_samples
from primaldepth.networks import DepthNet, from_pretrained, load
from primaldepth.networks.inference import Inference
from primaldepth.networks.inputs import NetworkInput
from primaldepth.networks.joint import MOST_ITERATIONS
from primaldepth.networks.precision import DTYPES, Precision, name_of, usual_dtype
from primaldepth.networks.zoo import SCALES, SHIPPED
from primaldepth.operators.pairwise import half_window

MAPS_HELD, PAIRWISE_HELD = 18, 36  # bytes per pixel and map at the peak, measured, with room to spare
# Per pixel of the frame: depth 4, masks 3, stored numbers 4, the file 5. The allocator may keep what tiles
# took until after the file is written, so both have to fit together.
BYTES_OF_RESULT = 16
SAMPLES_AROUND = 10  # of a tile: beyond them no sample changes it by more than a millionth of the spread


def tile_for_memory(available: float, bytes_per_pixel: float, radius: int) -> int:
    """Return the side of the largest tile whose window, margin included, stays within `available` bytes."""
    side = int(math.sqrt(max(0.0, available) / bytes_per_pixel)) - 2 * radius
    if side < 32:
        raise InputError(
            "memory_gib",
            f"{max(0.0, available) / 2**30:.2f} GiB are left for tiles, which is too little "
            f"with a margin of {radius} px",
            "allow more",
        )
    return side


def memory_in_use(device: torch.device) -> int:
    """Return the bytes that this process holds on the device."""
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device)
    status = Path("/proc/self/statm")  # where there is none, only what tensors are known to take counts
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if status.exists() else 0


@dataclass(frozen=True, slots=True)
class Network:
    """A network as a method.

    Args:
        tile: side of the tiles in pixels, or None for the whole frame at once. Tiles overlap by the
            network's reach, so the result is that of the whole frame.
        memory_gib: make the tiles so small that the process stays within this.
        precision: of the convolutions, and on a GPU of the stored dual variables; None for what suits the
            frame's device. Arithmetic of the primal-dual part is float32.
        ensemble: mean over the eight flips and rotations of the frame.
        classical: improve complete maps with little noise by a classical solution: `low_noise`.
    """

    name: str
    net: DepthNet
    tile: int | None = None
    memory_gib: float | None = None
    precision: torch.dtype | None = torch.float32
    ensemble: bool = False
    classical: bool = True
    _inference: Inference = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make the inference, which has recorded nothing yet."""
        object.__setattr__(self, "_inference", Inference(self.net, self.precision))

    def comparable(self) -> "Network":
        """Return the same network with float32 where the machine would choose the precision."""
        return replace(self, precision=torch.float32) if self.precision is None else self

    def __call__(self, frame: Frame) -> Prediction:
        """Estimate the depth of a frame, window by window."""
        return with_samples(self.predict, frame)

    def predict(self, frame: Frame, samples: Frame, deep: bool = True) -> Prediction:
        """Predict the depth of `frame`, whose `samples` were gathered already.

        Args:
            frame: as it was given.
            samples: the same with lone samples gathered, or the frame itself.
            deep: run the network again for what lies deep inside holes.

        Returns:
            The prediction.
        """
        inputs = NetworkInputs.of(frame, samples)
        if self.net.is_for_any_scale and not frame.registered:
            inputs = inputs.with_trusted_borders(samples.valid)
        found = self._with_deep_holes(frame, samples, inputs) if deep else self._whole(frame, inputs)
        if not self._takes_classical or samples is not frame:
            return found
        return refined(found, frame, inputs.scaling)

    @property
    def _takes_classical(self) -> bool:
        """Whether a classical solution may have a share; it needs memory for the whole frame."""
        return self.classical and self.net.is_for_any_scale and self.memory_gib is None

    def _with_deep_holes(self, frame: Frame, samples: Frame, inputs: NetworkInputs) -> Prediction:
        """Run the network, and again on coarser samples for what lies deep inside holes.

        On coarser samples the borders of holes are left as the networks know them from training: there they
        have to fill, and what was measured is decided by the finer pass.
        """
        found = self._whole(frame, inputs)
        share = deep_share(samples.valid) if self.net.is_for_any_scale else None
        if share is None or min(samples.low_size) < 2 * COARSER:
            return found
        below = coarser(samples)
        coarse = self._with_deep_holes(below, below, NetworkInputs.of(below))
        maps = blended(_depth_and_sigma(found), _depth_and_sigma(coarse), share)
        sigma = None if found.sigma is None else maps[:, 1:]
        return replace(found, depth=maps[:, :1], sigma=sigma)

    def _whole(self, frame: Frame, inputs: NetworkInputs) -> Prediction:
        """Predict the depth of a frame window by window."""
        size = frame.high_size
        if not self.net.settings.samples:
            inputs = replace(inputs, measured=None)
        self.net.to(frame.depth.device)
        depth = frame.depth.new_empty((frame.depth.shape[0], 1, *size))
        sigma = torch.empty_like(depth) if self.gives_sigma else None
        margin = self._margin(frame)
        with torch.no_grad():
            for part in tiles(size, self._tile(frame)):
                outer = part.grown(margin, size, self.net.stride)
                found = self._run(inputs.window(outer, frame.guide, self.net.settings.colours))
                inner = part.inside(outer)
                part.cut(depth)[:] = inputs.scaling.restore(inner.cut(found[:, :1]))
                if sigma is not None:
                    part.cut(sigma)[:] = inner.cut(found[:, 1:]) * inputs.scaling.spread
        used = {"precision": name_of(self._inference.dtype_on(frame.depth.device))}
        return everywhere(depth, frame, sigma, used)

    @property
    def gives_sigma(self) -> bool:
        """Whether predictions say how far they may be off."""
        return self.net.is_for_any_scale

    def _margin(self, frame: Frame) -> int:
        """Return how many pixels around a tile the network reads for it.

        The sample term couples pixels across whole samples, with an influence that falls by a constant factor
        from one sample to the next.
        """
        if self.net.pdn is None or not self.net.settings.samples:
            return self.net.radius
        ratio = max(high / low for high, low in zip(frame.high_size, frame.low_size, strict=True))
        return self.net.fcn.radius + max(self.net.pdn.radius, math.ceil(SAMPLES_AROUND * ratio))

    def _run(self, maps: NetworkInput) -> Tensor:
        """Return depth and, where the network gives it, sigma of a window, (B, 1 or 2, rows, columns)."""
        maps = maps.each(lambda image: image.float())
        infer = self._inference if self.memory_gib is None else self._inference.run  # recordings hold memory
        if not self.ensemble:
            return infer(maps)
        rows, columns = maps.depth.shape[2:]
        edge = (-rows % self.net.stride, -columns % self.net.stride)  # as the network does it
        total = torch.zeros(())
        for turns, flip in itertools.product(range(4), (False, True)):
            found = turned_back(infer(turned_input(maps, edge, turns, flip)), turns, flip)
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
        return min(tile, tile_for_memory(self.memory_gib * 2**30 - held, per_pixel, self._margin(frame)))


def _depth_and_sigma(prediction: Prediction) -> Tensor:
    """Return both maps as channels, (B, 1 or 2, H, W), so that they are resampled together."""
    sigma = prediction.sigma
    return prediction.depth if sigma is None else torch.cat([prediction.depth, sigma], dim=1)


class NetworkOptions(Settings):
    """How a network is run: in tiles or whole, in which precision, once or turned eight ways.

    `precision` auto is bf16 for networks of every scale on a CPU that has instructions for it, else fp32.
    `iterations` of the solver other than those it was trained with get coefficients between the learned.
    `classical` takes the mean with the solution of nlh-l2 where a complete map of averages has little noise.
    `paired` takes the mean of pdn-any and pdn-any-small where samples are not averages.
    """

    tile: Annotated[int, Field(ge=16)] | None = None
    memory_gib: Annotated[float, Field(gt=0)] | None = None
    precision: Precision = "auto"
    ensemble: bool = False
    iterations: Annotated[int, Field(ge=1, le=MOST_ITERATIONS)] | None = None
    classical: bool = True
    paired: bool = True


@dataclass(frozen=True, slots=True)
class ShippedNetwork:
    """A network by name; the frame's scale picks the weights."""

    name: str
    options: NetworkOptions

    @property
    def gives_sigma(self) -> bool:
        """Whether predictions say how far they may be off."""
        return SHIPPED[self.name].gives_sigma

    def comparable(self) -> "ShippedNetwork":
        """Return the same network with float32 where the machine would choose the precision."""
        if self.options.precision != "auto":
            return self
        return replace(self, options=self.options.model_copy(update={"precision": "fp32"}))

    def __call__(self, frame: Frame) -> Prediction:
        """Run the network trained for the nearest scale."""
        return with_samples(self._predict, frame)

    def _predict(self, frame: Frame, samples: Frame) -> Prediction:
        partner = SHIPPED[self.name].partner
        if partner is None or not self._takes_partner or samples is not frame or not is_for_two(frame):
            return self._alone(self.name, frame, samples)
        first = self._alone(self.name, frame, samples, deep=False)
        return mean_of_two(first, self._alone(partner, frame, samples), deep_share(frame.valid))

    @property
    def _takes_partner(self) -> bool:
        """Whether a second network may have a share; the first result is kept in memory meanwhile."""
        return self.options.paired and self.options.memory_gib is None

    def _alone(self, name: str, frame: Frame, samples: Frame, deep: bool = True) -> Prediction:
        """Predict with one network alone."""
        ratio = math.sqrt(math.prod(frame.high_size) / math.prod(samples.low_size))
        known = SHIPPED[name].present
        scale = min(known, key=lambda scale: 0.0 if scale is None else abs(math.log(scale / ratio)))
        network = _loaded(name, scale, known[scale], self.options, frame.depth.device)
        return network.predict(frame, samples, deep)


@functools.lru_cache(maxsize=len(SCALES))
def _loaded(
    name: str, scale: int | None, _path: Path, options: NetworkOptions, device: torch.device
) -> Network:
    """Return a network with these options; it is read once and kept for the next frames."""
    return _with_options(name, load(name, scale, device), options, device)


def network_method(name: str, options: Mapping[str, Any]) -> Network | ShippedNetwork:
    """Return the method of a shipped name, or of the path of a .safetensors file.

    Args:
        name: of `SHIPPED`, or a path.
        options: fields of `NetworkOptions`.

    Raises:
        InputError: there are no such weights, or an option is unknown or wrong.
    """
    chosen = NetworkOptions.parse(options, f"method '{name}'")
    if name not in SHIPPED:
        return _with_options(name, from_pretrained(name), chosen)
    if not SHIPPED[name].present:
        load(name, next(iter(SHIPPED[name].files)))  # says that there are no weights yet
    if chosen.iterations is not None and not SHIPPED[name].has_solver:
        raise InputError(f"method '{name}'", "iterations: the network has no primal-dual part")
    return ShippedNetwork(name, chosen)


def _with_options(
    name: str, net: DepthNet, options: NetworkOptions, device: torch.device | None = None
) -> Network:
    """Fit the network to the options; frames lie on `device`, or anywhere if it is None."""
    if options.iterations is not None:
        try:
            net = net.with_iterations(options.iterations)
        except ValueError as error:
            raise InputError(f"method '{name}'", f"iterations: {error}") from error
    precision = DTYPES.get(options.precision)
    if precision is None and device is not None:
        precision = usual_dtype(net, device)
    net = net.stored_as(precision or torch.float32)
    return Network(
        name, net, options.tile, options.memory_gib, precision, options.ensemble, options.classical
    )
