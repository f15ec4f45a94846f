"""The other verbs: methods, demo, doctor."""

from pathlib import Path

import pytest
from small_files import Cli

from primaldepth.cli import demo
from primaldepth.io import read_depth
from primaldepth.pipeline.request import DEFAULT_METHOD
from primaldepth.version import __version__


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


def test_doctor(cli: Cli) -> None:
    outcome = cli("doctor")
    assert outcome.code == 0
    assert "torch" in outcome.out
    assert __version__ in outcome.out
