"""`evaluate` and `data verify`: what they say, what they refuse, and that a rerun is the same."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat
from small_files import Cli

from primaldepth.evaluation import rows
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.methods import create

ROW_KEYS = ["method", "scene", "scale", "rmse", "mae", "seconds"]


EVALUATE_ERRORS = {
    "protocol": (["middlebury", "--method", "nearest"], "unknown protocol 'middlebury'"),
    "no data": (
        ["noisy-middlebury", "--method", "nearest"],
        "no data folder is given; noisy-middlebury needs it (set PRIMALDEPTH_DATA",
    ),
    "data": (["noisy-middlebury", "--method", "nearest", "--data", "gone"], "gone: not a folder"),
    "empty data": (
        ["noisy-middlebury", "--method", "nearest", "--data", "."],
        "no folder 'noisy_middlebury'",
    ),
    "method": (["noisy-middlebury", "--method", "newest", "--data", "."], "unknown method 'newest'"),
    "scale": (["noisy-middlebury", "--method", "nearest", "--data", ".", "--scale", "3"], "2, 4, 8, 16"),
    "jobs": (["noisy-middlebury", "--method", "nearest", "--data", ".", "--jobs", "-1"], "--jobs -1"),
    "json": (["noisy-middlebury", "--method", "nearest", "--data", ".", "--json", "."], "is a directory"),
}


@pytest.mark.parametrize(("arguments", "text"), EVALUATE_ERRORS.values(), ids=EVALUATE_ERRORS)
def test_evaluate_errors(refused: Callable[..., None], arguments: list[str], text: str) -> None:
    refused("evaluate", *arguments, text=text)


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
        "noise-free v1: no folder noise_free, not checked",
        "aligned-holes v1: no folder middlebury_2006_half, not checked",
        "real-holdout v1: no folder real_holdout, not checked",
        "rendered v1: no folder rendered-v1, not checked",
        "tofmark v1: no folder tofmark, not checked",
        "tofmark-sim v1: no folder tofmark-sim-v1, not checked",
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
    outcome = cli(
        "evaluate",
        "noisy-middlebury",
        "--method",
        "nearest",
        "--scale",
        "16",
        "--json",
        target,
        "--jobs",
        "1",
    )
    assert outcome.code == 0
    assert outcome.lines == [f"wrote {target}"]
    written = json.loads(target.read_text())
    assert list(written) == ["protocol", "version", "units", "rows"]
    assert (written["protocol"], written["version"]) == ("noisy-middlebury", 1)
    assert [list(row)[:6] for row in written["rows"]] == [ROW_KEYS] * 3
    assert [row["scene"] for row in written["rows"]] == ["art", "books", "moebius"]
    assert all(f"{row['rmse']:.3f}" in outcome.out for row in written["rows"])


@pytest.fixture
def tofmark(tmp_path: Path) -> Path:
    """A folder with ToFMark's three scenes: a wall before two cameras that share one centre."""
    K = np.array([[900.0, 0.0, 404.5], [0.0, 900.0, 304.5], [0.0, 0.0, 1.0]])
    K_tof = np.array([[178.0, 0.0, 79.5], [0.0, 178.0, 59.5], [0.0, 0.0, 1.0]])
    y, x = np.indices((120, 160))
    rays = np.stack([(x - 79.5) / 178, (y - 59.5) / 178, np.ones_like(x, float)], -1)
    rng = np.random.default_rng(0)
    (tmp_path / "tofmark").mkdir()
    for scene in ("books", "devil", "shark"):
        distance = 1500.0 * np.linalg.norm(rays, axis=-1) + rng.normal(0, 10, (120, 160))
        values = {"tof": distance, "img": rng.random((610, 810)), "gt": np.full((610, 810), 1500.0)}
        P = np.hstack([K_tof, np.zeros((3, 1))])
        savemat(tmp_path / "tofmark" / f"{scene}.mat", {**values, "P_TOF": P, "K": K})
    return tmp_path


def evaluated(cli: Cli, data: Path, target: Path, *options: object) -> dict[str, object]:
    names = ("--method", "nearest", "--method", "bilinear")
    outcome = cli("evaluate", "tofmark", *names, "--data", data, "--json", target, *options)
    assert outcome.code == 0, outcome.err
    document: dict[str, object] = json.loads(target.read_text())
    return document


def without_seconds(document: dict[str, object]) -> dict[str, object]:
    rows = document["rows"]
    assert isinstance(rows, list)
    return {**document, "rows": [{**row, "seconds": None} for row in rows]}


