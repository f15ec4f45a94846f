"""Read and check the inputs of one frame, before any work is done."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from primaldepth.core.errors import InputError, Worded
from primaldepth.core.frame import Frame, Sampling, check_sizes
from primaldepth.core.trust import trusted_samples
from primaldepth.geometry.alignment import Alignment, alignment
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.conversions import z_from_radial
from primaldepth.geometry.guide_view import fitted, to_guide_view
from primaldepth.geometry.poses import Pose
from primaldepth.io import Kind, Unit, read_confidence, read_depth, read_guide
from primaldepth.io.cameras import read_cameras
from primaldepth.io.rasters import is_number
from primaldepth.io.scanner_clouds import is_cloud
from primaldepth.io.units import from_stored
from primaldepth.measurement.spikes import spikes as find_spikes
from primaldepth.pipeline.cloud_input import CloudInput, cloud_input
from primaldepth.pipeline.request import ArrayLike, File, Item, PathLike, Request
from primaldepth.pipeline.user_arrays import confidence_tensor, depth_tensor, guide_tensor, tensor_like
from primaldepth.sensors.noise import METRIC_SENSORS, SAMPLINGS_OF, SENSORS, UNITLESS_SENSORS, noise_map

GIVE_CAMERAS = Worded("give --cameras (Python: cameras=)", "give 'cameras'")
MAX_DEPTH = Worded("--max-depth", "max_depth")
LARGEST = 65535  # what a 16-bit file can hold
FARTHEST = 200.0  # metres: no sensor that is known by name sees farther
# Float maps mark pixels without a measurement by such numbers: 1e20, 9.97e36, or the largest of their type.
# One of them would spoil the normalisation of a frame and the estimate of its noise.
NO_DATA = 1e15


@dataclass(frozen=True, slots=True)
class Inputs:
    """A frame, with what is known of the files it came from, and what was assumed.

    Args:
        note: what was done to register the samples of a depth camera of its own.
        spikes: how many samples count as holes because they stand out from all around them.
        metres: length of the frame's unit of depth; None for arrays whose unit nobody gave.
        noise_source: auto, a number or a sensor's name as asked for, or "map".
        number: numbers that a user gives with the depth, times this, are in the frame's unit.
        pose: where the guide's camera stood, or None if unknown.
        alignment: how well the edges of depth and image fit; None where that was not looked at.
    """

    frame: Frame
    unit: Unit | None
    kind: Kind
    cameras: Cameras | None
    note: str | None = None
    spikes: int = 0
    metres: float | None = 1.0
    noise_source: str = "auto"
    number: float = 1.0
    pose: Pose | None = None
    alignment: Alignment | None = None

    @property
    def median_depth(self) -> float:
        """Median of the valid samples, in the frame's unit; NaN where there is none."""
        samples = self.frame.depth[self.frame.valid]
        return float(samples.median()) if len(samples) else math.nan


def load(item: Item, request: Request, *, compare_views: bool = True) -> Inputs:
    """Read and check everything that a method needs of one frame.

    Args:
        item: the inputs.
        request: the options.
        compare_views: whether to look if depth and image show the same view; for a camera once is enough.

    Raises:
        InputError: if an input cannot be used, or does not fit the others or the request.
    """
    item = item if item.shot is None else item.opened(item.shot, request.unit)
    # the channels of a file's image lie apart, so that `guide_tensor` does not copy them
    image = guide_tensor(
        torch.from_numpy(read_guide(item.guide)) if isinstance(item.guide, File) else item.guide
    )
    size = int(image.shape[2]), int(image.shape[3])
    cloud = _cloud(item, request, image)
    item = item if cloud is None else cloud.item
    given = _samples(item, request) if cloud is None else _cloud_samples(cloud, request)
    cameras = known_cameras(item.cameras, size, given.size)
    registered = cameras is not None and cameras.depth is not None
    if cameras is not None and cameras.depth is None and cameras.moved:
        raise InputError("cameras", "'depth_to_guide' without 'depth' is for point clouds", "give both")
    if not registered:
        check_sizes(given.depth, image)  # before any work on a map that cannot be used
    if cameras is not None:
        fitted(cameras.guide, size[1], size[0], "guide's camera", "guide")
    if given.unit_length is None:
        _check_metres(given, registered)
    kept = given.without_spikes() if request.spikes == "drop" else given
    seen, note = kept.in_guide_view(cameras, size)
    beside = registered or cloud is not None  # the samples were seen from another place
    sampling = request.sampling or ("point" if beside else given.sampling)
    background = None if cloud is None else cloud.background
    frame = Frame(
        seen.depth, seen.valid, image, seen.trust, seen.sigma(seen.valid), sampling, beside, background
    )
    spikes = int((given.valid & ~kept.valid).sum())
    source = str(request.noise) if item.noise is None else "map"
    camera = None if cameras is None else cameras.guide
    views = alignment(frame.depth, frame.valid, image, seen.kind, camera) if compare_views else None
    return Inputs(
        frame,
        given.unit,
        seen.kind,
        cameras,
        note if cloud is None else cloud.note,
        spikes,
        given.unit_length,
        source,
        given.number,
        item.pose,
        views,
    )


