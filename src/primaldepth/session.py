"""`primaldepth.Session`: results for the frames of a running camera, with the method kept in memory."""

import time
import warnings
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median
from types import TracebackType
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from primaldepth.api import ADVICE, Device, as_given
from primaldepth.compute.device import pick_device
from primaldepth.core.errors import InputError
from primaldepth.core.frame import Method, Prediction, Sampling
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.io import Kind, Unit
from primaldepth.methods import create
from primaldepth.methods.temporal import Temporal, temporal_settings
from primaldepth.pipeline.frame_report import Report, report_of
from primaldepth.pipeline.load import known_cameras, load
from primaldepth.pipeline.outcome import Outcome, compute
from primaldepth.pipeline.request import (
    DEFAULT_METHOD,
    KEEP_SAMPLES,
    ArrayLike,
    Item,
    PathLike,
    Request,
    Spikes,
)

RECENT = 30  # frames that the rate is taken over


@dataclass(frozen=True, slots=True, eq=False)
class SessionResult:
    """The result of one frame: arrays if the depth was an array, tensors on its device if it was a tensor.

    Args:
        depth: (H, W), or (B, 1, H, W) for a depth of (B, 1, h, w), in the unit of the depth.
        valid: True where `depth` is an estimate.
        measured: True where a valid sample covers the pixel.
        sigma: how far the estimate may be off, or None where the method does not say.
        report: what was assumed and measured, and the warnings.
        outcome: the same on the device it was computed on, as `primaldepth.pipeline` takes it.
    """

    depth: ArrayLike
    valid: ArrayLike
    measured: ArrayLike
    sigma: ArrayLike | None
    report: Report
    outcome: Outcome


