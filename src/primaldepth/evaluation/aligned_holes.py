"""The protocol aligned-holes: sensors with holes, scored against truth that is aligned with the image.

Two sources of scenes: Middlebury 2006, whose unknown disparities are the sensor's holes, and scenes of the
project's own factory, whose holes lie in shadows and on grazing or dark surfaces.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from primaldepth.core.frame import Frame, Sampling
from primaldepth.core.seeds import generator
from primaldepth.evaluation.middlebury import FilesProtocol, guide_tensor, read_disparity
from primaldepth.evaluation.protocol import Case, Protocol
from primaldepth.evaluation.rendered import Arrays, RenderedScenes, image_of, inverse_depth, tensor_of
from primaldepth.evaluation.sampling import cropped, mean_samples, point_samples
from primaldepth.evaluation.zone_scoring import ZoneCase, ZoneScoring
from primaldepth.sensors.blind_spots import BlindSpots
from primaldepth.sensors.draws import normal
from primaldepth.sensors.noise import noise_map

LEAST = 0.5  # disparity of a sample, whatever the noise
GAMMA = 2.2  # of the images: linear brightness is their power


@dataclass(frozen=True, slots=True)
class HoleVariant:
    """How the samples of a variant are made.

    Args:
        mean: whether samples are means of blocks rather than single pixels.
        noise: standard deviation of the noise, in pixels of disparity.
    """

    mean: bool
    noise: float

    def frame(self, truth: Tensor, measured: Tensor, guide: Tensor, scale: int, *seed: str | int) -> Frame:
        """Return the samples of a scene as a frame; their noise is given or left to be estimated.

        Args:
            truth: (1, 1, H, W).
            measured: (1, 1, H, W) where the sensor measures.
            guide: (1, C, H, W).
            scale: pixels per sample, each way.
            seed: of the noise.
        """
        depth, valid = (mean_samples if self.mean else point_samples)(truth, measured, scale)
        sampling: Sampling = "average" if self.mean else "point"
        if not self.noise:
            return Frame(depth, valid, guide, sigma=noise_map("auto", depth, valid), sampling=sampling)
        noisy = (depth + self.noise * normal(depth, generator(*seed, scale))).clamp_min(LEAST)
        sigma = torch.full_like(depth, self.noise)
        return Frame(torch.where(valid, noisy, 0.0), valid, guide, sigma=sigma, sampling=sampling)


@dataclass(frozen=True, kw_only=True)
class AlignedMiddlebury(FilesProtocol):
    """Scenes of Middlebury 2006 in one variant; `parts` has all variants of both sources.

    Args:
        way: how the samples of its variant are made.
        others: the other protocols that make up aligned-holes.
    """

    scoring: ZoneScoring
    way: HoleVariant
    others: tuple[Protocol, ...] = ()

    def parts(self, data: Path | None) -> tuple[Protocol, ...]:
        """Return one protocol for each source and variant."""
        return (self, *self.others)

    def build(self, root: Path, scene: str, scale: int) -> Case:
        """Return the case; unknown disparities are holes of the sensor, and are not scored."""
        truth, known = read_disparity(root / scene / "disparity_gt.png")
        truth, known, guide = cropped(truth, known, guide_tensor(root / scene / "color.png"))
        frame = self.way.frame(truth, known, guide, scale, self.name, self.version, scene)
        return ZoneCase(
            scene, scale, frame, truth, known, scoring=self.scoring, reference=known, holes=~known
        )


@dataclass(frozen=True, kw_only=True)
class AlignedRendered(RenderedScenes):
    """Rendered scenes in one variant.

    Args:
        way: how the samples of its variant are made.
        model: which pixels the sensor cannot measure.
    """

    scoring: ZoneScoring
    way: HoleVariant
    model: BlindSpots

    def build(self, root: Path, scene: str, scale: int) -> Case:
        """Return the case, scored in the holes as well, for the truth is known there."""
        frozen, arrays = self.frozen_scenes[scene], self.arrays(root, scene)
        known, guide = tensor_of(arrays["valid"]), image_of(arrays)
        truth = tensor_of(frozen["gain"] * inverse_depth(arrays["depth"], arrays["valid"])).float()
        model = self.model.model_copy(update={"to_right": frozen["shadows_to_right"]})
        holes = blind_spots(arrays, truth, model)
        frame = self.way.frame(truth, known & ~holes, guide, scale, self.name, self.version, scene)
        return ZoneCase(scene, scale, frame, truth, known, scoring=self.scoring, reference=known, holes=holes)


def blind_spots(arrays: Arrays, disparity: Tensor, model: BlindSpots) -> Tensor:
    """Return where the model measures nothing in a rendered scene, (1, 1, H, W)."""
    light = image_of(arrays).mean(dim=1, keepdim=True) ** GAMMA
    return model(disparity, tensor_of(arrays["valid"]), cosines(arrays), light)


def cosines(arrays: Arrays) -> Tensor:
    """Return the cosine between ray and normal at each pixel, (1, 1, H, W); 0 where nothing is met."""
    fx, fy, cx, cy = arrays["guide_camera"].tolist()
    height, width = arrays["depth"].shape
    y, x = np.mgrid[:height, :width] + 0.5
    rays = np.stack([(x - cx) / fx, (y - cy) / fy, np.ones_like(x)], axis=-1)
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    found = np.abs((arrays["normals"].astype(np.float64) * rays).sum(axis=-1))
    return tensor_of(found.clip(0.0, 1.0)).float()


def aligned_holes_protocol(frozen: Mapping[str, Any], common: Mapping[str, Any]) -> AlignedMiddlebury:
    """Build the protocol from its frozen description: the first variant, which holds all the others."""
    scenes = frozen["rendered"]
    model = BlindSpots.parse(scenes["blind_spots"], f"protocol '{common['name']}', blind_spots")
    files: list[AlignedMiddlebury] = []
    rendered: list[AlignedRendered] = []
    for name, each in frozen["variants"].items():
        scoring = ZoneScoring.extending(common["scoring"], frozen["zones"])
        shared = {**common, "scoring": scoring, "way": HoleVariant(each["mean"], each["noise"])}
        files.append(AlignedMiddlebury.of(frozen, {**shared, "variant": f"middlebury {name}"}))
        place = {"variant": f"rendered {name}", "folder": scenes["folder"], "model": model}
        rendered.append(AlignedRendered.of(scenes, {**shared, **place}))
    return replace(files[0], others=(*files[1:], *rendered))