def test_two_runs_are_the_same_but_for_the_seconds(cli: Cli, tofmark: Path) -> None:
    """Predictions too, bit for bit: their checksums are in the rows. The second run uses two processes."""
    first = evaluated(cli, tofmark, tofmark / "a.json", "--no-cache", "--jobs", 1)
    second = evaluated(cli, tofmark, tofmark / "b.json", "--no-cache", "--jobs", 2)
    assert without_seconds(first) == without_seconds(second)
    rows = first["rows"]
    assert isinstance(rows, list)
    assert len({row["prediction"] for row in rows if row["method"] == "bilinear"}) == 3
    assert [row["seconds"] for row in rows] != [row["seconds"] for row in second["rows"]]  # type: ignore[attr-defined]


def test_a_rerun_comes_from_the_cache(
    cli: Cli, tofmark: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = evaluated(cli, tofmark, tofmark / "a.json", "--no-cache", "--jobs", 1)
    assert not list(own_cache.iterdir())
    second = evaluated(cli, tofmark, tofmark / "b.json", "--jobs", 1)
    assert len(list(own_cache.rglob("*.json"))) == 6
    monkeypatch.setattr(rows, "score", None)
    third = evaluated(cli, tofmark, tofmark / "c.json")
    assert third == second
    assert without_seconds(first) == without_seconds(second)


def test_a_changed_mat_file_is_computed_anew_and_refused_where_it_was_recorded(
    cli: Cli, tofmark: Path
) -> None:
    before = evaluated(cli, tofmark, tofmark / "a.json", "--jobs", 1)
    folder = tofmark / "tofmark"
    (folder / "books.mat").write_bytes((folder / "devil.mat").read_bytes())
    after = evaluated(cli, tofmark, tofmark / "b.json", "--jobs", 1)
    assert [a == b for a, b in zip(before["rows"], after["rows"], strict=True)] == [False, True, True] * 2  # type: ignore[call-overload]
    (folder / "SHA256SUMS").write_text(f"{'0' * 64}  books.mat\n")
    outcome = cli("evaluate", "tofmark", "--method", "nearest", "--data", tofmark)
    assert (outcome.code, len(outcome.lines)) == (2, 1)
    assert "books.mat: differs from SHA256SUMS" in outcome.err
    outcome = cli("data", "verify", tofmark)
    assert outcome.code == 1
    assert "tofmark v1: the benchmark's own .mat files, 3 missing or changed" in outcome.out


def test_the_table_has_the_protocols_unit(cli: Cli, tofmark: Path) -> None:
    outcome = cli("evaluate", "tofmark", "--method", "bilinear", "--data", tofmark, "--jobs", 1)
    title, header, row = outcome.out.splitlines()
    assert title == "tofmark v1: RMSE [mm] where the truth is known"
    assert header.split() == ["method", "scale", "books", "devil", "shark", "s/frame"]
    assert row.split()[:2] == ["bilinear", "x5"]
    assert all(4.0 < float(cell) < 10.0 for cell in row.split()[2:5])


def test_what_is_made_first_is_announced(cli: Cli, tofmark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rendering takes a minute: a line says so before, a bar on a terminal shows it."""
    protocol = get_protocol("tofmark")

    def root(self: object, data: Path | None, watch: object = None) -> Path:
        for done in range(3 if watch else 0):
            watch("rendering tofmark", done, 2)  # type: ignore[operator]
        return tofmark / "tofmark"

    monkeypatch.setattr(type(protocol), "root", root)
    outcome = cli("evaluate", "tofmark", "--method", "nearest", "--jobs", 1)
    assert outcome.code == 0
    assert outcome.lines == ["rendering tofmark: 2 of 2 scenes to do, once"]


def test_settings_go_to_the_methods(cli: Cli, tofmark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All three ways to give one; a method that has none of that name says so."""
    made: list[tuple[str, dict[str, str]]] = []
    monkeypatch.setattr(
        "primaldepth.cli.evaluate.create", lambda *given: made.append(given) or create("nearest")
    )
    chosen = ("--ensemble", "--iterations", 3, "--set", "tile=64")
    outcome = cli("evaluate", "tofmark", "--method", "pdn-any", *chosen, "--data", tofmark, "--no-cache")
    assert outcome.code == 0, outcome.err
    assert made == [("pdn-any", {"tile": "64", "iterations": "3", "ensemble": "True"})]
    monkeypatch.undo()
    refused = cli("evaluate", "tofmark", "--method", "nearest", "--ensemble", "--data", tofmark)
    assert refused.code == 2
    assert "ensemble" in refused.err


def _frame(folder: Path, name: str) -> None:
    """A wall in 2 m with a box before it and a hole beside the box, and its image."""
    depth = np.full((72, 96), 2000, np.uint16)
    depth[20:50, 40:70] = 1000
    depth[20:50, 32:40] = 0
    folder.mkdir(exist_ok=True)
    Image.fromarray(depth).save(folder / f"{name}_depth_mm.png")
    Image.fromarray(np.repeat(depth[..., None] // 16, 3, axis=2).astype(np.uint8)).save(
        folder / f"{name}_rgb.png"
    )


def test_frames_of_ones_own_are_scored_by_zone(cli: Cli, tmp_path: Path) -> None:
    folder, target = tmp_path / "frames", tmp_path / "rows.json"
    for name in ("first", "second"):
        _frame(folder, name)
    methods = ("--method", "nearest", "--method", "bicubic")
    outcome = cli("evaluate", "real-holdout", *methods, "--data", folder, "--jobs", 1, "--json", target)
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[0] == "real-holdout v1: means over 2 frames of one's own, errors in mm"
    assert [line.split()[:3] for line in lines[4:14:2]] == [
        ["noisy", "x4", "nearest"],
        ["noisy", "x8", "nearest"],
        ["clean", "x4", "nearest"],
        ["clean", "x8", "nearest"],
        ["cut-outs", "x1", "nearest"],
    ]
    rows = json.loads(target.read_text())["rows"]
    assert len(rows) == 2 * 5 * 2
    mean = sum(row["rmse"] for row in rows if (row["variant"], row["scale"]) == ("noisy", 4)) / 4
    shown = [float(line.split()[3]) for line in lines[4:6]]
    assert sum(shown) / 2 == pytest.approx(mean, abs=0.01)


def test_one_scale_leaves_the_other_variants_out(cli: Cli, tmp_path: Path) -> None:
    _frame(tmp_path / "real_holdout", "desk")
    outcome = cli(
        "evaluate", "real-holdout", "--method", "nearest", "--scale", 1, "--data", tmp_path, "--jobs", 1
    )
    assert outcome.code == 0, outcome.err
    assert [line.split()[0] for line in outcome.out.splitlines() if " nearest " in line] == ["cut-outs"] * 2


def test_verify_knows_frames_of_ones_own(cli: Cli, tmp_path: Path) -> None:
    _frame(tmp_path / "real_holdout", "desk")
    outcome = cli("data", "verify", tmp_path)
    assert outcome.code == 0, outcome.err
    assert "real-holdout v1: 1 frames of one's own, all of the right form" in outcome.out


@pytest.fixture
def own_folders(tmp_path: Path) -> Path:
    for folder in ("depth", "image"):
        (tmp_path / folder).mkdir()
    for name in ("1", "2"):
        depth = np.full((64, 80), 1000 + 500 * int(name), np.uint16)
        depth[20:30, 20:40] = 0
        Image.fromarray(depth).save(tmp_path / "depth" / f"{name}.png")
        Image.fromarray(np.full((64, 80, 3), 90, np.uint8)).save(tmp_path / "image" / f"{name}.png")
    return tmp_path


def test_own_frames_get_a_table_a_picture_and_a_sentence(
    cli: Cli, own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own_folders)
    run = (
        "evaluate",
        "depth",
        "image",
        "--reduce",
        4,
        "--method",
        "nearest",
        "--method",
        "bicubic",
        "--jobs",
        1,
    )
    outcome = cli(*run, "--picture", "worst.png", "--no-cache", "--json", "rows.json")
    assert outcome.code == 0, outcome.err
    assert "own frames v1: means over 2 frames of one's own, errors in mm" in outcome.out
    assert "is the best for this camera: mean error 0.0 mm" in outcome.out
    assert "wrote worst.png: the frame with the largest mean error" in outcome.err
    with Image.open("worst.png") as picture:
        assert picture.width > 200
    rows = json.loads(Path("rows.json").read_text())["rows"]
    assert {(row["variant"], row["scale"]) for row in rows} == {("reduced x4", 4), ("cut-outs", 1)}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["depth", "image", "--reduce", "1"], "--reduce 1: expected 2 or more"),
        (["depth", "image", "--reduce", "0"], "--reduce 0: expected 2 or more"),
        (["."], "Missing argument 'IMAGES': . holds depth maps; give their images"),
        (["noisy-middlebury", "--reduce", "4", "--method", "nearest"], "are for your own frames"),
        (["depth", "nowhere/*.png"], "nowhere/*.png: no file matches this pattern"),
    ],
)
def test_own_frames_errors(
    cli: Cli, own_folders: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], text: str
) -> None:
    monkeypatch.chdir(own_folders)
    outcome = cli("evaluate", *arguments)
    assert (outcome.code, len(outcome.lines)) == (2, 1)
    assert text in outcome.err
