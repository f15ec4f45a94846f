"""The whole report on a small benchmark: complete, resumed from the cache, honest about what is missing."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from primaldepth.core.errors import PrimalDepthError
from primaldepth.evaluation import rows
from primaldepth.evaluation.cache import ResultCache
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.networks.zoo import save_model
from primaldepth.report.cached_runs import CachedRuns
from primaldepth.report.plan import NO_WEIGHTS, ReportSettings
from primaldepth.report.report_files import write_report
from primaldepth.report.studies import Studies
from primaldepth.variational import MODELS

sys.path.insert(0, str(Path(__file__).parents[1] / "networks"))
from real_frames import write_frame
from small_nets import card_of, small_net
from small_sets import freeze_sets

ANCHORS = [
    "evidence",
    "noisy-middlebury",
    "noise-free",
    "cameras",
    "recipe",
    "energies",
    "windows",
    "tof",
    "pictures",
    "support",
    "runtime",
    "methods",
]
SETTINGS = ReportSettings(
    methods=("nearest", "bilinear", "he10", "nlh-l2", "fcn-s", "fcn-pdn-s"),
    study_scale=4,
    windows=(3, 5),
    iterations=2,
    tof_methods=("nearest", "fcn-pdn-s"),
    camera_methods=("nearest", "pdn-any"),
    shown_methods=("bilinear", "fcn-pdn-s"),
    pixel=("art", 16, 24),
)


class Unavailable:
    """A ToF benchmark that nobody has."""

    name, version, unit, scales, scenes = "tofmark-sim", 1, "mm", (5,), ("s00",)

    def find(self, data):
        return None

    def root(self, data, watch=None):
        raise PrimalDepthError("no renderer here")


@pytest.fixture(autouse=True)
def no_weights(tmp_path, monkeypatch):
    """As if none were shipped, unless a test brings its own."""
    monkeypatch.setattr("primaldepth.networks.zoo.weights_folder", lambda: tmp_path / "none")


@pytest.fixture
def studies(small):
    """(build a report, what it said of its progress)."""
    protocol, data = small
    said = []

    def build(tof=None, noise_free=None, **changes):
        settings = SETTINGS.model_copy(update=changes)
        bench = CachedRuns(data, "cpu", 1, ResultCache(), lambda *news: said.append(news))
        sets = noise_free or get_protocol("noise-free")
        cameras = [get_protocol("real-holdout")]
        return Studies(bench, settings, protocol, [tof or Unavailable()], sets, cameras).report("Foot.")

    return build, said


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """Small networks in place of the shipped ones."""
    folder = tmp_path / "weights"
    for name, changes in (("fcn-s", {"iterations": 0}), ("fcn-pdn-s", {"iterations": 2})):
        net = small_net(input="s", **changes)
        save_model(folder / f"{name}-x4", net, card_of(net, name=name, scale=4))
    monkeypatch.setattr("primaldepth.networks.zoo.weights_folder", lambda: folder)


def words(report):
    return json.dumps([section.blocks for section in report.document.sections], default=str)


def test_report_is_complete_and_written(studies, tmp_path):
    build, said = studies
    report = build()
    assert [section.anchor for section in report.document.sections] == ANCHORS
    paths = write_report(report, tmp_path / "out")
    assert [path.name for path in paths] == ["report.html", "report.md", "report.json"]
    names = [picture.name for picture in report.document.pictures()]
    assert len(names) == len(set(names))
    twin = paths[1].read_text()
    assert all(
        (tmp_path / "out" / "figures" / f"{p.name}.{p.suffix}").is_file() for p in report.document.pictures()
    )
    assert "no renderer here" in twin
    assert NO_WEIGHTS in twin
    numbers = json.loads(paths[2].read_text())
    assert len(numbers["rows"]["noisy-middlebury"]) == 4 * 2 * 2
    assert set(numbers["windows"]) == {"3", "5"}
    assert numbers["made_with"]["settings"]["study_scale"] == 4
    stages = list(dict.fromkeys(news[0] for news in said))
    assert stages == ["noisy-middlebury", "window sizes", "pictures"]
    assert all(done <= total for _, _, done, total in said)


def test_second_report_computes_nothing(studies, monkeypatch):
    build, _ = studies
    first = build()

    def refuse(*_):
        raise AssertionError("computed again")

    monkeypatch.setattr(rows, "predict", refuse)
    monkeypatch.setattr("primaldepth.report.picture_sheet.predict", refuse)
    again = build()
    assert again.as_json() == first.as_json()


def test_interrupted_report_goes_on(studies, monkeypatch):
    build, _ = studies
    real, calls = rows.score, []

    def stop_after(limit):
        def score(*arguments):
            if len(calls) == limit:
                raise KeyboardInterrupt
            calls.append(arguments)
            return real(*arguments)

        return score

    monkeypatch.setattr(rows, "score", stop_after(5))
    with pytest.raises(KeyboardInterrupt):
        build()
    calls.clear()
    monkeypatch.setattr(rows, "score", stop_after(1000))
    build()
    benchmark, windows = 4 * 2 * 2, 2 * 2
    assert len(calls) == benchmark + windows - 5


def test_weights_fill_their_rows(studies, weights):
    report = studies[0]()
    rows = report.rows["noisy-middlebury"]
    assert ("fcn-pdn-s", "art", 4) in rows
    assert ("fcn-pdn-s", "art", 2) not in rows  # has no weights for it, and none of another scale are taken
    energies = {name for name, _, _ in rows if name.startswith("fcn+")}
    assert energies == {f"fcn+{name}" for name in MODELS}
    assert rows["fcn", "art", 4].rmse == pytest.approx(rows["fcn-s", "art", 4].rmse)
    names = {picture.name for picture in report.document.pictures()}
    assert "art-x4-fcn-pdn-s-error" in names
    support = next(s for s in report.document.sections if s.anchor == "support")
    assert not any(getattr(block, "notice", False) for block in support.blocks)


def test_real_tof_is_taken_where_it_is_there(studies, small):
    protocol, _ = small
    found = replace(protocol, name="tofmark", scales=(2,))
    report = studies[0](tof=found)
    assert set(report.rows["tofmark"]) == {("nearest", scene, 2) for scene in protocol.scenes}
    assert "own files" in words(report)


def test_sets_without_noise_are_taken_where_they_are_there(studies, small):
    sets = freeze_sets(small[1], names=["lu", "nyu"])
    report = studies[0](noise_free=sets, noise_free_methods=("bicubic", "pdn-any"), noise_free_frames=2)
    scenes = {scene for _, scene, _ in report.rows["noise-free"]}
    assert scenes == {"lu/1", "lu/2", "nyu/1001", "nyu/1003"}
    text = words(report)
    assert "2 of the 2 frames of lu, 2 of the 3 frames of nyu" in text
    assert "Not in the data folder: middlebury" in text
    assert "There are no weights of `pdn-any` yet" in text
    assert {"noise-free lu", "noise-free nyu"} <= {news[0] for news in studies[1]}


def test_sets_without_noise_that_nobody_has(studies):
    assert "Not run: the data folder has no folder 'noise_free'" in words(studies[0]())


def test_real_frames_are_taken_where_they_are_there(studies, small):
    write_frame(small[1] / "real_holdout", "desk")
    report = studies[0]()
    views = [f"real-holdout {variant}" for variant in ("noisy", "clean", "cut-outs")]
    assert {scale for name in views for _, _, scale in report.rows[name]} == {1, 4, 8}
    assert set(report.rows["real-holdout noisy"]) == {("nearest", "desk", 4), ("nearest", "desk", 8)}
    assert all("variant" in row for row in report.as_json()["rows"]["real-holdout clean"])
    evidence = report.document.sections[0].blocks[1]
    assert "real-holdout noisy x4 [mm]" in {column.group for column in evidence.columns}


def test_scales_of_sensors_with_holes_can_be_chosen(studies, small):
    write_frame(small[1] / "real_holdout", "desk")
    report = studies[0](camera_scales={"real-holdout": (8,)})
    assert set(report.rows["real-holdout noisy"]) == {("nearest", "desk", 8)}
    assert "real-holdout cut-outs" not in report.rows


def test_real_frames_that_nobody_has(studies):
    assert "no folder 'real_holdout' there; real-holdout needs it" in words(studies[0]())


def test_default_settings_fit_the_benchmark():
    q, protocol = ReportSettings(), get_protocol("noisy-middlebury")
    assert q.study_scale in protocol.scales
    assert q.pixel[0] in protocol.scenes
