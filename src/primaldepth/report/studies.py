"""Run all studies and make the whole report of them, section by section."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from primaldepth.core.errors import PrimalDepthError
from primaldepth.evaluation.code_version import code_version
from primaldepth.evaluation.protocol import Protocol
from primaldepth.methods import create
from primaldepth.networks.zoo import load
from primaldepth.report import (
    camera_section,
    noise_free_section,
    paper_recipe,
    sections,
    summary_section,
    window_section,
)
from primaldepth.report.blocks import Document, Paragraph, Section
from primaldepth.report.cached_runs import CachedRuns, PeakMemory, Rows
from primaldepth.report.camera_section import VariantRows
from primaldepth.report.noise_free_section import SetFrames
from primaldepth.report.picture_sheet import Predicted, Sheet, unpacked
from primaldepth.report.plan import Line, ReportSettings, energy_networks, has_weights, lines
from primaldepth.report.window_section import WindowCost
from primaldepth.version import __version__


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """The document, every number in it, and what they were made with."""

    document: Document
    made_with: dict[str, Any]
    rows: dict[str, Rows]
    windows: dict[int, WindowCost]

    def as_json(self) -> dict[str, Any]:
        """Return plain values: what it was made with, rows as `evaluate --json` has them, windows."""
        rows = {name: [row.as_json() for row in found.values()] for name, found in self.rows.items()}
        windows = {str(side): cost._asdict() for side, cost in self.windows.items()}
        return {"made_with": self.made_with, "rows": rows, "windows": windows}


@dataclass(frozen=True, slots=True)
class Studies:
    """What is run for the report.

    Args:
        benchmark: of the tables; it must have the scale of the studies.
        tof: candidates for the ToF table, the real one first.
        noise_free: the protocol of the sets without noise.
        cameras: protocols of sensors with holes.
    """

    runs: CachedRuns
    settings: ReportSettings
    benchmark: Protocol
    tof: Sequence[Protocol]
    noise_free: Protocol
    cameras: Sequence[Protocol]

    def report(self, footer: str) -> EvaluationReport:
        """Run all studies and return the report, its sections in the order of the page."""
        own = lines(self.settings, self.benchmark.scales)
        rows = self.runs.rows(self.benchmark, [(create(n.name), n.scales) for n in own if n.scales])
        networks = self._energies()
        windows = self._windows()
        tof, tof_rows = self._tof()
        sets, set_rows = self._noise_free()
        views, missing = self._cameras()
        q = self.settings
        ordered = (
            self._evidence(rows, sets, set_rows, views),
            sections.benchmark(self.benchmark, own, rows),
            noise_free_section.section(self.noise_free, sets, q.noise_free_methods, set_rows),
            camera_section.section(self.cameras, views, q.camera_methods, missing),
            paper_recipe.section(self.benchmark, rows, paper_recipe.paper_recipe()),
            sections.energies(self.benchmark, q, {**rows, **networks}),
            window_section.section(windows, q, self.benchmark.unit),
            tof,
            self._pictures(own, rows),
            self._support(),
            sections.runtime(self.benchmark, q, own, rows),
            sections.methods([line.name for line in own if line.scales]),
        )
        document = Document(
            "Depth super-resolution, measured", sections.lead(self.benchmark, own, rows), ordered, footer
        )
        every = {self.benchmark.name: {**rows, **networks}, **tof_rows, self.noise_free.name: set_rows}
        known = {name: found for name, found in (every | _by_variant(views)).items() if found}
        return EvaluationReport(document, self._made_with(), known, windows)

    def _made_with(self) -> dict[str, Any]:
        protocols = (self.benchmark, *self.tof, self.noise_free, *self.cameras)
        return {
            "version": __version__,
            "code": code_version(("primaldepth.methods.registry", "primaldepth.evaluation.protocols")),
            "settings": self.settings.model_dump(mode="json"),
            "protocols": {each.name: each.version for each in protocols},
        }

    def _evidence(
        self, rows: Rows, sets: list[SetFrames], set_rows: Rows, views: list[VariantRows]
    ) -> Section:
        names = self.settings.camera_methods
        measures = [
            summary_section.benchmark_measure(self.benchmark, rows, names),
            *summary_section.noise_free_measures(sets, set_rows, names),
            *summary_section.camera_measures(views, names),
        ]
        return summary_section.section(measures, names)

    def _energies(self) -> Rows:
        scale = (self.settings.study_scale,)
        return self.runs.rows(
            self.benchmark, [(net, scale) for net in energy_networks(self.settings).values()]
        )

    def _windows(self) -> dict[int, WindowCost]:
        q, scenes = self.settings, self.benchmark.scenes
        fixed = {"iterations": q.iterations, "coarse_iterations": q.iterations}
        works = [
            PeakMemory(
                self.runs.task(
                    self.benchmark, create(q.shown_energy, {**fixed, "window": side}), scene, q.study_scale
                )
            )
            for side in q.windows
            for scene in scenes
        ]
        found = iter(self.runs.results("window sizes", works))
        costs = {}
        for side in q.windows:
            own = [next(found) for _ in scenes]
            peaks = [each["peak_mib"] for each in own if each["peak_mib"] is not None]
            rmse, seconds = (fmean(each[name] for each in own) for name in ("rmse", "seconds"))
            costs[side] = WindowCost(rmse, seconds, fmean(peaks) if peaks else None)
        return costs

    def _tof(self) -> tuple[Section, dict[str, Rows]]:
        """Return the first benchmark whose inputs are there or can be made."""
        benchmark = next((each for each in self.tof if each.find(self.runs.data)), self.tof[-1])
        names = self.settings.tof_methods
        scale = benchmark.scales[0]
        try:
            self._prepare(benchmark)
        except PrimalDepthError as error:
            return sections.tof(benchmark, names, {}, Paragraph(f"Not run: {error}", notice=True)), {}
        runs = [(create(name), (scale,)) for name in names if has_weights(name, scale)]
        rows = self.runs.rows(benchmark, runs)
        return sections.tof(benchmark, names, rows), {benchmark.name: rows}

    def _noise_free(self) -> tuple[list[SetFrames], Rows]:
        """Return every set that is in the data folder, at least as a part of its frames."""
        q, protocol = self.settings, self.noise_free
        if protocol.find(self.runs.data) is None:
            return [], {}
        parts = protocol.parts(self.runs.data)
        sets = [SetFrames.of(protocol, part, q.noise_free_frames) for part in parts]
        scales = {
            name: tuple(scale for scale in protocol.scales if has_weights(name, scale))
            for name in q.noise_free_methods
        }
        runs = [(create(name), own) for name, own in scales.items() if own]
        rows: Rows = {}
        for each in sets:
            rows |= self.runs.rows(each.part, runs, each.scenes)
        return sets, rows

    def _cameras(self) -> tuple[list[VariantRows], list[str]]:
        """Return ways to make samples whose inputs are there or can be made, and why others are left out."""
        views: list[VariantRows] = []
        missing: dict[str, None] = {}
        for protocol in self.cameras:
            is_there = protocol.find(self.runs.data) is not None
            for part in protocol.parts(self.runs.data) if is_there else (protocol,):
                try:
                    self._prepare(part)
                except PrimalDepthError as error:
                    missing[f"Not run: {error}."] = None
                else:
                    views += self._views(part)
        return views, list(missing)

    def _views(self, part: Protocol) -> list[VariantRows]:
        """Run the methods of the study on one variant of a protocol, at the scales of the settings."""
        q = self.settings
        scales = [scale for scale in part.scales if scale in q.camera_scales.get(part.name, part.scales)]
        own = {name: tuple(s for s in scales if has_weights(name, s)) for name in q.camera_methods}
        rows = self.runs.rows(part, [(create(name), found) for name, found in own.items() if found])
        return [
            VariantRows(
                part.name,
                part.variant,
                scale,
                part.unit,
                [row for row in rows.values() if row.scale == scale],
            )
            for scale in scales
        ]

    def _prepare(self, protocol: Protocol) -> None:
        """Find the inputs, or make them; raises if neither can be done."""
        protocol.root(self.runs.data, lambda what, done, total: self.runs.watch(what, "", done, total))

    def _pictures(self, own: Sequence[Line], rows: Rows) -> Section:
        q = self.settings
        run = {line.name for line in own if q.study_scale in line.scales}
        names = [name for name in q.shown_methods if name in run]
        cases = [self.benchmark.load(self.runs.data, scene, q.study_scale) for scene in self.benchmark.scenes]
        works = [
            Predicted(self.runs.task(self.benchmark, create(name), case.scene, case.scale))
            for case in cases
            for name in names
        ]
        found = iter(self.runs.results("pictures", works))
        galleries = []
        for case in cases:
            sheet = Sheet(case, q.error_limit)
            depths = {name: unpacked(next(found)) for name in names}
            scores = {name: rows[name, case.scene, case.scale].rmse for name in names}
            galleries.append(sections.gallery(sheet, depths, scores))
        return sections.pictures(galleries, q, self.benchmark.unit)

    def _support(self) -> Section:
        q = self.settings
        scene, row, column = q.pixel
        case = self.benchmark.load(self.runs.data, scene, q.study_scale)
        net = load("fcn-pdn-s", q.study_scale) if has_weights("fcn-pdn-s", q.study_scale) else None
        return sections.support(case, (row, column), q, net)


def _by_variant(views: Sequence[VariantRows]) -> dict[str, Rows]:
    """Return the rows of all scales together, by the name of the protocol and its variant."""
    found: dict[str, Rows] = {}
    for view in views:
        rows = found.setdefault(f"{view.protocol} {view.variant}", {})
        rows |= {(row.method, row.scene, row.scale): row for row in view.rows}
    return found
