"""What `primaldepth upsample` says of one pair: its report, its line, and what it doubts."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from small_files import Cli, depth_values, image

from primaldepth.api import load_inputs
from primaldepth.networks import DepthNet, ModelCard, NetworkSettings, save_model

FAST = ("--method", "bilinear")
ANY = ("--method", "pdn-any")


def test_report_is_json_on_stdout_and_one_line_on_stderr(cli: Cli, files: Path) -> None:
    outcome = cli("upsample", "depth.png", "guide.png", "-o", "out.png", *FAST, "--json")
    assert outcome.code == 0
    assert outcome.lines == [line for line in outcome.lines if line.startswith("out.png: 8x6 to 32x24 in")]
    report = outcome.json
    assert report["input_size"] == [8, 6]
    assert report["output_size"] == [32, 24]
    assert (report["kind"], report["unit"], report["noise_unit"]) == ("z", "mm", "m")
    assert report["measured_fraction"] == 1.0
    assert report["empty_fraction"] == 0.0
    assert (report["depth"], report["guide"], report["out"]) == ("depth.png", "guide.png", "out.png")


def test_without_json_stdout_stays_empty(cli: Cli, files: Path) -> None:
    outcome = cli("upsample", "depth.png", "guide.png", "-o", "out.png", *FAST)
    assert (outcome.code, outcome.out) == (0, "")


def test_a_network_far_from_its_scales_is_doubted(cli: Cli, files: Path) -> None:
    Image.open(files / "guide.png").resize((8, 6)).save(files / "same.png")
    outcome = cli("upsample", "depth.png", "same.png", "-o", "out.png", "--method", "fcn-s")
    assert outcome.code == 0
    assert "warning: 'fcn-s' was trained for x2 to x16, this is x1; try pdn-any" in outcome.err
    assert "warning" not in cli("upsample", "depth.png", "guide.png", "-o", "b.png", *ANY).err


@pytest.mark.parametrize(
    ("scale", "config", "doubt"),
    [
        (4, {}, None),
        (2, {}, "was trained for x2, this is x4; try pdn-any"),
        (None, {"scale": [8, 16]}, "was trained for x8 to x16, this is x4; try pdn-any"),
        (None, {"scale": 8}, "was trained for x8, this is x4; try pdn-any"),
        (None, {"scale": [1, 16]}, None),
        (None, {}, None),
    ],
)
def test_own_weights_far_from_the_scales_of_their_card_are_doubted(
    cli: Cli, files: Path, scale: int | None, config: dict[str, Any], doubt: str | None
) -> None:
    net = DepthNet(NetworkSettings(layers=2, maps=4, window=3, iterations=1))
    card = ModelCard(name="own", scale=scale, settings=net.settings, created=datetime.now(UTC), config=config)
    save_model("own.safetensors", net, card)
    outcome = cli("upsample", "depth.png", "guide.png", "-o", "out.npy", "--method", "own.safetensors")
    assert outcome.code == 0, outcome.err
    assert (f"warning: 'own.safetensors' {doubt}" in outcome.err) if doubt else ("trained" not in outcome.err)


def test_a_result_that_left_its_samples_is_doubted(cli: Cli, files: Path) -> None:
    outcome = cli("upsample", "depth.png", "guide.png", "-o", "out.png", "--noise", "0.01", *ANY)
    assert "warning: the result does not follow the samples" in outcome.err


@pytest.mark.parametrize(
    ("out", "options", "said"),
    [
        ("out.npy", [], "unit mm (result: m), kind z, median depth 1.3 m, noise"),
        ("out.png", [], "unit mm, kind z, median depth 1.3 m, noise"),
        ("out.png", ["--unit", "256"], "unit 256, kind z, median depth 5.078 m, noise"),
        ("out.png", ["--kind", "disparity"], "kind disparity, median disparity 1300 px, noise"),
    ],
)
def test_what_the_numbers_were_taken_for(
    cli: Cli, files: Path, out: str, options: list[str], said: str
) -> None:
    np.save("thirteen.npy", np.full((6, 8), 1300, np.uint16))
    outcome = cli("upsample", "thirteen.npy", "guide.png", "-o", out, *options, *FAST, "--json")
    assert said in outcome.lines[0]
    read = options[1] if options else "mm"
    assert outcome.json["input_unit"] == read
    assert outcome.json["median_depth"] == pytest.approx(
        {"mm": 1.3, "256": 1300 / 256, "disparity": 1300.0}[read]
    )


@pytest.mark.parametrize(
    ("unit", "doubt"),
    [("m", "the median depth is 1500 m; if that is wrong, give the right --unit, such as mm"), ("mm", None)],
)
def test_depth_no_camera_sees_is_doubted(cli: Cli, files: Path, unit: str, doubt: str | None) -> None:
    np.save("big.npy", np.full((6, 8), 1500.0))
    outcome = cli("upsample", "big.npy", "guide.png", "-o", "out.npy", "--unit", unit, *FAST)
    assert outcome.code == 0
    assert (f"warning: {doubt}" in outcome.err) if doubt else ("warning" not in outcome.err)


@pytest.mark.parametrize("extension", [".png", ".tiff", ".npy"])
def test_eight_bits_are_doubted_unless_their_meaning_is_given(cli: Cli, files: Path, extension: str) -> None:
    low = np.full((6, 8), 190, np.uint8)
    Image.fromarray(low).save(files / f"eight{extension}") if extension != ".npy" else np.save("eight", low)
    said = "8-bit numbers are taken as disparities; if they are distances, give --unit"
    options = (f"eight{extension}", "guide.png", "-o", "a.png", *FAST)
    assert said in cli("upsample", *options).err
    for meaning in (("--kind", "disparity"), ("--unit", "mm")):
        assert said not in cli("upsample", *options, *meaning).err


def test_the_largest_number_of_16_bits_is_doubted(cli: Cli, files: Path) -> None:
    low = np.full((6, 8), 1300, np.uint16)
    low[0, :3] = 65535
    Image.fromarray(low).save("high.png")
    outcome = cli("upsample", "high.png", "guide.png", "-o", "a.npy", *FAST, "--json")
    assert outcome.json["largest_samples"] == 3
    assert "warning: samples that hold 65535, the largest number of a 16-bit file: 3;" in outcome.err
    disparity = cli(
        "upsample", "high.png", "guide.png", "-o", "b.npy", "--kind", "disparity", *FAST, "--json"
    )
    assert disparity.json["largest_samples"] == 0


def test_a_result_that_does_not_fit_blames_the_largest_number(cli: Cli, files: Path) -> None:
    low = np.full((6, 8), 1300, np.uint16)
    low[:2] = 65535
    Image.fromarray(low).save("high.png")
    outcome = cli("upsample", "high.png", "guide.png", "-o", "a.png", "--method", "bicubic")
    assert outcome.code == 0
    assert "warning: samples that hold 65535, the largest number of a 16-bit file: 16;" in outcome.err
    assert "warning: estimates that are larger than the format can hold are holes: " in outcome.err


def test_a_noise_that_was_given_is_asked_about(cli: Cli, files: Path) -> None:
    low = np.where(np.indices((32, 40)).sum(axis=0) % 2, 1300, 1500).astype(np.uint16)
    Image.fromarray(low).save("rough.png")
    Image.new("RGB", (80, 64)).save("large.png")
    options = ("rough.png", "large.png", "-o", "a.npy", "--method", "bilinear", "--noise", "0.02")
    said = cli("upsample", *options).err
    assert "check the result, check that the noise is 0.02 mm, or try another method" in said


def test_a_few_samples_far_off_are_doubted(cli: Cli, files: Path) -> None:
    low = np.full((32, 40), 1300, np.uint16)
    Image.new("RGB", (80, 64)).save("large.png")
    options = ("large.png", "-o", "a.npy", "--noise", "5", "--method", "nlh-l1", "--overwrite")
    Image.fromarray(low).save("flat.png")
    assert "warning" not in cli("upsample", "flat.png", *options).err
    low[5, 7] = 8000
    Image.fromarray(low).save("flying.png")
    dropped = cli("upsample", "flying.png", *options, "--json")
    assert "warning" not in dropped.err
    assert "spikes taken for holes: 1" in dropped.err
    assert dropped.json["spikes"] == 1
    kept = cli("upsample", "flying.png", *options, "--spikes", "keep", "--json")
    assert "warning: some samples are far off (RMS" in kept.err
    assert kept.json["spikes"] == 0
    low[::3, ::3] = 8000
    Image.fromarray(low).save("fence.png")
    assert (
        "samples lie far from all their neighbours and count as holes"
        in cli("upsample", "fence.png", *options).err
    )
    low[:] = 1300
    low[5, 6:9] = 8000  # three together may be a thing
    Image.fromarray(low).save("flying.png")
    assert "warning: some samples are far off (RMS" in cli("upsample", "flying.png", *options).err


def test_estimates_that_round_to_0_are_counted(cli: Cli, files: Path) -> None:
    """Disparities below half a pixel are holes in a PNG, and nowhere else."""
    low = np.full((6, 8), 90.0)
    low[:, :2] = 0.3
    np.save("small.npy", low)
    options = ("--unit", "disparity", "--method", "nearest", "--json")
    rounded = cli("upsample", "small.npy", "guide.png", "-o", "a.png", *options)
    lost = int((np.asarray(Image.open("a.png")) == 0).sum())
    assert (rounded.json["rounded_off"], lost) == (24 * 8, 24 * 8)
    assert rounded.json["empty_fraction"] == pytest.approx(0.25)
    words = (
        "warning: estimates that would round to 0, which means no depth, are holes: 192 pixels; write .npy"
    )
    assert words in rounded.err
    kept = cli("upsample", "small.npy", "guide.png", "-o", "a.npy", *options)
    assert (kept.json["rounded_off"], "round to 0" in kept.err) == (0, False)
    assert (np.load("a.npy") > 0).all()


@pytest.mark.parametrize(
    ("noise", "said"), [("auto", "(estimated)"), ("20", "noise 20 mm (given)"), ("kinect-v1", "(kinect-v1)")]
)
def test_the_line_says_what_was_assumed(cli: Cli, files: Path, noise: str, said: str) -> None:
    outcome = cli("upsample", "depth.png", "guide.png", "-o", "o.png", "--noise", noise, *FAST, "--json")
    assert said in outcome.lines[0]
    assert "unit mm, kind z" in outcome.lines[0]
    assert outcome.json["noise_source"] == noise


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ([[1500]], "noise 0.75 mm (the least assumed)"),
        ([[1500, 0], [0, 1600]], "(the least assumed)"),
        ([[1500, 1600, 1500]], "(a guess from 3 samples)"),
        (np.full((8, 8), 1500), "noise 0.75 mm (the least assumed)"),
    ],
    ids=["one", "two apart", "three", "no noise"],
)
def test_noise_that_nothing_could_be_estimated_from(cli: Cli, files: Path, samples: Any, said: str) -> None:
    np.save("few.npy", np.asarray(samples, np.uint16))
    assert said in cli("upsample", "few.npy", "guide.png", "-o", "o.npy", *FAST).lines[0]


def test_the_line_says_how_far_the_result_departs_from_the_samples(cli: Cli, files: Path) -> None:
    """A guide of the samples' size and `nearest` keep every sample, a plane through noise does not."""
    Image.fromarray(image((6, 8, 3))).save("same.png")
    kept = cli("upsample", "depth.png", "same.png", "-o", "o.npy", "--method", "nearest", "--json").json
    assert (kept["residual_rms"], kept["residual_sigmas"]) == (0.0, 0.0)
    options = ("--method", "nlh-l2", "--noise", "50", "--set", "lam=1e-4", "--json")
    outcome = cli("upsample", "depth.png", "same.png", "-o", "o.npy", *options)
    report = outcome.json
    wanted = np.sqrt(np.mean((np.load("o.npy") - depth_values()) ** 2))
    assert report["residual_rms"] == pytest.approx(wanted, rel=1e-4)
    assert report["residual_sigmas"] == pytest.approx(wanted / 0.05, rel=1e-4)
    assert f"departs {1000 * wanted:.3g} mm RMS from the samples ({wanted / 0.05:.2g} sigma)" in outcome.err


