"""Warnings that follow from the report of a result: what its user should check first."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from primaldepth.geometry.alignment import Alignment
from primaldepth.methods.deep_holes import LARGEST_RATIO
from primaldepth.networks.zoo import SHIPPED, card_of
from primaldepth.pipeline.load import LARGEST

if TYPE_CHECKING:
    from primaldepth.pipeline.frame_report import Report

FAR_OFF = 3.0  # sigma, of half of the samples: some always lie off, at edges and in the sensor's errors
# Sigma, of the RMS that samples which stand out from all around them add: frames of real cameras stay below
# 3, reduced by 8 too, and a false sample in a thousand can do this. All samples together would say nothing:
# where each of them stands for the depth at its centre, those beside edges are off by 5 to 30 sigma.
OUTLIERS = 5.0
MANY = 0.01  # of the samples: so many false ones, or a fence, leaves, rain
NEAR, FAR = 0.1, 100.0  # metres: what depth cameras see
WIDEST_DISPARITY = 0.5  # of the image's width: beyond it, half of a view would lie outside the other
STRETCHED = 0.03  # of the ratio of the sizes: more is not the rounding of a size
ANY_SCALES = (1, LARGEST_RATIO)
TOO_NOISY = 0.2  # of the depth: no camera is, but a number in another unit may say so
BEYOND = 1.5  # times a scale that a network was trained for


class DepthWarning(UserWarning):
    """Base of all warnings about a result.

    Attributes:
        of_batch: whether it concerns the options or the camera, so that one warning is enough for a batch.

    Example:
        >>> import warnings
        >>> import numpy as np
        >>> import primaldepth
        >>> depth, image = np.full((8, 8), 1500.0), np.zeros((16, 16))
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("error", primaldepth.DepthWarning)
        ...     try:
        ...         primaldepth.upsample(depth, image, method="bilinear", unit="m")
        ...     except primaldepth.DepthWarning as warning:
        ...         print(type(warning).__name__)
        UnitWarning
    """

    of_batch: ClassVar[bool] = False


class UnitWarning(DepthWarning):
    """The depth has probably another unit or kind than was assumed."""

    of_batch = True


class NoiseWarning(DepthWarning):
    """The given noise is more than a fifth of the depth, so that little of the samples counts."""

    of_batch = True


class ResidualWarning(DepthWarning):
    """The result departs from its samples by many sigma, at half of them or at those that stand out."""


class SampleWarning(DepthWarning):
    """More than one sample in a hundred is a spike, and counts as a hole."""


class NoDepthWarning(DepthWarning):
    """Samples hold a number that some cameras write where they measured nothing."""

    of_batch = True


class RoundingWarning(DepthWarning):
    """Estimates became holes because the format would round them to 0."""


class RangeWarning(DepthWarning):
    """Estimates became holes because they are larger than the format can hold."""


class ShapeWarning(DepthWarning):
    """Depth and image have different aspect ratios."""

    of_batch = True


class AlignmentWarning(DepthWarning):
    """Depth and image show different views: one lies beside the other, or sees more."""

    of_batch = True


class ScaleWarning(DepthWarning):
    """The network is far from the scales it was trained for."""

    of_batch = True


@dataclass(frozen=True, slots=True)
class Advice:
    """How a front end names what warnings advise: as options, fields of a form or labels of a page.

    Args:
        robust: how to choose the method `nlh-l1`, which tolerates samples that are far off.
        keep_spikes: what to do where spikes are thin objects.
        keep_small: what to do to get estimates that the format cannot hold.
        invalid: how to name the number that means no depth.
    """

    unit: str
    noise: str
    cameras: str
    robust: str
    keep_spikes: str
    keep_small: str
    invalid: str

    @classmethod
    def of_options(cls, name: str, choice: str, keep_small: str) -> "Advice":
        """Make the advice of a front end that knows the options by their names.

        Args:
            name: how it writes an option, with {} for the name.
            choice: how it writes an option with a value, with {} for each.
            keep_small: as above.
        """
        return cls(
            unit=name.format("unit"),
            noise=name.format("noise"),
            cameras=name.format("cameras"),
            robust=choice.format("method", "nlh-l1"),
            keep_spikes=f"give {choice.format('spikes', 'keep')}",
            keep_small=keep_small,
            invalid=choice.format("invalid", 65535),
        )


def warnings_of(report: "Report", meaning: str | None, advice: Advice) -> tuple[DepthWarning, ...]:
    """Return the warnings that follow from the figures of a report; empty if all are plausible.

    Args:
        report: whose own warnings are not read.
        meaning: unit or kind of the depth as the user gave it, or None.
        advice: the front end's words for options.
    """
    return (
        *_unit(report, meaning, advice),
        *_noise(report, advice),
        *_residual(report, advice),
        *_samples(report, advice),
        *_estimates(report, advice),
        *_views(report, advice),
        *_scale(report),
    )


def _unit(report: "Report", meaning: str | None, advice: Advice) -> Iterator[DepthWarning]:
    median, width = report.median_depth, report.output_size[0]
    if report.kind == "disparity":
        hint = f"if they are distances, give {advice.unit}"
        if meaning is None:
            yield UnitWarning(f"8-bit numbers are taken as disparities; {hint}")
        elif median is not None and median > WIDEST_DISPARITY * width:
            yield UnitWarning(f"disparities of {median:.4g} px in an image {width} px wide; {hint}")
    elif median is not None and not NEAR <= median <= FAR:
        example = ", such as mm" if report.input_unit == "m" and NEAR <= median / 1000 <= FAR else ""
        yield UnitWarning(
            f"the median depth is {median:.4g} m; if that is wrong, give the right {advice.unit}{example}"
        )


def _noise(report: "Report", advice: Advice) -> Iterator[DepthWarning]:
    sigma, depth = report.noise_sigma, report.median_depth
    if report.noise_source == "auto" or report.kind == "disparity" or not sigma or not depth:
        return
    if sigma > TOO_NOISY * depth:
        share = f"{100 * sigma / depth:.0f} % of the depth"
        yield NoiseWarning(
            f"the noise is {report.length(sigma)}, {share}; if that is wrong, check {advice.noise}"
        )


def _residual(report: "Report", advice: Advice) -> Iterator[DepthWarning]:
    median, rms = report.residual_median, report.residual_outliers
    if median is not None and median > FAR_OFF:
        yield ResidualWarning(
            f"the result does not follow the samples: half of them are off by more than {median:.3g} sigma; "
            f"check the result, {_noise_advice(report, advice)}, or try another method"
        )
    elif rms is not None and rms > OUTLIERS:
        yield ResidualWarning(
            f"some samples are far off (RMS {rms:.3g} sigma, though most are met); "
            f"check the result, or try {advice.robust}, which tolerates them"
        )


def _noise_advice(report: "Report", advice: Advice) -> str:
    if report.noise_source == "auto":
        return f"give {advice.noise}"
    if report.noise_sigma is None:
        return f"check {advice.noise}"
    return f"check that the noise is {report.length(report.noise_sigma)}"


def _samples(report: "Report", advice: Advice) -> Iterator[DepthWarning]:
    if report.spikes > MANY * math.prod(report.input_size):
        yield SampleWarning(
            f"{report.spikes} samples lie far from all their neighbours and count as holes; "
            f"if they show thin objects, {advice.keep_spikes}"
        )
    if report.largest_samples:
        yield NoDepthWarning(
            f"samples that hold {LARGEST}, the largest number of a 16-bit file: {report.largest_samples}; "
            f"if that means no depth, give {advice.invalid}"
        )


def _estimates(report: "Report", advice: Advice) -> Iterator[DepthWarning]:
    for warning, pixels, which in (
        (RoundingWarning, report.rounded_off, "would round to 0, which means no depth,"),
        (RangeWarning, report.beyond, "are larger than the format can hold"),
    ):
        if pixels:
            yield warning(f"estimates that {which} are holes: {pixels} pixels; {advice.keep_small}")


def _views(report: "Report", advice: Advice) -> Iterator[DepthWarning]:
    """Yield a warning if depth and image differ in shape by more than a sample, or in their edges."""
    low, high = report.input_size, report.output_size
    across, down = high[0] / low[0], high[1] / low[1]
    if abs(across - down) > STRETCHED * max(across, down) and abs(down * low[0] - high[0]) > down:
        yield ShapeWarning(
            f"depth {low[0]}x{low[1]} and guide {high[0]}x{high[1]} have different aspect ratios; "
            f"crop both to the same view, or give {advice.cameras}"
        )
    elif report.alignment is not None and report.alignment.differs:
        hint = f"register it, or give {advice.cameras} ('primaldepth align' makes such a file)"
        yield AlignmentWarning(f"{_difference(report.alignment)}; {hint}")


def _difference(found: Alignment) -> str:
    """Describe the shift and zoom by which edges of depth and image would coincide."""
    if not found.zoomed:
        right, down = (f"{-each:+.0f}" for each in found.view.offset)
        return f"the depth seems to lie ({right}, {down}) px (right, down) off the image"
    wider, degrees = f"{found.view.zoom:.2f} times as wide as the image's", found.depth_degrees
    seen = "" if degrees is None else f" ({degrees:.0f} against {found.degrees:.0f} degrees)"
    return f"the view of the depth seems to be {wider}{seen}"


def _scale(report: "Report") -> Iterator[DepthWarning]:
    scales = _trained_scales(report.method)
    ratio = report.output_size[0] / report.input_size[0]
    if scales and not min(scales) / BEYOND <= ratio <= max(scales) * BEYOND:
        hint = "check the result" if scales is ANY_SCALES else "try pdn-any"
        trained = " to ".join(f"x{scale}" for scale in sorted({min(scales), max(scales)}))
        yield ScaleWarning(f"'{report.method}' was trained for {trained}, this is x{ratio:.3g}; {hint}")


def _trained_scales(method: str) -> tuple[int, ...]:
    """Return the scales a network was trained for, of own weights by their card; empty if it lists none."""
    if method in SHIPPED:
        return SHIPPED[method].scales or ANY_SCALES
    return card_of(method).scales if method.endswith(".safetensors") else ()
