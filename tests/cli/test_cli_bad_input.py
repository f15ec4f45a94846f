"""Bad input: one clear line on stderr, exit 2, before any computation, and nothing written."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from small_files import Cli

from primaldepth.core.errors import InputError

BASE = ["depth.png", "guide.png", "-o", "new/out.png", "--method", "bilinear"]


def swapped(depth: str = "depth.png", guide: str = "guide.png", out: str = "new/out.png") -> list[str]:
    return [depth, guide, "-o", out, "--method", "bilinear"]


BAD_FILES = {
    "truncated.png": "truncated",
    "empty.png": "0 bytes",
    "missing.png": "no such file",
    "text.png": "not a format this package reads",
}
BAD_OUTS = {
    "extension": ("out.jpg", "'.jpg' cannot be written; use .png or .exr"),
    "without extension": ("out", "no extension"),
    "folder": ("folder", "--out folder: is a directory"),
    "named like a folder": ("new.png", "is a directory"),
    "below a file": ("depth.png/out.png", "is a file, not a folder"),
    "is the depth": ("depth.png", "would overwrite an input"),
    "is the guide": ("folder/../guide.png", "would overwrite an input"),
}
CASES: dict[str, tuple[list[str], str]] = {
    **{f"depth {name}": (swapped(depth=name), text) for name, text in BAD_FILES.items()},
    **{f"guide {name}": (swapped(guide=name), text) for name, text in BAD_FILES.items()},
    **{f"confidence {name}": ([*BASE, "--confidence", name], text) for name, text in BAD_FILES.items()},
    "depth folder missing": (
        swapped(depth="gone", out="new"),
        "gone: no such file or folder; check the name",
    ),
    "depth folder": (swapped(depth="folder"), "no depth or image file in this folder; expected .exr, "),
    "guide folder": (swapped(guide="folder"), "is a directory"),
    "confidence folder": ([*BASE, "--confidence", "folder"], "is a directory"),
    "depth in colour": (swapped(depth="color.png"), "3 channels"),
    "depth in colour, npy": (swapped(depth="three.npy"), "3 channels"),
    "depth all invalid": (swapped(depth="zero.png"), "no valid pixel"),
    "guide NaN, npy": (swapped(guide="nan.npy"), "NaN"),
    "guide NaN, pfm": (swapped(guide="nan.pfm"), "NaN"),
    "guide smaller": (swapped(guide="small.png"), "4x4 is smaller than the depth's 8x6"),
    "confidence size": ([*BASE, "--confidence", "confidence.png"], "8x5 pixels, but the depth has 8x6"),
    "does not fit": (swapped(depth="far.npy"), "70000 does not fit PNG"),
    "method": ([*BASE[:-1], "bilinera"], "did you mean 'bilinear'?"),
    "unit": ([*BASE, "--unit", "cm"], "unit 'cm' is not known"),
    "kind": ([*BASE, "--kind", "ray"], "kind 'ray' is not known"),
    "device": ([*BASE, "--device", "tpu"], "not one of auto, cpu, cuda"),
    "holes": ([*BASE, "--holes", "drop"], "not fill or keep"),
    "spikes": ([*BASE, "--spikes", "fill"], "not drop or keep"),
    "sampling": ([*BASE, "--sampling", "mean"], "sampling: 'mean' is not average or point"),
    "noise name": ([*BASE, "--noise", "kinekt"], "neither a number nor one of auto, middlebury"),
    "noise negative": ([*BASE, "--noise", "-1"], "-1.0 is not a standard deviation"),
    "noise nan": ([*BASE, "--noise", "nan"], "not a standard deviation"),
    "noise inf": ([*BASE, "--noise", "inf"], "not a standard deviation"),
    "noise huge": ([*BASE, "--noise", "1e39"], "not a standard deviation"),
    "set without value": ([*BASE, "--set", "lam"], "not KEY=VALUE"),
    "set for a method without": ([*BASE, "--set", "lam=1"], "no options"),
    "set unknown key": ([*BASE[:-1], "nlh-l2", "--set", "iteration=1"], "did you mean 'iterations'?"),
    "set bad value": ([*BASE[:-1], "nlh-l2", "--set", "iterations=many"], "'iterations'"),
    "set bad choice": ([*BASE[:-1], "nlh-l2", "--set", "sensor=eye"], "'sensor'"),
    "radial without cameras": ([*BASE, "--kind", "radial"], "--cameras"),
    "cameras missing": ([*BASE, "--cameras", "missing.json"], "missing.json"),
    "cameras broken": ([*BASE, "--cameras", "broken.json"], "JSON"),
    "cameras without guide": ([*BASE, "--cameras", "bare.json"], 'put them in {"guide": {...}}'),
    "cameras partial": ([*BASE, "--cameras", "partial.json"], "'fy'"),
    **{f"out {name}": (swapped(out=out), text) for name, (out, text) in BAD_OUTS.items()},
    "preview is the out": ([*BASE, "--preview", "new/out.png"], "two results"),
    "preview extension": ([*BASE, "--preview", "p.jpg"], "--preview p.jpg: extension '.jpg'"),
    "preview folder": ([*BASE, "--preview", "folder"], "--preview folder: is a directory"),
    "measured extension": ([*BASE, "--measured", "m.exr"], "--measured m.exr: extension '.exr'"),
    "cloud extension": ([*BASE, "--cloud", "c.obj"], "use .ply or .glb"),
    "cloud below a file": ([*BASE, "--cloud", "guide.png/c.ply"], "is a file, not a folder"),
    "cloud of disparity": (
        [*swapped(depth="disparity.png"), "--cloud", "c.ply"],
        "needs metric depth, but the input is disparity",
    ),
    "unit against kind": ([*BASE, "--unit", "disparity", "--kind", "z"], "contradicts"),
    "kind against unit": ([*BASE, "--unit", "mm", "--kind", "disparity"], "contradicts"),
    "kind against file": (
        [*swapped(depth="disparity.png"), "--kind", "z"],
        "8-bit numbers are read as disparity",
    ),
    "glob without match": (swapped(depth="no*.png", out="new"), "no file matches this pattern"),
    "unequal counts": (
        swapped(depth="[dh]*s.png", guide="[gs][um]*.png", out="new"),
        "1 depth files but 2 guides in [gs][um]*.png; few names fit, and pairs in order need as many of both",
    ),
    "batch into a file": (swapped(depth="h*.png"), "need a folder here, not a file"),
    "batch over its input": (swapped(depth="h*.png", out="."), "would overwrite an input"),
    "batch preview over out": ([*swapped(depth="h*.png", out="new"), "--preview", "new"], "two results"),
    "batch with a bad unit": ([*swapped(depth="h*.png", out="new"), "--unit", "cm"], "unit 'cm'"),
    "batch with bad noise": ([*swapped(depth="h*.png", out="new"), "--noise", "-2"], "-2.0"),
    "batch with bad cameras": ([*swapped(depth="h*.png", out="new"), "--cameras", "broken.json"], "JSON"),
    "name too long": (swapped(out="x" * 300 + ".png"), "File name too long"),
}


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The computation must not be reached."""

    def reached(*_: object) -> None:
        raise AssertionError("the method was run")

    monkeypatch.setattr("primaldepth.pipeline.outcome.predict", reached)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(("arguments", "text"), CASES.values(), ids=CASES)
