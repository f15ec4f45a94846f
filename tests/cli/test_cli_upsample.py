"""`primaldepth upsample` on one pair: units, formats, holes, noise, confidence, clouds, odd sizes."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_files import CAMERA, Cli, depth_values, image

from primaldepth.api import upsample
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.conversions import radial_from_z
from primaldepth.io import DepthMap, Kind, Unit, read_depth, read_guide, write_depth
from primaldepth.io.pointcloud import read_ply

FAST = ("--method", "bilinear")
ANY = ("--method", "pdn-any")
FORMATS = (".npy", ".npz", ".exr", ".pfm", ".tiff", ".tif", ".mat")


def expected(depth: str = "depth.png") -> np.ndarray:
    return np.asarray(upsample(depth, "guide.png", method="bilinear").depth)


def test_variational_method_with_settings(cli: Cli, files: Path) -> None:
    settings = ("--method", "nlh-l2", "--iterations", "3", "--set", "coarse_iterations=2")
    outcome = cli("upsample", "depth.png", "guide.png", "-o", "out.npy", "--json", *settings)
    assert outcome.code == 0
    assert outcome.json["info"]["iterations"] == 3
    assert outcome.json["seconds"] == round(outcome.json["seconds"], 3)


def test_the_uncertainty_is_written_in_metres(cli: Cli, files: Path) -> None:
    assert cli("upsample", "depth.png", "guide.png", "-o", "out.png", "--sigma", "sigma.npy", *ANY).code == 0
    sigma, depth = np.load(files / "sigma.npy"), read_depth(files / "out.png").values
    assert sigma.shape == depth.shape
    assert 0 < sigma.min() < sigma.max() < depth.max()


def test_a_limit_below_every_sigma_is_named(cli: Cli, files: Path) -> None:
    outcome = cli("upsample", "depth.png", "guide.png", "-o", "out.png", "--max-sigma", "0.0001", *ANY)
    assert outcome.code == 2
    assert "--max-sigma: no estimate is as sure as 0.0001, the smallest sigma is" in outcome.err
    assert not (files / "out.png").exists()


def test_a_method_without_uncertainty_says_so_at_once(cli: Cli, files: Path) -> None:
    outcome = cli("upsample", "depth.png", "guide.png", "-o", "out.png", "--sigma", "s.npy", *FAST)
    assert outcome.code == 2
    assert "--sigma: method 'bilinear' does not say how far it may be off" in outcome.err
    assert not (files / "out.png").exists()


def test_an_ensemble_is_that_of_the_python_call(cli: Cli, files: Path) -> None:
    assert cli("upsample", "depth.png", "guide.png", "-o", "eight.npy", "--ensemble", *ANY).code == 0
    one, eight = (
        np.asarray(upsample("depth.png", "guide.png", options={"ensemble": turned}).depth)
        for turned in (False, True)
    )
    np.testing.assert_allclose(np.load(files / "eight.npy"), eight, rtol=1e-6)
    assert not np.allclose(one, eight, rtol=1e-6)


@pytest.mark.parametrize("unit", ["mm", "5000", "256", "4000", "31.25"])
def test_integer_units_come_back_in_the_same_unit(cli: Cli, files: Path, unit: Unit) -> None:
    write_depth("in.png", DepthMap.from_array(depth_values(), unit=unit))
    outcome = cli("upsample", "in.png", "guide.png", "-o", "out.png", "--unit", unit, *FAST, "--json")
    assert outcome.json["unit"] == unit
    result = read_depth("out.png", unit=unit)
    step = 1e-3 if unit == "mm" else 1 / float(unit)
    reference = np.asarray(upsample("in.png", "guide.png", unit=unit, method="bilinear").depth)
    np.testing.assert_allclose(result.values, reference, atol=0.51 * step)


def test_metres_become_millimetres_in_png_and_stay_metres_elsewhere(cli: Cli, files: Path) -> None:
    np.save("in.npy", depth_values().astype(np.float32))
    for name, unit in (("out.png", "mm"), ("out.exr", "m")):
        outcome = cli("upsample", "in.npy", "guide.png", "-o", name, *FAST, "--json")
        assert outcome.json["unit"] == unit
        np.testing.assert_allclose(read_depth(name).values, expected("in.npy"), atol=6e-4)


DISPARITIES: dict[str, tuple[str, list[str], str, Unit, Kind]] = {
    "8-bit": ("disparity.png", [], "out.png", "disparity", "disparity"),
    "to float": ("disparity.png", [], "out.pfm", "disparity", "disparity"),
    "KITTI": ("depth.png", ["--unit", "256", "--kind", "disparity"], "out.png", "256", "disparity"),
    "16 per pixel": ("depth.png", ["--unit", "16", "--kind", "disparity"], "out.png", "16", "disparity"),
    "KITTI to float": (
        "depth.png",
        ["--unit", "256", "--kind", "disparity"],
        "out.exr",
        "disparity",
        "disparity",
    ),
}


@pytest.mark.parametrize(("depth", "options", "out", "unit", "kind"), DISPARITIES.values(), ids=DISPARITIES)
def test_disparity_stays_disparity(
    cli: Cli, files: Path, depth: str, options: list[str], out: str, unit: Unit, kind: Kind
) -> None:
    arguments = ("upsample", depth, "guide.png", "-o", out, *options, *FAST, "--preview", "p.png", "--json")
    report = cli(*arguments).json
    assert (report["unit"], report["kind"], report["noise_unit"]) == (unit, kind, "px")
    source_unit: Unit = options[1] if options else "disparity"
    low = read_depth(depth, unit=source_unit, kind=kind).values
    high = read_depth(out, unit=unit, kind=kind).values
    assert high.mean() == pytest.approx(low.mean(), rel=0.02)


def test_disparity_above_255_takes_16_bits(cli: Cli, files: Path) -> None:
    values = np.full((6, 8), 300.0)
    write_depth("wide.npy", DepthMap.from_array(values, unit="disparity"))
    assert cli("upsample", "wide.npy", "guide.png", "-o", "o.png", "--unit", "disparity", *FAST).code == 0
    with Image.open("o.png") as picture:
        assert picture.mode == "I;16"
    assert np.unique(read_depth("o.png", unit="disparity").values) == [300.0]


def test_disparity_up_to_255_takes_8_bits(cli: Cli, files: Path) -> None:
    assert cli("upsample", "disparity.png", "guide.png", "-o", "o.png", *FAST).code == 0
    with Image.open("o.png") as picture:
        assert picture.mode == "L"


@pytest.mark.parametrize("extension", FORMATS)
def test_floating_formats_agree(cli: Cli, files: Path, extension: str) -> None:
    out = f"out{extension}"
    assert cli("upsample", "depth.png", "guide.png", "-o", out, *FAST).code == 0
    np.testing.assert_array_equal(read_depth(out).values.astype(np.float32), expected())


def test_npz_carries_the_mask(cli: Cli, files: Path) -> None:
    cli("upsample", "holes.png", "guide.png", "-o", "out.npz", "--holes", "keep", *FAST)
    with np.load("out.npz", allow_pickle=False) as archive:
        assert archive["depth"].shape == (24, 32)
        assert archive["valid"].sum() == 24 * 32 - 4 * 16
        assert np.isnan(archive["depth"][~archive["valid"]]).all()


@pytest.mark.parametrize("extension", [".png", *FORMATS])
def test_holes_are_filled_or_kept(cli: Cli, files: Path, extension: str) -> None:
    hole = np.zeros((24, 32), bool)
    hole[8:16, 12:20] = True
    filled = cli("upsample", "holes.png", "guide.png", "-o", f"fill{extension}", *FAST, "--json")
    assert read_depth(f"fill{extension}").valid.all()
    assert filled.json["measured_fraction"] == pytest.approx(44 / 48)
    kept = cli(
        "upsample", "holes.png", "guide.png", "-o", f"keep{extension}", "--holes", "keep", *FAST, "--json"
    )
    np.testing.assert_array_equal(read_depth(f"keep{extension}").valid, ~hole)
    assert kept.json["empty_fraction"] == pytest.approx(4 / 48)
    assert "8.3 % left as holes" in kept.err


@pytest.mark.parametrize(("holes", "points"), [("fill", 24 * 32), ("keep", 24 * 32 - 8 * 8)])
def test_clouds_have_the_holes_of_the_depth(cli: Cli, files: Path, holes: str, points: int) -> None:
    options = ("--cloud", "c.ply", "--holes", holes, *FAST)
    assert cli("upsample", "holes.png", "guide.png", "-o", "o.npy", *options).code == 0
    assert len(read_ply("c.ply").points) == points == read_depth("o.npy").valid.sum()


def test_measured_is_a_mask_of_255_and_0(cli: Cli, files: Path) -> None:
    assert cli("upsample", "holes.png", "guide.png", "-o", "o.png", "--measured", "m.png", *FAST).code == 0
    with Image.open("m.png") as picture:
        assert picture.mode == "L"
        mask = np.array(picture)
    wanted = np.full((24, 32), 255)
    wanted[8:16, 12:20] = 0
    np.testing.assert_array_equal(mask, wanted)


def test_estimates_that_round_to_the_invalid_0_become_holes(cli: Cli, files: Path) -> None:
    """Bicubic undershoots between 1 and 60 px; the file is written all the same."""
    values = np.ones((6, 8))
    values[:, 4:] = 60.0
    write_depth("step.png", DepthMap.from_array(values, unit="disparity"))
    outcome = cli("upsample", "step.png", "guide.png", "-o", "o.png", "--method", "bicubic", "--json")
    assert outcome.code == 0
    assert 0 < outcome.json["empty_fraction"] < 0.2


@pytest.mark.parametrize(("unit", "noise"), [("mm", "20"), ("5000", "100"), ("256", "5.12"), ("m", "0.02")])
def test_a_number_of_noise_is_in_the_input_s_unit(cli: Cli, files: Path, unit: Unit, noise: str) -> None:
    name = "in.npy" if unit == "m" else "in.png"
    write_depth(name, DepthMap.from_array(depth_values(), unit=unit))
    options = ("--unit", unit, "--noise", noise, *FAST, "--json")
    report = cli("upsample", name, "guide.png", "-o", "o.exr", *options).json
    assert report["noise_sigma"] == pytest.approx(0.02)


def test_noise_of_a_sensor(cli: Cli, files: Path) -> None:
    options = ("--noise", "middlebury", *FAST, "--json")
    report = cli("upsample", "disparity.png", "guide.png", "-o", "o.png", *options).json
    assert report["noise_sigma"] == pytest.approx(651 / 110, rel=0.05)


def test_confidence_changes_the_result(cli: Cli, files: Path) -> None:
    trust = np.full((6, 8), 255, np.uint8)
    trust[:, :4] = 3
    Image.fromarray(trust).save("trust.png")
    settings = ("--method", "nlh-l2", "--set", "iterations=5", "--set", "coarse_iterations=5")
    assert cli("upsample", "depth.png", "guide.png", "-o", "a.npy", *settings).code == 0
    assert (
        cli("upsample", "depth.png", "guide.png", "-o", "b.npy", *settings, "--confidence", "trust.png").code
        == 0
    )
    assert np.abs(np.load("a.npy") - np.load("b.npy"))[:, :12].max() > 1e-4


@pytest.mark.parametrize("name", ["cloud.ply", "cloud.glb"])
def test_cloud_and_preview(cli: Cli, files: Path, name: str) -> None:
    options = ("--cloud", name, "--preview", "p.png", "--cameras", "cameras.json", *FAST)
    outcome = cli("upsample", "depth.png", "guide.png", "-o", "o.png", *options)
    assert outcome.code == 0
    assert len(outcome.lines) == 1
    assert Path(name).stat().st_size > 24 * 32 * 15
    with Image.open("p.png") as picture:
        assert picture.width > 3 * picture.height / 2


@pytest.mark.parametrize(("apart", "least"), [(1, 1.0), (6, 0.5)])
def test_samples_that_stand_alone_are_seen_in_the_preview(
    cli: Cli, files: Path, apart: int, least: float
) -> None:
    """Of the input's picture, in the middle of three, what is not the grey of holes; bare pixels are 3 %."""
    sparse = np.zeros((240, 300), np.uint16)
    sparse[::apart, ::apart] = np.linspace(1000, 2000, 300)[None, ::apart]
    Image.fromarray(sparse).save("sparse.png")
    Image.fromarray(image((240, 300, 3))).save("same.png")
    cli("upsample", "sparse.png", "same.png", "-o", "o.png", "--preview", "p.png", "--method", "nearest")
    picture = np.asarray(Image.open("p.png"))
    middle = picture[60:200, 350:590]
    assert (middle != 128).any(axis=2).mean() >= least


