"""Frames of a sequence: every result is averaged with the ones before, where those still hold.

The camera's motion is found from the guides (`geometry.ego_motion`), the last estimate u with variance P is
carried along it, and the new result m with variance R is weighed against it,

    u <- u + k (m - u),    k = P / (P + R),    P <- (1 - k) P.

P grows where the carried estimate may be misplaced (by a part of a pixel, at steps of the depth), and without
bound where depth or guide say that something else is seen there now: then k = 1, and m stands as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import avg_pool2d, max_pool2d

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame, Method, Prediction
from primaldepth.core.settings import Settings
from primaldepth.data.noise import estimate_sigma
from primaldepth.geometry.ego_motion import Motion, carried, coordinates, ego_motion, in_view
from primaldepth.io import Kind
from primaldepth.operators.resampling import resample

_LEAST_NOISE = 5e-4  # of the depth: as `estimate_sigma` has it
_GUIDE_NOISE = 1.0 / 255.0, 0.05  # in the difference of two guides, at least and at most
_GUESS = 0.3  # of the depth: standard deviation of what a method fills in
_AMPLIFIES = 1.2  # at most, a method passes on the sensor's noise by this factor
_SURE = 4.0  # times the sensor's variance is the most that P + R comes to where nothing was guessed
WINDOWS = (1, 3, 7)  # samples on a side


class TemporalSettings(Settings):
    """How far the past is trusted.

    Args:
        memory: results that are averaged at most.
        surprise: standard deviations beyond which a difference is not noise.
        misplaced: pixels by which the motion may be wrong, once there is any.
        slack: pixels by which things may have moved where no motion was found.
    """

    memory: Annotated[int, Field(ge=1)] = 16
    surprise: Annotated[float, Field(gt=0)] = 2.5
    misplaced: Annotated[float, Field(ge=0)] = 0.3
    slack: Annotated[float, Field(ge=0)] = 0.04


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """What is known after a frame: all the filter needs for the next, each (1, 1, H, W).

    Args:
        depth: u.
        variance: P.
        guide: intensity of the frame's guide.
    """

    depth: Tensor
    variance: Tensor
    guide: Tensor

    def tensors(self) -> dict[str, Tensor]:
        """By name, to be stored."""
        return {"depth": self.depth, "variance": self.variance, "guide": self.guide}

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor], device: torch.device) -> "Memory":
        """What `tensors` gave."""
        return cls(*(tensors[name].to(device) for name in ("depth", "variance", "guide")))


class Temporal:
    """Any method, frame by frame, with a memory.

    Args:
        method: makes the single results.
        settings: of the filter.
    """

    def __init__(self, method: Method, settings: TemporalSettings | None = None) -> None:
        self.method, self.settings = method, settings or TemporalSettings()
        self.memory: Memory | None = None

    @property
    def name(self) -> str:
        """The method's."""
        return self.method.name

    def __call__(self, frame: Frame, kind: Kind = "z") -> Prediction:
        """The next frame of the sequence; `info["carried"]` is the share of the past in the result."""
        if frame.depth.shape[0] != 1:
            raise InputError(f"temporal filter: a batch of {frame.depth.shape[0]} frames; give one at a time")
        prediction = self.method(frame)
        with torch.no_grad():
            before = self.memory
            self.memory, share = advance(before, frame, prediction, kind, self.settings)
            sigma = prediction.sigma
            if sigma is not None and before is not None:
                sigma = sigma * _noise_left(self.memory, frame, prediction)
        info = {**prediction.info, "carried": share}
        return replace(prediction, depth=self.memory.depth.to(prediction.depth.dtype), sigma=sigma, info=info)


def _noise_left(memory: Memory, frame: Frame, prediction: Prediction) -> Tensor:
    """(1, 1, H, W): standard deviation after averaging over that of the single result, at most 1."""
    single = _sensor_variance(frame, prediction.depth) + _guess_variance(frame, prediction.depth)
    return (memory.variance / single.clamp_min(1e-30)).clamp(max=1.0).sqrt()


def advance(
    memory: Memory | None, frame: Frame, prediction: Prediction, kind: Kind, settings: TemporalSettings
) -> tuple[Memory, float]:
    """The memory after this frame, and the mean share 1 - k of the past in its depth."""
    guide, depth = frame.guide.mean(dim=1, keepdim=True), prediction.depth
    sensor = _sensor_variance(frame, depth)
    noise = sensor + _guess_variance(frame, depth)
    if memory is None or memory.depth.shape != depth.shape:
        return Memory(depth, noise, guide), 0.0
    usable = prediction.valid & torch.isfinite(depth)
    inverse = depth if kind == "disparity" else 1.0 / torch.where(usable & (depth > 0), depth, torch.inf)
    motion = ego_motion(memory.guide, guide, inverse)
    past = _carried(memory, motion, settings)
    u = past.depth if motion.still else past.depth + _drift(past, depth, noise, usable, kind)
    trust = _same_depth(depth - u, past.variance + noise, sensor, frame, settings.surprise)
    trust = torch.minimum(trust, _same_guide(past.guide, guide, motion, settings))
    trust = torch.where(in_view(motion.flow) & torch.isfinite(u), trust, 0.0)
    P = past.variance / trust.clamp_min(1e-12)
    k = torch.where(usable & (trust > 1e-6), P / (P + noise), 1.0)
    fused = torch.where(k < 1, u + k * (depth - u), depth)
    variance = torch.maximum((1.0 - k) * P, noise / settings.memory)
    return Memory(fused, torch.where(k < 1, variance, noise), guide), float((1.0 - k).mean())


