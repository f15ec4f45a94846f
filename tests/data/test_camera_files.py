"""Rendered scenes as the files of a camera: what the readers find in them is what was rendered."""

import numpy as np
import pytest

from primaldepth.core.errors import InputError
from primaldepth.data.camera_files import write_recording
from primaldepth.data.manifest import Manifest
from primaldepth.data.shard_writer import ShardWriter
from primaldepth.data.shards import Shards
from primaldepth.data.single_scenes import write_part
from primaldepth.io import read_depth
from primaldepth.io.cameras import read_cameras
from primaldepth.io.rasters import read_guide
from primaldepth.sensors import sensor

SIZE, SCALE = (24, 32), 4
CAMERA = (30.0, 31.0, 16.5, 12.25)


@pytest.fixture
def shards(tmp_path):
    """Three slanted walls, with something in the corner that was never hit."""
    wanted = Manifest(made_with={}, versions={}, scenes_per_shard=2, count=3)
    with ShardWriter(tmp_path / "scenes", wanted) as writer:
        for scene in range(3):
            depth = np.linspace(1.0, 2.0 + scene, SIZE[1], dtype=np.float32) * np.ones(
                (SIZE[0], 1), np.float32
            )
            depth[:4, :4] = 0.0
            image = np.full((*SIZE, 3), (10, 20, 40 * scene), np.uint8)
            arrays = {"depth": depth, "valid": depth > 0, "image": image, "guide_camera": np.array(CAMERA)}
            write_part(tmp_path / "scenes", scene, arrays)
            writer.add(scene)
    return Shards(tmp_path / "scenes")


def quiet(**options):
    return sensor("metric-gaussian-v1", scale=SCALE, **{"sigma": 0.001} | options)


def test_the_files_hold_the_scene(shards, tmp_path):
    told = []
    write_recording(shards, tmp_path / "out", quiet(), count=3, watch=told.append)
    assert told == [1, 2, 3]
    for scene in range(3):
        name = f"{scene:06d}"
        truth, low = (read_depth(tmp_path / "out" / kind / f"{name}.png") for kind in ("truth", "depth"))
        assert truth.unit == low.unit == "mm"
        assert (truth.valid == shards[scene]["valid"]).all()
        assert np.abs(truth.values - shards[scene]["depth"])[truth.valid].max() <= 0.00051
        assert low.values.shape == (SIZE[0] // SCALE, SIZE[1] // SCALE)
        assert not low.valid[0, 0]
        blocks = truth.values.reshape(6, SCALE, 8, SCALE).mean((1, 3))
        assert np.abs(low.values - blocks)[1:, 1:-1].max() < 0.01
        guide = read_guide(tmp_path / "out" / "guide" / f"{name}.png")
        assert np.rint(255 * guide[0, 0]).tolist() == [10, 20, 40 * scene]
        camera = read_cameras(tmp_path / "out" / "cameras" / f"{name}.json").guide
        assert (camera.fx, camera.fy, camera.cx, camera.cy) == CAMERA
        assert (camera.width, camera.height) == SIZE[::-1]


def test_fewer_scenes_have_the_same_noise_and_another_seed_another(shards, tmp_path):
    for name, options in {"all": {}, "few": {"count": 2}, "other": {"seed": 1}}.items():
        write_recording(shards, tmp_path / name, quiet(sigma=0.05), **{"count": 3} | options)
    files = {name: sorted((tmp_path / name / "depth").iterdir()) for name in ("all", "few", "other")}
    content = {name: [file.read_bytes() for file in found] for name, found in files.items()}
    assert content["few"] == content["all"][:2]
    assert all(a != b for a, b in zip(content["all"], content["other"], strict=True))


def test_a_sensor_of_disparities_is_refused_before_anything_is_written(shards, tmp_path):
    with pytest.raises(InputError, match=r"gaussian-v1' measures disparity; choose one of z"):
        write_recording(shards, tmp_path / "out", sensor("gaussian-v1", scale=SCALE), count=3)
    assert not (tmp_path / "out").exists()
