"""`render`: what it says and how it ends; rendering itself is tested beside the engines."""

import json
from pathlib import Path

import numpy as np
import pytest
from small_files import Cli

from primaldepth.cli import render as verb
from primaldepth.core.errors import PrimalDepthError
from primaldepth.core.part_seconds import Seconds
from primaldepth.data.manifest import Manifest
from primaldepth.data.shard_writer import ShardWriter
from primaldepth.data.shards import Shards
from primaldepth.data.single_scenes import write_part
from primaldepth.scenes.job import RenderProgress
from primaldepth.scenes.mitsuba_variants import choose
from primaldepth.scenes.scene_source import RenderSettings

REPORT = ["rendered", "seconds", "images_per_second", "kernel_compiles", "start_seconds", "seconds_by_part"]


def fake_job(monkeypatch: pytest.MonkeyPatch, progress: RenderProgress) -> list[tuple[object, ...]]:
    """Put a job that ends like this in place of the real one; its arguments are noted."""
    calls: list[tuple[object, ...]] = []

    def job(folder: Path, source: RenderSettings, count: int, **options: object) -> RenderProgress:
        calls.append((folder, source, count, options))
        options.pop("on_progress")(progress)  # type: ignore[operator]
        return progress

    monkeypatch.setattr(verb, "render_job", job)
    monkeypatch.setattr(RenderSettings, "resolved", lambda self: self)
    return calls


