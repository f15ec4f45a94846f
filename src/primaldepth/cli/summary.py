"""What `upsample` says about one pair: a JSON object and a sentence."""

import math
from typing import Any

from primaldepth.api import Inputs
from primaldepth.cli.batch import Job
from primaldepth.cli.writing import Result
from primaldepth.core.frame import Frame, Prediction
from primaldepth.data.noise import least_sigma
from primaldepth.methods.deep_holes import LARGEST_RATIO
from primaldepth.networks.zoo import SHIPPED, card_of
from primaldepth.results import LARGEST, largest_samples, length_text, median_depth, plain, residual

__all__ = ["doubts", "residual", "sentence", "summary"]
FAR_OFF = 3.0  # sigma, of half of the samples: some always lie off, at edges and in the sensor's errors
OUTLIERS = 5.0  # sigma, of the RMS: real frames stay below 2, and a sample in a thousand can do this
MANY = 0.01  # of the samples: so many false ones, or a fence, leaves, rain
NEAR, FAR = 0.1, 100.0  # metres: what depth cameras see
STRETCHED = 0.03  # of the ratio of the sizes: more is not the rounding of a size
ANY_SCALES = (1, LARGEST_RATIO)
BEYOND = 1.5  # times a scale that a network was trained for
FEW = 16  # samples: the noise of fewer is a guess


def summary(
    job: Job, inputs: Inputs, prediction: Prediction, result: Result, noise: str = "auto"
) -> dict[str, Any]:
    """Plain values for JSON; a number that is not finite becomes null.

    Args:
        noise: as asked for: auto, a number or a sensor's name.
    """
    frame = inputs.frame
    sigma = None if frame.sigma is None else float(frame.sigma[frame.valid].median())
    return {
        "depth": str(job.depth),
        "guide": str(job.guide),
        **{option.removeprefix("--"): str(path) for option, path in job.outputs},
        "kind": inputs.kind,
        "unit": result.unit,
        "input_unit": inputs.unit or "m",
        "input_size": list(frame.low_size[::-1]),
        "output_size": list(frame.high_size[::-1]),
        "median_depth": plain(median_depth(frame)),
        "noise_sigma": sigma,
        "noise_unit": "px" if inputs.kind == "disparity" else "m",
        "noise_source": noise,
        "noise_is_least": noise == "auto" and _is_least(frame),
        "samples": int(frame.valid.sum()),
        "measured_fraction": float(prediction.measured.float().mean()),
        "empty_fraction": 1.0 - float(result.valid.mean()),
        "rounded_off": result.rounded_off,
        "spikes": inputs.spikes,
        "largest_samples": largest_samples(inputs),
        "info": {key: plain(value) for key, value in prediction.info.items()},
    }


def sentence(report: dict[str, Any]) -> str:
    """One line of log."""
    low, high = report["input_size"], report["output_size"]
    parts = [
        f"{report['out']}: {low[0]}x{low[1]} to {high[0]}x{high[1]} in {report['seconds']:.1f} s",
        _unit_text(report),
        f"kind {report['kind']}",
        *_median_text(report),
        *_noise_text(report),
        *_residual_text(report),
        f"{100 * report['measured_fraction']:.1f} % measured",
    ]
    if report["spikes"]:
        parts.append(f"spikes taken for holes: {report['spikes']}")
    if report["empty_fraction"] > 0:
        parts.append(f"{100 * report['empty_fraction']:.1f} % left as holes")
    return ", ".join(parts)


