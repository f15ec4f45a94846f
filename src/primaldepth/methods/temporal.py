"""Frames of a sequence: every result is averaged with the ones before, where those still hold.

The camera's motion is found from guides and depth (`geometry.ego_motion`), the last estimate u with variance
P is carried along it, and the new result m with variance R is weighed against it,

    u <- u + k (m - u),    k = P / (P + R),    P <- (1 - k) P.

R is the variance of the samples, larger where nothing was measured and at edges, whose place a method finds
anew in every frame. P grows where the carried estimate may be misplaced, and without bound where the new
samples do not bear u out as they do m, where the guides differ, or where a nearer surface may have moved
before u: then k = 1, and m stands as it is. That u and m differ is no reason: at edges they always do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame, Method, Prediction
from primaldepth.core.settings import Count, NotNegative, Positive, Settings
from primaldepth.geometry.ego_motion import Motion, carried, coordinates, ego_motion, in_view
from primaldepth.io import Kind
from primaldepth.methods.scene_change import guide_noise, is_cut, mean_over, steps_of
from primaldepth.operators.sampling import resample
from primaldepth.sensors.noise import estimate_sigma

_LEAST_NOISE = 5e-4  # of the depth: as `estimate_sigma` has it
_GUESS = 0.3  # of the depth: standard deviation of what a method fills in
WINDOWS = (1, 3, 7)  # samples on a side over which samples are compared
WIDE = 15  # the same while the camera stands still: nothing but a slow approach shows there
_CARRIED = 1.5  # times as far samples may be off an estimate that was carried along a motion


class TemporalSettings(Settings):
    """How far the past is trusted.

    Args:
        memory: results that are averaged at most.
        surprise: standard deviations beyond which samples are not those of the past.
        edge: pixels by which a method may misplace edges of the depth.
        misplaced: pixels by which the motion may be wrong, once there is any.
        change: how many times the noise of the guides, or a slight shift, may change them.
        change_in_holes: the same where no sample can tell that something moved.
        slip: pixels by which neighbours may move apart before one is taken to hide the other.
    """

    memory: Count = 16
    surprise: Positive = 2.5
    edge: NotNegative = 0.5
    misplaced: NotNegative = 0.05
    change: Positive = 2.0
    change_in_holes: Positive = 1.2
    slip: Positive = 0.4


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
            raise InputError(
                "temporal filter", f"a batch of {frame.depth.shape[0]} frames", "give one at a time"
            )
        prediction = self.method(frame)
        with torch.no_grad():
            before = self.memory
            self.memory, share = advance(before, frame, prediction, kind, self.settings)
            sigma = prediction.sigma
            if sigma is not None and before is not None:
                sigma = sigma * _noise_left(self.memory, frame, prediction, self.settings)
        info = {**prediction.info, "carried": share}
        return replace(prediction, depth=self.memory.depth.to(prediction.depth.dtype), sigma=sigma, info=info)


def _noise_left(memory: Memory, frame: Frame, prediction: Prediction, settings: TemporalSettings) -> Tensor:
    """(1, 1, H, W): standard deviation after averaging over that of the single result, at most 1."""
    single = _variance(frame, prediction.depth, settings)
    return (memory.variance / single.clamp_min(1e-30)).clamp(max=1.0).sqrt()


def advance(
    memory: Memory | None, frame: Frame, prediction: Prediction, kind: Kind, settings: TemporalSettings
) -> tuple[Memory, float]:
    """The memory after this frame, and the mean share 1 - k of the past in its depth."""
    now = Memory(prediction.depth, _variance(frame, prediction.depth, settings), _intensity(frame))
    if memory is None or memory.depth.shape != now.depth.shape:
        return now, 0.0
    usable = prediction.valid & torch.isfinite(now.depth)
    past = _Past.of(memory, now, usable, kind, settings)
    sensor = _sensor_variance(frame, now.depth)
    limit = settings.surprise * (2.0 * sensor).sqrt() + settings.misplaced * steps_of(past.depth)
    if is_cut(past.depth, limit, frame, past.difference):
        return now, 0.0
    trust = torch.minimum(_same_guide(past, frame, settings), _not_hidden(past.motion, settings))
    trust = torch.minimum(trust, _same_samples(past, now.depth, frame, sensor, settings))
    known = usable & in_view(past.motion.flow) & torch.isfinite(past.depth)
    return _averaged(past, now, torch.where(known, trust, 0.0), settings)


def _averaged(past: "_Past", now: Memory, trust: Tensor, settings: TemporalSettings) -> tuple[Memory, float]:
    """U + k (m - u), k = P / (P + R), P / trust in place of P; and the mean of 1 - k."""
    P, R = past.variance / trust.clamp_min(1e-12), now.variance
    k = torch.where(trust > 1e-6, P / (P + R), 1.0)
    depth = torch.where(k < 1, past.depth + k * (now.depth - past.depth), now.depth)
    variance = torch.where(k < 1, torch.maximum((1.0 - k) * P, R / settings.memory), R)
    return Memory(depth, variance, now.guide), float((1.0 - k).mean())


@dataclass(frozen=True, slots=True, eq=False)
class _Past:
    """The memory seen from now, (1, 1, H, W) each.

    Args:
        depth: u.
        variance: P, grown by (pixels that u may be off, times the steps to neighbours)^2.
        difference: of the guides.
        motion: of the camera.
    """

    depth: Tensor
    variance: Tensor
    difference: Tensor
    motion: Motion

    @classmethod
    def of(
        cls, memory: Memory, now: Memory, usable: Tensor, kind: Kind, settings: TemporalSettings
    ) -> "_Past":
        """Carried along the motion, which `now` shows where it is `usable`, with depth as seen from there."""
        m = now.depth
        inverse = m if kind == "disparity" else 1.0 / torch.where(usable & (m > 0), m, torch.inf)
        motion = ego_motion(memory.guide, now.guide, inverse)
        if motion.still:
            difference = memory.guide - motion.gain * now.guide - motion.offset
            return cls(memory.depth, memory.variance, difference, motion)
        depth, before = (carried(image, motion.flow) for image in (memory.depth, memory.guide))
        variance = carried(memory.variance, motion.flow, "bilinear")
        depth = depth + _drift(depth, variance + now.variance, m, usable, kind)
        variance = variance + (settings.misplaced * steps_of(depth)).square()
        return cls(depth, variance, before - motion.gain * now.guide - motion.offset, motion)


def _intensity(frame: Frame) -> Tensor:
    """(1, 1, H, W) mean over the guide's colours."""
    return frame.guide.mean(dim=1, keepdim=True)