def test_settings_reach_the_job(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls = fake_job(monkeypatch, RenderProgress(count=9, to_do=0))
    options = ("--size", 64, "--samples", 2, "--seed", 7, "--preset", "tof", "--variant", "llvm")
    more = ("--workers", 3, "--engine", "ray", "--verify", "--textures", tmp_path)
    outcome = cli("render", "--out", "made", "--count", 9, *options, *more)
    assert outcome.code == 0
    settings = RenderSettings(preset="tof", size=64, samples=2, seed=7, variant="llvm", textures=tmp_path)
    assert calls == [(Path("made"), settings, 9, {"workers": 3, "engine": "ray", "verify": True})]


def test_report(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    progress = RenderProgress(100, 40, rendered=40, compiles=6, seconds=10.0, start_seconds=2.5)
    progress.parts = {"build": Seconds(clock=8.0, processor=4.0)}
    fake_job(monkeypatch, progress)
    outcome = cli("render", "--out", "made", "--count", 100, "--json")
    assert outcome.code == 0
    assert list(outcome.json) == REPORT
    assert list(outcome.json.values()) == [40, 10.0, 4.0, 6, 2.5, {"build": {"clock": 0.2, "processor": 0.1}}]
    assert outcome.lines == ["made: 40 rich scenes with auto to render, 100 of 100 are there"]
    text = cli("render", "--out", "made", "--count", 100).out
    assert text == "40 scenes in 10.0 s, 4.00 images/s, 6 kernel compilations; 100 of 100 are there\n"


def test_failures_and_damage_are_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = dict.fromkeys(range(12), "no light")
    fake_job(monkeypatch, RenderProgress(20, 15, 3, failures=failures, damaged=["a.safetensors: missing"]))
    outcome = cli("render", "--out", "made", "--count", 20, "--json")
    assert outcome.code == 1
    assert outcome.json["rendered"] == 3
    assert outcome.lines[0] == "a.safetensors: missing; its scenes are rendered again"
    assert outcome.lines[2:4] == ["scene 0: no light", "scene 1: no light"]
    assert outcome.lines[-1] == "12 scenes failed twice; the same command tries them again"
    assert len(outcome.lines) == 2 + verb.SHOWN_FAILURES + 1


def test_interrupted(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    fake_job(monkeypatch, RenderProgress(1, 1))
    monkeypatch.setattr(verb, "render_job", interrupt)
    outcome = cli("render", "--out", "made", "--count", 1)
    assert outcome.code == 130
    assert outcome.lines == ["made: stopped; the same command goes on from here"]


ERRORS = {
    "engine": (["--engine", "slurm"], "--engine slurm: choose local or ray"),
    "count": (["--count", "0"], "--count 0, --workers 1; both must be at least 1"),
    "workers": (["--workers", "0"], "--count 3, --workers 0"),
    "preset": (["--preset", "poor"], "choose one of paper, rich, tof"),
    "size": (["--size", "1"], "'size': Input should be greater than or equal to 16"),
    "seed": (["--seed", "-1"], "'seed': Input should be greater than or equal to 0"),
    "textures": (["--textures", "gone"], "gone: is not a folder"),
    "variant": (["--variant", "metal"], "variant 'metal' is unknown"),
    "preview": (["--preview", "a.jpg"], "--preview a.jpg: extension '.jpg' cannot be written"),
}


@pytest.mark.parametrize(("arguments", "text"), ERRORS.values(), ids=ERRORS)
def test_errors(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = cli("render", "--out", "made", "--count", "3", *arguments)
    assert (outcome.code, len(outcome.lines), outcome.out) == (2, 1, "")
    assert text in outcome.err
    assert not (tmp_path / "made").exists()


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """A folder of three scenes in two shards."""
    wanted = Manifest(made_with={}, versions={}, scenes_per_shard=2, count=3)
    with ShardWriter(tmp_path / "made", wanted) as writer:
        for scene in range(3):
            write_part(tmp_path / "made", scene, {"depth": np.full((4, 4), scene, np.float32)})
            writer.add(scene)
    return tmp_path / "made"


def test_data_verify_of_shards(cli: Cli, shards: Path) -> None:
    outcome = cli("data", "verify", shards)
    assert (outcome.code, outcome.out, outcome.err) == (0, "3 of 3 scenes, 2 shards, all as rendered\n", "")
    path = shards / Manifest.read(shards).shards[1].file
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    outcome = cli("data", "verify", shards)
    assert (outcome.code, outcome.out) == (1, "3 of 3 scenes, 2 shards, 1 missing or changed\n")
    assert outcome.lines[0] == f"{path}: differs from its checksum"
    assert "render --verify" in outcome.lines[1]


def test_rendered_for_real(cli: Cli, tmp_path: Path) -> None:
    """A few small scenes, twice: the second call finds them there; a third extends them."""
    try:
        choose("llvm")
    except PrimalDepthError as error:
        pytest.skip(f"cannot render here: {error}")
    out, sheet = tmp_path / "made", tmp_path / "sheet.png"
    options = ("--size", 32, "--samples", 2, "--preset", "paper", "--variant", "llvm")
    outcome = cli("render", "--out", out, "--count", 2, *options, "--preview", sheet, "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["rendered"] == 2
    assert sheet.read_bytes().startswith(b"\x89PNG")
    found = Shards(out, verify=True).load()
    assert found["image"].shape == (2, 32, 32, 3)
    assert found["guide_camera"].shape == (2, 4)
    assert (found["depth"][found["valid"]] > 0).all()
    first = (out / Manifest.read(out).shards[0].file).read_bytes()
    assert json.loads((out / "manifest.json").read_text())["made_with"]["variant"] == "llvm"
    again = cli("render", "--out", out, "--count", 2, *options, "--json")
    assert (again.code, again.json["rendered"]) == (0, 0)
    assert (out / Manifest.read(out).shards[0].file).read_bytes() == first
    other = cli("render", "--out", out, "--count", 2, *options, "--seed", 1)
    assert other.code == 2
    assert "seed is 0 there and 1 now" in other.err


def test_data_export_names_what_to_do_next(cli: Cli, tmp_path: Path) -> None:
    wanted = Manifest(made_with={}, versions={}, scenes_per_shard=2, count=2)
    depth, image = np.full((8, 8), 2.0, np.float32), np.zeros((8, 8, 3), np.uint8)
    arrays = {
        "depth": depth,
        "valid": depth > 0,
        "image": image,
        "guide_camera": np.array([8.0, 8.0, 4.0, 4.0]),
    }
    with ShardWriter(tmp_path / "made", wanted) as writer:
        for scene in range(2):
            write_part(tmp_path / "made", scene, arrays)
            writer.add(scene)
    outcome = cli("data", "export", tmp_path / "made", "--out", tmp_path / "files", "--count", 1)
    assert (outcome.code, outcome.out) == (0, f"{tmp_path / 'files'}\n")
    assert "1 scenes; 'primaldepth upsample" in outcome.err
    assert [path.name for path in (tmp_path / "files" / "depth").iterdir()] == ["000000.png"]
    more = cli("data", "export", tmp_path / "made", "--out", tmp_path / "both", "--count", 5)
    assert (more.code, "2 scenes; 'primaldepth upsample" in more.err) == (0, True)
    assert len(list((tmp_path / "both" / "depth").iterdir())) == 2
    again = cli("data", "export", tmp_path / "made", "--out", tmp_path / "files")
    assert (again.code, "exists already; name a new folder" in again.err) == (2, True)
    none = cli("data", "export", tmp_path / "made", "--out", tmp_path / "other", "--count", 0)
    assert (none.code, "--count 0: expected at least 1" in none.err) == (2, True)
