"""The sections of the report: words around tables and pictures."""

from collections.abc import Mapping, Sequence

from primaldepth.evaluation.protocol import Case, Protocol
from primaldepth.networks.joint import DepthNet
from primaldepth.report import figures, tables
from primaldepth.report.blocks import Block, Gallery, Paragraph, Picture, Section, SideBySide
from primaldepth.report.cached_runs import Rows
from primaldepth.report.columns import TOLERANCE, mean
from primaldepth.report.picture_sheet import Map, Sheet
from primaldepth.report.plan import Line, ReportSettings
from primaldepth.report.published import published
from primaldepth.report.runtime_figure import runtime_figure
from primaldepth.report.support_weights import (
    guide_support,
    network_support,
    support_figure,
    surroundings,
    true_support,
)
from primaldepth.variational import MODELS


def lead(benchmark: Protocol, lines: Sequence[Line], rows: Rows) -> str:
    """Write the result in two sentences.

    Args:
        benchmark: protocol of the tables.
        lines: rows of the tables.
        rows: of our methods.
    """
    ratios = {line.name: _ratios(benchmark, line, rows) for line in lines}
    known = [name for name, values in ratios.items() if any(values)]
    good = [name for name in known if all(r is not None and r <= TOLERANCE for r in ratios[name])]
    rest = [name for name in known if name not in good]
    text = (
        "Every number of ours was computed by this package from the benchmark's own files, and stands beside "
        f"the number that was published. Of {len(known)} methods with published numbers and a run of ours, "
        f"{len(good)} reach at every scale a geometric mean of RMSE of at most {TOLERANCE:.2f} times theirs"
    )
    return f"{text}; not so {', '.join(f'`{name}`' for name in rest)}." if rest else f"{text}."


def _ratios(benchmark: Protocol, line: Line, rows: Rows) -> list[float | None]:
    found = []
    for scale in benchmark.scales:
        (theirs,), (own,) = tables.means([line], rows, benchmark.scenes, scale)
        found.append(None if theirs is None or own is None else own / theirs)
    return found


def benchmark(protocol: Protocol, lines: Sequence[Line], rows: Rows) -> Section:
    """Make the section of the noisy-Middlebury tables.

    Args:
        protocol: of the benchmark.
        lines: rows of the tables.
        rows: of our methods.
    """
    scenes, scales = protocol.scenes, protocol.scales
    compared = [line for line in lines if any(_ratios(protocol, line, rows))]
    ratios = {s: [_ratios(protocol, line, rows)[i] for line in compared] for i, s in enumerate(scales)}
    svg = figures.ratio_figure([line.name for line in compared], ratios)
    plot = Picture("ratios", "svg", svg, "Ours divided by published, for every method and scale")
    blocks: list[Block] = [
        Paragraph(
            f"RMSE in {protocol.unit} units over the whole frame, prediction not rounded, default "
            "parameters. In every column of numbers the [[best]] and the [[second]] are marked, the paper's "
            "among its own rows, ours among ours. diff. is ours less the paper's."
        ),
        Gallery((plot,), 1, caption=f"Shaded: at most {TOLERANCE:.2f} times the published number."),
        tables.overview_table(lines, rows, scenes, scales),
        SideBySide(tuple(tables.benchmark_table(lines, rows, scenes, scale) for scale in scales)),
        Paragraph("Published numbers: " + "; `barron16`: ".join(published().sources.values()) + "."),
    ]
    return Section("Noisy Middlebury", protocol.name, tuple(blocks))


def energies(protocol: Protocol, settings: ReportSettings, rows: Rows) -> Section:
    """Make the section of energies: each one after the FCN, and by itself.

    Args:
        protocol: of the benchmark.
        settings: of the report.
        rows: of our methods, and of the networks followed by each energy.
    """
    scale, scenes = settings.study_scale, protocol.scenes
    missing = () if ("fcn", scenes[0], scale) in rows else (_missing("fcn-s", scale),)
    blocks: list[Block] = [
        Paragraph(
            f"RMSE at x{scale}: the network's first estimate alone, and followed by {settings.iterations} "
            "untrained iterations of each energy on its affinities, window 7 x 7."
        ),
        *missing,
        tables.energy_table(rows, scenes, scale),
        Paragraph("The same energies without a network, minimised on the samples and the guide alone:"),
        tables.plain_table(
            [name for name in MODELS if (name, scenes[0], scale) in rows], rows, scenes, scale
        ),
    ]
    return Section("Energies", "energies", tuple(blocks))


def _missing(name: str, scale: int) -> Paragraph:
    return Paragraph(
        f"There are no weights of `{name}` for x{scale} yet; what needs them is left out.", notice=True
    )


