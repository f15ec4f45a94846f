"""Compute the result of one frame: its inputs go through a method and become an outcome."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from primaldepth.compute.device import DeviceName, pick_device
from primaldepth.core.errors import PrimalDepthError, is_out_of_memory
from primaldepth.core.frame import Frame, Prediction
from primaldepth.measurement.residual import NO_DEPARTURE, Departure, departure
from primaldepth.methods.kept_samples import overruled, samples_kept
from primaldepth.pipeline.load import Inputs
from primaldepth.pipeline.request import KEEP_SAMPLES, Request

FrameMethod = Callable[[Frame], Prediction]


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What was asked for, what it was computed from, the prediction, and how long that took.

    Args:
        seconds: of computing, for one frame.
        overruled: samples that the method had left, see `Request.keep_samples`; they are corrected unless
            that is 0.
        uncertain: pixels that are holes because of `Request.max_sigma`.
        departure: of the prediction from the samples.
    """

    request: Request
    inputs: Inputs
    prediction: Prediction
    seconds: float
    overruled: int = 0
    uncertain: int = 0
    departure: Departure = NO_DEPARTURE

    @property
    def kept(self) -> Prediction:
        """The prediction, with holes where nothing was measured if the request keeps them."""
        return self.prediction if self.request.holes == "fill" else self.prediction.measured_only()

    def in_metres(self) -> "Outcome":
        """Return the outcome with depths in metres, as files have them, if an array came in another unit."""
        inputs, prediction, metres = self.inputs, self.prediction, self.inputs.metres or 1.0
        if metres == 1.0:
            return self
        sigma = None if prediction.sigma is None else prediction.sigma * metres
        frame = replace(inputs.frame, depth=inputs.frame.depth * metres)
        found = replace(prediction, depth=prediction.depth * metres, sigma=sigma)
        return replace(self, inputs=replace(inputs, frame=frame, metres=1.0), prediction=found)


def compute(
    inputs: Inputs, request: Request, method: FrameMethod, device: DeviceName | None = None
) -> Outcome:
    """Compute the result of inputs that are loaded.

    Args:
        inputs: of one frame, or of a batch of frames of one size.
        request: as it was loaded for.
        method: turns a frame on the device into a prediction.
        device: in place of the request's.

    Raises:
        PrimalDepthError: if the device is missing or has too little memory.
    """
    place, start = pick_device(device or request.device), time.perf_counter()
    prediction = predict(request.method, method, inputs.frame, place)
    return outcome_of(request, inputs, prediction, time.perf_counter() - start)


def outcome_of(request: Request, inputs: Inputs, prediction: Prediction, seconds: float) -> Outcome:
    """Return the outcome of a method's prediction: samples kept and uncertain pixels masked, as requested.

    Args:
        request: as the inputs were loaded for.
        inputs: of one frame, or of a batch of frames of one size.
        prediction: of the method, on any device.
        seconds: that the method took.
    """
    frame = inputs.frame.to(prediction.depth.device)
    if request.keep_samples:
        prediction, counts = samples_kept(prediction, frame, request.keep_samples)
        count = int(counts.sum())
    else:
        count = overruled(prediction, frame, KEEP_SAMPLES)
    uncertain, apart = 0, departure(prediction.depth, inputs.frame)
    if request.max_sigma is not None and prediction.sigma is not None:
        sure = prediction.sigma <= request.max_sigma * inputs.number
        uncertain = int((prediction.valid & ~sure).sum())
        prediction = replace(prediction, valid=prediction.valid & sure)
    return Outcome(request, inputs, prediction, seconds, count, uncertain, apart)


def predict(name: str, method: FrameMethod, frame: Frame, device: torch.device) -> Prediction:
    """Run the method on the device and wait for the end.

    Raises:
        PrimalDepthError: if the device has too little memory.
    """
    try:
        prediction = method(frame.to(device))
        if device.type == "cuda":
            torch.cuda.synchronize()
        return prediction
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        height, width = frame.high_size
        raise PrimalDepthError(
            "",
            f"not enough memory on {device} for {width}x{height} pixels with '{name}'",
            "use a smaller guide, another method or another --device",
        ) from error


def first(values: Tensor) -> NDArray[np.float64]:
    """Return (H, W) of the first image."""
    return values[0, 0].double().cpu().numpy()


def first_mask(values: Tensor) -> NDArray[np.bool_]:
    """Return (H, W) of the first mask."""
    return np.asarray(values[0, 0].cpu(), dtype=bool)
