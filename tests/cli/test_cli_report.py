"""`report`: what it refuses before it works, and where the page lies in the end."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from small_files import Cli

sys.path.insert(0, str(Path(__file__).parents[1] / "evaluation"))
from small_benchmark import freeze

from primaldepth.cli import report as verb
from primaldepth.cli.output import StagedBar
from primaldepth.core.errors import PrimalDepthError
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.report.plan import ReportSettings

ERRORS = {
    "no data": (["--out", "r"], "no data folder is given; noisy-middlebury needs it"),
    "data": (["--out", "r", "--data", "gone"], "gone: not a folder"),
    "jobs": (["--out", "r", "--data", ".", "--jobs", "-1"], "--jobs -1"),
    "out": (["--out", "file", "--data", "."], "file is a file, not a folder"),
    "method": (["--out", "r", "--data", ".", "--method", "newest"], "unknown method 'newest'"),
    "no files": (["--out", "r", "--data", "."], "no folder 'noisy_middlebury'"),
}


@pytest.mark.parametrize(("arguments", "text"), ERRORS.values(), ids=ERRORS)
def test_report_errors(refused: Callable[..., None], tmp_path: Path, arguments: list[str], text: str) -> None:
    (tmp_path / "file").touch()
    refused("report", *arguments, text=text)


def test_report_without_matplotlib(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    outcome = cli("report", "--out", tmp_path / "r", "--data", tmp_path)
    assert (outcome.code, len(outcome.lines)) == (2, 1)
    assert "primaldepth[report]" in outcome.err


def test_report_is_written(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = freeze(tmp_path / "data")

    class NoTof:
        name, version, unit, scales, scenes = "tofmark-sim", 1, "mm", (5,), ("s00",)

        def find(self, data: Path) -> None:
            return None

        def root(self, data: Path, watch: object = None) -> Path:
            raise PrimalDepthError("nothing to render with")

    others = ("noise-free", "real-holdout", "aligned-holes")
    known = {benchmark.name: benchmark, **{name: get_protocol(name) for name in others}}
    monkeypatch.setattr(verb, "get_protocol", lambda name: known.get(name) or NoTof())
    small = ReportSettings(study_scale=4, windows=(3,), iterations=2, shown_methods=(), pixel=("art", 16, 24))
    monkeypatch.setattr(
        verb, "ReportSettings", type("S", (), {"parse": lambda values, _: small.model_copy(update=values)})
    )
    out = tmp_path / "out"
    outcome = cli("report", "--out", out, "--data", tmp_path / "data", "--method", "nearest", "--jobs", "1")
    assert (outcome.code, outcome.out.strip()) == (0, str(out / "report.html"))
    assert "primaldepth" in (out / "report.html").read_text()
    assert "noisy-middlebury: 4 to do" in outcome.err


def test_stages_are_announced_once(capsys: pytest.CaptureFixture[str]) -> None:
    with StagedBar() as bar:
        for done in (1, 2):
            verb._watch(bar, "first", f"row {done}", done, 2)
        verb._watch(bar, "second", "", 1, 1)
    assert capsys.readouterr().err.splitlines() == [
        "first: 2 to do, less what is known",
        "second: 1 to do, less what is known",
    ]
