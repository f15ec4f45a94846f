"""Turn what a visitor chose into tasks, and their results into what the page shows."""

import logging
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from primaldepth.app.engine import Engine
from primaldepth.app.page.readable_files import ReadableFiles
from primaldepth.app.page.result_files import Drawn
from primaldepth.app.problems import INTERNAL, Problem, RefusedError, place_of, problem_of
from primaldepth.app.tasks import INPUTS, PageFiles, Task, request_of
from primaldepth.core.errors import PrimalDepthError
from primaldepth.pipeline.frame_report import length_text, noise_origin
from primaldepth.pipeline.request import KEEP_SAMPLES

log = logging.getLogger("primaldepth.app")
AS_FILE_SAYS = "as the file says"
NO_METHOD = "none"


@dataclass(frozen=True, slots=True)
class Choice:
    """The controls of the page as a visitor set them; paths are uploads in Gradio's folder."""

    depth: str | None
    guide: str | None
    method: str
    other: str
    noise: str | None
    unit: str
    kind: str
    confidence: str | None
    cameras: str | None
    keep_spikes: bool = False
    keep_samples: float | None = KEEP_SAMPLES
    max_sigma: float | None = None


def results(
    engine: Engine, choice: Choice, place: Path, sources: ReadableFiles
) -> tuple[Drawn, Drawn | None]:
    """Compute what a visitor chose.

    Args:
        engine: that computes it.
        choice: of the visitor.
        place: an empty folder for the files of the result, and for copies of the uploads until it is there.
        sources: folders in which the chosen files may lie.

    Returns:
        The result of the method, and of the one it is compared with, if any.
    """
    methods = [choice.method, *([] if choice.other in (NO_METHOD, choice.method) else [choice.other])]
    unit = None if choice.unit == AS_FILE_SAYS else choice.unit
    kind = None if choice.kind == AS_FILE_SAYS else choice.kind
    noise = (choice.noise or "").strip() or "auto"
    spikes = "keep" if choice.keep_spikes else "drop"
    limits = {"keep_samples": choice.keep_samples or 0.0, "max_sigma": choice.max_sigma or None}
    requests = [
        request_of(each, unit=unit, kind=kind, noise=noise, spikes=spikes, **limits) for each in methods
    ]
    with tempfile.TemporaryDirectory(prefix="uploads-", dir=place) as name:
        folder = Path(name)
        _store(choice, folder, sources)
        tasks = [
            Task(folder, each, PageFiles(place, "" if each is requests[0] else f"{each.method}-"))
            for each in requests
        ]
        drawn = _all_of(engine, tasks)
        _check_places(drawn, place)
        return drawn[0], drawn[1] if len(drawn) > 1 else None


def _all_of(engine: Engine, tasks: Sequence[Task]) -> list[Drawn]:
    """Return the result of every task; if one is refused, take the others out of the queue."""
    promises: list[Future[Drawn]] = []
    try:
        for task in tasks:
            promises.append(engine.submit(task))  # noqa: PERF401 - the next one may be refused
        return [promise.result() for promise in promises]
    finally:
        for promise in promises:
            promise.cancel()


def _check_places(drawn: Sequence[Drawn], place: Path) -> None:
    """Raise if a worker names files outside the folder of this result: they would be shown to the visitor."""
    only = ReadableFiles([place])
    for each in drawn:
        shown = (each.before, each.after, each.guide, each.residual, each.sigma)
        for path in (*shown, each.mesh_before, each.mesh_after, *each.files):
            if path is not None:
                only.resolve(path)


def _store(choice: Choice, folder: Path, sources: ReadableFiles) -> None:
    for name in INPUTS:
        path = getattr(choice, name)
        if path is not None:
            sources.copy(path, folder / name, name)
        elif name in ("depth", "guide"):
            what = "a depth file" if name == "depth" else "an image of the same view"
            raise RefusedError(Problem(422, "missing", f"{what} is missing", "drop one, or click an example"))


def problem_text(error: Exception) -> str:
    """Return HTML that says what went wrong and what to do; screen readers say it at once.

    Of an error that is not raised on purpose only its place in the code is told, in the log.
    """
    if isinstance(error, PrimalDepthError):
        problem = problem_of(error)
    else:
        log.error("the page failed: %s", place_of(error))
        problem = INTERNAL
    hint = f" {escape(problem.hint[:1].upper() + problem.hint[1:])}." if problem.hint else ""
    message = escape(problem.message[:1].upper() + problem.message[1:])
    return f'<div class="pd-problem" role="alert"><strong>{message}.</strong>{hint}</div>'


def facts(drawn: Drawn, other: Drawn | None) -> str:
    """Return HTML that lists what was computed and how long it took.

    Args:
        drawn: the result.
        other: of the second method, if one was chosen.
    """
    report, second = drawn.report, None if other is None else other.report
    low, high = report["input_size"], report["output_size"]
    origin = noise_origin(report["noise_source"], report["noise_is_least"], report["samples"])
    rows = [
        ("Size", f"{low[0]} x {low[1]} to {high[0]} x {high[1]}"),
        ("Method", _both(report, second, lambda each: each["method"])),
        ("Time", _both(report, second, lambda each: _time(each["seconds"]))),
        ("Noise", f"{_length(report['noise_sigma'], report)} ({origin})"),
        ("Departs from the samples", _both(report, second, lambda each: _length(each["residual_rms"], each))),
        ("Measured", f"{100 * report['measured_fraction']:.1f} %, the rest is filled in (hatched)"),
    ]
    if report["spikes"]:
        rows.append(("Spikes", f"{report['spikes']}, far from all their neighbours, count as holes"))
    if report["overruled"]:
        done = "the result is corrected there" if report["put_back"] else "the result is not corrected there"
        rows.append(("Samples overruled", f"{report['overruled']}; {done}"))
    if report["uncertain"]:
        rows.append(("Uncertain", f"{report['uncertain']} pixels are holes"))
    items = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in rows)
    warnings = _warnings(report, second)
    return f'<div class="pd-note" role="status"><dl class="pd-facts">{items}</dl>{warnings}</div>'


def _warnings(report: dict[str, Any], other: dict[str, Any] | None) -> str:
    """Return the warnings as HTML; those of the second method alone begin with its name."""
    found = [text[:1].upper() + text[1:] for text in report["warnings"]]
    if other is not None:
        new = [text for text in other["warnings"] if text not in report["warnings"]]
        found += [f"{other['method']}: {text}" for text in new]
    items = "".join(f"<li>{escape(text)}.</li>" for text in found)
    return f'<ul class="pd-warnings" aria-label="Warnings">{items}</ul>' if found else ""


def _both(report: dict[str, Any], other: dict[str, Any] | None, text: Any) -> str:
    return str(text(report)) if other is None else f"{text(report)}, and {text(other)}"


def _length(value: float | None, report: dict[str, Any]) -> str:
    return "unknown" if value is None else length_text(value, report["kind"])


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{1000 * seconds:.0f} ms"
