"""The other verbs: methods, demo, evaluate, data verify, doctor."""

import json
from pathlib import Path

import pytest
from small_files import Cli

from primaldepth.api import DEFAULT_METHOD
from primaldepth.cli import demo
from primaldepth.io import read_depth
from primaldepth.version import __version__

ROW_KEYS = ["method", "scene", "scale", "rmse", "mae", "seconds"]


def test_version(cli: Cli) -> None:
    outcome = cli("--version")
    assert (outcome.code, outcome.out, outcome.err) == (0, f"primaldepth {__version__}\n", "")


@pytest.mark.parametrize(
    "verb", [[], ["upsample"], ["demo"], ["methods"], ["evaluate"], ["doctor"], ["data"], ["data", "verify"]]
)
def test_help_is_plain_text_on_stdout(cli: Cli, verb: list[str]) -> None:
    outcome = cli(*verb, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("Usage: primaldepth")
    assert outcome.out.isascii()


def test_methods_as_a_table_and_as_json(cli: Cli) -> None:
    listed = cli("methods", "--json").json
    names = [method["name"] for method in listed]
    assert {"nearest", "atgv-l2", "nlh-l2"} <= set(names)
    assert [method["name"] for method in listed if method["default"]] == [DEFAULT_METHOD]
    table = cli("methods").out
    assert all(name in table for name in names)
    assert f"default: {DEFAULT_METHOD}" in table


def test_demo_in_a_fresh_place(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "COMPARED", ("nearest", "bilinear"))
    monkeypatch.setattr(demo, "DEFAULT_METHOD", "bilinear")
    out = tmp_path / "new place" / "démo"
    outcome = cli("demo", "--out", out)
    assert outcome.code == 0
    title, header, *rows = outcome.out.splitlines()
    assert title == "sample scene, 80x60 to 640x480, error in mm"
    assert header.split() == ["method", "RMSE", "MAE"]
    assert [row.split()[0] for row in rows] == ["nearest", "bilinear"]
    assert sorted(path.name for path in out.iterdir()) == [
        "cloud.glb",
        "cloud.ply",
        "depth.png",
        "preview.png",
    ]
    assert read_depth(out / "depth.png").values.shape == (480, 640)


def test_demo_refuses_a_file_before_it_runs(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "create", None)
    (tmp_path / "taken").write_text("")
    outcome = cli("demo", "--out", tmp_path / "taken")
    assert (outcome.code, len(outcome.lines)) == (2, 1)
    assert "is a file, not a folder" in outcome.err


EVALUATE_ERRORS = {
    "protocol": (["middlebury", "--method", "nearest"], "unknown protocol 'middlebury'"),
    "no data": (["noisy-middlebury", "--method", "nearest"], "give --data DIR or set PRIMALDEPTH_DATA"),
    "data": (["noisy-middlebury", "--method", "nearest", "--data", "gone"], "gone: not a folder"),
    "empty data": (
        ["noisy-middlebury", "--method", "nearest", "--data", "."],
        "no folder 'noisy_middlebury'",
    ),
    "method": (["noisy-middlebury", "--method", "newest", "--data", "."], "unknown method 'newest'"),
    "scale": (["noisy-middlebury", "--method", "nearest", "--data", ".", "--scale", "3"], "2, 4, 8, 16"),
    "json": (["noisy-middlebury", "--method", "nearest", "--data", ".", "--json", "."], "is a directory"),
}


@pytest.mark.parametrize(("arguments", "text"), EVALUATE_ERRORS.values(), ids=EVALUATE_ERRORS)
def test_evaluate_errors(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], text: str
) -> None:
    monkeypatch.delenv("PRIMALDEPTH_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    outcome = cli("evaluate", *arguments)
    assert (outcome.code, len(outcome.lines), outcome.out) == (2, 1, "")
    assert text in outcome.err


def _incomplete(folder: Path) -> Path:
    scene = folder / "noisy_middlebury" / "art"
    scene.mkdir(parents=True)
    (scene / "color.png").write_text("changed")
    return folder


def test_evaluate_refuses_changed_files_before_it_runs(cli: Cli, tmp_path: Path) -> None:
    data = _incomplete(tmp_path)
    outcome = cli("evaluate", "noisy-middlebury", "--method", "nearest", "--data", data)
    assert (outcome.code, len(outcome.lines)) == (2, 1)


def test_data_verify_of_an_incomplete_folder(cli: Cli, tmp_path: Path) -> None:
    outcome = cli("data", "verify", _incomplete(tmp_path))
    assert outcome.code == 1
    assert outcome.out.splitlines() == [
        "noisy-middlebury v1: 18 files, 18 missing or changed",
        "middlebury-2006 v1: no folder middlebury_2006_half, not checked",
    ]
    assert len(outcome.lines) == 18
    assert sum("differs" in line for line in outcome.lines) == 1


@pytest.mark.parametrize(("folder", "text"), [("gone", "not a folder"), (".", "none of the folders")])
def test_data_verify_errors(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = cli("data", "verify", folder)
    assert (outcome.code, len(outcome.lines)) == (2, 1)
    assert text in outcome.err


@pytest.mark.data
def test_data_verify(cli: Cli, benchmark_data: Path) -> None:
    outcome = cli("data", "verify", benchmark_data)
    assert (outcome.code, outcome.err) == (0, "")
    assert "noisy-middlebury v1: 18 files, all as frozen" in outcome.out


@pytest.mark.data
def test_evaluate_writes_the_documented_json(
    cli: Cli, benchmark_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIMALDEPTH_DATA", str(benchmark_data))
    target = tmp_path / "new" / "rows.json"
    outcome = cli("evaluate", "noisy-middlebury", "--method", "nearest", "--scale", "16", "--json", target)
    assert outcome.code == 0
    assert outcome.lines == [f"wrote {target}"]
    written = json.loads(target.read_text())
    assert list(written) == ["protocol", "version", "rows"]
    assert (written["protocol"], written["version"]) == ("noisy-middlebury", 1)
    assert [list(row) for row in written["rows"]] == [ROW_KEYS] * 3
    assert [row["scene"] for row in written["rows"]] == ["art", "books", "moebius"]
    assert all(f"{row['rmse']:.3f}" in outcome.out for row in written["rows"])


def test_doctor(cli: Cli) -> None:
    outcome = cli("doctor")
    assert outcome.code == 0
    assert "torch" in outcome.out
    assert __version__ in outcome.out
