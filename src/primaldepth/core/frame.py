"""Frame in, Prediction out: the two types that cross every room."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import torch
from torch import Tensor

from primaldepth.core.errors import InputError
from primaldepth.core.trust import sample_trust, trusted_samples

Sampling = Literal["average", "point"]
SAMPLINGS: tuple[Sampling, ...] = get_args(Sampling)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise InputError(message)


def _map_like(name: str, value: Tensor, shape: torch.Size, dtype: torch.dtype) -> None:
    _require(value.shape == shape, f"{name}: shape {tuple(value.shape)}, but the depth has {tuple(shape)}")
    _require(value.dtype == dtype, f"{name}: dtype {value.dtype}, expected {dtype}")


def check_sampling(sampling: str | None) -> None:
    """Raise an error unless `sampling` is "average", "point" or None.

    Args:
        sampling: how samples come from the image.

    Raises:
        InputError: it is anything else.
    """
    known = " or ".join(SAMPLINGS)
    _require(sampling is None or sampling in SAMPLINGS, f"sampling: '{sampling}' is not {known}")


def check_sizes(depth: Tensor, guide: Tensor) -> None:
    """Raise an error unless the guide (B, C, H, W) is at least as large as the depth (B, 1, h, w).

    Args:
        depth: (B, 1, h, w).
        guide: (B, C, H, W).

    Raises:
        InputError: the guide is smaller.
    """
    _require(
        guide.shape[2] >= depth.shape[2] and guide.shape[3] >= depth.shape[3],
        f"guide: {guide.shape[3]}x{guide.shape[2]} is smaller than the depth's "
        f"{depth.shape[3]}x{depth.shape[2]}; the guide sets the output size and must not be smaller",
    )


def _finite(image: Tensor) -> bool:
    """Return whether every value is finite, from the extremes: `isfinite` would copy the guide."""
    return image.numel() == 0 or bool(torch.isfinite(torch.stack(torch.aminmax(image))).all())


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One batch of low-resolution depth maps and the sharp images beside them.

    Args:
        depth: (B, 1, h, w) any unit; values where `valid` is False are never read.
        valid: (B, 1, h, w) True where the sensor measured.
        guide: (B, C, H, W) in [0, 1], C = 1 or 3; covers the same field of view.
        confidence: (B, 1, h, w) in [0, 1], or None for equal trust.
        sigma: (B, 1, h, w) standard deviation of the noise in the depth's unit, or None if unknown.
        sampling: whether a sample is the average of what its pixel covers or the depth at its centre; None
            if unknown.
        registered: whether the samples were seen from another place than the guide's. Then holes are what
            that place did not see, mostly background, and not what beside a surface was hard to measure.
        background: (B, 1, h, w) depth of what is assumed to go on in holes, behind the surface that hid it
            from a sensor beside the guide's camera; 0 where nothing is assumed. None for frames without.

    Attributes:
        found: what `measurement` has computed of this frame, by name; a changed frame begins with nothing.

    Example:
        >>> import torch
        >>> from primaldepth import Frame
        >>> depth = torch.full((1, 1, 15, 20), 1.5)
        >>> frame = Frame(depth, depth > 0, guide=torch.rand(1, 3, 60, 80))
        >>> frame.low_size, frame.high_size
        ((15, 20), (60, 80))
    """

    depth: Tensor
    valid: Tensor
    guide: Tensor
    confidence: Tensor | None = None
    sigma: Tensor | None = None
    sampling: Sampling | None = None
    registered: bool = False
    background: Tensor | None = None
    found: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_sampling(self.sampling)
        depth, guide = self.depth, self.guide
        _require(
            depth.ndim == 4 and depth.shape[1] == 1,
            f"depth: shape {tuple(depth.shape)}, expected (B, 1, h, w)",
        )
        _require(depth.is_floating_point(), f"depth: dtype {depth.dtype}, expected a floating point type")
        _map_like("valid", self.valid, depth.shape, torch.bool)
        for name in ("confidence", "sigma", "background"):
            value = getattr(self, name)
            if value is not None:
                _map_like(name, value, depth.shape, depth.dtype)
        _require(
            guide.ndim == 4 and guide.shape[1] in (1, 3) and guide.shape[0] == depth.shape[0],
            f"guide: shape {tuple(guide.shape)}, expected ({depth.shape[0]}, 1 or 3, H, W)",
        )
        _require(guide.dtype == depth.dtype, f"guide: dtype {guide.dtype}, but the depth has {depth.dtype}")
        check_sizes(depth, guide)
        self._check_values()

    def _check_values(self) -> None:
        _require(_finite(self.guide), "guide: contains NaN or infinite values")
        _require(bool(self.valid.flatten(1).any(dim=1).all()), "depth: no valid pixel in the map")
        _require(bool(torch.isfinite(self.depth[self.valid]).all()), "depth: NaN or infinite at valid pixels")
        if self.sigma is not None:
            sigma = self.sigma[self.valid]
            _require(bool(((sigma >= 0) & torch.isfinite(sigma)).all()), "sigma: negative or not finite")
        if self.confidence is not None:
            confidence = self.confidence[self.valid]
            _require(bool(((confidence >= 0) & (confidence <= 1)).all()), "confidence: outside [0, 1]")

    @property
    def low_size(self) -> tuple[int, int]:
        """(h, w) of the depth samples."""
        return int(self.depth.shape[2]), int(self.depth.shape[3])

    @property
    def high_size(self) -> tuple[int, int]:
        """(H, W) of the guide, which is the size of the result."""
        return int(self.guide.shape[2]), int(self.guide.shape[3])

    @property
    def trusted(self) -> Tensor:
        """(B, 1, h, w) True for valid samples of confidence above 0, or for all valid ones if none has."""
        return trusted_samples(self.valid, self.confidence)

    @property
    def trust(self) -> Tensor:
        """(B, 1, h, w): confidence of each sample, or 1 if none is known or all are 0; 0 in holes."""
        return sample_trust(self.valid, self.confidence, self.depth)

    def clean_depth(self) -> Tensor:
        """Return the depth with 0 written where it is not valid, so that no stray value can leak."""
        return torch.where(self.valid, self.depth, torch.zeros_like(self.depth))

    def to(self, device: torch.device | str) -> "Frame":
        """Return the same frame on another device.

        Args:
            device: where its maps are to lie.
        """
        moved: dict[str, Any] = {name: value.to(device) for name, value in self._tensors().items()}
        return replace(self, **moved)

    def images(self) -> "list[Frame]":
        """Return each image of the batch as a frame of its own."""
        if len(self.depth) == 1:
            return [self]
        parts = {name: value.chunk(len(value)) for name, value in self._tensors().items()}
        found: list[dict[str, Any]] = [
            {name: part[index] for name, part in parts.items()} for index in range(len(self.depth))
        ]
        return [replace(self, **each) for each in found]

    def _tensors(self) -> dict[str, Tensor]:
        names = ("depth", "valid", "guide", "confidence", "sigma", "background")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """A depth map on the guide's grid.

    Args:
        depth: (B, 1, H, W) in the unit of the frame.
        valid: (B, 1, H, W) True where `depth` is an estimate.
        measured: (B, 1, H, W) True where a valid sample covers the pixel; False marks a filled hole.
        sigma: (B, 1, H, W) how far the estimate may be off, about 68 % of the errors are smaller; or None.
        info: what the method reports of its run (iterations, energy, ...).

    Example:
        >>> import torch
        >>> from primaldepth import Prediction
        >>> depth = torch.tensor([[[[1.0, 2.0], [3.0, -0.1]]]])
        >>> everywhere = torch.ones_like(depth, dtype=torch.bool)
        >>> prediction = Prediction(depth, valid=everywhere, measured=everywhere)
        >>> prediction.depths_only().valid.sum()  # a negative estimate is no depth
        tensor(3)
    """

    depth: Tensor
    valid: Tensor
    measured: Tensor
    sigma: Tensor | None = None
    info: Mapping[str, Any] = field(default_factory=dict)

    def to(self, device: torch.device | str) -> "Prediction":
        """Return the same prediction on another device.

        Args:
            device: where its maps are to lie.
        """
        return self.each(lambda tensor: tensor.to(device))

    def image(self, index: int) -> "Prediction":
        """Return one image of the batch, as a batch of one.

        Args:
            index: of the image in the batch.
        """
        return self.each(lambda tensor: tensor[index : index + 1])

    def each(self, change: Callable[[Tensor], Tensor]) -> "Prediction":
        """Return the prediction with `change` applied to each of its maps.

        Args:
            change: from (B, 1, H, W) to any shape.
        """
        sigma = None if self.sigma is None else change(self.sigma)
        depth, valid, measured = change(self.depth), change(self.valid), change(self.measured)
        return replace(self, depth=depth, valid=valid, measured=measured, sigma=sigma)

    def depths_only(self) -> "Prediction":
        """Return the prediction with holes where its depth is negative, 0 or not finite."""
        return replace(self, valid=self.valid & torch.isfinite(self.depth) & (self.depth > 0))

    def measured_only(self) -> "Prediction":
        """Return the prediction with holes at all pixels that no sample covers."""
        return replace(self, valid=self.valid & self.measured)

    @classmethod
    def joined(cls, parts: "Sequence[Prediction]") -> "Prediction":
        """Return predictions joined into one batch; either all have a sigma or none, and `info` is left out.

        Args:
            parts: of frames with guides of one size.
        """
        sigmas = [part.sigma for part in parts if part.sigma is not None]
        return cls(
            torch.cat([part.depth for part in parts]),
            torch.cat([part.valid for part in parts]),
            torch.cat([part.measured for part in parts]),
            torch.cat(sigmas) if sigmas else None,
        )


@runtime_checkable
class Method(Protocol):
    """Anything that turns a frame into a prediction.

    Example:
        >>> from primaldepth import Method
        >>> from primaldepth.methods import create
        >>> isinstance(create("bicubic"), Method)
        True
    """

    @property
    def name(self) -> str:
        """The name by which users ask for the method."""
        ...

    def __call__(self, frame: Frame) -> Prediction:
        """Estimate the high-resolution depth."""
        ...
