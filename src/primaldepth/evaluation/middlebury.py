"""Protocols on images that are frozen file by file: noisy-middlebury and middlebury-2006."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from typing_extensions import Self

from primaldepth.core.frame import Frame
from primaldepth.core.seeds import generator
from primaldepth.evaluation.protocol import Case, Protocol
from primaldepth.io import read_depth, read_guide
from primaldepth.sensors.degradations import fill_occlusions, middlebury_noisy_v1
from primaldepth.sensors.noise import middlebury_sigma


@dataclass(frozen=True, kw_only=True)
class FilesProtocol(Protocol):
    """A folder of files per scene; a subclass says how a case is built from them.

    Args:
        files: per scene, file name -> SHA-256.
    """

    files: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, frozen: Mapping[str, Any], common: Mapping[str, Any]) -> Self:
        """Return the protocol of a frozen description."""
        return cls(**common, files=frozen["files"])

    @property
    def scenes(self) -> tuple[str, ...]:
        """Names of the scenes, in the order of the table."""
        return tuple(self.files)

    @property
    def made_of(self) -> str:
        """The protocol's inputs, in a few words."""
        return f"{sum(map(len, self.files.values()))} files"

    def holds(self, folder: Path) -> bool:
        """Return whether the first scene is in the folder."""
        return (folder / self.scenes[0]).is_dir()

    def inputs(self, root: Path, scene: str) -> dict[str, str]:
        """Return the frozen checksums of the scene's files, which `problems` compares."""
        return dict(self.files[scene])

    def problems(self, root: Path, scene: str) -> list[str]:
        """Return a line for each file of the scene that is missing or differs from the frozen one."""
        return self.changed_files({root / scene / name: sum_ for name, sum_ in self.files[scene].items()})


class NoisyMiddlebury(FilesProtocol):
    """The published samples of a scene; the whole frame is scored."""

    def build(self, root: Path, scene: str, scale: int) -> Case:
        """Build the case of a scene from inputs that were checked."""
        truth, known = read_disparity(root / scene / "disparity_gt.png")
        depth, valid = read_disparity(root / scene / f"disparity_x{scale}_noisy.png")
        guide = guide_tensor(root / scene / "color.png")
        frame = Frame(depth, valid, guide, sigma=middlebury_sigma(depth, valid), sampling="average")
        return Case(scene, scale, frame, truth, known, self.scoring)


class Middlebury2006(FilesProtocol):
    """Scenes that are cropped to multiples of 16 and degraded with stored seeds."""

    def build(self, root: Path, scene: str, scale: int) -> Case:
        """Build the case of a scene from inputs that were checked."""
        truth, known = read_disparity(root / scene / "disparity_gt.png")
        guide = guide_tensor(root / scene / "color.png")
        height, width = (side // 16 * 16 for side in truth.shape[2:])
        truth, known, guide = (image[..., :height, :width] for image in (truth, known, guide))
        random = generator("middlebury-2006", 1, scene, scale)
        depth = middlebury_noisy_v1(fill_occlusions(truth, known), scale, random)
        valid = depth > 0
        sigma = middlebury_sigma(depth, valid)
        frame = Frame(depth, valid, guide.contiguous(), sigma=sigma, sampling="average")
        return Case(scene, scale, frame, truth, known, self.scoring)


def read_disparity(path: Path) -> tuple[Tensor, Tensor]:
    """Return disparities and where they are known, both (1, 1, H, W)."""
    image = read_depth(path, unit="disparity")
    return torch.tensor(image.values, dtype=torch.float32)[None, None], torch.tensor(image.valid)[None, None]


def guide_tensor(path: Path) -> Tensor:
    """Return an image as (1, C, H, W) in [0, 1]."""
    return torch.from_numpy(read_guide(path)).permute(2, 0, 1)[None].contiguous()
