"""`primaldepth.upsample`: arrays, tensors or files in, a prediction out."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame, Prediction, Sampling, check_sampling, check_sizes
from primaldepth.data.noise import METRIC_SENSORS, SAMPLINGS_OF, SENSORS, UNITLESS_SENSORS, noise_map
from primaldepth.data.spikes import spikes as find_spikes
from primaldepth.geometry.cameras import Cameras, Intrinsics, read_cameras
from primaldepth.geometry.conversions import z_from_radial
from primaldepth.geometry.guide_view import fitted, to_guide_view
from primaldepth.io import DepthMap, Kind, Unit, read_confidence, read_depth, read_guide
from primaldepth.io.confidence import from_integers
from primaldepth.io.units import from_stored
from primaldepth.methods import create
from primaldepth.variational import Progress

PathLike = str | os.PathLike[str]
ArrayLike = NDArray[Any] | Tensor
Device = Literal["auto", "cpu", "cuda"]
Spikes = Literal["drop", "keep"]
DEFAULT_METHOD = "pdn-any"
GIVE_CAMERAS = "give --cameras (Python: cameras=)"
FARTHEST = 200.0  # metres: no sensor that is known by name sees farther


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a method needs, with what is known of the files it came from, and what was assumed.

    Args:
        spikes: how many samples count as holes because they stand out from all around them.
    """

    frame: Frame
    unit: Unit | None
    kind: Kind
    cameras: Cameras | None
    note: str | None = None
    spikes: int = 0


