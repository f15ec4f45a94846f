"""Random patches of rendered scenes, cut and varied on the device: true depth and the image beside it."""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import AfterValidator, Field, ValidationInfo, field_validator
from torch import Tensor
from torch.nn.functional import avg_pool2d, pad

from primaldepth.core.errors import InputError
from primaldepth.core.settings import NotNegative, Positive, Settings, Share
from primaldepth.data.shards import Shards

QUANTILES = (0.05, 0.5, 0.95)
GREY = 0.25  # share of images in colour that are shown without


@dataclass(frozen=True, slots=True, eq=False)
class Patches:
    """A batch of true depth and images, as a perfect sensor and the camera would see them.

    Args:
        depth: (B, 1, S, S) in the unit of the chosen kind.
        valid: (B, 1, S, S) True where something was hit.
        guide: (B, 1 or 3, S, S) intensity or colours in [0, 1].
        centre: (B, 1, 1, 1) median of the whole scene, in the depth's unit.
        spread: (B, 1, 1, 1) half the range between the scene's 5 % and 95 % quantiles.
    """

    depth: Tensor
    valid: Tensor
    guide: Tensor
    centre: Tensor
    spread: Tensor


def _ordered(ends: tuple[float, float]) -> tuple[float, float]:
    if ends[0] > ends[1]:
        raise ValueError("the first number is larger than the second")
    return ends


Range = Annotated[tuple[Positive, Positive], AfterValidator(_ordered)]


class Variation(Settings):
    """How far patches are varied in training: gamma, contrast, grain, colours, shift and more.

    Args:
        far: range from which the scene's smallest disparity is drawn, in pixels.
        near: range from which the scene's largest disparity is drawn; a sensor of metres reads neither.
        gamma: largest |log| of the exponent on intensity.
        contrast: largest relative change of contrast and of brightness.
        grain: largest standard deviation of noise added to the image.
        turn: flips and quarter turns.
        cast: largest relative change of each colour; an image in three also loses its colours at times.
        blur: largest share of the image's own blur (3x3) that replaces it.
        shift: largest number of pixels by which the image is moved against the depth, each way.
        shifted: share of the images that are moved.
        overlay: largest share of the image of another patch that shines through in half of the images.
    """

    far: Range = (20.0, 110.0)
    near: Annotated[Range, Field(validate_default=True)] = (130.0, 250.0)
    gamma: NotNegative = 0.4
    contrast: NotNegative = 0.3
    grain: NotNegative = 0.02
    turn: bool = True
    cast: Annotated[float, Field(ge=0, lt=1)] = 0.0
    blur: Share = 0.0
    shift: Annotated[int, Field(ge=0)] = 0
    shifted: Share = 1.0
    overlay: Share = 0.0

    @field_validator("near")
    @classmethod
    def _beyond_far(cls, near: tuple[float, float], info: ValidationInfo) -> tuple[float, float]:
        far = info.data.get("far", near)
        if near[0] < far[1]:
            raise ValueError(f"near disparities must not be smaller than the far ones, {far}")
        return near


