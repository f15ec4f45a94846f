"""Frames of a sequence: every result is averaged with the ones before, where those still hold.

The camera's motion is found from the guides (`geometry.ego_motion`), the last estimate u with variance P is
carried along it, and the new result m with variance R is weighed against it,

    u <- u + k (m - u),    k = P / (P + R),    P <- (1 - k) P.

P grows where the carried estimate may be misplaced (by a part of a pixel, at steps of the depth), and without
bound where depth or guide say that something else is seen there now: then k = 1, and m stands as it is.
Of a static scene this says only what does not fit; otherwise also what may move by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame, Method, Prediction
from primaldepth.core.settings import Count, NotNegative, Positive, Settings, Share
from primaldepth.geometry.ego_motion import Motion, carried, coordinates, ego_motion, in_view
from primaldepth.io import Kind
from primaldepth.methods.result_noise import guess_variance, sensor_variance, step_variance
from primaldepth.methods.scene_change import (
    guide_noise,
    is_cut,
    mean_over,
    moves_by_itself,
    something_moved,
    steps_of,
    trust_of,
)
from primaldepth.methods.static_scene import MISPLACED, agreement, uncovered

_AMPLIFIES = 1.2  # at most, a method passes on the sensor's noise by this factor
_SURE = 4.0  # times the sensor's variance is the most that P + R comes to where nothing was guessed
_AT_REST = 0.01  # slack while nothing is seen to move, where a method says how far it is off
_CLEARLY = 0.1  # pixels; an object that moves before a still camera may pass for a smaller motion of the view
WINDOWS = (1, 3, 7)  # samples on a side


class TemporalSettings(Settings):
    """Settings: how much the frames before count.

    Args:
        memory: results that are averaged at most.
        surprise: standard deviations beyond which a difference is not noise.
        misplaced: pixels by which the motion may be wrong, once there is any.
        slack: pixels by which things may have moved where no motion of the camera was found.
        surer: while the camera moves, the past replaces what is filled in only where its variance is below
            this share of the new result's; 0: nowhere. While something else moves, it never does.
        static_scene: whether nothing moves but the camera. All that fits is averaged then; `slack` and
            `surer` do not matter.
    """

    memory: Count = 16
    surprise: Positive = 2.5
    misplaced: NotNegative = 0.3
    slack: NotNegative = 0.04
    surer: Share = 0.4
    static_scene: bool = False


def temporal_settings(
    temporal: bool, static_scene: bool, named: tuple[str, str] = ("temporal", "static_scene")
) -> TemporalSettings | None:
    """Return the filter's settings, or None if results are not averaged over time.

    Args:
        temporal: whether they are.
        static_scene: whether nothing moves but the camera.
        named: how the user calls the two.

    Raises:
        InputError: if the scene is said to be static and results are not averaged.
    """
    if static_scene and not temporal:
        raise InputError(named[1], "it says how results are averaged over time", f"give {named[0]} too")
    return TemporalSettings(static_scene=static_scene) if temporal else None


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """State of the filter after a frame: all that it needs for the next one, each (1, 1, H, W).

    Args:
        depth: u.
        variance: P.
        guide: intensity of the frame's guide.
    """

    depth: Tensor
    variance: Tensor
    guide: Tensor

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors by name, to be stored."""
        return {"depth": self.depth, "variance": self.variance, "guide": self.guide}

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor], device: torch.device) -> "Memory":
        """Build the memory from what `tensors` gave.

        Args:
            tensors: by name.
            device: where they are to lie.

        Returns:
            The memory.
        """
        return cls(*(tensors[name].to(device) for name in ("depth", "variance", "guide")))