def _sensor_variance(frame: Frame, depth: Tensor) -> Tensor:
    """(1, 1, H, W) square of the sensor's noise, on the guide's grid."""
    sigma = frame.sigma if frame.sigma is not None else estimate_sigma(frame.depth, frame.valid)
    sigma = torch.where(frame.valid, sigma, sigma[frame.valid].median())
    sigma = resample(sigma, frame.high_size, "bilinear")
    return torch.maximum(sigma, _LEAST_NOISE * depth.abs()).square()


def _guess_variance(frame: Frame, depth: Tensor) -> Tensor:
    """Of what was filled in, as far as no valid sample is near."""
    covered = resample(frame.valid.to(depth.dtype), frame.high_size, "bilinear")
    return (_GUESS * depth * (1.0 - covered).clamp_min(0.0)).square()


def _carried(memory: Memory, motion: Motion, settings: TemporalSettings) -> Memory:
    """The memory seen from now; variance grows by (pixels it may be off, times the steps to neighbours)^2."""
    steps = _steps(memory.depth)
    if motion.still:
        return replace(memory, variance=memory.variance + (settings.slack * steps).square())
    variance, steps = (carried(image, motion.flow, "bilinear") for image in (memory.variance, steps))
    depth, guide = (carried(image, motion.flow) for image in (memory.depth, memory.guide))
    return Memory(depth, variance + (settings.misplaced * steps).square(), guide)


def _drift(past: Memory, depth: Tensor, noise: Tensor, usable: Tensor, kind: Kind) -> Tensor:
    """How the depth of still things changes as the camera moves: z (a x + b y) + c, fitted robustly.

    Disparities change by c times their square in place of c. The loss is Geman and McClure's.
    """
    u = past.depth.double()
    x, y = coordinates(u)
    last = u.square() / u.abs().median() if kind == "disparity" else torch.ones_like(u)
    fields = torch.stack([u * x, u * y, last])
    scale = (past.variance + noise).double().sqrt().flatten()
    e = (depth.double() - u).flatten() / scale
    use = usable.flatten() & torch.isfinite(e)
    A, e = (fields.flatten(1) / scale)[:, use], e[use]
    theta = A.new_zeros(3)
    for _ in range(8 if bool(use.any()) else 0):
        r = e - theta @ A
        width = 2.0 * (1.4826 * r.abs().median()).clamp_min(0.05)
        w = 1.0 / (1.0 + (r / width).square()).square()
        H = (A * w) @ A.T
        theta = torch.linalg.solve(H + torch.diag(1e-9 * H.diagonal() + 1e-30), (A * w) @ e)
    return torch.einsum("k,kbchw->bchw", theta, fields).to(depth.dtype)


def _same_depth(difference: Tensor, S: Tensor, sensor: Tensor, frame: Frame, surprise: float) -> Tensor:
    """Trust in the past, 1 to 0, from z = mean(w (m - u)) / sqrt(mean(w)) over windows, w = 1 / S, S = P + R.

    The mean over n x n samples shows a slow approach long before a pixel does: noise alone gives it 1 / n,
    or less with a method that smooths. How much less is read off the frame, most of which is as it was.
    """
    weight, sure = 1.0 / S, _SURE * sensor > S
    trust = torch.ones_like(difference)
    for samples in WINDOWS:
        side = 2 * round(0.5 * samples * frame.high_size[1] / frame.low_size[1]) + 1 if samples > 1 else 1
        z = _mean(weight * difference, side) / _mean(weight, side).sqrt()
        spread = 1.4826 * z[sure].abs().median() if bool(sure.any()) else z.new_tensor(_AMPLIFIES)
        trust = torch.minimum(
            trust, _trust(z, surprise * float(spread.clamp(0.05 / samples, _AMPLIFIES / samples)))
        )
    return trust


def _same_guide(past: Tensor, guide: Tensor, motion: Motion, settings: TemporalSettings) -> Tensor:
    """Trust in the past from the guides' difference, of which noise and misplaced edges are allowed for."""
    difference = past - motion.gain * guide - motion.offset
    noise = (1.4826 * difference.abs().median()).clamp(*_GUIDE_NOISE)
    edges = (settings.slack if motion.still else settings.misplaced) * _steps(guide)
    return _trust(_mean(difference.abs(), 3), settings.surprise * (noise + edges))


def _steps(image: Tensor) -> Tensor:
    """Largest less smallest value of each pixel and its neighbours."""
    return max_pool2d(image, 3, 1, 1) + max_pool2d(-image, 3, 1, 1)


def _trust(value: Tensor, limit: Tensor | float) -> Tensor:
    """min(1, (limit / |value|)^4)."""
    return (limit / value.abs().clamp_min(1e-30)).clamp_max(1.0).pow(4)


def _mean(image: Tensor, side: int) -> Tensor:
    """Over windows of side x side, cut at the border."""
    rows = avg_pool2d(image, (side, 1), 1, (side // 2, 0), count_include_pad=False)
    return avg_pool2d(rows, (1, side), 1, (0, side // 2), count_include_pad=False)
