"""`primaldepth upsample` on files of points: their unit, and folders of them."""

from pathlib import Path

import numpy as np
import pytest
from small_files import Cli

from primaldepth.api import upsample
from primaldepth.io import read_depth
from primaldepth.io.pointcloud import PointCloud, read_ply, write_cloud

OPTIONS = ("--cameras", "cameras.json", "--method", "nearest")


@pytest.fixture
def wall(files: Path) -> Path:
    """Write points of a wall in 2 m, in metres and in millimetres, seen by the camera of the small files."""
    rows, columns = np.mgrid[0:24:2, 0:32:2] + 0.5
    points = 2.0 * np.stack([(columns - 16) / 30, (rows - 12) / 30, np.ones_like(rows)], -1).reshape(-1, 3)
    for name, factor in (("m.npy", 1.0), ("mm.npy", 1000.0)):
        np.save(name, (factor * points).astype(np.float32))
    return files


@pytest.mark.parametrize("unit", ["mm", "1000"])
@pytest.mark.parametrize("out", ["o.png", "o.npy", "o.exr"])
def test_points_in_millimetres_give_metric_files(cli: Cli, wall: Path, out: str, unit: str) -> None:
    extras = ("--cloud", "c.ply", "--unit", unit, "--json", *OPTIONS)
    outcome = cli("upsample", "mm.npy", "guide.png", "-o", out, *extras)
    assert outcome.code == 0
    assert outcome.json["median_depth"] == pytest.approx(2.0, rel=1e-5)
    np.testing.assert_allclose(read_depth(out).values, 2.0, rtol=1e-3)
    np.testing.assert_allclose(read_ply("c.ply").points[:, 2], 2.0, rtol=1e-3)
    assert "assumed: metres" not in outcome.err


def test_a_cloud_in_millimetres_gives_metres_in_python(wall: Path) -> None:
    one, other = (
        upsample(
            name, "guide.png", unit=unit, cameras="cameras.json", method="nearest", noise=noise, max_depth=3.0
        )
        for name, unit, noise in (("m.npy", None, 0.01), ("mm.npy", "mm", 10.0))
    )
    np.testing.assert_allclose(np.asarray(other.depth), np.asarray(one.depth), rtol=1e-5)


def test_a_noise_of_points_is_a_number_in_their_unit(cli: Cli, wall: Path) -> None:
    options = ("--unit", "mm", "--noise", "10", "--json", *OPTIONS)
    outcome = cli("upsample", "mm.npy", "guide.png", "-o", "o.npy", *options)
    assert outcome.json["noise_sigma"] == pytest.approx(0.01)
    assert outcome.json["noise_unit"] == "m"


def test_points_are_no_disparities(cli: Cli, wall: Path) -> None:
    outcome = cli("upsample", "m.npy", "guide.png", "-o", "o.npy", "--unit", "disparity", *OPTIONS)
    assert outcome.code == 2
    assert "'disparity' is none of a point cloud; use mm or m" in outcome.err


def test_a_folder_of_clouds_is_a_batch(cli: Cli, wall: Path) -> None:
    for folder in ("clouds", "images"):
        Path(folder).mkdir()
    for number in (1, 2):
        cloud = PointCloud(np.load("m.npy"), np.zeros((192, 3), np.uint8))
        write_cloud(f"clouds/{number}.ply", cloud)
        Path(f"images/{number}.png").write_bytes(Path("guide.png").read_bytes())
    outcome = cli("upsample", "clouds", "images", "-o", "out", *OPTIONS)
    assert outcome.code == 0
    assert sorted(path.name for path in Path("out").glob("*.png")) == ["1.png", "2.png"]
    np.testing.assert_allclose(read_depth("out/2.png").values, 2.0, rtol=1e-3)


def test_a_cloud_without_image_asks_for_it(cli: Cli, wall: Path) -> None:
    Path("scan.pcd").write_text("")
    outcome = cli("upsample", "scan.pcd", "-o", "out.png", *OPTIONS)
    assert outcome.code == 2
    assert "scan.pcd has no image; give one of the same view after it" in outcome.err