class Temporal:
    """Any method on the frames of a sequence, averaged over time with a memory.

    Args:
        method: makes the single results.
        settings: of the filter.

    Example:
        >>> import torch
        >>> from primaldepth import Frame
        >>> from primaldepth.methods import create
        >>> from primaldepth.methods.temporal import Temporal
        >>> method = Temporal(create("bilinear"))
        >>> image = torch.rand(1, 1, 16, 16)
        >>> for z in (1.0, 1.02):  # two frames of a still camera
        ...     depth = torch.full((1, 1, 4, 4), z)
        ...     result = method(Frame(depth, depth > 0, image, sigma=torch.full_like(depth, 0.05)))
        >>> bool((result.depth < 1.02).all())
        True
    """

    def __init__(self, method: Method, settings: TemporalSettings | None = None) -> None:
        self.method, self.settings = method, settings or TemporalSettings()
        self.memory: Memory | None = None

    @property
    def name(self) -> str:
        """Return the method's name."""
        return self.method.name

    def __call__(self, frame: Frame, kind: Kind = "z") -> Prediction:
        """Estimate the next frame; `info["carried"]` is the share of the past in the result."""
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
                sigma = _sigma_left(sigma, self.memory, frame, prediction.depth, self.settings)
        info = {**prediction.info, "carried": share}
        return replace(prediction, depth=self.memory.depth.to(prediction.depth.dtype), sigma=sigma, info=info)


def _sigma_left(
    sigma: Tensor, memory: Memory, frame: Frame, depth: Tensor, settings: TemporalSettings
) -> Tensor:
    """Return how far the average may be off, (1, 1, H, W), from the single result's `sigma`.

    Of a static scene, where errors at steps are averaged too, only the sensor's part of sigma falls.
    """
    left = (memory.variance / _variance(frame, depth, settings).clamp_min(1e-30)).clamp(max=1.0)
    if not settings.static_scene:
        return sigma * left.sqrt()
    total = sigma.square()
    return (total - (1.0 - left) * torch.minimum(total, sensor_variance(frame, depth))).clamp_min(0.0).sqrt()


def advance(
    memory: Memory | None, frame: Frame, prediction: Prediction, kind: Kind, settings: TemporalSettings
) -> tuple[Memory, float]:
    """Return the memory after this frame, and the mean share 1 - k of the past in its depth."""
    guide, depth = frame.guide.mean(dim=1, keepdim=True), prediction.depth
    sensor, noise = sensor_variance(frame, depth), _variance(frame, depth, settings)
    now = Memory(depth, noise, guide)
    if memory is None or memory.depth.shape != depth.shape:
        return now, 0.0
    usable = prediction.valid & torch.isfinite(depth)
    inverse = depth if kind == "disparity" else 1.0 / torch.where(usable & (depth > 0), depth, torch.inf)
    at_rest = settings.slack if prediction.sigma is None else _AT_REST
    past = _Past.of(memory, guide, ego_motion(memory.guide, guide, inverse), settings, at_rest)
    if not past.motion.still:
        past = replace(past, depth=past.depth + _drift(past, depth, noise, usable, kind))
    limit = settings.surprise * (2.0 * sensor).sqrt() + settings.misplaced * steps_of(past.depth)
    if is_cut(past.depth, limit, frame, past.difference):
        return now, 0.0
    if settings.static_scene:
        trust = _agreeing(past, now, kind)
    else:
        trust = _guarded(past, now, frame, prediction, settings)
    trust = torch.minimum(trust, _same_guide(past, guide, settings))
    known = usable & in_view(past.motion.flow) & torch.isfinite(past.depth)
    return _averaged(past, now, torch.where(known, trust, 0.0), settings)


def _variance(frame: Frame, depth: Tensor, settings: TemporalSettings) -> Tensor:
    """Return R, (1, 1, H, W)."""
    variance = sensor_variance(frame, depth) + guess_variance(frame, depth)
    return variance + step_variance(depth) if settings.static_scene else variance


def _agreeing(past: "_Past", now: Memory, kind: Kind) -> Tensor:
    """Return trust in the past of a static scene: 0 where the result is farther and may have been hidden."""
    trust = agreement(now.depth - past.depth, past.variance + now.variance)
    farther = now.depth < past.depth if kind == "disparity" else now.depth > past.depth
    return torch.where(uncovered(past.motion.flow) & farther, 0.0, trust)


def _guarded(
    past: "_Past", now: Memory, frame: Frame, prediction: Prediction, settings: TemporalSettings
) -> Tensor:
    """Return trust in the past of a scene where things may move by themselves."""
    trust = _same_depth(past, frame, prediction, settings.surprise)
    if not past.motion.still:
        moves = moves_by_itself(past.difference, now.guide, settings.misplaced)
        trust = torch.where(moves, 0.0, trust)
    if not past.still:
        surer = settings.surer if _camera_moves(past.motion) else 0.0
        measured = now.variance <= _SURE * sensor_variance(frame, now.depth)
        trust = torch.where(measured | (past.variance < surer * now.variance), trust, 0.0)
    return trust