def upsample(
    depth: ArrayLike | PathLike,
    guide: ArrayLike | PathLike,
    *,
    method: str = DEFAULT_METHOD,
    unit: Unit | None = None,
    kind: Kind | None = None,
    noise: str | float | ArrayLike = "auto",
    confidence: ArrayLike | PathLike | None = None,
    cameras: Cameras | Intrinsics | PathLike | None = None,
    spikes: Spikes = "drop",
    sampling: Sampling | None = None,
    device: Device | torch.device = "auto",
    options: Mapping[str, Any] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Prediction:
    """Turn a small, noisy depth map and a sharp image into a depth map of the image's size.

    Arrays keep their unit: the result is in the unit of `depth`, whatever it is. Files are read
    with `unit` and give metres (or pixels of disparity). 0, NaN, infinite and negative depths are
    holes: the result fills them and says so in `Prediction.measured`.

    Args:
        depth: (h, w), (1, h, w), (h, w, 1) or (B, 1, h, w), or a file.
        guide: (H, W), (H, W, 3) or (B, C, H, W), in [0, 1], uint8 or uint16, or a file; not smaller than
            `depth`; an alpha channel is dropped.
        method: a name of `primaldepth methods`.
        unit: of a file that does not say, or of an array whose noise is a sensor's name: mm, m, disparity, or
            stored numbers per metre, e.g. "5000".
        kind: z, radial (along the ray; needs `cameras`, gives z) or disparity; None for what the unit or
            the file says, and z where they say nothing.
        noise: "auto", a standard deviation, a map of them, or a sensor's name such as "middlebury"; numbers
            are in the unit of `depth`.
        confidence: in [0, 1], of the depth's form, or a file; uint8 and uint16 are scaled as those of a file.
        cameras: or the guide's alone, or their file; needed for radial depth. With a depth camera of its own,
            the depth (in metres, or in `unit`) is registered into the guide's view first.
        spikes: "drop" takes samples for holes that stand out from all around them, alone or two together;
            "keep" does not.
        sampling: "average" if a sample is the mean of what its pixel covers, "point" if it is the depth at
            its centre; None for what the sensor named by `noise` does. Read by networks with the sample term.
        device: "auto" takes a CUDA device where there is one; a torch.device is taken too.
        options: parameters of the method in place of its defaults.
        progress: called now and then while the method iterates.

    Returns:
        depth, valid and measured: (B, 1, H, W) for (B, 1, h, w), (H, W) for everything else; on the device
        of `depth` if that is a tensor, else on the CPU.
    """
    inputs = load_inputs(
        depth,
        guide,
        unit=unit,
        kind=kind,
        noise=noise,
        confidence=confidence,
        cameras=cameras,
        spikes=spikes,
        sampling=sampling,
    )
    prediction = create(method, options, progress=progress)(inputs.frame.to(pick_device(device)))
    prediction = prediction.to(depth.device if isinstance(depth, Tensor) else "cpu").depths_only()
    batched = not isinstance(depth, str | os.PathLike) and np.ndim(depth) == 4
    return prediction if batched else prediction.each(lambda tensor: tensor[0, 0])


# Float maps mark pixels without a measurement by such numbers: 1e20, 9.97e36, or the largest of their type.
# One of them would spoil the normalisation of a frame and the estimate of its noise.
NO_DATA = 1e15


def load_inputs(
    depth: ArrayLike | PathLike,
    guide: ArrayLike | PathLike,
    *,
    unit: Unit | None = None,
    kind: Kind | None = None,
    noise: str | float | ArrayLike = "auto",
    confidence: ArrayLike | PathLike | None = None,
    cameras: Cameras | Intrinsics | PathLike | None = None,
    spikes: Spikes = "drop",
    sampling: Sampling | None = None,
) -> Inputs:
    """Read and check everything, before any work is done."""
    check_meaning(unit, kind)
    check_spikes(spikes)
    check_sampling(sampling)
    if isinstance(noise, str | int | float):
        check_noise(noise)
    values, valid, found_unit, found_kind = _load_depth(depth, unit, kind)
    trust = None if confidence is None else _load_confidence(confidence, values)
    if trust is not None and bool(((trust == 0) | ~valid).flatten(1).all(dim=1).any()):
        raise InputError("confidence: 0 at every sample, so that nothing is known; leave it out to trust all")
    from_file = found_unit if isinstance(depth, str | os.PathLike) else None
    if isinstance(noise, str) and (from_file or unit or kind):
        _check_sensor(noise, found_kind, str(depth) if from_file else "the depth")
    image = _load_guide(guide)
    size = int(image.shape[2]), int(image.shape[3])
    known = _load_cameras(cameras, size)
    if known is None or known.depth is None:
        check_sizes(values, image)  # before any work on a map that cannot be used
    if known is not None:
        fitted(known.guide, size[1], size[0], "guide's camera", "guide")
    if not (from_file or unit):
        _check_metres(noise, known, values[valid])
    metres = 1.0 if from_file or found_unit is None else float(from_stored(np.ones(()), found_unit))
    given = _Samples(values, valid, trust, _noise(noise, from_file, values), found_kind, metres)
    kept = given.without_spikes() if spikes == "drop" else given
    seen, note = kept.in_guide_view(known, size)
    registered = known is not None and known.depth is not None
    how = sampling or ("point" if registered else _sampling_of(given.noise))
    frame = Frame(seen.depth, seen.valid, image, seen.trust, seen.sigma(seen.valid), how)
    return Inputs(frame, found_unit, seen.kind, known, note, int((given.valid & ~kept.valid).sum()))


@dataclass(frozen=True, slots=True, eq=False)
class _Samples:
    """What was measured, and what is known of it: maps of (B, 1, h, w).

    Args:
        trust: confidence, or None.
        noise: a sensor's name, a number, or a map.
        metres: that one is in the unit of the depth.
    """

    depth: Tensor
    valid: Tensor
    trust: Tensor | None
    noise: str | float | Tensor
    kind: Kind
    metres: float

    def sigma(self, valid: Tensor) -> Tensor:
        """Noise in the unit of the depth, as these samples show it."""
        if isinstance(self.noise, str) and self.noise in METRIC_SENSORS:
            return noise_map(self.noise, self.depth * self.metres, valid) / self.metres
        return noise_map(self.noise, self.depth, valid)

    def without_spikes(self) -> "_Samples":
        """The same with holes where samples stand out from others that are trusted."""
        trusted = self.valid if self.trust is None else self.valid & (self.trust > 0)
        return replace(self, valid=self.valid & ~find_spikes(self.depth, trusted, self.sigma))

    def in_guide_view(self, cameras: Cameras | None, size: tuple[int, int]) -> "tuple[_Samples, str | None]":
        """As z, seen from the guide, of that size; and what was assumed to register a camera of its own."""
        if cameras is not None and cameras.depth is not None:
            maps = tuple(each for each in (self.trust, self.noise) if isinstance(each, Tensor))
            view = to_guide_view(
                self.depth, self.valid, cameras, size, self.kind, maps=maps, metres=self.metres
            )
            found = view.samples
            trust = None if self.trust is None else found.maps[0]
            noise = found.maps[-1] if isinstance(self.noise, Tensor) else self.noise
            return _Samples(found.depth, found.valid, trust, noise, "z", self.metres), view.note
        if self.kind == "radial":
            z = _radial_to_z(self.depth, self.valid, cameras)
            return replace(self, depth=z, valid=self.valid & torch.isfinite(z), kind="z"), None
        return self, None


def _check_sensor(noise: str, kind: str, depth: str) -> None:
    """Raise where a sensor of disparities is named for metric depth, or the other way round."""
    if noise in SENSORS and kind != "disparity":
        raise InputError(
            f"noise: '{noise}' describes disparities, but {depth} is metric; use auto or a number"
        )
    if noise in METRIC_SENSORS and kind == "disparity":
        raise InputError(
            f"noise: '{noise}' describes metres, but {depth} holds disparities; use auto or a number"
        )


def _check_metres(noise: Any, cameras: Cameras | None, samples: Tensor) -> None:
    """Raise where numbers without a unit have to be metres, and are more than a depth camera sees."""
    if isinstance(noise, str) and noise in METRIC_SENSORS and noise not in UNITLESS_SENSORS:
        why = f"noise: '{noise}'"
    elif cameras is not None and cameras.depth is not None:
        why = "cameras: a depth camera of its own"
    else:
        return
    if samples.numel() and float(samples.median()) > FARTHEST:
        raise InputError(
            f"{why} takes the depth for metres, but half of it is beyond {FARTHEST:g}; "
            "say its unit, e.g. unit='mm'"
        )


def _sampling_of(noise: str | float | Tensor) -> Sampling | None:
    """Return how the samples of the sensor come about that `noise` names; None where it names none."""
    return SAMPLINGS_OF.get(noise) if isinstance(noise, str) else None


def check_meaning(unit: str | None, kind: str | None) -> None:
    """Raise on an unknown unit or kind, or two that contradict each other, as reading a file would."""
    custom = "disparity" if kind == "disparity" else "m"
    DepthMap.from_array([[1.0]], unit=unit or custom, kind=cast("Kind | None", kind))


def check_spikes(spikes: str) -> None:
    """Raise unless it is known what to do with them."""
    if spikes not in ("drop", "keep"):
        raise InputError(f"spikes: '{spikes}' is not drop or keep")


def check_noise(noise: str | float) -> None:
    """Raise unless it is "auto", a sensor's name, or a number that can be a standard deviation."""
    one = torch.ones(1, 1, 1, 1)
    noise_map(noise, one, one > 0)


def _noise(noise: str | float | ArrayLike, unit: Unit | None, depth: Tensor) -> str | float | Tensor:
    """Numbers and maps that go with a file are in the file's unit, the frame is in metres."""
    scale = 1.0 if unit is None else float(from_stored(np.ones(()), unit))
    if isinstance(noise, str | int | float) or np.ndim(noise) == 0:
        try:
            return float(noise) * scale
        except (TypeError, ValueError):
            return str(noise)
    return _like("noise", noise, depth) * scale


def _like(name: str, values: ArrayLike, depth: Tensor) -> Tensor:
    """A map as large as the depth; one for a batch holds for all of its images."""
    found = _map(_tensor(name, values), name)
    if found.shape[1:] != depth.shape[1:] or found.shape[0] not in (1, depth.shape[0]):
        raise InputError(f"{name}: shape {tuple(found.shape)}, but the depth has {tuple(depth.shape)}")
    return found.expand_as(depth)


def pick_device(device: str | torch.device) -> torch.device:
    """The device to run on; asking for one that is missing is an error."""
    if isinstance(device, torch.device):
        return _current(device)
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device not in ("cpu", "cuda"):
        raise InputError(f"device: '{device}' is not one of auto, cpu, cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("device: cuda was asked for, but torch sees no CUDA device; use cpu or auto")
    return torch.device(device)


def _current(device: torch.device) -> torch.device:
    """Itself, if it is the CPU or the GPU that kernels are launched on."""
    found = pick_device(device.type)
    if found.type == "cuda" and device.index not in (None, torch.cuda.current_device()):
        raise InputError(
            f"device: {device} is not the current one; call torch.cuda.set_device({device.index}) before"
        )
    return device


def _load_depth(
    depth: ArrayLike | PathLike, unit: Unit | None, kind: Kind | None
) -> tuple[Tensor, Tensor, Unit | None, Kind]:
    if isinstance(depth, str | os.PathLike):
        image = read_depth(depth, unit=unit, kind=kind)
        valid = torch.from_numpy(image.valid & (image.values < NO_DATA))
        values = torch.where(valid, torch.from_numpy(image.values), 0.0).float()
        return values[None, None], valid[None, None], image.unit, image.kind
    values = _map(_tensor("depth", depth), "depth")
    valid = torch.isfinite(values) & (values > 0) & (values < NO_DATA)
    return torch.where(valid, values, 0.0), valid, unit, kind or ("disparity" if unit == "disparity" else "z")


def _load_cameras(cameras: object, size: tuple[int, int]) -> Cameras | None:
    """From a file, as they are, or with one that is the guide's, of (height, width) pixels."""
    if isinstance(cameras, str | os.PathLike):
        return read_cameras(cameras, size[::-1])
    if isinstance(cameras, Intrinsics):
        return Cameras(cameras)
    if cameras is None or isinstance(cameras, Cameras):
        return cameras
    raise InputError(
        f"cameras: found a {type(cameras).__name__}, expected Cameras, the guide's Intrinsics "
        "(Intrinsics.from_matrix for a 3x3 matrix) or a file"
    )


def _radial_to_z(values: Tensor, valid: Tensor, cameras: Cameras | None) -> Tensor:
    if cameras is None:
        raise InputError(f"kind radial: the distance along the ray needs the camera; {GIVE_CAMERAS}")
    camera = cameras.guide.scaled_to(int(values.shape[3]), int(values.shape[2]))
    planes = [
        z_from_radial(image[0].double().numpy(), mask[0].numpy(), camera)
        for image, mask in zip(values, valid, strict=True)
    ]
    return torch.from_numpy(np.stack(planes))[:, None].float()


def _load_guide(guide: ArrayLike | PathLike) -> Tensor:
    if isinstance(guide, str | os.PathLike):
        image = torch.from_numpy(read_guide(guide))  # its channels lie apart, so nothing below copies it
    else:
        image = _tensor("guide", guide)
    if image.dtype in (torch.uint8, torch.uint16):
        image = image.float().div_(torch.iinfo(image.dtype).max)
    if image.ndim == 3:
        if image.shape[2] not in (1, 3, 4):
            raise InputError(f"guide: shape {tuple(image.shape)}, expected (H, W), (H, W, 3) or (B, C, H, W)")
        image = image.permute(2, 0, 1)[None]
    image = _map(image, "guide")
    return _unit_range(image[:, :3] if image.shape[1] == 4 else image)


def _unit_range(image: Tensor) -> Tensor:
    """Raise where a finite guide leaves [0, 1]; Frame tells of the others."""
    low, high = (float(image.min()), float(image.max())) if image.numel() else (0.0, 0.0)
    if (low < 0.0 or high > 1.0) and bool(image.isfinite().all()):
        raise InputError(f"guide: values {low:g}..{high:g}, expected [0, 1], uint8 or uint16")
    return image.contiguous()


def _load_confidence(confidence: ArrayLike | PathLike, depth: Tensor) -> Tensor:
    if isinstance(confidence, str | os.PathLike):
        confidence = read_confidence(confidence, (int(depth.shape[2]), int(depth.shape[3])))
    values = _tensor("confidence", confidence)
    if values.dtype in (torch.uint8, torch.uint16):
        values = torch.from_numpy(from_integers(values.numpy()))
    return _like("confidence", values, depth)


def _tensor(name: str, values: ArrayLike) -> Tensor:
    """A copy on the CPU: uint8 and uint16 as they are, everything else as float32."""
    if isinstance(values, Tensor):
        return values.detach().cpu()
    if isinstance(values, np.ma.MaskedArray) and bool(np.ma.getmaskarray(values).any()):
        if name == "guide":
            raise InputError("guide: a masked array, but an image has no holes; fill it first")
        values = values.filled(0)  # a hole, or no confidence
    array = np.asarray(values)
    if array.dtype.kind not in "bfiu":
        raise InputError(f"{name}: array of {array.dtype}, expected numbers")
    native = array.dtype.newbyteorder("=")
    with np.errstate(over="ignore"):
        return torch.from_numpy(
            array.astype(native if native in (np.uint8, np.uint16) else np.float32, order="C")
        )


def _map(values: Tensor, name: str) -> Tensor:
    """(h, w), (1, h, w), (h, w, 1) or (B, C, h, w) -> (B, C, h, w), float32."""
    if values.ndim == 3 and (values.shape[0] == 1) != (values.shape[2] == 1):  # (1, n, 1): row or column?
        values = values.squeeze(0 if values.shape[0] == 1 else 2)
    if values.ndim not in (2, 4) or values.is_complex() or values.numel() == 0:
        raise InputError(
            f"{name}: {values.dtype} of shape {tuple(values.shape)}, expected (h, w), (1, h, w), (h, w, 1) "
            "or (B, 1, h, w)"
        )
    values = values.float()
    return values[None, None] if values.ndim == 2 else values


def as_depth_map(prediction: Prediction, inputs: Inputs, *, fill: bool = True) -> DepthMap:
    """The first image of a prediction from files, ready to be written in the unit it was read in.

    Args:
        fill: False leaves what was not measured as holes.
    """
    kept = prediction if fill else prediction.measured_only()
    values = prediction.depth[0, 0].double().cpu().numpy()
    unit = inputs.unit or "m"
    return DepthMap.from_array(values, kept.valid[0, 0].cpu().numpy(), unit=unit, kind=inputs.kind)
