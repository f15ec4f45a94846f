"""Sources of live frames, without a camera and without a clock."""

import sys

import numpy as np
import pytest
from PIL import Image

from primaldepth.core.errors import InputError, MissingDependencyError
from primaldepth.live.simulated import Simulated
from primaldepth.live.sources import Played, open_source
from primaldepth.pipeline.request import Item


class Clock:
    """Time that passes when somebody sleeps, or works."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def items(*names: str) -> list[Item]:
    return [Item(f"{name}.png", "image.png") for name in names]


def played(clock: Clock, names: list[str], work: float = 0.0, **options) -> list[tuple[str, float]]:
    found = []
    for name, _ in Played("test", items(*names), clock=clock, sleep=clock.sleep, **options):
        found.append((name, round(clock.now - 100.0, 6)))
        clock.now += work
    return found


def test_frames_come_at_their_rate():
    assert played(Clock(), ["1", "2", "3"], rate=10.0) == [("1", 0.0), ("2", 0.1), ("3", 0.2)]


def test_frames_come_at_their_time_stamps_and_long_pauses_are_cut():
    names = ["1305031102.00", "1305031102.25", "1305031902.25"]
    assert [time for _, time in played(Clock(), names)] == [0.0, 0.25, 1.25]


def test_whoever_is_slow_misses_frames_unless_all_are_wanted():
    names = [str(index) for index in range(6)]
    assert [name for name, _ in played(Clock(), names, work=0.25, rate=10.0)] == ["0", "2", "5"]
    assert [name for name, _ in played(Clock(), names, work=0.25, rate=10.0, every=True)] == names


def test_folders_are_paired_and_played(tmp_path):
    for folder in ("depth", "rgb"):
        (tmp_path / folder).mkdir()
    for index in range(2):
        Image.fromarray(np.full((4, 5), 1500, np.uint16)).save(tmp_path / "depth" / f"{index}.png")
        Image.fromarray(np.zeros((8, 10, 3), np.uint8)).save(tmp_path / "rgb" / f"{index}.png")
    with open_source(str(tmp_path / "depth"), str(tmp_path / "rgb"), every=True, rate=1e6) as source:
        assert [name for name, _ in source] == ["0", "1"]


@pytest.mark.parametrize(
    ("name", "package"), [("oak", "depthai"), ("orbbec", "pyorbbecsdk"), ("realsense", "pyrealsense2")]
)
def test_without_its_sdk_the_extra_of_a_camera_is_named(monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=rf"primaldepth\[{name}\]"):
        open_source(name)


@pytest.mark.parametrize("name", ["nothing-there", "simulated:5", "webcam"])
def test_unknown_sources_are_refused(name):
    with pytest.raises(InputError, match="neither a camera nor a file"):
        open_source(name)


def test_rates_are_checked():
    with pytest.raises(InputError, match="--rate"):
        Played("test", [], rate=0.0)


def test_simulated_depth_is_the_truth_with_noise():
    camera = Simulated(size=(48, 64), scale=2, noise=0.0, rate=0.0, count=2)
    frames = dict(camera)
    assert list(frames) == ["000000", "000001"]
    truth = camera.seen(camera.camera.scaled_to(32, 24), 0)
    depth = np.asarray(frames["000000"].depth)
    kept = depth > 0
    assert 0.9 < kept.mean() <= 1.0
    np.testing.assert_allclose(depth[kept], truth.depth[kept], rtol=1e-6)
    assert truth.depth.min() > 1.0
    assert np.abs(np.linalg.norm(camera.camera.rays()[24, 32])) >= 1.0


def test_simulated_ball_is_where_it_was_put():
    camera = Simulated(size=(480, 640), moves=False)
    x, y = camera.camera.project(np.array([0.6, 0.35, 2.4]))
    depth = camera.seen(camera.camera, 0).depth[int(y), int(x)]
    ray = np.linalg.norm([0.6, 0.35, 2.4])
    assert depth == pytest.approx(2.4 * (ray - 0.45) / ray, abs=2e-3)


def test_simulated_camera_skips_what_nobody_asked_for():
    clock, names = Clock(), []
    source = Simulated(size=(8, 8), scale=2, rate=10.0, count=3, clock=clock, sleep=clock.sleep)
    for name, _ in source:
        names.append(int(name))
        clock.now += 0.25
    assert names == [0, 2, 5]