def _camera_moves(motion: Motion) -> bool:
    """Return whether the view moved by more than what an object that moves may be mistaken for."""
    return bool(motion.flow.norm(dim=1).median() >= _CLEARLY)


def _averaged(past: "_Past", now: Memory, trust: Tensor, settings: TemporalSettings) -> tuple[Memory, float]:
    """Return u + k (m - u), k = P / (P + R), with P / trust in place of P; and the mean of 1 - k."""
    P, R = past.variance / trust.clamp_min(1e-12), now.variance
    k = torch.where(trust > 1e-6, P / (P + R), 1.0)
    depth = torch.where(k < 1, past.depth + k * (now.depth - past.depth), now.depth)
    variance = torch.where(k < 1, torch.maximum((1.0 - k) * P, R / settings.memory), R)
    return Memory(depth, variance, now.guide), float((1.0 - k).mean())


@dataclass(frozen=True, slots=True, eq=False)
class _Past:
    """The memory moved into the current view, (1, 1, H, W) each.

    Args:
        depth: u.
        variance: P, grown by (pixels that u may be off, times the steps to neighbours)^2.
        difference: of the guides.
        motion: of the camera.
        still: whether nothing moves, neither the camera nor what it sees.
    """

    depth: Tensor
    variance: Tensor
    difference: Tensor
    motion: Motion
    still: bool

    @classmethod
    def of(
        cls, memory: Memory, guide: Tensor, motion: Motion, settings: TemporalSettings, at_rest: float
    ) -> "_Past":
        """Carry the past along the motion into the view of `guide`; `at_rest`: slack while nothing moves."""
        depth, variance, before, steps = memory.depth, memory.variance, memory.guide, steps_of(memory.depth)
        if not motion.still:
            depth, before = (carried(image, motion.flow) for image in (depth, before))
            variance, steps = (carried(image, motion.flow, "bilinear") for image in (variance, steps))
        difference = before - motion.gain * guide - motion.offset
        still = motion.still and not something_moved(difference)
        misplaced = MISPLACED if settings.static_scene else settings.misplaced
        off = at_rest if still else settings.slack if motion.still else misplaced
        return cls(depth, variance + (off * steps).square(), difference, motion, still)


def _drift(past: _Past, depth: Tensor, noise: Tensor, usable: Tensor, kind: Kind) -> Tensor:
    """Return how the depth of still things changes with the camera: z (a x + b y) + c, fitted robustly.

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


def _same_depth(past: _Past, frame: Frame, prediction: Prediction, surprise: float) -> Tensor:
    """Return trust in the past, 1 to 0, by z = mean(w (m - u)) / sqrt(mean(w)) over windows, w = 1 / (P + R).

    The mean over n x n samples shows a slow approach long before a pixel does: noise alone gives it 1 / n,
    or less with a method that smooths. How much less is read off the frame, most of which is as it was.
    While nothing moves, results may differ by as much as the method says that they are off.
    """
    difference, sensor = prediction.depth - past.depth, sensor_variance(frame, prediction.depth)
    S = past.variance + sensor + guess_variance(frame, prediction.depth)
    if past.still and prediction.sigma is not None:
        S = S + prediction.sigma.square()
    weight, sure = 1.0 / S, _SURE * sensor > S
    trust = torch.ones_like(difference)
    for samples in WINDOWS:
        side = 2 * round(0.5 * samples * frame.high_size[1] / frame.low_size[1]) + 1 if samples > 1 else 1
        z = mean_over(weight * difference, side) / mean_over(weight, side).sqrt()
        spread = 1.4826 * z[sure].abs().median() if bool(sure.any()) else z.new_tensor(_AMPLIFIES)
        trust = torch.minimum(
            trust, trust_of(z, surprise * float(spread.clamp(0.05 / samples, _AMPLIFIES / samples)))
        )
    return trust


def _same_guide(past: _Past, guide: Tensor, settings: TemporalSettings) -> Tensor:
    """Return trust in the past by the guides' difference beyond what noise and misplaced edges explain."""
    edges = (settings.slack if past.motion.still else settings.misplaced) * steps_of(guide)
    noise = guide_noise(past.difference)
    return trust_of(mean_over(past.difference.abs(), 3), settings.surprise * (noise + edges))