def test_one_line_exit_2_and_nothing_written(cli: Cli, files: Path, arguments: list[str], text: str) -> None:
    (files / "new.png").mkdir()
    before = {path: path.stat().st_mtime_ns for path in files.rglob("*")}
    outcome = cli("upsample", *arguments)
    assert outcome.code == 2
    assert len(outcome.lines) == 1
    assert outcome.err.startswith("primaldepth: ")
    assert text in outcome.err
    assert outcome.out == ""
    assert {path: path.stat().st_mtime_ns for path in files.rglob("*")} == before


@pytest.mark.usefixtures("no_work")
@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_cuda_is_not_replaced_by_the_cpu(cli: Cli, files: Path) -> None:
    outcome = cli("upsample", *BASE, "--device", "cuda")
    assert (outcome.code, len(outcome.lines)) == (2, 1)
    assert "no CUDA device" in outcome.err


@pytest.mark.usefixtures("no_work")
def test_exr_guide_with_nan(cli: Cli, files: Path) -> None:
    exr = pytest.importorskip("OpenEXR")
    header = {"compression": exr.ZIP_COMPRESSION, "type": exr.scanlineimage}
    exr.File(header, {"Y": np.full((24, 32), np.nan, np.float32)}).write("nan.exr")
    outcome = cli("upsample", *swapped(guide="nan.exr"))
    assert (outcome.code, len(outcome.lines)) == (2, 1)
    assert "NaN" in outcome.err


def test_samples_that_do_not_fit_are_holes_and_told(cli: Cli, files: Path) -> None:
    values = np.ones((6, 8), np.float32)
    values[0] = 70.0
    np.save("partly.npy", values)
    outcome = cli("upsample", *swapped(depth="partly.npy"))
    assert outcome.code == 0
    assert "estimates that are larger than the format can hold are holes: " in outcome.err
    stored = np.asarray(Image.open(files / "new" / "out.png"))
    assert (stored == 0).any()
    assert (stored > 0).any()


def test_a_write_that_fails_late_leaves_nothing(
    cli: Cli, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The depth map cannot be written, and nothing else is."""

    def full(path: Path, outcome: object) -> None:
        raise InputError(path, "the disk is full")

    monkeypatch.setattr("primaldepth.pipeline.outputs.write_depth", full)
    outcome = cli("upsample", *BASE, "--preview", "p.png", "--measured", "m.png")
    assert (outcome.code, len(outcome.lines)) == (2, 1)
    assert "the disk is full" in outcome.err
    assert not (files / "new" / "out.png").exists()
    assert not (files / "p.png").exists()
    assert not (files / "m.png").exists()


USAGE = {
    "no depth": (["upsample"], "Missing argument 'DEPTH'"),
    "no out": (["upsample", "depth.png", "guide.png"], "Missing option '--out'"),
    "unknown option": (["upsample", *BASE, "--methd", "x"], "No such option: --methd"),
    "unquoted glob": (["upsample", "a.png", "b.png", "c.png", "-o", "new"], "extra argument"),
    "unknown verb": (["upsampel"], "No such command 'upsampel'"),
    "no method": (["evaluate", "noisy-middlebury"], "Missing option '--method'"),
    "scale": (["evaluate", "noisy-middlebury", "--method", "nearest", "--scale", "x"], "--scale"),
    "no folder": (["data", "verify"], "Missing argument 'DIR'"),
}


@pytest.mark.parametrize(("arguments", "text"), USAGE.values(), ids=USAGE)
def test_usage_errors_are_plain_text(cli: Cli, files: Path, arguments: list[str], text: str) -> None:
    outcome = cli(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.lines[-1].startswith("Error: ")
    assert text in outcome.lines[-1]
    assert outcome.err.isascii()