def test_numbers_that_are_not_finite_are_null_in_json(cli: Cli, files: Path) -> None:
    from primaldepth.cli.upsample import ADVICE
    from primaldepth.core.frame import Prediction
    from primaldepth.pipeline.frame_report import report_of
    from primaldepth.pipeline.outcome import outcome_of
    from primaldepth.pipeline.outputs import DepthResult
    from primaldepth.pipeline.request import Request

    inputs = load_inputs("depth.png", "guide.png")
    guide = inputs.frame.guide[:, :1]
    prediction = Prediction(guide, guide >= 0, guide >= 0, info={"gap": float("inf"), "iterations": 3})
    result = DepthResult(np.ones((24, 32)), np.ones((24, 32), bool), "m")
    outcome = outcome_of(Request("bilinear"), inputs, prediction, 0.1)
    report = report_of(outcome, ADVICE, result).json()
    assert report["info"] == {"gap": None, "iterations": 3}
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_another_shape_is_doubted(cli: Cli, files: Path) -> None:
    """8x6 samples: a guide of 32x24 or 33x24 is rounding, one of 24x32 another view."""
    for name, size in (("rounded", (24, 33)), ("portrait", (32, 24))):
        Image.fromarray(np.zeros(size, np.uint8)).save(f"{name}.png")
    words = "have different aspect ratios; crop both to the same view"
    for guide, doubted in (("guide.png", False), ("rounded.png", False), ("portrait.png", True)):
        outcome = cli("upsample", "depth.png", guide, "-o", f"out-{guide}", "--method", "bilinear")
        assert outcome.code == 0
        assert (words in outcome.err) is doubted


def test_a_unit_that_makes_kilometres_is_named_before_the_work(cli: Cli, files: Path) -> None:
    outcome = cli("upsample", "depth.png", "guide.png", "-o", "out.png", "--unit", "m")
    assert outcome.code == 2
    assert "m: is the unit right?" in outcome.err
