"""`align` from files to a camera file that makes the views fit, and what `upsample` says without it."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_files import Cli

from drawn_room import cut, drawn_room
from primaldepth.io.cameras import read_cameras


def write_pair(name: str, seed: int, right: int) -> None:
    depth, image = drawn_room(seed, 240, 360)
    low = cut(depth, 0, 20, 240, 320)[2::4, 2::4]
    Image.fromarray((1000 * low).round().astype(np.uint16)).save(f"depth/{name}.png")
    Image.fromarray((255 * cut(image, 0, 20 + right, 240, 320)).astype(np.uint8)).save(f"image/{name}.png")


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("depth").mkdir()
    Path("image").mkdir()
    for name, seed in (("a", 1), ("b", 2)):
        write_pair(name, seed, right=12)
    return tmp_path


def test_a_batch_is_warned_once_and_the_written_cameras_end_it(cli: Cli, pairs: Path) -> None:
    options = ("depth", "image", "--method", "bilinear", "--json")
    before = cli("upsample", *options, "-o", "out")
    assert before.err.count("warning: the depth seems to lie (+") == 1
    assert all(report["alignment"]["differs"] for report in before.json)

    told = cli("align", "depth", "image", "-o", "cameras.json", "--json")
    assert (told.code, told.json["certain"], told.json["frames"]) == (0, True, 2)
    assert told.json["before"]["offset_px"] == pytest.approx([12.0, 0.0], abs=1.5)
    assert told.json["after"]["offset_px"] == pytest.approx([0.0, 0.0], abs=1.5)
    assert told.json["before"]["rotation_degrees"] == pytest.approx(0.0, abs=0.4)

    after = cli("upsample", *options, "-o", "registered", "--cameras", "cameras.json")
    assert "seems to lie" not in after.err
    assert read_cameras("cameras.json").depth is not None


def test_views_that_no_edges_decide_write_nothing(cli: Cli, pairs: Path) -> None:
    Image.fromarray(np.full((60, 80), 1500, np.uint16)).save("wall.png")
    found = cli("align", "wall.png", "image/a.png", "-o", "cameras.json")
    assert found.code == 1
    assert "nothing was written" in found.err
    assert not Path("cameras.json").exists()


def test_wrong_inputs_are_told_before_the_work(cli: Cli, pairs: Path) -> None:
    named = cli("align", "depth/a.png", "image/a.png", "-o", "cameras.yaml")
    assert (named.code, "expected .json" in named.err) == (2, True)
    disparity = cli("align", "depth/a.png", "image/a.png", "-o", "c.json", "--unit", "disparity")
    assert (disparity.code, "holds disparities" in disparity.err) == (2, True)


def test_what_was_known_of_the_cameras_is_kept(cli: Cli, pairs: Path) -> None:
    guide = {"fx": 400.0, "fy": 400.0, "cx": 160.0, "cy": 120.0, "width": 320, "height": 240}
    depth = {"fx": 100.0, "fy": 100.0, "cx": 40.0, "cy": 30.0, "width": 80, "height": 60}
    motion = {"rotation": np.eye(3).tolist(), "translation": [0.0, 0.0, 0.001]}
    Path("rig.json").write_text(json.dumps({"guide": guide, "depth": depth, "depth_to_guide": motion}))
    assert cli("align", "depth", "image", "-o", "new.json", "--cameras", "rig.json").code == 0
    known, found = read_cameras("rig.json"), read_cameras("new.json")
    assert (found.guide, found.depth) == (known.guide, known.depth)
    pan = np.degrees(np.arctan2(found.rotation[0][2], found.rotation[2][2]))
    assert pan == pytest.approx(-np.degrees(np.arctan2(12.0, 400.0)), abs=0.25)
