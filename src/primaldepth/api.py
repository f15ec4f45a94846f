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
from primaldepth.pipeline.load import Inputs, load
from primaldepth.pipeline.outputs import OUTPUTS, check_inputs, check_request, checked_outputs
from primaldepth.pipeline.report import report_of
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
from primaldepth.pipeline.run import compute
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
        invalid: number in `depth` that means no depth, besides 0.
        max_depth: metres (numbers without a unit are taken for metres); samples farther than that are holes.
        spikes: "drop" takes samples for holes that stand out from all around them, alone or two together;
            "keep" does not.
        sampling: "average" if a sample is the mean of what its pixel covers, "point" if it is the depth at
            its centre; None for what the sensor named by `noise` does. Read by networks with the sample term.
        keep_samples: how many standard deviations of the noise the result may depart from a sample that three
            or more neighbours confirm; where it is more, it is corrected. 0 leaves what the method makes.
        max_sigma: estimates that may be farther off, in the unit of `depth`, become holes; for methods that
            give `Prediction.sigma`.
        device: "auto" takes a CUDA device where there is one; a torch.device is taken too.
        options: parameters of the method in place of its defaults.
        outputs: files to write, by name of `primaldepth.pipeline.outputs.OUTPUTS`: "preview", "cloud",
            "normals", ...; "out" is the depth map. Numbers without a unit are taken for metres there.
        progress: called now and then while the method iterates.

    Returns:
        depth, valid and measured: (B, 1, H, W) for (B, 1, h, w), (H, W) for everything else; on the device
        of `depth` if that is a tensor, else on the CPU.

    Warns:
        DepthWarning: of what is odd about the inputs or the result; see `primaldepth.pipeline.warnings`.

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
    check_request(request, made)
    wanted = checked_outputs(outputs or {}, made, method)
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
        depth: as the user gave it: (B, 1, h, w) keeps the batch, everything else becomes (H, W); maps go to
            the device of a tensor, else to the CPU.
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
    """Read and check the inputs of `upsample`, without computing anything."""
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
