"""`primaldepth.upsample`: arrays, tensors or files in, a prediction out."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor

from primaldepth.core.frame import Prediction, Sampling
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.io import Kind, Unit
from primaldepth.methods import create
from primaldepth.pipeline.frame_report import report_of
from primaldepth.pipeline.load import Inputs, load
from primaldepth.pipeline.outcome import compute
from primaldepth.pipeline.output_checks import check_inputs, checked_outputs
from primaldepth.pipeline.outputs import OUTPUTS
from primaldepth.pipeline.request import (
    DEFAULT_METHOD,
    KEEP_SAMPLES,
    ArrayLike,
    File,
    Item,
    PathLike,
    Request,
    Spikes,
)
from primaldepth.pipeline.warnings import Advice
from primaldepth.variational import SolverProgress

Device = Literal["auto", "cpu", "cuda"]
ADVICE = Advice.of_options("{}=", "{}={!r}", keep_small="write .npy, .exr or .tiff to keep them")


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
    invalid: float | None = None,
    max_depth: float | None = None,
    spikes: Spikes = "drop",
    sampling: Sampling | None = None,
    keep_samples: float = KEEP_SAMPLES,
    max_sigma: float | None = None,
    device: Device | torch.device = "auto",
    options: Mapping[str, Any] | None = None,
    outputs: Mapping[str, PathLike] | None = None,
    progress: Callable[[SolverProgress], None] | None = None,
) -> Prediction:
    """Turn a small, noisy depth map and a sharp image into a depth map of the image's size.

    Arrays keep their unit: the result is in the unit of `depth`, whatever it is. Files are read
    with `unit` and give metres (or pixels of disparity). 0, NaN, infinite and negative depths are
    holes: the result fills them, and `Prediction.measured` is False there.

    Args:
        depth: (h, w), (1, h, w), (h, w, 1) or (B, 1, h, w), or a file.
        guide: (H, W), (H, W, 3) or (B, C, H, W), in [0, 1], uint8 or uint16, or a file; not smaller than
            `depth`; an alpha channel is dropped.
        method: a name that `primaldepth methods` lists, or a file of weights.
        unit: of `depth`: "mm", "m", "disparity", or stored numbers per metre, such as "5000". Needed for a
            file that does not say, and for an array whose noise is a sensor's name.
        kind: "z", "radial" (along the ray; needs `cameras`, the result is z) or "disparity"; None for what
            the unit or the file says, else z.
        noise: "auto" to estimate it, a standard deviation, a map of them, or a sensor's name such as
            "kinect-v2"; numbers are in the unit of `depth`.
        confidence: in [0, 1], of the shape of `depth`, or a file; uint8 and uint16 are scaled to [0, 1].
        cameras: `Cameras`, the guide's `Intrinsics`, or a camera file; needed for radial depth. If it has a
            depth camera, the depth (in metres, or in `unit`) is first registered into the guide's view.
        invalid: a number in `depth` that means no depth, besides 0.
        max_depth: samples farther than this are holes; in metres, numbers without a unit taken for metres.
        spikes: "drop" makes spikes holes: single samples or pairs far from all around them. "keep" keeps
            them.
        sampling: "average" if a sample is the mean over its pixel, "point" if it is the depth at its centre;
            None for what the sensor named by `noise` does. Read by networks with the sample term.
        keep_samples: by how many standard deviations of the noise the result may depart from a sample that
            three or more neighbours confirm, before it is corrected; 0 for no correction.
        max_sigma: estimates with a larger `Prediction.sigma`, in the unit of `depth`, become holes; for
            methods that give one.
        device: "auto" (CUDA if there is a device), "cpu", "cuda", or a torch.device.
        options: parameters of the method in place of its defaults.
        outputs: files to write, by name in `primaldepth.pipeline.outputs.OUTPUTS`: "preview", "cloud",
            "normals", ...; "out" is the depth map. Numbers without a unit are taken for metres there.
        progress: called with the state of the solver from time to time.

    Returns:
        A prediction with depth, valid and measured of (B, 1, H, W) if `depth` is (B, 1, h, w), else (H, W);
        on the device of `depth` if that is a tensor, else on the CPU.

    Raises:
        InputError: if an input cannot be read or used, or an option is wrong.

    Warns:
        DepthWarning: if the inputs or the result are odd; see `primaldepth.pipeline.warnings`.

    Example:
        >>> import numpy as np
        >>> import primaldepth
        >>> depth = np.full((15, 20), 1.5, np.float32)  # metres
        >>> depth[5:8, 5:8] = 0  # a hole
        >>> image = np.zeros((60, 80, 3), np.uint8)
        >>> result = primaldepth.upsample(depth, image, method="bicubic")
        >>> result.depth.shape, bool(result.measured.all())
        (torch.Size([60, 80]), False)
    """
    item, request = _asked(
        depth,
        guide,
        noise,
        confidence,
        cameras,
        method=method,
        unit=unit,
        kind=kind,
        invalid=invalid,
        max_depth=max_depth,
        spikes=spikes,
        sampling=sampling,
        keep_samples=keep_samples,
        max_sigma=max_sigma,
        options=options or {},
    )
    made = create(method, options, progress=progress)
    wanted = checked_outputs(outputs or {}, request, made)
    inputs = load(item, request)
    check_inputs(wanted, inputs)
    outcome = compute(inputs, request, made, device)
    for name, path in wanted.items():
        OUTPUTS[name].write(path, outcome.in_metres())
    report = report_of(outcome, ADVICE)
    for warning in report.warnings:
        warnings.warn(warning, stacklevel=2)
    return as_given(outcome.prediction, depth)


def as_given(prediction: Prediction, depth: ArrayLike | PathLike) -> Prediction:
    """Return a prediction in the shape of the user's depth, with holes where the estimate is no depth.

    Args:
        prediction: maps of (B, 1, H, W) on any device.
        depth: as the user gave it; (B, 1, h, w) keeps the batch, any other shape gives (H, W). Maps are
            moved to its device if it is a tensor, else to the CPU.
    """
    prediction = prediction.to(depth.device if isinstance(depth, Tensor) else "cpu").depths_only()
    batched = not isinstance(depth, File) and np.ndim(cast("Any", depth)) == 4
    return prediction if batched else prediction.each(lambda tensor: tensor[0, 0])


def load_inputs(
    depth: ArrayLike | PathLike,
    guide: ArrayLike | PathLike,
    *,
    noise: str | float | ArrayLike = "auto",
    confidence: ArrayLike | PathLike | None = None,
    cameras: Cameras | Intrinsics | PathLike | None = None,
    **options: Any,
) -> Inputs:
    """Read and check the inputs of `upsample`, without computing anything.

    Args:
        depth: as for `upsample`.
        guide: as for `upsample`.
        noise: as for `upsample`.
        confidence: as for `upsample`.
        cameras: as for `upsample`.
        options: other arguments of `upsample` that say how inputs are read, such as `unit`.

    Returns:
        The frame that a method would get, with all that is known of it.

    Raises:
        InputError: if an input cannot be read or used, or an option is wrong.
    """
    return load(*_asked(depth, guide, noise, confidence, cameras, **options))


def _asked(
    depth: ArrayLike | PathLike,
    guide: ArrayLike | PathLike,
    noise: str | float | ArrayLike,
    confidence: ArrayLike | PathLike | None,
    cameras: Cameras | Intrinsics | PathLike | None,
    **options: Any,
) -> tuple[Item, Request]:
    if isinstance(noise, str | int | float):
        return Item(depth, guide, confidence, cameras), Request(noise=noise, **options)
    if np.ndim(cast("Any", noise)) == 0:  # a scalar of numpy or torch, or no number at all
        number = float(noise) if hasattr(noise, "__float__") else str(noise)
        return Item(depth, guide, confidence, cameras), Request(noise=number, **options)
    return Item(depth, guide, confidence, cameras, noise), Request(**options)