def _variance(frame: Frame, depth: Tensor, settings: TemporalSettings) -> Tensor:
    """(1, 1, H, W) R of a single result."""
    edges = (settings.edge * steps_of(depth)).square()
    return _sensor_variance(frame, depth) + _guess_variance(frame, depth) + edges


def _sensor_variance(frame: Frame, depth: Tensor) -> Tensor:
    """(1, 1, H, W) square of the sensor's noise, on the guide's grid."""
    sigma = frame.sigma if frame.sigma is not None else estimate_sigma(frame.depth, frame.valid)
    sigma = torch.where(frame.valid, sigma, sigma[frame.valid].median())
    sigma = resample(sigma, frame.high_size, "bilinear")
    return torch.maximum(sigma, _LEAST_NOISE * depth.abs()).square()


def _guess_variance(frame: Frame, depth: Tensor) -> Tensor:
    """Of what was filled in, as far as no valid sample is near."""
    return (_GUESS * depth * (1.0 - _covered(frame))).square()


def _covered(frame: Frame) -> Tensor:
    """(1, 1, H, W): 1 at valid samples, 0 in holes."""
    return resample(frame.valid.to(frame.depth.dtype), frame.high_size, "bilinear").clamp(0.0, 1.0)


def _drift(past: Tensor, variance: Tensor, depth: Tensor, usable: Tensor, kind: Kind) -> Tensor:
    """How the depth of still things changes as the camera moves: z (a x + b y) + c, fitted robustly.

    Disparities change by c times their square in place of c. The loss is Geman and McClure's.
    """
    u = past.double()
    x, y = coordinates(u)
    last = u.square() / u.abs().median() if kind == "disparity" else torch.ones_like(u)
    fields = torch.stack([u * x, u * y, last])
    scale = variance.double().sqrt().flatten()
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


def _same_samples(
    past: _Past, now: Tensor, frame: Frame, sensor: Tensor, settings: TemporalSettings
) -> Tensor:
    """Trust in the past, 1 to 0, where it explains the new samples as well as the new result does.

    |mean(d - A u)| over windows of n x n samples against sigma / n, |mean(d - A m)| and a part of the steps
    within a sample. A mean shows a slow approach long before a sample does. Holes show nothing.
    """
    valid = frame.valid.to(now.dtype)
    u, m, noise, steps = (
        adaptive_avg_pool2d(image, frame.low_size)
        for image in (past.depth, now, sensor.sqrt(), steps_of(past.depth))
    )
    trust, still = torch.ones_like(valid), past.motion.still
    sigmas = settings.surprise if still else _CARRIED * settings.surprise
    for n in (*WINDOWS, WIDE) if still else WINDOWS:
        share = mean_over(valid, n).clamp_min(1e-6)
        off_u, off_m = (
            mean_over(torch.where(frame.valid, frame.depth - image, 0.0), n).abs() / share for image in (u, m)
        )
        limit = (sigmas * noise + settings.misplaced * steps) / n + off_m
        trust = torch.minimum(trust, _trust(off_u, limit))
    return resample(torch.where(frame.valid, trust, 1.0), frame.high_size, "bilinear")


def _same_guide(past: _Past, frame: Frame, settings: TemporalSettings) -> Tensor:
    """Trust in the past from the guides' difference, of which noise and misplaced edges are allowed for."""
    noise = guide_noise(past.difference) + settings.misplaced * steps_of(_intensity(frame))
    covered = _covered(frame)
    times = settings.change * covered + settings.change_in_holes * (1.0 - covered)
    return _trust(mean_over(past.difference.abs(), 3), times * noise)


def _not_hidden(motion: Motion, settings: TemporalSettings) -> Tensor:
    """Trust in the past where neighbours moved alike: elsewhere one surface slid before another."""
    apart = steps_of(motion.flow).sum(dim=1, keepdim=True)
    return _trust(apart, settings.slip)


def _trust(value: Tensor, limit: Tensor | float) -> Tensor:
    """min(1, (limit / |value|)^4)."""
    return (limit / value.abs().clamp_min(1e-30)).clamp_max(1.0).pow(4)
