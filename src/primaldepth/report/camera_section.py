"""The section on sensors with holes: real cameras, and scenes whose truth is aligned with the image."""

from collections.abc import Sequence
from dataclasses import dataclass

from primaldepth.evaluation.protocol import Protocol
from primaldepth.evaluation.rows import Row, mean_number
from primaldepth.report.blocks import Block, Paragraph, Section, SideBySide, Table, TableColumn
from primaldepth.report.columns import Value, assemble, ours
from primaldepth.report.plan import NO_WEIGHTS

NUMBERS = {
    "RMSE": "rmse",
    "MAE": "mae",
    "interior": "rmse_interior",
    "near jumps": "rmse_near_jumps",
    "near holes": "rmse_near_holes",
    "4 px of tolerance": "rmse_tol4",
    "too far": "far_surface",
    "too near": "near_surface",
}
_COVERAGE = "coverage"
_ABOUT = {
    "real-holdout": (
        "Frames of real cameras: the sensor's own map is point-sampled, upsampled again and compared with "
        "all that the sensor measured. `noisy` has noise of 1 % of the depth, `clean` none; for `cut-outs` "
        "rectangles are removed from the full map and filled. That map is not the truth: its edges are wide "
        "and a few pixels off those in the image. Errors in the interior, errors with a tolerance of 4 "
        "pixels in place, and measured surfaces that a result moves do not share this fault."
    ),
    "aligned-holes": (
        "Truth that is aligned with the image, for sensors with holes: `middlebury` has the holes of its own "
        "occlusions, `rendered` those of a projector's shadow and of grazing and dark surfaces. Samples are "
        "single pixels (`point`) or means of blocks (`mean`), with noise of 1 disparity (`noisy`) or none "
        "(`clean`). What real frames cannot decide at edges, these do."
    ),
}


@dataclass(frozen=True, slots=True)
class VariantRows:
    """All rows of one way to make samples, at one scale."""

    protocol: str
    variant: str
    scale: int
    unit: str
    rows: Sequence[Row]

    def mean(self, method: str, key: str) -> Value:
        """Return the mean over the frames that have the number; None if no frame has it."""
        return mean_number([row for row in self.rows if row.method == method], key)


def section(
    protocols: Sequence[Protocol],
    views: Sequence[VariantRows],
    methods: Sequence[str],
    missing: Sequence[str],
) -> Section:
    """Return the tables of every protocol, one for each variant and scale.

    Args:
        protocols: in the order of the section.
        views: everything that was run.
        methods: rows of the tables.
        missing: a sentence for each part that was not run.
    """
    blocks: list[Block] = []
    for protocol in protocols:
        own = [view for view in views if view.protocol == protocol.name]
        blocks.append(Paragraph(_about(protocol, own)))
        if own:
            blocks.append(SideBySide(tuple(_table(view, methods) for view in own)))
    blocks += [Paragraph(text, notice=True) for text in missing]
    return Section("Real cameras and holes", "cameras", tuple(blocks))


def _about(protocol: Protocol, views: Sequence[VariantRows]) -> str:
    text = f"`{protocol.name}`, in {protocol.unit}, means over the frames. {_ABOUT[protocol.name]}"
    if not views:
        return text
    return (
        f"{text} RMSE where nothing else is said; `too far` and `too near` count the samples on surfaces, of "
        "10,000, that the result puts more than 10 % elsewhere; coverage is the share of errors below the "
        "method's own sigma, 0.68 where that is right."
    )


def _table(view: VariantRows, methods: Sequence[str]) -> Table:
    columns = [
        ours(TableColumn(title), [view.mean(name, key) for name in methods], 2)
        for title, key in NUMBERS.items()
    ]
    coverage = [view.mean(name, _COVERAGE) for name in methods]
    columns.append(ours(TableColumn(_COVERAGE), coverage, 2, marked=False))
    absent = {name: NO_WEIGHTS for name in methods if view.mean(name, "rmse") is None}
    frames = len({row.scene for row in view.rows})
    title = f"{view.protocol}: {view.variant}, x{view.scale}, {frames} frames"
    return assemble(methods, columns, title=title, absent=absent)
