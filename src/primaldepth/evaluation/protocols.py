"""Frozen protocols: which files, which samples, which pixels count. A changed file is refused."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame
from primaldepth.core.seeds import generator
from primaldepth.data.degradations import fill_occlusions, middlebury_noisy_v1
from primaldepth.data.noise import middlebury_sigma
from primaldepth.io import read_depth, read_guide


@dataclass(frozen=True, slots=True)
class Case:
    """One scene at one scale: the input, the truth and where it is known."""

    scene: str
    scale: int
    frame: Frame
    truth: Tensor
    known: Tensor


@dataclass(frozen=True, slots=True)
class Protocol:
    """A frozen benchmark.

    Args:
        files: per scene, file name -> SHA-256.
    """

    name: str
    version: int
    folder: str
    scales: tuple[int, ...]
    unit: str
    files: dict[str, dict[str, str]]
    load_case: Callable[[Path, str, int], Case]

    @property
    def scenes(self) -> tuple[str, ...]:
        """Names of the scenes, in the order of the table."""
        return tuple(self.files)

    def root(self, data: Path) -> Path:
        """The protocol's folder below `data`, or `data` itself if it is that folder."""
        for candidate in (data / self.folder, data):
            if (candidate / self.scenes[0]).is_dir():
                return candidate
        raise InputError(
            f"{data}: no folder '{self.folder}' there; {self.name} needs it (see the docs, Protocols)"
        )

    def load(self, data: Path, scene: str, scale: int) -> Case:
        """Check the scene's files, then build the case."""
        if scale not in self.scales:
            raise InputError(f"{self.name} has the scales {', '.join(map(str, self.scales))}, not {scale}")
        folder = self.root(data) / scene
        for problem in self.problems(folder, scene):
            raise InputError(problem)
        return self.load_case(folder, scene, scale)

    def problems(self, folder: Path, scene: str) -> list[str]:
        """One line for each file of the scene that is missing or differs from the frozen one."""
        found = []
        for name, digest in self.files[scene].items():
            path = folder / name
            if not path.is_file():
                found.append(f"{path}: missing")
            elif _sha256(path, path.stat().st_mtime_ns) != digest:
                found.append(f"{path}: differs from the file {self.name} v{self.version} was frozen with")
        return found


@cache
def _sha256(path: Path, modified: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _depth(path: Path) -> tuple[Tensor, Tensor]:
    image = read_depth(path, unit="disparity")
    return torch.tensor(image.values, dtype=torch.float32)[None, None], torch.tensor(image.valid)[None, None]


def _guide(path: Path) -> Tensor:
    return torch.from_numpy(read_guide(path)).permute(2, 0, 1)[None].contiguous()


def _noisy_middlebury(folder: Path, scene: str, scale: int) -> Case:
    """The published samples, scored on the whole frame."""
    truth, known = _depth(folder / "disparity_gt.png")
    depth, valid = _depth(folder / f"disparity_x{scale}_noisy.png")
    guide = _guide(folder / "color.png")
    frame = Frame(depth, valid, guide, sigma=middlebury_sigma(depth, valid))
    return Case(scene, scale, frame, truth, known)


def _middlebury_2006(folder: Path, scene: str, scale: int) -> Case:
    """Cropped to multiples of 16, degraded with stored seeds, scored where the truth is known."""
    truth, known = _depth(folder / "disparity_gt.png")
    guide = _guide(folder / "color.png")
    height, width = (side // 16 * 16 for side in truth.shape[2:])
    truth, known, guide = (image[..., :height, :width] for image in (truth, known, guide))
    random = generator("middlebury-2006", 1, scene, scale)
    depth = middlebury_noisy_v1(fill_occlusions(truth, known), scale, random)
    valid = depth > 0
    frame = Frame(depth, valid, guide.contiguous(), sigma=middlebury_sigma(depth, valid))
    return Case(scene, scale, frame, truth, known)


_LOADERS: dict[str, Callable[[Path, str, int], Case]] = {
    "noisy-middlebury": _noisy_middlebury,
    "middlebury-2006": _middlebury_2006,
}


def protocol_names() -> tuple[str, ...]:
    """Every protocol there is."""
    return tuple(_LOADERS)


def get_protocol(name: str) -> Protocol:
    """The protocol `name`, from its frozen description."""
    if name not in _LOADERS:
        raise InputError(f"unknown protocol '{name}' (known: {', '.join(_LOADERS)})")
    text = resources.files(__package__).joinpath("frozen", f"{name}.json").read_text()
    frozen: dict[str, Any] = json.loads(text)
    return Protocol(
        name=name,
        version=frozen["version"],
        folder=frozen["folder"],
        scales=tuple(frozen["scales"]),
        unit=frozen["unit"],
        files=frozen["files"],
        load_case=_LOADERS[name],
    )