def _cloud(item: Item, request: Request, image: Tensor) -> CloudInput | None:
    """Return the point cloud of an item in the guide's view, or None for other items."""
    if not isinstance(item.depth, File) or not is_cloud(Path(item.depth)):
        return None
    size = int(image.shape[2]), int(image.shape[3])
    cameras = known_cameras(item.cameras, size, size)
    if cameras is None:
        raise InputError(item.depth, "a point cloud needs the guide's camera", GIVE_CAMERAS)
    return cloud_input(item, request, image, cameras)


@dataclass(frozen=True, slots=True, eq=False)
class _LoadedSamples:
    """What was measured, and what is known of it: maps of (B, 1, h, w).

    Args:
        trust: confidence, or None.
        noise: a sensor's name, a number, or a map.
        unit: as the file or the user says.
        unit_length: metres of the depth's unit, or None if it is not known.
        number: factor from the file's unit to that of the depth, such as for a noise; 1 for arrays.
    """

    depth: Tensor
    valid: Tensor
    trust: Tensor | None
    noise: str | float | Tensor
    kind: Kind
    unit: Unit | None
    unit_length: float | None
    number: float = 1.0

    @property
    def size(self) -> tuple[int, int]:
        """(h, w) of the samples."""
        return int(self.depth.shape[2]), int(self.depth.shape[3])

    @property
    def metres(self) -> float:
        """Length of the depth's unit; numbers without a unit are taken for metres."""
        return self.unit_length or 1.0

    @property
    def sampling(self) -> Sampling | None:
        """Sampling of the sensor that `noise` names; None if it names none."""
        return SAMPLINGS_OF.get(self.noise) if isinstance(self.noise, str) else None

    def sigma(self, valid: Tensor) -> Tensor:
        """Return the noise of each sample in the unit of the depth."""
        if isinstance(self.noise, str) and self.noise in METRIC_SENSORS:
            return noise_map(self.noise, self.depth * self.metres, valid) / self.metres
        return noise_map(self.noise, self.depth, valid)

    def nearer(self, most: float) -> "_LoadedSamples":
        """Return the same with holes where samples are farther than `most` metres."""
        if self.kind == "disparity":
            raise InputError(MAX_DEPTH, "the depth holds disparities, which are no metres", "leave it out")
        near = self.valid & (self.depth * self.metres <= most)
        if not bool(near.flatten(1).any(dim=1).all()):
            distance = torch.where(self.valid, self.depth * self.metres, math.inf)
            nearest = float(distance.flatten(1).amin(dim=1).max())
            found = f"no sample is nearer than {most:g} m, the nearest is {{}} m away"
            raise InputError(MAX_DEPTH, found, "give more metres, or check the unit", (f"{nearest:.4g}",))
        return replace(self, valid=near)

    def without_spikes(self) -> "_LoadedSamples":
        """Return the same with holes where a sample stands out from the trusted ones around it."""
        trusted = trusted_samples(self.valid, self.trust)
        return replace(self, valid=self.valid & ~find_spikes(self.depth, trusted, self.sigma))

    def in_guide_view(
        self, cameras: Cameras | None, size: tuple[int, int]
    ) -> "tuple[_LoadedSamples, str | None]":
        """Return the samples as z in the guide's view, and a note on how they were registered there."""
        if cameras is not None and cameras.depth is not None:
            maps = tuple(each for each in (self.trust, self.noise) if isinstance(each, Tensor))
            found, note = to_guide_view(
                self.depth, self.valid, cameras, size, self.kind, maps=maps, metres=self.metres
            )
            trust = None if self.trust is None else found.maps[0]
            noise = found.maps[-1] if isinstance(self.noise, Tensor) else self.noise
            seen = replace(self, depth=found.depth, valid=found.valid, trust=trust, noise=noise, kind="z")
            return seen, note
        if self.kind == "radial":
            z = _radial_to_z(self.depth, self.valid, cameras)
            return replace(self, depth=z, valid=self.valid & torch.isfinite(z), kind="z"), None
        return self, None


