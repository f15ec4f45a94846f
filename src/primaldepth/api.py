"""`primaldepth.upsample`: arrays, tensors or files in, a prediction out."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame, Prediction
from primaldepth.data.noise import noise_map
from primaldepth.geometry.cameras import Cameras, read_cameras
from primaldepth.geometry.conversions import z_from_radial
from primaldepth.io import DepthMap, Kind, Unit, read_confidence, read_depth, read_guide
from primaldepth.io.units import from_stored
from primaldepth.methods import create
from primaldepth.variational import Progress

PathLike = str | os.PathLike[str]
ArrayLike = NDArray[Any] | Tensor
Device = Literal["auto", "cpu", "cuda"]
DEFAULT_METHOD = "nlh-l2"


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a method needs, with what is known of the files it came from."""

    frame: Frame
    unit: Unit | None
    kind: Kind
    cameras: Cameras | None


def upsample(
    depth: ArrayLike | PathLike,
    guide: ArrayLike | PathLike,
    *,
    method: str = DEFAULT_METHOD,
    unit: Unit | None = None,
    kind: Kind = "z",
    noise: str | float | ArrayLike = "auto",
    confidence: ArrayLike | PathLike | None = None,
    cameras: Cameras | PathLike | None = None,
    device: Device = "auto",
    options: Mapping[str, Any] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Prediction:
    """Turn a small, noisy depth map and a sharp image into a depth map of the image's size.

    Arrays keep their unit: the result is in the unit of `depth`, whatever it is. Files are read
    with `unit` and give metres (or pixels of disparity). 0, NaN, infinite and negative depths are
    holes: the result fills them and says so in `Prediction.measured`.

    Args:
        depth: (h, w) or (B, 1, h, w), or a file.
        guide: (H, W), (H, W, 3) in [0, 1] or uint8, (B, C, H, W), or a file; not smaller than `depth`.
        method: a name of `primaldepth methods`.
        unit: of the file, where it does not say (mm, m, 5000, 256, disparity).
        kind: z, radial (along the ray; needs `cameras`) or disparity.
        noise: "auto", a standard deviation, a map of them, or a sensor's name such as "middlebury".
        confidence: (h, w) in [0, 1], or a file.
        cameras: or their file; needed for radial depth.
        device: "auto" takes a CUDA device where there is one.
        options: parameters of the method in place of its defaults.
        progress: called now and then while the method iterates.

    Returns:
        depth, valid and measured: (H, W) for (h, w) input, (B, 1, H, W) for batches.
    """
    inputs = load_inputs(
        depth, guide, unit=unit, kind=kind, noise=noise, confidence=confidence, cameras=cameras
    )
    prediction = create(method, options, progress=progress)(inputs.frame.to(pick_device(device)))
    batched = isinstance(depth, Tensor | np.ndarray) and depth.ndim == 4
    return prediction if batched else _single(prediction)


def load_inputs(
    depth: ArrayLike | PathLike,
    guide: ArrayLike | PathLike,
    *,
    unit: Unit | None = None,
    kind: Kind | None = None,
    noise: str | float | ArrayLike = "auto",
    confidence: ArrayLike | PathLike | None = None,
    cameras: Cameras | PathLike | None = None,
) -> Inputs:
    """Read and check everything, before any work is done."""
    known = read_cameras(cameras) if isinstance(cameras, str | os.PathLike) else cameras
    values, valid, found_unit, found_kind = _load_depth(depth, unit, kind)
    if found_kind == "radial":
        values = _radial_to_z(values, valid, known)
        found_kind = "z"
    trust = None if confidence is None else _load_confidence(confidence, values)
    from_file = found_unit if isinstance(depth, str | os.PathLike) else None
    sigma = noise_map(_noise(noise, from_file), values, valid)
    frame = Frame(values, valid, _load_guide(guide), trust, sigma)
    return Inputs(frame, found_unit, found_kind, known)


def _noise(noise: str | float | ArrayLike, unit: Unit | None) -> str | float | Tensor:
    """Numbers and maps that go with a file are in the file's unit, the frame is in metres."""
    scale = 1.0 if unit is None else float(from_stored(np.ones(()), unit))
    if isinstance(noise, Tensor | np.ndarray):
        return _map(_tensor(noise)) * scale
    try:
        return float(noise) * scale
    except ValueError:
        return noise


def pick_device(device: str) -> torch.device:
    """The device to run on; asking for one that is missing is an error."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device not in ("cpu", "cuda"):
        raise InputError(f"device: '{device}' is not one of auto, cpu, cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("device: cuda was asked for, but torch sees no CUDA device; use --device cpu")
    return torch.device(device)


def _load_depth(
    depth: ArrayLike | PathLike, unit: Unit | None, kind: Kind | None
) -> tuple[Tensor, Tensor, Unit | None, Kind]:
    if isinstance(depth, str | os.PathLike):
        image = read_depth(depth, unit=unit, kind=kind)
        return (
            _map(torch.from_numpy(image.values)),
            _map(torch.from_numpy(image.valid)),
            image.unit,
            image.kind,
        )
    values = _map(_tensor(depth))
    valid = torch.isfinite(values) & (values > 0)
    return torch.where(valid, values, 0.0), valid, unit, kind or ("disparity" if unit == "disparity" else "z")


def _radial_to_z(values: Tensor, valid: Tensor, cameras: Cameras | None) -> Tensor:
    if cameras is None:
        raise InputError("kind radial: the distance along the ray needs the camera; give it with --cameras")
    camera = cameras.guide.scaled_to(int(values.shape[3]), int(values.shape[2]))
    planes = [
        z_from_radial(image[0].double().numpy(), mask[0].numpy(), camera)
        for image, mask in zip(values, valid, strict=True)
    ]
    return torch.from_numpy(np.stack(planes))[:, None].float()


def _load_guide(guide: ArrayLike | PathLike) -> Tensor:
    if isinstance(guide, str | os.PathLike):
        guide = read_guide(guide)
    image = _tensor(guide)
    if image.dtype == torch.uint8:
        image = image.float() / 255.0
    elif image.dtype == torch.uint16:
        image = image.float() / 65535.0
    if image.ndim == 3:
        image = image.permute(2, 0, 1)[None]
    image = _map(image).contiguous()
    if (
        image.numel()
        and not (float(image.min()) >= 0.0 and float(image.max()) <= 1.0)
        and bool(image.isfinite().all())
    ):
        raise InputError(
            f"guide: values {float(image.min()):g}..{float(image.max()):g}, expected [0, 1] or uint8"
        )
    return image


def _load_confidence(confidence: ArrayLike | PathLike, depth: Tensor) -> Tensor:
    if isinstance(confidence, str | os.PathLike):
        confidence = read_confidence(confidence, (int(depth.shape[2]), int(depth.shape[3])))
    return _map(_tensor(confidence))


def _tensor(values: ArrayLike) -> Tensor:
    if isinstance(values, Tensor):
        return values.detach().cpu()
    array = np.ascontiguousarray(values)
    if array.dtype.kind not in "bfiu":
        raise InputError(f"array of {array.dtype}: expected numbers")
    return torch.from_numpy(array.copy())


def _map(values: Tensor) -> Tensor:
    """(h, w) or (B, C, h, w) -> (B, C, h, w), float32 unless bool."""
    if values.ndim not in (2, 4):
        raise InputError(f"array of shape {tuple(values.shape)}: expected (h, w) or (B, 1, h, w)")
    values = values if values.dtype == torch.bool else values.float()
    return values[None, None] if values.ndim == 2 else values


def _single(prediction: Prediction) -> Prediction:
    """(1, 1, H, W) -> (H, W)."""
    sigma = None if prediction.sigma is None else prediction.sigma[0, 0]
    return replace(
        prediction,
        depth=prediction.depth[0, 0],
        valid=prediction.valid[0, 0],
        measured=prediction.measured[0, 0],
        sigma=sigma,
    )


def as_depth_map(prediction: Prediction, inputs: Inputs, *, fill: bool = True) -> DepthMap:
    """The first image of a prediction from files, ready to be written in the unit it was read in.

    Args:
        fill: False leaves what was not measured as holes.
    """
    keep = prediction.valid if fill else prediction.valid & prediction.measured
    values = prediction.depth[0, 0].double().cpu().numpy()
    unit = inputs.unit or "m"
    return DepthMap.from_array(values, keep[0, 0].cpu().numpy(), unit=unit, kind=inputs.kind)
