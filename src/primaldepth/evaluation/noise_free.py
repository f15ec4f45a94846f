"""The protocol noise-free: complete depth maps of public sets, reduced without noise.

The public files are arrays, `SET/rgb/N.npy` and `SET/gt/N.npy`; Lu and a part of NYU may also be PNG files.
Each frame is read in the first form of which a file exists. A frame without any file is left out. Depth is in
8-bit levels or in centimetres, so every set is a part of the protocol with a unit of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame
from primaldepth.evaluation.middlebury import guide_tensor
from primaldepth.evaluation.protocol import Case, NamedFrames, Protocol
from primaldepth.evaluation.scoring import Scoring
from primaldepth.io import Unit, read_depth
from primaldepth.sensors.noise import AUTO_FLOOR, local_mean


@dataclass(frozen=True, slots=True)
class FrameFiles:
    """Names of a frame's two files, with {} for its number, and the unit of the depth in them."""

    image: str
    truth: str
    unit: Unit

    def paths(self, scene: str) -> tuple[str, str]:
        """Return the paths of image and truth, relative to the protocol's folder."""
        name, _, number = scene.partition("/")
        return f"{name}/{self.image.format(number)}", f"{name}/{self.truth.format(number)}"

    def is_in(self, root: Path, scene: str) -> bool:
        """Return whether one of the frame's two files is in the protocol's folder."""
        return any((root / path).is_file() for path in self.paths(scene))


@dataclass(frozen=True, slots=True)
class FrameSet:
    """A public set of frames: Middlebury, Lu or NYU.

    Args:
        crop: sides are cut to multiples of it; None for multiples of the scale.
        per_unit: the protocol's unit of depth in that of the files as they are read: 100 for cm from metres.
        scoring: unit and thresholds.
        forms: how a frame may be stored, the best first.
    """

    crop: int | None
    per_unit: float
    scoring: Scoring
    forms: tuple[FrameFiles, ...]


@dataclass(frozen=True, kw_only=True)
class NoiseFreeProtocol(NamedFrames):
    """Frames by set and number; a scene is called SET/N.

    Args:
        border: pixels at the edges of the frame that are not scored.
        frame_sets: by name; a part of the protocol has one.
        files: SHA-256 of every public file, by its path below the protocol's folder.
    """

    border: int
    frame_sets: Mapping[str, FrameSet]
    files: Mapping[str, str]

    @property
    def made_of(self) -> str:
        """The protocol's inputs, in a few words."""
        return ", ".join(f"{len(self._of_set(name))} frames of {name}" for name in self.frame_sets)

    def parts(self, data: Path | None) -> tuple[Protocol, ...]:
        """Return one protocol for each set of which a frame is in the folder, with the frames that are."""
        root = self.root(data)
        there = {name: self._present(root, name) for name in self.frame_sets}
        return tuple(
            replace(self, variant=name, scoring=own.scoring, frame_sets={name: own}, names=there[name])
            for name, own in self.frame_sets.items()
            if there[name]
        )

    def left_out(self, data: Path | None) -> list[str]:
        """Return a line for each set of which frames are missing."""
        root, lines = self.root(data), []
        for name in self.frame_sets:
            there, every = len(self._present(root, name)), len(self._of_set(name))
            if not there:
                lines.append(f"{self.name}: {name} is left out, none of its frames is in {root / name}")
            elif there < every:
                lines.append(f"{self.name}: {there} of the {every} frames of {name} are there")
        return lines

    def holds(self, folder: Path) -> bool:
        """Return whether a file of a frame is in the folder."""
        sets = [name for name in self.frame_sets if (folder / name).is_dir()]
        return any(self._present(folder, name) for name in sets)

    def inputs(self, root: Path, scene: str) -> dict[str, str]:
        """Return the frozen checksums of the frame's two files; `problems` says whether they hold."""
        return {path: self.files[path] for path in self._paths(root, scene)}

    def problems(self, root: Path, scene: str) -> list[str]:
        """Return a line for each of the frame's files that is missing or differs from the public one."""
        found = []
        for name in self._paths(root, scene):
            if name not in self.files and (root / name).is_file():
                found.append(f"{root / name}: no checksum of it is known; put the public arrays in its place")
            else:
                found += self.changed_files({root / name: self.files.get(name, "")})
        return found

    def build(self, root: Path, scene: str, scale: int) -> Case:
        """Build the case of a frame from inputs that were checked."""
        own = self.frame_sets[_set(scene)]
        image, path = (root / name for name in self._paths(root, scene))
        truth = _cropped(own.per_unit * _depth(path, self._form(root, scene).unit), own.crop or scale)
        guide = _cropped(guide_tensor(image), own.crop or scale)
        if guide.shape[2:] != truth.shape[2:]:
            ours, theirs = (f"{t.shape[3]}x{t.shape[2]}" for t in (guide, truth))
            raise InputError(image, f"{ours} pixels, but {path} has {theirs}", "restore the set's files")
        depth = reduced(truth, scale)
        valid = torch.ones_like(depth, dtype=torch.bool)
        sigma = assumed_sigma(depth, valid)
        frame = Frame(depth, valid, guide.contiguous(), sigma=sigma, sampling="average")
        return Case(scene, scale, frame, truth, inside(truth, self.border), own.scoring)

    def _of_set(self, name: str) -> tuple[str, ...]:
        return tuple(scene for scene in self.names if _set(scene) == name)

    def _present(self, root: Path, name: str) -> tuple[str, ...]:
        return tuple(scene for scene in self._of_set(name) if self._form(root, scene).is_in(root, scene))

    def _form(self, root: Path, scene: str) -> FrameFiles:
        """Return the first form of which a file is there; that of the public arrays if there is none."""
        forms = self.frame_sets[_set(scene)].forms
        return next((form for form in forms if form.is_in(root, scene)), forms[0])

    def _paths(self, root: Path, scene: str) -> tuple[str, str]:
        """Return the paths of image and truth, relative to the folder."""
        return self._form(root, scene).paths(scene)