def _samples(item: Item, request: Request) -> _LoadedSamples:
    """Read depth and confidence; numbers of noise that go with a file are in its unit, depth in metres."""
    unit, kind, length = request.unit or item.unit, request.kind, 1.0
    if isinstance(item.depth, File):
        image = read_depth(item.depth, unit=unit, kind=kind, invalid=request.invalid)
        unit, kind, length = image.unit, image.kind, float(from_stored(np.ones(()), image.unit))
        valid = torch.from_numpy(image.valid & (image.values < NO_DATA))[None, None]
        values = torch.from_numpy(image.values)[None, None]
    else:
        values = depth_tensor(item.depth)
        valid = torch.isfinite(values) & (values > 0) & (values < NO_DATA)
        if request.invalid is not None:
            valid &= ~is_number(values, request.invalid)
    depth = torch.where(valid, values, 0.0).float()
    trust = _trust(item.confidence, depth)
    if trust is not None and bool(((trust == 0) | ~valid).flatten(1).all(dim=1).any()):
        raise InputError(
            "confidence", "0 at every sample, so that nothing is known", "leave it out to trust all"
        )
    kind = kind or ("disparity" if unit == "disparity" else "z")
    if isinstance(item.depth, File) or request.meaning:
        _check_sensor(request.noise, kind)
    noise = _noise(item, request, depth, length)
    known = None if unit is None else float(from_stored(np.ones(()), unit))
    known = 1.0 if isinstance(item.depth, File) else known
    found = _LoadedSamples(depth, valid, trust, noise, kind, unit, known, length)
    return found if request.max_depth is None else found.nearer(request.max_depth)


def _cloud_samples(cloud: CloudInput, request: Request) -> _LoadedSamples:
    """Return the samples of a cloud in metres, as those of any file; numbers of noise are in its unit."""
    given = _samples(cloud.item, replace(request, unit="m"))
    noise = given.noise if isinstance(given.noise, str) else given.noise * cloud.unit_length
    return replace(given, noise=noise, unit=cloud.unit, number=cloud.unit_length)


def _trust(confidence: ArrayLike | PathLike | None, depth: Tensor) -> Tensor | None:
    if isinstance(confidence, File):
        confidence = read_confidence(confidence, (int(depth.shape[2]), int(depth.shape[3])))
    return None if confidence is None else confidence_tensor(confidence, depth)


def _noise(item: Item, request: Request, depth: Tensor, length: float) -> str | float | Tensor:
    if item.noise is not None:
        return tensor_like("noise", item.noise, depth) * length
    try:
        return float(request.noise) * length
    except ValueError:
        return str(request.noise)


def _check_sensor(noise: str | float, kind: str) -> None:
    """Raise if `noise` names a sensor of disparities for metric depth, or the other way round."""
    if noise in SENSORS and kind != "disparity":
        raise InputError(
            "noise", f"'{noise}' describes disparities, but the depth is metric", "use auto or a number"
        )
    if noise in METRIC_SENSORS and kind == "disparity":
        raise InputError(
            "noise", f"'{noise}' describes metres, but the depth holds disparities", "use auto or a number"
        )


def _check_metres(given: _LoadedSamples, registered: bool) -> None:
    """Raise if metres are needed, but numbers without a unit exceed the range of depth cameras."""
    noise = given.noise
    if isinstance(noise, str) and noise in METRIC_SENSORS and noise not in UNITLESS_SENSORS:
        subject, why = "noise", f"'{noise}'"
    elif registered:
        subject, why = "cameras", "a depth camera of its own"
    else:
        return
    samples = given.depth[given.valid]
    if samples.numel() and float(samples.median()) > FARTHEST:
        raise InputError(
            subject,
            f"{why} takes the depth for metres, but half of it is beyond {FARTHEST:g}",
            "say its unit, e.g. unit='mm'",
        )


def known_cameras(cameras: object, size: tuple[int, int], depth_size: tuple[int, int]) -> Cameras | None:
    """Return the user's cameras: a file is read, and a single camera is taken for the guide's.

    Args:
        cameras: as the user gave them.
        size: (height, width) of the guide, which a bare matrix in a file needs.
        depth_size: (height, width) of the depth map.

    Raises:
        InputError: if they are something else, or the file holds no cameras.
    """
    if isinstance(cameras, File):
        return read_cameras(cameras, size[::-1], depth_size[::-1])
    if isinstance(cameras, Intrinsics):
        return Cameras(cameras)
    if cameras is None or isinstance(cameras, Cameras):
        return cameras
    raise InputError(
        "cameras",
        f"found a {type(cameras).__name__}, expected Cameras, the guide's Intrinsics "
        "(Intrinsics.from_matrix for a 3x3 matrix) or a file",
    )


def _radial_to_z(values: Tensor, valid: Tensor, cameras: Cameras | None) -> Tensor:
    if cameras is None:
        raise InputError("kind radial", "the distance along the ray needs the camera", GIVE_CAMERAS)
    camera = cameras.guide.scaled_to(int(values.shape[3]), int(values.shape[2]))
    planes = [
        z_from_radial(image[0].double().numpy(), mask[0].numpy(), camera)
        for image, mask in zip(values, valid, strict=True)
    ]
    return torch.from_numpy(np.stack(planes))[:, None].float()
