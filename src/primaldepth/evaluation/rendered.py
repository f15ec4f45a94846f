"""Protocols on scenes that this package renders: rendered once, kept in a folder, checked before use.

Renderers round differently from machine to machine, and a ray along a silhouette may meet another
object, so a checksum of the arrays cannot be frozen. What is frozen are means over 8 x 8 blocks of every
array that counts. They move by less than a thousandth when a few pixels flip, and by more when an object, a
texture or a camera is another one. The files themselves are compared with the checksums that were
written with them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import Self

from primaldepth.core.errors import InputError, PrimalDepthError
from primaldepth.core.frame import Frame
from primaldepth.core.seeds import generator
from primaldepth.data.manifest import Manifest, ShardEntry
from primaldepth.data.shards import Shards
from primaldepth.evaluation.cache import cache_folder
from primaldepth.evaluation.protocol import Case, Protocol, Watcher, file_sha256
from primaldepth.evaluation.tof_view import cell_frame, seen_by
from primaldepth.operators.sampling import resample
from primaldepth.sensors import TimeOfFlight, sensor

Arrays = Mapping[str, NDArray[Any]]
BLOCKS = 8
DEPTH_TOLERANCE = 2e-3  # of the mean inverse depth of a block
IMAGE_TOLERANCE = 1.0  # of 255 grey levels
_MM = 1000.0


@dataclass(frozen=True, kw_only=True)
class RenderedScenes(Protocol):
    """Base of protocols on rendered scenes, by seed; a subclass says how a case is built.

    Args:
        preset: of the scene factory.
        size: side of the images; the preset `tof` has its own.
        samples: rays per pixel of the image.
        seed: of the job; no other job should use it.
        count: scenes of the job; not all of them need be used.
        frozen_scenes: per scene its number in the job, its means of blocks, and what its case needs.
    """

    preset: str
    size: int
    samples: int
    seed: int
    count: int
    frozen_scenes: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, frozen: Mapping[str, Any], common: Mapping[str, Any]) -> Self:
        """Return the protocol of a frozen description."""
        job = {key: frozen[key] for key in ("preset", "size", "samples", "seed", "count")}
        return cls(**common, **job, frozen_scenes=frozen["scenes"])

    @property
    def scenes(self) -> tuple[str, ...]:
        """Names of the scenes, in the order of the table."""
        return tuple(self.frozen_scenes)

    @property
    def made_of(self) -> str:
        """The protocol's inputs, in a few words."""
        return f"{len(self.scenes)} scenes, preset {self.preset}, seed {self.seed}, rendered on first use"

    def holds(self, folder: Path) -> bool:
        """Return whether the folder has all scenes of this job."""
        try:
            manifest = Manifest.read(folder)
        except InputError:
            return False
        wanted = {name: getattr(self, name) for name in ("preset", "size", "samples", "seed")}
        wanted["textures"] = "built-in"
        same = all(manifest.made_with.get(name) == value for name, value in wanted.items())
        stored = [number for entry in manifest.shards for number in range(entry.first, entry.stop)]
        return same and stored[: self.count] == list(range(self.count))

    def root(self, data: Path | None, watch: Watcher | None = None) -> Path:
        """Return the folder of the scenes: below `data`, or in the cache, where missing ones are rendered."""
        found = self.find(data) or self.find(cache_folder())
        return found or self._rendered(cache_folder() / self.folder, watch or (lambda *_: None))

    def _rendered(self, folder: Path, watch: Watcher) -> Path:
        from primaldepth.scenes.job import RenderProgress, render_job
        from primaldepth.scenes.scene_source import RenderSettings

        settings = RenderSettings(
            preset=self.preset, size=self.size, samples=self.samples, seed=self.seed
        ).resolved()
        if settings.variant == "scalar":
            raise PrimalDepthError(
                self.name,
                "the variant 'scalar' renders other images than the frozen ones",
                "install LLVM or use a GPU ('primaldepth doctor' says what is there)",
            )

        def on_progress(progress: RenderProgress) -> None:
            watch(f"rendering {self.name}", progress.done, progress.count)

        progress = render_job(folder, settings, self.count, on_progress=on_progress)
        for number, text in progress.failures.items():
            raise PrimalDepthError(self.name, f"scene {number} could not be rendered: {text}")
        return folder

    def inputs(self, root: Path, scene: str) -> dict[str, str]:
        """Return the shard that the scene lies in."""
        entry = self._entry(root, scene)
        return {entry.file: entry.sha256}

    def problems(self, root: Path, scene: str) -> list[str]:
        """Return how the shard differs from its checksum, or the scene from its frozen means."""
        entry = self._entry(root, scene)
        path = root / entry.file
        if not path.is_file():
            return [f"{path}: missing"]
        if file_sha256(path) != entry.sha256:
            return [f"{path}: differs from its checksum; remove {root} and it is rendered again"]
        found = differences(block_means(self.arrays(root, scene)), self.frozen_scenes[scene])
        if not found:
            return []
        return [f"{path}: scene {scene} is not the one {self.name} v{self.version} was frozen with ({found})"]

    def arrays(self, root: Path, scene: str) -> Arrays:
        """Return what was rendered of the scene."""
        return Shards(root)[self.frozen_scenes[scene]["number"]]

    def _entry(self, root: Path, scene: str) -> ShardEntry:
        number = self.frozen_scenes[scene]["number"]
        return next(each for each in Manifest.read(root).shards if each.first <= number < each.stop)