def _set(scene: str) -> str:
    return scene.partition("/")[0]


def _depth(path: Path, unit: Unit) -> Tensor:
    """Return the values as they are stored, (1, 1, H, W); a 0 is a value here, not a hole."""
    image = read_depth(path, unit=unit)
    return torch.tensor(np.where(image.valid, image.values, 0.0), dtype=torch.float32)[None, None]


def _cropped(image: Tensor, multiple: int) -> Tensor:
    height, width = (int(side) // multiple * multiple for side in image.shape[2:])
    return image[..., :height, :width]


def reduced(truth: Tensor, scale: int) -> Tensor:
    """Return (1, 1, H, W) reduced by `scale` with Pillow's antialiased bicubic resize of 32-bit floats.

    The published numbers were made with it. It differs from `operators.sampling` at the frame's edges only,
    where it cuts the kernel off instead of mirroring the image.
    """
    height, width = truth.shape[2:]
    image = Image.fromarray(np.ascontiguousarray(truth[0, 0].numpy(), dtype=np.float32))
    small = image.resize((width // scale, height // scale), Image.Resampling.BICUBIC)
    return torch.from_numpy(np.array(small))[None, None]


def assumed_sigma(depth: Tensor, valid: Tensor) -> Tensor:
    """Return the noise that methods get: 0.05 % of the local mean depth, as the noise `auto` assumes.

    A level or centimetre at least is taken for the mean, so that no sample has a sigma of 0.
    """
    return AUTO_FLOOR * local_mean(depth, valid).clamp_min(1.0)


def inside(truth: Tensor, border: int) -> Tensor:
    """Return True, (1, 1, H, W), but at the pixels next to the frame's edges."""
    known = torch.zeros_like(truth, dtype=torch.bool)
    known[..., border : truth.shape[2] - border, border : truth.shape[3] - border] = True
    return known


def noise_free_protocol(frozen: Mapping[str, Any], common: Mapping[str, Any]) -> NoiseFreeProtocol:
    """Return the protocol of a frozen description."""
    sets = {
        key: FrameSet(
            crop=each["crop"],
            per_unit=each["per_unit"],
            scoring=Scoring.parse(each["scoring"], f"protocol '{common['name']}', set '{key}'"),
            forms=tuple(FrameFiles(**form) for form in each["forms"]),
        )
        for key, each in frozen["sets"].items()
    }
    names = tuple(
        f"{key}/{number}"
        for key, each in frozen["sets"].items()
        for number in range(each["numbers"][0], each["numbers"][1] + 1)
    )
    return NoiseFreeProtocol(
        **common, border=frozen["border"], frame_sets=sets, files=frozen["files"], names=names
    )
