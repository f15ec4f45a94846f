"""What `upsample` says about one pair: a JSON object and a sentence."""

from typing import Any

from primaldepth.api import Inputs
from primaldepth.cli.batch import Job
from primaldepth.cli.writing import Result
from primaldepth.core.frame import Prediction
from primaldepth.doubts import Advice
from primaldepth.results import (
    largest_samples,
    length_text,
    median_depth,
    noise_facts,
    noise_origin,
    plain,
    residual,
)

__all__ = ["ADVICE", "residual", "sentence", "summary"]
ADVICE = Advice(
    unit="--unit",
    noise="--noise",
    cameras="--cameras",
    robust="--method nlh-l1",
    keep_spikes="give --spikes keep",
    keep_small="write .npy, .exr or .tiff to keep them",
)


def summary(
    job: Job, inputs: Inputs, prediction: Prediction, result: Result, noise: str = "auto"
) -> dict[str, Any]:
    """Plain values for JSON; a number that is not finite becomes null.

    Args:
        noise: as asked for: auto, a number or a sensor's name.
    """
    frame = inputs.frame
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
        **noise_facts(frame, noise),
        "noise_unit": "px" if inputs.kind == "disparity" else "m",
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
    return [] if sigma is None else [f"noise {length_text(sigma, report['kind'])} ({noise_origin(report)})"]


def _residual_text(report: dict[str, Any]) -> list[str]:
    rms, sigmas = report["residual_rms"], report["residual_sigmas"]
    if rms is None:
        return []
    text = f"departs {length_text(rms, report['kind'])} RMS from the samples"
    return [text + (f" ({sigmas:.2g} sigma)" if sigmas else "")]
