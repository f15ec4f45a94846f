"""Which method suits a visitor's camera: frames are reduced, restored by several methods, and compared."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from primaldepth.app.engine import Engine
from primaldepth.app.frame_trials import Trial, Tried
from primaldepth.app.page.readable_files import ReadableFiles
from primaldepth.app.page.visitor_folders import VisitorFolders
from primaldepth.app.page.visitor_requests import AS_FILE_SAYS, problem_text
from primaldepth.app.problems import Problem, RefusedError
from primaldepth.app.tasks import Task
from primaldepth.evaluation.own_frames import verdict
from primaldepth.evaluation.rows import Row, mean_number
from primaldepth.io.sequences.base import natural_order, number
from primaldepth.pipeline.request import Request
from primaldepth.report.camera_section import NUMBERS
from primaldepth.report.frame_picture import METHODS

REDUCTIONS = ("2", "4", "8")
MOST_FRAMES = 8
_COLUMNS = {**NUMBERS, "s/frame": "seconds"}
_ABOUT = (
    "Means over the frames. RMSE where nothing else is said; too far and too near count samples on surfaces, "
    "of 10,000, that the result puts more than 10 % elsewhere."
)
Shown = list[Any]
"""What the status, the table and the picture show."""


@dataclass(frozen=True, slots=True)
class UploadedPair:
    """An uploaded depth map, the image of the same view, and the name of the frame."""

    name: str
    depth: Path
    image: Path


def paired(depths: Sequence[str], images: Sequence[str]) -> list[UploadedPair]:
    """Pair uploads by the numbers in their names, or in the order of their names if none has a number.

    Raises:
        RefusedError: if there are none or too many, or if one has no partner.

    Args:
        depths: paths of uploads.
        images: paths of uploads.
    """
    if not depths or not images:
        raise _refused("depth maps and images of the same views are missing", "drop both")
    if len(depths) > MOST_FRAMES or len(images) > MOST_FRAMES:
        text = f"{max(len(depths), len(images))} files, but the page takes {MOST_FRAMES} frames at a time"
        raise _refused(text, "drop fewer, or use 'primaldepth evaluate' on the command line")
    ours, theirs = (sorted(map(Path, paths), key=_order) for paths in (depths, images))
    if len(ours) != len(theirs):
        raise _refused(f"{len(ours)} depth maps but {len(theirs)} images", "drop one image for each map")
    lasts = [[number(Path(path.name))[-1] for path in paths] for paths in (ours, theirs)]
    numbered = all(isinstance(last, int) for last in (*lasts[0], *lasts[1]))
    if numbered and len(ours) > 1 and lasts[0] != lasts[1]:
        text = "the numbers in the names of depth maps and images differ"
        raise _refused(text, "rename them so that both of a pair have the same number")
    names = [path.stem for path in ours]
    if len(set(names)) < len(names):
        names = [f"{name}-{index}" for index, name in enumerate(names, 1)]
    return [UploadedPair(*each) for each in zip(names, ours, theirs, strict=True)]


def _order(path: Path) -> tuple[Any, ...]:
    """Return the key by which uploads are sorted: the name alone, as each lies in a folder of its own."""
    return natural_order(Path(path.name))


def _refused(message: str, hint: str) -> RefusedError:
    return RefusedError(Problem(422, "missing", message, hint))


def comparer(
    engine: Engine, folders: VisitorFolders, sources: ReadableFiles
) -> Callable[..., Iterator[Shown]]:
    """Return the handler of the button, which yields the outputs of the page after each step.

    Args:
        engine: that computes.
        folders: for the picture.
        sources: files that may be read.
    """

    def evaluate(depths: Any, images: Any, reduce: str, unit: str) -> Iterator[Shown]:
        try:
            pairs = paired(depths or [], images or [])
            stored = None if unit == AS_FILE_SAYS else unit
            yield from _steps(engine, pairs, int(reduce), stored, folders.new(), sources)
        except Exception as error:
            yield [problem_text(error), "", None]

    return evaluate


def _steps(
    engine: Engine,
    pairs: Sequence[UploadedPair],
    reduce: int,
    unit: str | None,
    place: Path,
    sources: ReadableFiles,
) -> Iterator[Shown]:
    """Try every method on every frame, one after the other so that other visitors get their turns."""
    rows: list[Row] = []
    errors_in, done, total = "", 0, len(pairs) * len(METHODS)
    with tempfile.TemporaryDirectory(prefix="uploads-", dir=place) as name:
        folders = {pair.name: _stored(pair, Path(name) / str(n), sources) for n, pair in enumerate(pairs)}
        for frame, folder in folders.items():
            for method in METHODS:
                yield [_progress(f"{method} on {frame}", done, total), "", None]
                tried = _answer(engine, Task(folder, Request(method, unit), Trial(frame, reduce)))
                rows += [Row.of({**each, "method": method, "scene": frame}) for each in tried.rows]
                errors_in, done = tried.unit, done + 1
        found = verdict(rows, errors_in)
        table = table_of(rows, errors_in)
        yield [_progress("the picture of the worst frame", total, total), table, None]
        picture = place / "worst-frame.png"
        worst = Trial(found.worst_frame, reduce, picture)
        _answer(engine, Task(folders[found.worst_frame], Request(found.best, unit), worst))
    yield [_said(found.sentence, found.worst_frame), table, str(picture)]


def _stored(pair: UploadedPair, folder: Path, sources: ReadableFiles) -> Path:
    """Copy a pair of uploads to where a worker looks for them."""
    folder.mkdir()
    sources.copy(pair.depth, folder / "depth", pair.name)
    sources.copy(pair.image, folder / "guide", pair.name)
    return folder


def _answer(engine: Engine, task: Task) -> Tried:
    answer = engine.submit(task).result()
    if not isinstance(answer, Tried):
        raise TypeError("a trial was answered with something else")
    return answer


def _progress(what: str, done: int, total: int) -> str:
    return f'<div class="pd-note">{done} of {total} done: now {escape(what)}.</div>'


def _said(sentence: str, frame: str) -> str:
    below = f"Below: {frame}, the frame on which it is worst."
    return f'<div class="pd-note" role="status"><strong>{escape(sentence)}</strong> {escape(below)}</div>'


def table_of(rows: Sequence[Row], unit: str) -> str:
    """Return the means of every method as an HTML table, one body for each way to make samples."""
    heads = "".join(f'<th scope="col">{escape(title)}</th>' for title in ("method", *_COLUMNS))
    variants = dict.fromkeys(row.variant for row in rows)
    bodies = "".join(_body(name, [row for row in rows if row.variant == name]) for name in variants)
    return (
        f"<div><p>Errors in {escape(unit)}. {_ABOUT}</p>"
        '<div class="pd-scroll" tabindex="0" role="region" aria-label="Errors of every method">'
        f'<table class="pd-table"><thead><tr>{heads}</tr></thead>{bodies}</table></div></div>'
    )


def _body(variant: str, rows: Sequence[Row]) -> str:
    head = f'<tr><th scope="rowgroup" colspan="{len(_COLUMNS) + 1}">{escape(variant)}</th></tr>'
    methods = dict.fromkeys(row.method for row in rows)
    lines = [_line(name, [row for row in rows if row.method == name]) for name in methods]
    return f"<tbody>{head}{''.join(lines)}</tbody>"


def _line(method: str, rows: Sequence[Row]) -> str:
    means = (mean_number(rows, key) for key in _COLUMNS.values())
    cells = "".join(f"<td>{'–' if mean is None else f'{mean:.1f}'}</td>" for mean in means)
    return f'<tr><th scope="row">{escape(method)}</th>{cells}</tr>'
