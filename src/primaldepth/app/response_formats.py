"""The HTTP answer: which format a client accepts, and one output of a result in it."""

import io
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from primaldepth.app.problems import RESULT, Problem, RefusedError
from primaldepth.app.tasks import OneFile
from primaldepth.pipeline.frame_report import Report, report_of
from primaldepth.pipeline.outcome import Outcome, first_mask
from primaldepth.pipeline.outputs import OUTPUTS, depth_result
from primaldepth.pipeline.warnings import Advice

MEDIA_TYPES = {
    ".png": "image/png",
    ".exr": "image/x-exr",
    ".npz": "application/x-npz",
    ".glb": "model/gltf-binary",
    ".ply": "application/x-ply",
    ".rrd": "application/x-rerun",
}
SUFFIXES = {name: suffix for suffix, name in MEDIA_TYPES.items()}
ADVICE = Advice.of_options(
    "'{}'", "'{}={}'", keep_small="accept image/x-exr or application/x-npz to keep them"
)
REPORTED = (
    *("method", "kind", "unit", "input_size", "output_size", "median_depth"),
    *("noise_sigma", "noise_source", "noise_is_least", "samples", "spikes", "overruled", "put_back"),
    *("uncertain", "largest_samples"),
    *("rounded_off", "beyond", "measured_fraction", "seconds", "precision"),
    *("residual_rms", "residual_sigmas", "residual_median", "warnings"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The body of an HTTP answer, with its media type, name and report."""

    body: bytes
    media_type: str
    report: str
    output: str = "out"

    @property
    def headers(self) -> dict[str, str]:
        """HTTP headers: the report as JSON, and a file name for the body."""
        name = f"{file_name(self.output)}{SUFFIXES[self.media_type]}"
        return {
            "Content-Disposition": f'attachment; filename="{name}"',
            "Primaldepth-Report": self.report,
        }


def file_name(output: str) -> str:
    """Return the name under which clients know an output."""
    return "depth" if output == "out" else output


def offered(output: str) -> list[str]:
    """Return the media types in which an output can be answered, the usual one first."""
    return [MEDIA_TYPES[suffix] for suffix in MEDIA_TYPES if suffix in OUTPUTS[output].suffixes]


def accepted(header: str | None, output: str = "out") -> str:
    """Return the media type that an Accept header prefers; the usual one where it leaves the choice.

    Args:
        header: the request's, or None.
        output: a name of `OUTPUTS`.

    Raises:
        RefusedError: 406 if it accepts no format of this output.
    """
    ranked: list[tuple[float, int, str]] = []
    for index, part in enumerate((header or "*/*").split(",")):
        name, *parameters = (each.strip().lower() for each in part.split(";"))
        wanted = [each for each in offered(output) if _matches(name, each)]
        quality = _quality(parameters)
        if wanted and quality > 0:
            ranked.append((-quality, index, wanted[0]))
    if not ranked:
        hint = f"accept one of {', '.join(offered(output))}"
        raise RefusedError(Problem(406, "not_acceptable", "no format of the Accept header is offered", hint))
    return min(ranked)[2]


def _matches(pattern: str, media_type: str) -> bool:
    if pattern in ("*/*", "", media_type):
        return True
    return pattern.endswith("/*") and media_type.startswith(pattern[:-1])


def _quality(parameters: list[str]) -> float:
    for each in parameters:
        if each.startswith("q="):
            try:
                return min(max(float(each[2:]), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0


def result_file(folder: Path, wanted: OneFile) -> Path:
    """Return the path of the file that is wanted, whose extension picks its format.

    Args:
        folder: of the task.
        wanted: the output and its format.
    """
    return folder / f"{RESULT}{SUFFIXES[wanted.media_type][1:]}"


def answer_to(wanted: OneFile, folder: Path, outcome: Outcome) -> Answer:
    """Return the file that was asked for, made in `folder`; npz of the depth also says what was measured.

    Args:
        wanted: the output and its format.
        folder: of the task.
        outcome: of its frame.
    """
    path = result_file(folder, wanted)
    result = depth_result(path if wanted.output == "out" else Path("result.npy"), outcome)
    if wanted.output == "out" and path.suffix == ".npz":
        body = _everything(outcome, result.valid)
    else:
        OUTPUTS[wanted.output].write(path, outcome)
        body = path.read_bytes()
    report = report_of(outcome, ADVICE, result)
    said = json.dumps(reported(report), allow_nan=False)  # ASCII, as a header has to be
    return Answer(body, wanted.media_type, said, wanted.output)


def _everything(outcome: Outcome, valid: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]") -> bytes:
    prediction = outcome.prediction
    depth = np.where(valid, prediction.depth[0, 0].numpy(), np.nan).astype(np.float32)
    arrays = {"depth": depth, "valid": valid, "measured": first_mask(prediction.measured)}
    if prediction.sigma is not None:
        arrays["sigma"] = prediction.sigma[0, 0].numpy().astype(np.float32)
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]  # numpy's stub takes the names for options
    return stream.getvalue()


def reported(report: Report) -> dict[str, object]:
    """Return the fields of a report that clients get, as plain values."""
    found = report.json()
    found |= {"seconds": round(report.seconds, 4), "precision": report.info.get("precision")}
    return {name: found[name] for name in REPORTED}