class Scenes:
    """Scenes in the memory of a device.

    Inverse depth of scene i is mapped to disparities by d = far + (near - far) (1/z - low) / (high - low),
    with low and high the scene's own extremes and far and near drawn anew for every patch: one scene shows
    many depth ranges, and a plane stays a plane.

    Args:
        depth: (N, H, W) z in metres; 0, negative or not finite where nothing was hit or measured.
        image: (N, H, W, 3) uint8.
    """

    def __init__(self, depth: Tensor, image: Tensor) -> None:
        if not len(depth) or depth.shape != image.shape[:3]:
            raise InputError(
                "scenes",
                f"depth {tuple(depth.shape)} and image {tuple(image.shape)} do not fit",
                "render at least one shard",
            )
        self.depth, self.image = _zero_in_holes(depth), image
        self.statistics = torch.stack([_quantiles(scene) for scene in self.depth])

    @classmethod
    def load(
        cls, shards: Shards, device: torch.device | str = "cpu", start: int = 0, stop: int | None = None
    ) -> "Scenes":
        """Load scenes of a folder into the memory of a device."""
        shards.check("depth", "image")
        arrays = shards.load(device, ["depth", "image"], start=start, stop=stop)
        return cls(arrays["depth"], arrays["image"])

    def __len__(self) -> int:
        return len(self.depth)

    def draw(
        self,
        count: int,
        size: int,
        generator: torch.Generator,
        variation: Variation,
        kind: Literal["disparity", "z"] = "disparity",
        colours: int = 1,
    ) -> Patches:
        """Draw `count` patches of size x size; all randomness comes from the generator, on its device.

        As `kind` z, depth is in metres, multiplied by a random number between 0.7 and 1.4. The image has
        1 or 3 `colours`.
        """
        if size > min(self.depth.shape[1:]):
            raise InputError(f"patch size {size} is larger than the scenes, {tuple(self.depth.shape[1:])}")
        device = self.depth.device
        u = torch.rand((count, 11), generator=generator, device=generator.device).to(device)
        which = (u[:, 0] * len(self)).long().clamp_max(len(self) - 1)
        rows, columns = (
            _range(u[:, 1 + axis], int(self.depth.shape[1 + axis]), size, device) for axis in (0, 1)
        )
        at = (which[:, None, None], rows[:, :, None], columns[:, None, :])
        extra = torch.rand((count, 9), generator=generator, device=generator.device).to(device)
        depth, guide = self.depth[at][:, None], self._guide(which, rows, columns, extra, variation, colours)
        valid = depth > 0
        if kind == "z":
            truth, centre, spread = _metric(depth, self.statistics[which], u[:, 3])
        else:
            truth, centre, spread = _disparity(depth, valid, self.statistics[which], u[:, 3:5], variation)
        maps = [truth, valid, _developed(guide, u[:, 5:8], variation)]
        if variation.turn:
            maps = [_turned(image, u[:, 8:11] < 0.5) for image in maps]
        if variation.grain:
            level = variation.grain * torch.rand(
                (count, 1, 1, 1), generator=generator, device=generator.device
            )
            noise = torch.randn(maps[2].shape, generator=generator, device=generator.device)
            maps[2] = (maps[2] + (level * noise).to(device)).clamp(0.0, 1.0)
        return Patches(maps[0], maps[1], maps[2], centre, spread)

    def _guide(
        self, which: Tensor, rows: Tensor, columns: Tensor, u: Tensor, variation: Variation, colours: int
    ) -> Tensor:
        """Return the images of the patches, (B, colours, S, S), varied as another camera might show them."""
        if variation.shift:
            moves = ((2 * variation.shift + 1) * u[:, :2]).long() - variation.shift
            moves = torch.where(u[:, 8:9] < variation.shifted, moves, 0)
            height, width = (int(side) for side in self.image.shape[1:3])
            rows = (rows + moves[:, :1]).clamp(0, height - 1)
            columns = (columns + moves[:, 1:]).clamp(0, width - 1)
        at = (which[:, None, None], rows[:, :, None], columns[:, None, :])
        image = self.image[at].permute(0, 3, 1, 2).float() / 255.0
        grey = image.mean(1, keepdim=True)
        if colours == 1:
            image = grey
        else:
            image = image * (1.0 + variation.cast * (2.0 * u[:, 2:5, None, None] - 1.0))
            image = torch.where(u[:, 5, None, None, None] < GREY, grey, image)
        if variation.overlay:
            share = variation.overlay * (2.0 * u[:, 7, None, None, None] - 1.0).clamp_min(0.0)
            image = torch.lerp(image, image.roll(1, 0), share)
        if variation.blur:
            soft = avg_pool2d(pad(image, (1, 1, 1, 1), mode="replicate"), 3, stride=1)
            image = torch.lerp(image, soft, variation.blur * u[:, 6, None, None, None])
        return image