def test_cloud_is_metric_in_the_guide_s_camera(cli: Cli, files: Path) -> None:
    cli(
        "upsample",
        "holes.png",
        "guide.png",
        "-o",
        "o.npy",
        "--cloud",
        "c.ply",
        "--cameras",
        "cameras.json",
        *FAST,
    )
    cloud = read_ply("c.ply")
    np.testing.assert_allclose(cloud.points[:, 2], np.load("o.npy").ravel(), rtol=1e-6)
    np.testing.assert_allclose(cloud.points[0, 0], cloud.points[0, 2] * (0.5 - 16) / 30, rtol=1e-5)
    assert cloud.measured is not None
    assert (~cloud.measured).sum() == 64


def test_cloud_without_cameras_says_what_it_assumed(cli: Cli, files: Path) -> None:
    outcome = cli("upsample", "depth.png", "guide.png", "-o", "o.png", "--cloud", "c.ply", *FAST)
    assert outcome.code == 0
    assert any("60 degree" in line for line in outcome.lines)


def test_radial_becomes_z(cli: Cli, files: Path) -> None:
    camera = Intrinsics(**CAMERA).scaled_to(8, 6)  # type: ignore[arg-type]
    z = np.full((6, 8), 2.0)
    np.save("radial.npy", radial_from_z(z, z > 0, camera))
    options = ("--kind", "radial", "--cameras", "cameras.json", *FAST, "--json")
    report = cli("upsample", "radial.npy", "guide.png", "-o", "o.npy", *options).json
    assert report["kind"] == "z"
    np.testing.assert_allclose(np.load("o.npy"), 2.0, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:std")  # the solver's measure of change, on one pixel
@pytest.mark.parametrize("method", ["bilinear", "nlh-l2"])
@pytest.mark.parametrize(
    ("low", "high"),
    [
        ((1, 1), (1, 1)),
        ((1, 1), (5, 3)),
        ((1, 7), (1, 9)),
        ((7, 1), (10, 4)),
        ((5, 6), (13, 40)),
        ((3, 3), (3, 3)),
    ],
)
def test_odd_sizes(cli: Cli, files: Path, low: tuple[int, int], high: tuple[int, int], method: str) -> None:
    np.save("in.npy", np.full(low, 1.5, np.float32))
    Image.fromarray(image((*high, 3))).save("g.png")
    settings = ("--set", "iterations=3", "--set", "coarse_iterations=3") if method == "nlh-l2" else ()
    extras = ("--preview", "p.png", "--cloud", "c.ply", "--measured", "m.png", "--json")
    outcome = cli("upsample", "in.npy", "g.png", "-o", "o.npy", "--method", method, *settings, *extras)
    assert outcome.code == 0, outcome.err
    assert outcome.json["output_size"] == [high[1], high[0]]
    np.testing.assert_allclose(np.load("o.npy"), 1.5, rtol=1e-4)


@pytest.mark.parametrize("folder", ["with two  spaces", "深度 – größe", "[a]*?", "[bold]x :smile:"])
def test_names_with_spaces_and_signs(cli: Cli, files: Path, folder: str) -> None:
    place = files / folder
    place.mkdir()
    for name in ("depth.png", "guide.png"):
        (place / name).write_bytes((files / name).read_bytes())
    outcome = cli(
        "upsample", place / "depth.png", place / "guide.png", "-o", place / "o ut.png", *FAST, "--json"
    )
    assert outcome.code == 0
    assert outcome.json["out"] == str(place / "o ut.png")
    missing = cli("upsample", place / "depth.png", place / "gone.png", "-o", place / "x.png", *FAST)
    assert str(place / "gone.png") in missing.err


def test_grey_and_alpha_guides(cli: Cli, files: Path) -> None:
    Image.fromarray(image((24, 32))).save("grey.png")
    Image.fromarray(image((24, 32, 4))).save("alpha.png")
    for guide in ("grey.png", "alpha.png"):
        outcome = cli(
            "upsample", "depth.png", guide, "-o", "o.png", *FAST, "--preview", "p.png", "--cloud", "c.ply"
        )
        assert outcome.code == 0, outcome.err


def test_an_existing_output_is_replaced(cli: Cli, files: Path) -> None:
    Path("o.png").write_text("old")
    assert cli("upsample", "depth.png", "guide.png", "-o", "o.png", *FAST).code == 0
    assert read_depth("o.png").values.shape == (24, 32)


def test_normals_of_a_wall_are_written_as_16_bits_and_as_numbers(cli: Cli, files: Path) -> None:
    write_depth("wall.png", DepthMap.from_array(np.full((6, 8), 2.0), unit="mm"))
    pair = ("wall.png", "guide.png", "--cameras", "cameras.json", *FAST)
    for name in ("n.png", "n.npy"):
        outcome = cli("upsample", *pair, "-o", "out.png", "--normals", name, "--json")
        assert (outcome.code, outcome.json["normals"]) == (0, name)
    numbers = np.load("n.npy")
    np.testing.assert_allclose(numbers, np.broadcast_to([0.0, 0.0, -1.0], (24, 32, 3)), atol=1e-5)
    assert Path("n.png").read_bytes()[24:26] == bytes([16, 2])  # bits, and colours
    np.testing.assert_allclose(2.0 * read_guide("n.png") - 1.0, numbers, atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("depth.png", "guide.png"), "a map of normals needs the guide's camera; give --cameras"),
        (("disparity.png", "guide.png", "--cameras", "cameras.json"), "needs metric depth"),
    ],
)
def test_normals_need_metric_depth_and_a_camera(
    cli: Cli, files: Path, arguments: tuple[str, ...], text: str
) -> None:
    outcome = cli("upsample", *arguments, "-o", "out.png", "--normals", "n.png", *FAST)
    assert (outcome.code, len(outcome.lines)) == (2, 1)
    assert text in outcome.err
    assert not Path("out.png").exists()
