"""What `upsample` says about one pair: a JSON object and a sentence."""

import math
from typing import Any

from primaldepth.api import Inputs
from primaldepth.cli.batch import Job
from primaldepth.cli.writing import Result
from primaldepth.core.frame import Prediction


def summary(job: Job, inputs: Inputs, prediction: Prediction, result: Result) -> dict[str, Any]:
    """Plain values for JSON; a number that is not finite becomes null."""
    frame = inputs.frame
    sigma = None if frame.sigma is None else float(frame.sigma[frame.valid].median())
    return {
        "depth": str(job.depth),
        "guide": str(job.guide),
        **{option.removeprefix("--"): str(path) for option, path in job.outputs},
        "kind": inputs.kind,
        "unit": result.unit,
        "input_size": list(frame.low_size[::-1]),
        "output_size": list(frame.high_size[::-1]),
        "noise_sigma": sigma,
        "noise_unit": "px" if inputs.kind == "disparity" else "m",
        "measured_fraction": float(prediction.measured.float().mean()),
        "empty_fraction": 1.0 - float(result.valid.mean()),
        "info": {key: _plain(value) for key, value in prediction.info.items()},
    }


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def sentence(report: dict[str, Any]) -> str:
    """One line of log."""
    low, high = report["input_size"], report["output_size"]
    parts = [
        f"{report['out']}: {low[0]}x{low[1]} to {high[0]}x{high[1]} in {report['seconds']:.1f} s",
        f"unit {report['unit']}",
        *_noise_text(report),
        f"{100 * report['measured_fraction']:.1f} % measured",
    ]
    if report["empty_fraction"] > 0:
        parts.append(f"{100 * report['empty_fraction']:.1f} % left as holes")
    return ", ".join(parts)


def _noise_text(report: dict[str, Any]) -> list[str]:
    sigma = report["noise_sigma"]
    if sigma is None:
        return []
    return [f"noise {sigma:.3g} px" if report["kind"] == "disparity" else f"noise {1000 * sigma:.3g} mm"]