def doubts(report: dict[str, Any], method: str, meaning: str | None) -> list[str]:
    """What a user should look at before the result is used.

    Args:
        meaning: unit or kind of the depth as the user gave it, or None.
    """
    found = _unit_doubts(report, meaning)
    sigmas = report["residual_median"]
    if sigmas is not None and sigmas > FAR_OFF:
        found.append(
            f"the result does not follow the samples: half of them are off by more than {sigmas:.3g} sigma; "
            f"look at it, {_noise_advice(report)}, or try another method"
        )
    elif report["residual_sigmas"] is not None and report["residual_sigmas"] > OUTLIERS:
        found.append(
            f"some samples are far off (RMS {report['residual_sigmas']:.3g} sigma, though most are met); "
            "look at it, or try --method nlh-l1, which bears them"
        )
    if report["spikes"] > MANY * math.prod(report["input_size"]):
        found.append(
            f"{report['spikes']} samples are far off all around them and count as holes; if they are things, "
            "give --spikes keep"
        )
    if report["largest_samples"]:
        found.append(
            f"samples that hold {LARGEST}, the largest number of a 16-bit file: {report['largest_samples']}; "
            "if that means no depth, store 0 instead"
        )
    if report["rounded_off"]:
        found.append(
            "estimates that would round to 0, which means no depth, are holes: "
            f"{report['rounded_off']} pixels; write .npy, .exr or .tiff to keep them"
        )
    found += _shape_doubts(report["input_size"], report["output_size"])
    return found + _scale_doubts(report["output_size"][0] / report["input_size"][0], method)


def _is_least(frame: Frame) -> bool:
    """Whether no sample is noisier than is assumed anyway."""
    least = least_sigma(frame.depth, frame.valid)
    return frame.sigma is not None and bool((frame.sigma <= least)[frame.valid].all())


def _scale_doubts(ratio: float, method: str) -> list[str]:
    """Far from the scales that a network was trained for."""
    scales = _trained_scales(method)
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


def _noise_advice(report: dict[str, Any]) -> str:
    if report["noise_source"] == "auto":
        return "give --noise"
    return f"check that the noise is {length_text(report['noise_sigma'], report['kind'])}"


def _shape_doubts(low: list[int], high: list[int]) -> list[str]:
    """Depth and image of one view have one shape, up to a sample in each direction."""
    across, down = high[0] / low[0], high[1] / low[1]
    if abs(across - down) <= STRETCHED * max(across, down) or abs(down * low[0] - high[0]) <= down:
        return []
    return [
        f"depth {low[0]}x{low[1]} and guide {high[0]}x{high[1]} have different shapes, one was stretched; "
        "crop them to one view, or give --cameras"
    ]


def _unit_doubts(report: dict[str, Any], meaning: str | None) -> list[str]:
    """Where the numbers of the file hardly mean what they are taken for."""
    depth, kind = report["median_depth"], report["kind"]
    if kind == "disparity":
        hint = "8-bit numbers are taken as disparities; if they are distances, give --unit"
        return [hint] if meaning is None else []
    if depth is not None and not NEAR <= depth <= FAR:
        return [f"the median depth is {depth:.3g} m; if that cannot be, give the right --unit"]
    return []


def _unit_text(report: dict[str, Any]) -> str:
    """The unit that the depth was read in, and that of the result where it is another."""
    read, written = report["input_unit"], report["unit"]
    return f"unit {read}" + ("" if read == written else f" (result: {written})")


def _median_text(report: dict[str, Any]) -> list[str]:
    """In metres whatever the file's unit: a wrong one is seen at once."""
    depth = report["median_depth"]
    if depth is None:
        return []
    name, unit = ("disparity", "px") if report["kind"] == "disparity" else ("depth", "m")
    return [f"median {name} {depth:.4g} {unit}"]


def _noise_text(report: dict[str, Any]) -> list[str]:
    sigma = report["noise_sigma"]
    return [] if sigma is None else [f"noise {length_text(sigma, report['kind'])} ({_source_text(report)})"]


def _source_text(report: dict[str, Any]) -> str:
    source = report["noise_source"]
    if source == "auto":
        if report["noise_is_least"]:
            return "the least assumed"
        return "estimated" if report["samples"] >= FEW else f"a guess from {report['samples']} samples"
    return "given" if source.replace(".", "", 1).isdecimal() else source


def _residual_text(report: dict[str, Any]) -> list[str]:
    rms, sigmas = report["residual_rms"], report["residual_sigmas"]
    if rms is None:
        return []
    text = f"departs {length_text(rms, report['kind'])} RMS from the samples"
    return [text + (f" ({sigmas:.2g} sigma)" if sigmas else "")]