class Session:
    """Upsample the frames of one camera, one after the other, with the method kept in memory.

    Each result equals that of `primaldepth.upsample` with the same options; with `temporal` it is averaged
    with the frames before, along the camera's motion. The method and its weights are loaded once, a camera
    file is read once for each size of image, and on a GPU the kernels of a frame are recorded. Each kind of
    warning is raised once.

    Example:
        >>> import numpy as np
        >>> import primaldepth
        >>> depth = np.full((30, 40), 1.5, np.float32)
        >>> image = np.zeros((60, 80, 3), np.uint8)
        >>> with primaldepth.Session(method="bilinear") as session:
        ...     result = session.push(depth, image)
        >>> result.depth.shape
        (60, 80)

    Args:
        method: a name that `primaldepth methods` lists, or a file of weights.
        cameras: `Cameras`, the guide's `Intrinsics`, or a camera file; see `primaldepth.upsample`.
        temporal: average the results over time; frames must come in order.
        static_scene: with `temporal`: nothing moves but the camera, so average all that fits.
        unit: of the depth arrays; needed if the noise is a sensor's name, or for a second camera.
        kind: "z", "radial" or "disparity".
        noise: "auto", a standard deviation in the depth's unit, or a sensor's name.
        max_depth: samples farther than this, in metres, are holes; None for no limit.
        spikes: "drop" or "keep" single samples or pairs that lie far from all around them.
        sampling: "average", "point", or None for what the sensor named by `noise` does.
        keep_samples: by how many sigmas a result may depart from a confirmed sample, before it is corrected;
            0 for no correction.
        device: "auto", "cpu", "cuda", or a torch.device.
        options: parameters of the method in place of its defaults.

    Raises:
        InputError: if an option is not known, or `static_scene` is given without `temporal`.
    """

    def __init__(
        self,
        *,
        method: str = DEFAULT_METHOD,
        cameras: Cameras | Intrinsics | PathLike | None = None,
        temporal: bool = False,
        static_scene: bool = False,
        unit: Unit | None = None,
        kind: Kind | None = None,
        noise: str | float = "auto",
        max_depth: float | None = None,
        spikes: Spikes = "drop",
        sampling: Sampling | None = None,
        keep_samples: float = KEEP_SAMPLES,
        device: Device | torch.device = "auto",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.request = Request(
            method,
            unit=unit,
            kind=kind,
            noise=noise,
            max_depth=max_depth,
            spikes=spikes,
            sampling=sampling,
            keep_samples=keep_samples,
            options=options or {},
        )
        self._device = pick_device(device)
        single, filtered = create(method, options), temporal_settings(temporal, static_scene)
        self._method: Method | None = single if filtered is None else Temporal(single, filtered)
        self._given: object = cameras
        self._read: dict[tuple[tuple[int, int], tuple[int, int]], Cameras | None] = {}
        self._told: set[type] = set()
        self._recent: deque[float] = deque(maxlen=RECENT)
        self.frames = 0

    def __enter__(self) -> "Session":
        """Return the session itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the session."""
        self.close()

    def close(self) -> None:
        """Release the method and forget the frames before; `push` raises an error from now on."""
        self._method = None

    @property
    def rate(self) -> float:
        """Frames per second that `push` sustains: 1 / median of the seconds of the last 30; 0 before any."""
        return 1.0 / median(self._recent) if self._recent else 0.0

    def push(
        self, depth: ArrayLike, image: ArrayLike, *, confidence: ArrayLike | None = None
    ) -> SessionResult:
        """Return the result of the next frame.

        Args:
            depth: (h, w), or another form that `primaldepth.upsample` takes; 0, NaN, infinite and negative
                numbers are holes.
            image: (H, W, 3) or (H, W), in [0, 1], uint8 or uint16.
            confidence: in [0, 1], of the depth's form.

        Returns:
            Arrays if `depth` is an array, tensors on its device if it is a tensor.

        Raises:
            InputError: if the frame cannot be used, or the session is closed.

        Warns:
            DepthWarning: if the inputs or the result are odd; each kind once in a session.
        """
        return self.push_item(Item(depth, image, confidence, self._cameras(depth, image)))

    def push_item(self, item: Item) -> SessionResult:
        """Return the result of the next frame, given as an `Item` of `primaldepth.pipeline`: files or a shot.

        Args:
            item: with its own cameras; those of the session are for `push`.

        Raises:
            InputError: if the frame cannot be used, or the session is closed.
        """
        if self._method is None:
            raise InputError("session", "it is closed", "make another one")
        start, method = time.perf_counter(), self._method
        inputs = load(item, self.request, compare_views=self.frames == 0)
        run = partial(method, kind=inputs.kind) if isinstance(method, Temporal) else method
        outcome = compute(inputs, self.request, run, self._device)
        report = report_of(outcome, ADVICE)
        found = as_given(outcome.prediction, item.depth)
        self._warn(report)
        self._recent.append(time.perf_counter() - start)
        self.frames += 1
        return _result(found, report, outcome, keep=isinstance(item.depth, Tensor))

    def _cameras(self, depth: ArrayLike, image: ArrayLike) -> Cameras | None:
        """Return the cameras for a frame; a file is read once for each pair of sizes."""
        sizes = _size(image), _size(depth)
        if sizes not in self._read:
            self._read[sizes] = known_cameras(self._given, *sizes)
        return self._read[sizes]

    def _warn(self, report: Report) -> None:
        for warning in report.warnings:
            if type(warning) not in self._told:
                self._told.add(type(warning))
                warnings.warn(warning, stacklevel=4)


def _size(array: ArrayLike) -> tuple[int, int]:
    """Return (height, width) of an image, a depth map, or a batch of them."""
    shape = np.shape(cast("Any", array))
    return (shape[2], shape[3]) if len(shape) == 4 else (*shape, 0, 0)[:2]


def _result(found: Prediction, report: Report, outcome: Outcome, *, keep: bool) -> SessionResult:
    """Put the maps of a prediction together, as tensors or as arrays."""

    def given(image: Tensor) -> ArrayLike:
        return image if keep else image.numpy()

    sigma = None if found.sigma is None else given(found.sigma)
    return SessionResult(
        given(found.depth), given(found.valid), given(found.measured), sigma, report, outcome
    )