class RenderedDisparities(RenderedScenes):
    """Disparities d = gain / z + offset, degraded like the noisy Middlebury benchmark."""

    def build(self, root: Path, scene: str, scale: int) -> Case:
        """Build the case of a scene from inputs that were checked."""
        frozen, arrays = self.frozen_scenes[scene], self.arrays(root, scene)
        known = tensor_of(arrays["valid"])
        inverse = torch.from_numpy(inverse_depth(arrays["depth"], arrays["valid"]))[None, None]
        truth = torch.where(known, frozen["gain"] * inverse + frozen["offset"], 0.0).float()
        camera = sensor("middlebury-noisy-v1", scale=scale)
        samples = camera(truth, known, generator=generator(self.name, self.version, scene, scale))
        frame = Frame(
            samples.depth, samples.valid, image_of(arrays), sigma=samples.sigma, sampling=camera.sampling
        )
        return Case(scene, scale, frame, truth, known, self.scoring)


class SimulatedTof(RenderedScenes):
    """Samples of `tof-v1` with stored seeds, in the guide's view."""

    def build(self, root: Path, scene: str, scale: int) -> Case:
        """Build the case of a scene from inputs that were checked."""
        return self.case(self.arrays(root, scene), scene, scale)

    def case(self, arrays: Arrays, scene: str, scale: int) -> Case:
        """Build the case of rendered arrays.

        Args:
            arrays: what was rendered.
            scene: name of the scene, part of the seed of the noise.
            scale: pixels of the guide per sample, per side.
        """
        random = generator(self.name, self.version, scene)
        distance, amplitude = (tensor_of(arrays[f"tof_{name}"]) for name in ("distance", "amplitude"))
        valid = tensor_of(arrays["tof_valid"])
        samples = TimeOfFlight()(distance, valid, generator=random, amplitude=amplitude)
        K, P = camera_matrices(arrays)
        depth, sigma = ((_MM * each)[0, 0].double().numpy() for each in (samples.depth, samples.sigma))
        measured = samples.valid[0, 0].numpy()
        frame = cell_frame(depth, sigma, measured, P, K, image_of(arrays)[:, :1], scale)
        z = _MM * arrays["depth"].astype(np.float64)
        known = arrays["valid"] & seen_by(z, K, P, arrays["tof_distance"].shape)
        return Case(scene, scale, frame, tensor_of(z).float(), tensor_of(known), self.scoring)


def block_means(arrays: Arrays) -> dict[str, list[float]]:
    """Return means over BLOCKS x BLOCKS blocks, row by row, of inverse depth (0 for nothing) and grey levels.

    "depth" and "tof" are in 1/m, "image" in levels of 0 to 255.
    """
    means = {
        "depth": _means(inverse_depth(arrays["depth"], arrays["valid"])),
        "image": _means(arrays["image"].astype(np.float64).mean(axis=-1)),
    }
    if "tof_distance" in arrays:
        means["tof"] = _means(inverse_depth(arrays["tof_distance"], arrays["tof_valid"]))
    return means


def inverse_depth(depth: NDArray[Any], valid: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return 1 / z, 0 where nothing is met."""
    return np.where(valid, 1.0 / np.where(valid, depth, 1.0).astype(np.float64), 0.0)


def _means(values: NDArray[np.float64]) -> list[float]:
    blocks = resample(torch.from_numpy(values)[None, None], (BLOCKS, BLOCKS), "area")
    return [float(f"{value:.5g}") for value in blocks.flatten().tolist()]


def differences(found: Mapping[str, list[float]], frozen: Mapping[str, Any]) -> str:
    """Return in words which array differs too much, and where most; empty if none does."""
    for name, means in found.items():
        now, then = np.asarray(means), np.asarray(frozen[name])
        limit = IMAGE_TOLERANCE if name == "image" else DEPTH_TOLERANCE * np.maximum(np.abs(then), 1e-6)
        excess = np.abs(now - then) / limit
        if not excess.max() <= 1:
            worst = int(excess.argmax())
            return f"mean of {name} in block {worst} is {now[worst]:.5g}, not {then[worst]:.5g}"
    return ""


def camera_matrices(arrays: Arrays) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return K of the guide and P of the ToF camera, with the conventions of `tof_view`."""
    K, K_tof = (_matrix(arrays[name]) for name in ("guide_camera", "tof_camera"))
    tof_from_guide = np.linalg.inv(np.asarray(arrays["guide_from_tof"], np.float64))
    tof_from_guide[:3, 3] *= _MM
    return K, K_tof @ tof_from_guide[:3]


def _matrix(camera: NDArray[Any]) -> NDArray[np.float64]:
    fx, fy, cx, cy = camera.tolist()
    return np.array([[fx, 0.0, cx - 0.5], [0.0, fy, cy - 0.5], [0.0, 0.0, 1.0]])


def tensor_of(values: NDArray[Any]) -> Tensor:
    """Return a copy of (H, W) as (1, 1, H, W)."""
    return torch.from_numpy(np.array(values))[None, None]


def image_of(arrays: Arrays) -> Tensor:
    """Return the 8-bit image (H, W, 3) as (1, 3, H, W) in [0, 1]."""
    return torch.from_numpy(arrays["image"].astype(np.float32) / 255.0).permute(2, 0, 1)[None].contiguous()