def tof(protocol: Protocol, names: Sequence[str], rows: Rows, notice: Paragraph | None = None) -> Section:
    """Make the section of time of flight, real or simulated.

    Args:
        protocol: tofmark, or its simulation.
        names: of the methods.
        rows: of our methods; none if it was not run.
        notice: says why it was not run.
    """
    simulated = protocol.name != "tofmark"
    text = (
        "The benchmark's files are not in the data folder, so the same cameras and the same kind of noise "
        "look at rendered scenes, whose truth is exact. The numbers do not compare with the paper's, "
        "and steps of a few percent between two methods depend on their default parameters."
        if simulated
        else "The benchmark's own files: samples lifted along their rays, projected into the guide's view."
    )
    blocks: list[Block] = [Paragraph(f"`{protocol.name}`: RMSE in {protocol.unit} over known pixels. {text}")]
    if notice is not None:
        blocks.append(notice)
    blocks.append(tables.tof_table(names, rows, protocol.scenes, protocol.scales[0], simulated=simulated))
    return Section("Time of flight", "tof", tuple(blocks))


def gallery(sheet: Sheet, depths: Mapping[str, Map], scores: Mapping[str, float]) -> Gallery:
    """Make a gallery: guide, truth, input and colours, then every result with its error.

    Args:
        sheet: of the case.
        depths: results (H, W) by method.
        scores: RMSE by method.
    """
    unit = sheet.case.scoring.unit
    name = f"{sheet.case.scene}-x{sheet.case.scale}-colours"
    bars = figures.bars_figure(sheet.limits, (-sheet.error, sheet.error), unit)
    key = Picture(name, "svg", bars, "The colours of depth and error", "colours")
    head = (sheet.guide(), sheet.truth(), sheet.samples(), key)
    tail = [p for m, d in depths.items() for p in (sheet.result(m, d), sheet.error_of(m, d, scores[m]))]
    return Gallery((*head, *tail), 4, f"{sheet.case.scene.title()}, x{sheet.case.scale}")


def pictures(galleries: Sequence[Gallery], settings: ReportSettings, unit: str) -> Section:
    """Make the section of pictures of results.

    Args:
        galleries: one for each scene.
        settings: of the report.
        unit: of the errors.
    """
    text = (
        f"Blue is too small, red too large; the full colour is an error of {settings.error_limit:g} ({unit}) "
        "or more, in every scene and for every method."
    )
    return Section("Pictures", "pictures", (Paragraph(text), *galleries))


def support(case: Case, pixel: tuple[int, int], settings: ReportSettings, net: DepthNet | None) -> Section:
    """Make the section that shows where the support weights of one pixel come from.

    Args:
        case: whose guide is shown.
        pixel: row and column.
        settings: of the report.
        net: a network with a solver; None while it has no weights.
    """
    guide = guide_support(case, pixel, settings.shown_energy)
    rows = [guide] if net is None else [guide, network_support(case, pixel, net)]
    side = guide.affinity.shape[0]
    rows.append(true_support(case, pixel, side))
    shots = (
        Picture(
            "support-place", "png", surroundings(case, pixel, side), "The pixel in the guide", "the pixel"
        ),
        Picture("support", "svg", support_figure(rows), "Support weights around the pixel", "its window"),
    )
    text = (
        f"The pixel at row {pixel[0]}, column {pixel[1]} of {case.scene.title()}, and its window: affinity "
        "Δ_a, distance Δ_d in pixels, and the weight w = exp(−Δ_d / σ_d − Δ_a / σ_v) that ties each "
        f"neighbour to it. The guide's row has the parameters of `{settings.shown_energy}`; the last row "
        "is the difference of the true depth, which learned affinities should come close to."
    )
    missing = () if net is not None else (_missing("fcn-pdn-s", case.scale),)
    return Section("Support weights", "support", (Paragraph(text), *missing, Gallery(shots, 2)))


def runtime(protocol: Protocol, settings: ReportSettings, lines: Sequence[Line], rows: Rows) -> Section:
    """Make the section of accuracy against time.

    Args:
        protocol: of the benchmark.
        settings: of the report.
        lines: rows of the tables.
        rows: of our methods.
    """
    points = []
    for line in lines:
        own = mean(tables.rmse(rows, line.name, scene, settings.study_scale) for scene in protocol.scenes)
        seconds = tables.mean_seconds(rows, line.name, protocol.scenes, settings.study_scale)
        if own is not None and seconds is not None:
            points.append(figures.Point(line.name, line.family, seconds, own))
    svg = runtime_figure(points, protocol.unit)
    plot = Picture("runtime", "svg", svg, "Accuracy against runtime of every method")
    text = (
        f"The plot is at x{settings.study_scale}; lower and further left is better. Seconds are those of the "
        "method alone on one frame with one thread: computing time on a CPU, time of the clock on a GPU."
    )
    times = tables.seconds_table(lines, rows, protocol.scenes, protocol.scales)
    return Section("Accuracy against runtime", "runtime", (Paragraph(text), Gallery((plot,), 1), times))


def methods(names: Sequence[str]) -> Section:
    """Make the section that lists the methods that were run."""
    text = "Every method with its default parameters; they are the same for all images."
    return Section("Methods", "methods", (Paragraph(text), tables.method_table(names)))
