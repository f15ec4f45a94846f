"""What a user should look at before a result is used, as sentences that follow from its report."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from primaldepth.methods.deep_holes import LARGEST_RATIO
from primaldepth.networks.zoo import SHIPPED, card_of
from primaldepth.results import LARGEST, length_text

FAR_OFF = 3.0  # sigma, of half of the samples: some always lie off, at edges and in the sensor's errors
OUTLIERS = 5.0  # sigma, of the RMS: real frames stay below 2, and a sample in a thousand can do this
MANY = 0.01  # of the samples: so many false ones, or a fence, leaves, rain
NEAR, FAR = 0.1, 100.0  # metres: what depth cameras see
STRETCHED = 0.03  # of the ratio of the sizes: more is not the rounding of a size
ANY_SCALES = (1, LARGEST_RATIO)
TOO_NOISY = 0.2  # of the depth: no camera is, but a number in another unit may say so
BEYOND = 1.5  # times a scale that a network was trained for

Report = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Advice:
    """What there is to choose, in the words of those who choose: options, fields of a form, labels of a page.

    Args:
        robust: how to choose the method `nlh-l1`, which bears samples that are far off.
        keep_spikes: what to do where spikes are things.
        keep_small: what to do to get estimates that the format rounds to 0.
    """

    unit: str
    noise: str
    cameras: str
    robust: str
    keep_spikes: str
    keep_small: str


def doubts(report: Report, method: str, meaning: str | None, advice: Advice) -> list[str]:
    """The sentences; none where nothing is odd.

    Args:
        report: plain values: kind, median_depth, noise_sigma and noise_source, residual_sigmas and
            residual_median, spikes, largest_samples, rounded_off, input_size and output_size.
        meaning: unit or kind of the depth as the user gave it, or None.
    """
    return [
        *_unit_doubts(report, meaning, advice),
        *_noise_doubts(report, advice),
        *_residual_doubts(report, advice),
        *_sample_doubts(report, advice),
        *_rounding_doubts(report, advice),
        *_shape_doubts(report, advice),
        *_scale_doubts(report, method),
    ]


def _unit_doubts(report: Report, meaning: str | None, advice: Advice) -> list[str]:
    """Where the numbers of the file hardly mean what they are taken for."""
    depth, kind = report["median_depth"], report["kind"]
    if kind == "disparity":
        hint = f"8-bit numbers are taken as disparities; if they are distances, give {advice.unit}"
        return [hint] if meaning is None else []
    if depth is not None and not NEAR <= depth <= FAR:
        return [f"the median depth is {depth:.3g} m; if that cannot be, give the right {advice.unit}"]
    return []


def _noise_doubts(report: Report, advice: Advice) -> list[str]:
    """Where a given noise leaves little of what was measured."""
    sigma, depth = report["noise_sigma"], report["median_depth"]
    if report["noise_source"] == "auto" or report["kind"] == "disparity" or not sigma or not depth:
        return []
    if sigma <= TOO_NOISY * depth:
        return []
    share = f"{100 * sigma / depth:.0f} % of the depth"
    return [
        f"the noise is {length_text(sigma, report['kind'])}, {share}; if that cannot be, check {advice.noise}"
    ]


def _residual_doubts(report: Report, advice: Advice) -> list[str]:
    """Where the result left its samples, or some of them are far off."""
    median, rms = report["residual_median"], report["residual_sigmas"]
    if median is not None and median > FAR_OFF:
        return [
            f"the result does not follow the samples: half of them are off by more than {median:.3g} sigma; "
            f"look at it, {_noise_advice(report, advice)}, or try another method"
        ]
    if rms is not None and rms > OUTLIERS:
        return [
            f"some samples are far off (RMS {rms:.3g} sigma, though most are met); "
            f"look at it, or try {advice.robust}, which bears them"
        ]
    return []


def _noise_advice(report: Report, advice: Advice) -> str:
    if report["noise_source"] == "auto":
        return f"give {advice.noise}"
    return f"check that the noise is {length_text(report['noise_sigma'], report['kind'])}"


def _sample_doubts(report: Report, advice: Advice) -> list[str]:
    """Where many samples may be false."""
    found = []
    if report["spikes"] > MANY * math.prod(report["input_size"]):
        found.append(
            f"{report['spikes']} samples are far off all around them and count as holes; if they are things, "
            f"{advice.keep_spikes}"
        )
    if report["largest_samples"]:
        found.append(
            f"samples that hold {LARGEST}, the largest number of a 16-bit file: {report['largest_samples']}; "
            "if that means no depth, store 0 instead"
        )
    return found


def _rounding_doubts(report: Report, advice: Advice) -> list[str]:
    if not report["rounded_off"]:
        return []
    return [
        "estimates that would round to 0, which means no depth, are holes: "
        f"{report['rounded_off']} pixels; {advice.keep_small}"
    ]


def _shape_doubts(report: Report, advice: Advice) -> list[str]:
    """Depth and image of one view have one shape, up to a sample in each direction."""
    low, high = report["input_size"], report["output_size"]
    across, down = high[0] / low[0], high[1] / low[1]
    if abs(across - down) <= STRETCHED * max(across, down) or abs(down * low[0] - high[0]) <= down:
        return []
    return [
        f"depth {low[0]}x{low[1]} and guide {high[0]}x{high[1]} have different shapes, one was stretched; "
        f"crop them to one view, or give {advice.cameras}"
    ]


def _scale_doubts(report: Report, method: str) -> list[str]:
    """Where a network is far from the scales it was trained for."""
    scales = _trained_scales(method)
    ratio = report["output_size"][0] / report["input_size"][0]
    if not scales or min(scales) / BEYOND <= ratio <= max(scales) * BEYOND:
        return []
    hint = "look at it" if scales is ANY_SCALES else "try pdn-any"
    trained = " to ".join(f"x{scale}" for scale in sorted({min(scales), max(scales)}))
    return [f"'{method}' was trained for {trained}, this is x{ratio:.2g}; {hint}"]


def _trained_scales(method: str) -> tuple[int, ...]:
    """Of own weights as their card says; none where nobody does."""
    if method in SHIPPED:
        return SHIPPED[method].scales or ANY_SCALES
    return card_of(method).scales if method.endswith(".safetensors") else ()