def _zero_in_holes(depth: Tensor) -> Tensor:
    """Return the depth with 0 in its holes, or the same tensor if they hold 0 already.

    NaN in a hole would go through: a loss that leaves the hole out has the gradient 0 times NaN there.
    """
    low, high = torch.aminmax(depth)
    if bool(torch.isfinite(high) & (low >= 0)):  # both are NaN if any number is
        return depth
    return torch.where(torch.isfinite(depth) & (depth > 0), depth, 0.0)


def _disparity(
    depth: Tensor, valid: Tensor, statistics: Tensor, u: Tensor, variation: Variation
) -> tuple[Tensor, Tensor, Tensor]:
    """Return patches as disparities, with the centre and spread that normalise their scene."""
    low, q05, q50, q95, high = (column.view(-1, 1, 1, 1) for column in statistics.T)
    far, near = (
        (a + (b - a) * u[:, k]).view(-1, 1, 1, 1) for k, (a, b) in enumerate((variation.far, variation.near))
    )
    slope = (near - far) / (high - low).clamp_min(1e-6)
    inverse = torch.where(valid, 1.0 / torch.where(valid, depth, 1.0), low)
    spread = 0.5 * slope * (q95 - q05)
    return far + slope * (inverse - low), far + slope * (q50 - low), torch.maximum(spread, 1e-2 * near)


def _metric(depth: Tensor, statistics: Tensor, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return patches as depth in metres, with the centre and spread that normalise their scene."""
    _, q05, q50, q95, _ = (column.view(-1, 1, 1, 1).clamp_min(1e-6) for column in statistics.T)
    factor = (0.7 * 2.0**u).view(-1, 1, 1, 1)
    centre = factor / q50
    return depth * factor, centre, torch.maximum(0.5 * factor * (1.0 / q05 - 1.0 / q95), 1e-2 * centre)


def _quantiles(depth: Tensor) -> Tensor:
    """Return quantiles of the inverse depth where rays hit something: least, 5 %, 50 %, 95 %, largest."""
    inverse: Tensor = 1.0 / depth[depth > 0]
    if not inverse.numel():
        return depth.new_tensor([0.0, 0.25, 0.5, 0.75, 1.0])
    few = inverse[:: 1 + inverse.numel() // 2**20]  # quantile sorts; the extremes are exact all the same
    middle = torch.quantile(few, inverse.new_tensor(QUANTILES))
    return torch.stack([inverse.amin(), *middle, inverse.amax()])


def _range(u: Tensor, length: int, size: int, device: torch.device) -> Tensor:
    start = (u * (length - size + 1)).long().clamp_max(length - size)
    return start[:, None] + torch.arange(size, device=device)


def _developed(guide: Tensor, u: Tensor, variation: Variation) -> Tensor:
    """Return the picture in another exposure: contrast (g^gamma - 1/2) + 1/2 + brightness, clipped."""
    gamma, contrast, bright = ((2.0 * column - 1.0).view(-1, 1, 1, 1) for column in u.T)
    bent = torch.pow(guide.clamp_min(1e-4), torch.exp(variation.gamma * gamma))
    changed = (bent - 0.5) * (1.0 + variation.contrast * contrast) + 0.5 + 0.5 * variation.contrast * bright
    return torch.clamp(changed, 0.0, 1.0)


def _turned(image: Tensor, choices: Tensor) -> Tensor:
    """Flip and transpose each image of a batch as its own random choice says."""
    across, down, over = (column.view(-1, 1, 1, 1) for column in choices.T)
    image = torch.where(across, image.flip(-1), image)
    image = torch.where(down, image.flip(-2), image)
    turned: Tensor = torch.where(over, image.mT, image)
    return turned
