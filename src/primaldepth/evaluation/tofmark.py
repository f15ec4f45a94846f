"""The ToFMark benchmark from its .mat files, where the user has them.

The files are not shipped, and no checksum of them could be frozen. A file SHA256SUMS beside them, where there
is one, decides which are accepted. What they hold is found by shape and name.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from primaldepth.core.errors import FileFormatError, InputError, shortened
from primaldepth.evaluation.protocol import Case, NamedFrames, file_sha256
from primaldepth.evaluation.tof_view import Map, cell_frame
from primaldepth.io.files import read_text
from primaldepth.io.formats.base import Source
from primaldepth.io.formats.mat import CODEC, MatVariable, list_variables
from primaldepth.io.rasters import read_image_file
from primaldepth.sensors.noise import tof_sigma

CHECKSUMS = "SHA256SUMS"
MILLIMETRES = (100.0, 20_000.0)  # between these a typical distance must lie
_HEAD = 520
_MM = 1000.0


class Sought(NamedTuple):
    """What a variable of a .mat file is needed for, with its shape and the names to look for, best first."""

    what: str
    shape: tuple[int, int]
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TofmarkProtocol(NamedFrames):
    """Scenes as .mat files: SCENE*.mat or SCENE/*.mat, and files beside them that all scenes share.

    Args:
        tof_size: (h, w).
        guide_size: (H, W).
    """

    tof_size: tuple[int, int]
    guide_size: tuple[int, int]

    @property
    def made_of(self) -> str:
        """The protocol's inputs, in a few words."""
        return "the benchmark's own .mat files"

    def holds(self, folder: Path) -> bool:
        """Return whether a .mat file of a scene is in the folder."""
        return any(self._own_files(folder, scene) for scene in self.names)

    def inputs(self, root: Path, scene: str) -> dict[str, str]:
        """Return the SHA-256 of every file that the scene is made of."""
        return {path.relative_to(root).as_posix(): file_sha256(path) for path in self._files(root, scene)}

    def problems(self, root: Path, scene: str) -> list[str]:
        """Return a line for each file that is missing or differs from SHA256SUMS, if that is there."""
        if not self._own_files(root, scene):
            return [f"{root}: no file {scene}*.mat and no folder {scene} with .mat files"]
        if not (root / CHECKSUMS).exists():
            return []
        sums = read_checksums(root / CHECKSUMS)
        return [
            f"{root / name}: {'differs from' if name in sums else 'is not in'} {CHECKSUMS}"
            for name, digest in self.inputs(root, scene).items()
            if sums.get(name) != digest
        ]

    def build(self, root: Path, scene: str, scale: int) -> Case:
        """Build the case of a scene from inputs that were checked."""
        found = _variables(self._files(root, scene))
        distance = _pick(found, Sought("ToF distances", self.tof_size, ("dist|depth|range", "tof")))
        image = _pick(found, Sought("intensity image", self.guide_size, ("int|im|gr[ae]y",)))
        truth = _pick(found, Sought("true depth", self.guide_size, ("gt|tru|ground", "depth")))
        P = _pick(found, Sought("projection of the ToF camera", (3, 4), ("tof",)))
        K = _pick(found, Sought("matrix of the intensity camera", (3, 3), ("^k$", "^k.*(int|im|cam)")))
        numbers = [np.asarray(each.read(), np.float64) for each in (truth, P, K)]
        return self._case(scene, scale, _distances(distance), _grey(image), *numbers)

    def _case(self, scene: str, scale: int, distance: Map, image: Map, truth: Map, P: Map, K: Map) -> Case:
        valid = np.isfinite(distance) & (distance > 0)
        metres = torch.from_numpy(np.where(valid, distance, 0.0) / _MM)[None, None]
        sigma = _MM * tof_sigma(metres, torch.from_numpy(valid)[None, None])[0, 0].numpy()
        guide = torch.from_numpy(image)[None, None].float()
        frame = cell_frame(distance, sigma, valid, P, K, guide, scale)
        known = torch.from_numpy(np.isfinite(truth) & (truth > 0))[None, None]
        true = torch.where(known, torch.from_numpy(truth)[None, None], 0.0).float()
        return Case(scene, scale, frame, true, known, self.scoring)

    def _own_files(self, root: Path, scene: str) -> list[Path]:
        folders = [path for path in _below(root) if path.is_dir() and path.name.lower() == scene]
        single = [path for path in _mat_files(root) if path.stem.lower().startswith(scene)]
        return single + [path for folder in folders for path in _mat_files(folder)]

    def _files(self, root: Path, scene: str) -> list[Path]:
        """Return the scene's files, then the shared ones, whose names begin with no scene's name."""
        shared = [path for path in _mat_files(root) if not path.stem.lower().startswith(self.names)]
        return self._own_files(root, scene) + shared


def _below(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _mat_files(folder: Path) -> list[Path]:
    return [path for path in _below(folder) if path.suffix.lower() == ".mat" and path.is_file()]


def read_checksums(path: Path) -> dict[str, str]:
    """Read SHA256SUMS, as `sha256sum *.mat` writes it: file name -> SHA-256."""
    sums = {}
    for line in read_text(path).splitlines():
        found = re.fullmatch(r"([0-9a-fA-F]{64}) [ *](.+)", line)
        if found is None:
            raise FileFormatError(path, f"cannot read {shortened(line)}", "write it with sha256sum")
        sums[found[2].removeprefix("./")] = found[1].lower()
    return sums


def _variables(files: Sequence[Path]) -> list[MatVariable]:
    found = []
    for path in files:
        source = Source(path, read_image_file(path))
        if not CODEC.recognises(source.data[:_HEAD]):
            raise source.error("not a MATLAB file; copy it again")
        found += list_variables(source)
    return found


def _pick(found: Sequence[MatVariable], role: Sought) -> MatVariable:
    """Return the variable with the role's shape; of several, the one whose name fits."""
    shaped = [each for each in found if each.numeric and each.shape[:2] == role.shape]
    if len(shaped) == 1:
        return shaped[0]
    for pattern in role.names:
        named = [each for each in shaped if re.search(pattern, each.name.lower())]
        if len(named) == 1:
            return named[0]
    every = ", ".join(f"{each.name} ({'x'.join(map(str, each.shape))})" for each in found) or "nothing"
    files = ", ".join(dict.fromkeys(str(each.source.path) for each in found))
    shape = "x".join(map(str, role.shape))
    raise InputError(
        files,
        f"the {role.what} ({shape}) cannot be told among the variables {every}",
        f"expected one of that shape, or one whose name matches '{role.names[0]}'",
    )


def _distances(variable: MatVariable) -> Map:
    distance = np.asarray(variable.read(), np.float64)
    measured = distance[np.isfinite(distance) & (distance > 0)]
    typical = float(np.median(measured)) if measured.size else 0.0
    if not MILLIMETRES[0] < typical < MILLIMETRES[1]:
        raise variable.source.error(
            f"'{variable.name}' has a median of {typical:.4g}; expected distances in millimetres"
        )
    return distance


def _grey(variable: MatVariable) -> Map:
    """Return an image in [0, 1], (H, W): integers by their range; floats as they are, beyond 1 as 8 bit."""
    pixels = variable.read()
    top = np.iinfo(pixels.dtype).max if pixels.dtype.kind == "u" else 255.0 if pixels.max() > 1 else 1.0
    grey = pixels.astype(np.float64) / float(top)
    return np.asarray(grey.mean(axis=2) if grey.ndim == 3 else grey).clip(0.0, 1.0)


def tofmark_protocol(frozen: Mapping[str, Any], common: Mapping[str, Any]) -> TofmarkProtocol:
    """Return the protocol of a frozen description."""
    tof, guide = ((int(size[0]), int(size[1])) for size in (frozen["tof_size"], frozen["guide_size"]))
    return TofmarkProtocol(**common, names=tuple(frozen["scenes"]), tof_size=tof, guide_size=guide)
