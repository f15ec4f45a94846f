"""Results as bytes: which format a client accepts, and what is in it."""

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from primaldepth.api import Inputs
from primaldepth.app.problems import Problem, RefusedError
from primaldepth.app.tasks import Computed, Holes
from primaldepth.doubts import Advice, doubts
from primaldepth.io.depth import encode_values
from primaldepth.results import (
    Result,
    check_fits,
    doubting_largest,
    first_mask,
    largest_samples,
    median_depth,
    noise_facts,
    plain,
    residual,
    result_for,
)

MEDIA_TYPES = {"image/png": ".png", "image/x-exr": ".exr", "application/x-npz": ".npz"}
DEFAULT_MEDIA_TYPE = "image/png"
ADVICE = Advice(
    unit="'unit'",
    noise="'noise'",
    cameras="'cameras'",
    robust="'method=nlh-l1'",
    keep_spikes="give 'spikes=keep'",
    keep_small="accept image/x-exr or application/x-npz to keep them",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The body of an HTTP answer and what is said beside it."""

    body: bytes
    media_type: str
    report: str

    @property
    def headers(self) -> dict[str, str]:
        """The report as JSON, and a name for those who save the body."""
        name = f"depth{MEDIA_TYPES[self.media_type]}"
        return {
            "Content-Disposition": f'attachment; filename="{name}"',
            "Primaldepth-Report": self.report,
        }


def accepted(header: str | None) -> str:
    """The media type that an Accept header prefers; PNG where it leaves the choice."""
    ranked: list[tuple[float, int, str]] = []
    for index, part in enumerate((header or "*/*").split(",")):
        name, *parameters = (each.strip().lower() for each in part.split(";"))
        wanted = _matching(name)
        quality = _quality(parameters)
        if wanted is not None and quality > 0:
            ranked.append((-quality, index, wanted))
    if not ranked:
        hint = f"accept one of {', '.join(MEDIA_TYPES)}"
        raise RefusedError(Problem(406, "not_acceptable", "no format of the Accept header is offered", hint))
    return min(ranked)[2]


def _matching(name: str) -> str | None:
    if name in MEDIA_TYPES:
        return name
    if name in ("*/*", "image/*", ""):
        return DEFAULT_MEDIA_TYPE
    return "application/x-npz" if name == "application/*" else None


def _quality(parameters: list[str]) -> float:
    for each in parameters:
        if each.startswith("q="):
            try:
                return min(max(float(each[2:]), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0


def check_format(media_type: str, inputs: Inputs) -> None:
    """Raise, before the work is done, if the format cannot hold even the input's median."""
    check_fits(_name(media_type), inputs)


def encode(computed: Computed, *, media_type: str, holes: Holes) -> Answer:
    """The result in the format that was asked for; npz also says what was measured, and how sure it is."""
    path = _name(media_type)
    prediction = computed.prediction if holes == "fill" else computed.prediction.measured_only()
    result = result_for(path, prediction, computed.inputs)
    if path.suffix == ".npz":
        body = _everything(computed, result.valid)
    else:
        with doubting_largest(computed.inputs):
            body = encode_values(path, result.values, result.valid, result.unit)
    said = json.dumps(report(computed, result, ADVICE), allow_nan=False)  # ASCII, as a header has to be
    return Answer(body, media_type, said)


def _name(media_type: str) -> Path:
    return Path(f"result{MEDIA_TYPES[media_type]}")


def _everything(computed: Computed, valid: np.ndarray[Any, Any]) -> bytes:
    prediction = computed.prediction
    depth = np.where(valid, prediction.depth[0, 0].numpy(), np.nan).astype(np.float32)
    arrays = {"depth": depth, "valid": valid, "measured": first_mask(prediction.measured)}
    if prediction.sigma is not None:
        arrays["sigma"] = prediction.sigma[0, 0].numpy().astype(np.float32)
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]  # numpy's stub takes the names for options
    return stream.getvalue()


def report(computed: Computed, result: Result, advice: Advice) -> dict[str, Any]:
    """Plain values that tell how the result was made, how far it departs from the samples, what is odd."""
    said = _figures(computed, result)
    return said | {"warnings": doubts(said, computed.method, computed.meaning, advice)}


def _figures(computed: Computed, result: Result) -> dict[str, Any]:
    frame, prediction = computed.inputs.frame, computed.prediction
    return {
        "method": computed.method,
        "kind": computed.inputs.kind,
        "unit": result.unit,
        "input_size": list(frame.low_size[::-1]),
        "output_size": list(frame.high_size[::-1]),
        "median_depth": plain(median_depth(frame)),
        **noise_facts(frame, computed.noise),
        "spikes": computed.inputs.spikes,
        "largest_samples": largest_samples(computed.inputs),
        "rounded_off": result.rounded_off,
        "measured_fraction": float(prediction.measured.float().mean()),
        "seconds": round(computed.seconds, 4),
        "precision": prediction.info.get("precision"),
        **residual(computed.inputs, prediction),
    }
