"""`primaldepth.Session`: the results of `upsample`, with what need not be done for every frame done once."""

import json

import numpy as np
import pytest
import torch

import primaldepth
from primaldepth.core.errors import InputError
from primaldepth.methods.temporal import Temporal, TemporalSettings
from primaldepth.pipeline import load as loading
from primaldepth.session import RECENT


def scene(seed: int = 0, holes: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """A slope with a low step and noise in metres, (24, 32), and its image, (48, 64, 3)."""
    random = np.random.default_rng(seed)
    near = (np.arange(32) > 15) & (np.arange(24)[:, None] > 7)
    depth = 1.5 + 0.01 * np.arange(32) - 0.05 * near + 0.01 * random.standard_normal((24, 32))
    if holes:
        depth[4:8, 20:26] = 0.0
    image = np.where(near, 180, 60).repeat(2, axis=0).repeat(2, axis=1)
    return depth.astype(np.float32), np.stack([image] * 3, axis=-1).astype(np.uint8)


@pytest.mark.parametrize("method", ["bilinear", "nlh-l2", "pdn-any-small"])
@pytest.mark.parametrize("holes", [False, True])
def test_results_equal_those_of_upsample(method, holes):
    options = {"iterations": 3, "coarse_iterations": 2} if method == "nlh-l2" else None
    with primaldepth.Session(method=method, options=options, device="cpu") as session:
        for seed in range(3):
            depth, image = scene(seed, holes)
            found = session.push(depth, image)
            expected = primaldepth.upsample(depth, image, method=method, options=options, device="cpu")
            for name in ("depth", "valid", "measured", "sigma"):
                theirs, ours = getattr(expected, name), getattr(found, name)
                assert (theirs is None) == (ours is None)
                if ours is not None:
                    np.testing.assert_array_equal(ours, theirs.numpy())


def test_arrays_give_arrays_and_tensors_tensors():
    depth, image = scene()
    with primaldepth.Session(method="bilinear", device="cpu") as session:
        arrays = session.push(depth, image)
        tensors = session.push(torch.from_numpy(depth), torch.from_numpy(image))
        batch = session.push(
            torch.from_numpy(depth)[None, None], torch.from_numpy(image).permute(2, 0, 1)[None] / 255
        )
    assert isinstance(arrays.depth, np.ndarray)
    assert isinstance(arrays.valid, np.ndarray)
    assert arrays.depth.shape == (48, 64)
    assert isinstance(tensors.depth, torch.Tensor)
    assert batch.depth.shape == (1, 1, 48, 64)
    np.testing.assert_array_equal(arrays.depth, tensors.depth.numpy())


def test_frames_before_count_with_temporal():
    frames = [scene(seed) for seed in range(4)]
    temporal = Temporal(primaldepth.methods.create("bilinear"))
    with primaldepth.Session(method="bilinear", temporal=True, device="cpu") as session:
        for depth, image in frames:
            found = session.push(depth, image)
            expected = temporal(primaldepth.api.load_inputs(depth, image).frame)
            np.testing.assert_array_equal(found.depth, expected.depth[0, 0].numpy())
    assert found.report.info["carried"] > 0.5


def test_a_static_scene_is_averaged_as_one():
    frames = [scene(seed) for seed in range(4)]
    temporal = Temporal(primaldepth.methods.create("bilinear"), TemporalSettings(static_scene=True))
    with primaldepth.Session(method="bilinear", temporal=True, static_scene=True, device="cpu") as session:
        for depth, image in frames:
            found = session.push(depth, image)
            expected = temporal(primaldepth.api.load_inputs(depth, image).frame)
            np.testing.assert_array_equal(found.depth, expected.depth[0, 0].numpy())
    with pytest.raises(InputError, match=r"static_scene: .*; give temporal too"):
        primaldepth.Session(method="bilinear", static_scene=True)


def test_camera_file_is_read_once_for_a_size(tmp_path, monkeypatch):
    file = tmp_path / "cameras.json"
    camera = {"fx": 60.0, "fy": 60.0, "cx": 32.0, "cy": 24.0, "width": 64, "height": 48}
    file.write_text(json.dumps({"guide": camera}))
    depth, image = scene()
    read, times = loading.read_cameras, []
    monkeypatch.setattr(loading, "read_cameras", lambda *given: times.append(given) or read(*given))
    with primaldepth.Session(method="bilinear", cameras=file, kind="radial", device="cpu") as session:
        found = [session.push(depth, image) for _ in range(3)]
    assert len(times) == 1
    expected = primaldepth.upsample(depth, image, method="bilinear", cameras=file, kind="radial")
    np.testing.assert_array_equal(found[2].depth, expected.depth.numpy())


def test_each_kind_of_warning_is_raised_once():
    depth, image = scene()
    with primaldepth.Session(method="bilinear", unit="mm", device="cpu") as session:
        with pytest.warns(primaldepth.DepthWarning, match="median depth"):
            session.push(depth, image)
        again = session.push(depth, image)  # a second warning would be an error here
    assert again.report.warnings


def test_rate_and_count():
    depth, image = scene()
    with primaldepth.Session(method="nearest", device="cpu") as session:
        assert session.rate == 0.0
        for _ in range(RECENT + 5):
            session.push(depth, image)
        assert session.frames == RECENT + 5
        assert session.rate > 0.0


def test_a_closed_session_says_so():
    depth, image = scene()
    with primaldepth.Session(method="nearest", device="cpu") as session:
        session.push(depth, image)
    with pytest.raises(InputError, match="closed"):
        session.push(depth, image)


def test_bad_frames_are_refused_and_the_next_one_goes_on():
    depth, image = scene()
    with primaldepth.Session(method="nearest", device="cpu") as session:
        with pytest.raises(InputError, match="no valid pixel"):
            session.push(np.zeros_like(depth), image)
        with pytest.raises(InputError, match="guide"):
            session.push(depth, np.zeros(5))
        assert session.push(depth, image).depth.shape == (48, 64)


def test_options_are_checked_at_the_start():
    with pytest.raises(InputError, match="noise"):
        primaldepth.Session(noise="nobody")
    with pytest.raises(InputError, match="found a list"):
        primaldepth.Session(method="nearest", cameras=[1.0]).push(*scene())
