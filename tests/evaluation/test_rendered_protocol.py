"""Protocols on rendered scenes: small folders of shards stand for what a renderer made; two tests render."""

import json
from dataclasses import replace

import numpy as np
import pytest
from rendered_folder import plain_arrays, store
from scipy.io import savemat
from tof_scene import tof_arrays

from primaldepth.core.errors import InputError, PrimalDepthError
from primaldepth.data.manifest import Manifest
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.evaluation.rendered import BLOCKS, block_means, camera_matrices, differences
from primaldepth.evaluation.run import evaluate
from primaldepth.methods import create
from primaldepth.operators.sampling import resample
from primaldepth.scenes.job import RenderProgress
from primaldepth.scenes.scene_source import RenderSettings, render_scene


@pytest.fixture
def flat(tmp_path):
    """(protocol, data): `rendered` frozen anew on scenes 0 and 2 of a job of three."""
    scenes = [plain_arrays(seed) for seed in range(3)]
    frozen = {f"s{n}": {"number": n, "gain": 120.0, "offset": 30.0, **block_means(scenes[n])} for n in (0, 2)}
    protocol = replace(get_protocol("rendered"), frozen_scenes=frozen, count=3, size=64)
    store(tmp_path / protocol.folder, protocol, scenes)
    return protocol, tmp_path


@pytest.fixture
def tof(tmp_path):
    """(protocol, data): `tofmark-sim` frozen anew on one scene by formula."""
    arrays = tof_arrays()
    frozen = {"s0": {"number": 0, **block_means(arrays)}}
    protocol = replace(get_protocol("tofmark-sim"), frozen_scenes=frozen, count=1)
    store(tmp_path / protocol.folder, protocol, [arrays])
    return protocol, tmp_path


def test_disparity_is_scaled_inverse_depth(flat):
    protocol, data = flat
    case, arrays = protocol.load(data, "s2", 4), plain_arrays(2)
    assert case.known.numpy().squeeze().tolist() == arrays["valid"].tolist()
    expected = 120.0 / arrays["depth"][arrays["valid"]] + 30.0
    assert np.allclose(case.truth.numpy().squeeze()[arrays["valid"]], expected, rtol=1e-6)
    assert case.frame.low_size == (16, 16)
    assert np.allclose(case.frame.guide[0].permute(1, 2, 0) * 255, arrays["image"], atol=1e-4)
    assert not case.frame.valid[..., 0, 0]


def test_noise_is_that_of_the_benchmark_and_of_the_seed(flat):
    protocol, data = flat
    case, again, other = (protocol.load(data, scene, 2) for scene in ("s0", "s0", "s2"))
    assert case.frame.depth.equal(again.frame.depth)
    assert not case.frame.depth.equal(other.frame.depth)
    assert not case.frame.depth.equal(replace(protocol, version=2).load(data, "s0", 2).frame.depth)
    low, valid = resample(case.truth, (32, 32), "bicubic"), case.frame.valid
    assert float(((case.frame.depth - low) * low)[valid].std()) == pytest.approx(651, rel=0.1)
    assert case.frame.depth[valid].frac().abs().max() == 0


def test_a_changed_shard_is_refused(flat):
    protocol, data = flat
    path = data / protocol.folder / Manifest.read(data / protocol.folder).shards[1].file
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(bytes(content))
    protocol.load(data, "s0", 2)
    with pytest.raises(InputError, match="differs from its checksum"):
        protocol.load(data, "s2", 2)
    path.unlink()
    assert protocol.problems(data / protocol.folder, "s2") == [f"{path}: missing"]


def test_other_scenes_are_refused(flat, tmp_path):
    """Their files are as they were written, but they are not what was frozen."""
    protocol, _ = flat
    scenes = [plain_arrays(seed) for seed in range(3)]
    scenes[2]["depth"][12:20, 22:30] = 1.1
    store(tmp_path / "other", protocol, scenes)
    protocol.load(tmp_path / "other", "s0", 2)
    with pytest.raises(
        InputError, match=r"scene s2 is not the one rendered v1 was frozen with \(mean of depth"
    ):
        protocol.load(tmp_path / "other", "s2", 2)


def changed(arrays, what):
    arrays = {name: values.copy() for name, values in arrays.items()}
    if what == "last bits":
        arrays["depth"] *= np.float32(1 + 1e-6)
    elif what == "a flipped pixel in a block":  # along a silhouette, in each of the larger blocks of a frame
        arrays["depth"][::64, ::64] *= 1.5
    elif what == "one grey level here and there":
        arrays["image"][::2] = np.minimum(arrays["image"][::2] + 1, 255)
    elif what == "a small object":
        arrays["depth"][300:320, 200:230] *= 0.5
    elif what == "nothing there":
        arrays["valid"][300:320, 200:230] = False
    elif what == "another colour":
        arrays["image"][100:200, 100:200] //= 2
    elif what == "NaN":
        arrays["depth"][5, 5] = np.nan
    return arrays


@pytest.mark.parametrize(
    ("what", "same"),
    [
        ("last bits", True),
        ("a flipped pixel in a block", True),
        ("one grey level here and there", True),
        ("a small object", False),
        ("nothing there", False),
        ("another colour", False),
        ("NaN", False),
    ],
)
def test_means_tell_another_scene_from_another_rounding(what, same):
    arrays = plain_arrays(0, 512)
    frozen = block_means(arrays)
    assert len(frozen["depth"]) == BLOCKS**2
    assert (differences(block_means(changed(arrays, what)), json.loads(json.dumps(frozen))) == "") == same


def test_a_moved_tof_camera_is_noticed():
    arrays = tof_arrays()
    frozen = block_means(arrays)
    moved = {**arrays, "tof_distance": np.roll(arrays["tof_distance"], 1, axis=1)}
    assert "mean of tof" in differences(block_means(moved), frozen)


def test_tof_samples_lie_in_the_guides_view(tof):
    protocol, data = tof
    case = protocol.load(data, "s0", 5)
    assert (case.frame.low_size, case.frame.high_size) == ((122, 162), (610, 810))
    assert case.frame.guide.shape[1] == 1
    assert 0.6 < float(case.frame.valid.float().mean()) < 0.9
    at = case.frame.valid & (resample(case.known.float(), (122, 162), "area") == 1)
    low = resample(case.truth, (122, 162), "area")
    at &= low > 1000
    z_score = ((case.frame.depth - low) / case.frame.sigma)[at]
    assert float(z_score.median()) == pytest.approx(0, abs=0.1)
    assert 1.4826 * float(z_score.abs().median()) == pytest.approx(1, abs=0.1)
    assert 0.8 < float(case.known.float().mean()) < 1.0
    assert case.frame.depth.equal(protocol.load(data, "s0", 5).frame.depth)


def write_mat(folder, arrays):
    """A scene as a file of ToFMark, without noise."""
    K, P = camera_matrices(arrays)
    distance, truth = (1000.0 * arrays[name].astype(np.float64) for name in ("tof_distance", "depth"))
    image = arrays["image"][..., 0]
    savemat(folder / "books.mat", {"tof": distance, "image": image, "gt": truth, "P_TOF": P, "K": K})
    return folder


def test_the_simulation_and_the_files_are_treated_alike(tof, tmp_path):
    """The samples of tofmark-sim, written as a .mat file, become the same frame."""
    protocol, data = tof
    write_mat(tmp_path, tof_arrays())
    official = get_protocol("tofmark").load(tmp_path, "books", 5)
    simulated = protocol.load(data, "s0", 5)
    assert official.truth.equal(simulated.truth)
    assert official.frame.guide.equal(simulated.frame.guide)
    both = official.frame.valid & simulated.frame.valid
    assert float((official.frame.depth - simulated.frame.depth)[both].abs().median()) < 30.0


def test_scenes_are_rendered_once_into_the_cache(flat, tmp_path, monkeypatch):
    protocol, data = flat
    jobs, news = [], []

    def job(folder, settings, count, *, on_progress):
        jobs.append((folder, settings.preset, settings.seed, settings.samples, settings.size, count))
        on_progress(RenderProgress(count, count))
        store(folder, protocol, [plain_arrays(seed) for seed in range(3)])
        on_progress(RenderProgress(count, count, rendered=count))
        return RenderProgress(count, count, rendered=count)

    monkeypatch.setattr("primaldepth.scenes.job.render_job", job)
    monkeypatch.setattr(RenderSettings, "resolved", lambda self: self)
    root = protocol.root(tmp_path / "nothing", lambda *each: news.append(each))
    assert root == tmp_path / "cache" / "rendered-v1"
    assert jobs == [(root, "rich", 20160907, 32, 64, 3)]
    assert news == [("rendering rendered", 0, 3), ("rendering rendered", 3, 3)]
    assert protocol.load(None, "s0", 2).truth.equal(protocol.load(data, "s0", 2).truth)
    assert len(jobs) == 1


def test_the_path_tracer_and_failures_are_refused(flat, monkeypatch):
    protocol, _ = flat
    monkeypatch.setattr(
        RenderSettings, "resolved", lambda self: self.model_copy(update={"variant": "scalar"})
    )
    with pytest.raises(PrimalDepthError, match="'scalar' renders other images"):
        protocol.root(None)
    monkeypatch.setattr(RenderSettings, "resolved", lambda self: self)
    failed = RenderProgress(3, 3, failures={1: "no light"})
    monkeypatch.setattr("primaldepth.scenes.job.render_job", lambda *_, **__: failed)
    with pytest.raises(PrimalDepthError, match="scene 1 could not be rendered: no light"):
        protocol.root(None)


def test_an_unfinished_or_another_job_does_not_count(flat, tmp_path):
    protocol, _ = flat
    assert not protocol.holds(tmp_path / "nowhere")
    short = store(tmp_path / "short", protocol, [plain_arrays(0)])
    assert not protocol.holds(short)
    for change in ({"seed": 1}, {"size": 32}, {"samples": 1}, {"preset": "paper"}):
        name, scenes = next(iter(change)), [plain_arrays(n) for n in range(3)]
        assert not protocol.holds(store(tmp_path / name, replace(protocol, **change), scenes))
    assert protocol.holds(tmp_path / protocol.folder)


@pytest.mark.parametrize("kind", ["flat", "tof"])
def test_methods_are_scored(kind, request):
    protocol, data = request.getfixturevalue(kind)
    rows = list(evaluate(protocol, [create("bilinear")], data, protocol.scales[:1]))
    assert [row.scene for row in rows] == list(protocol.scenes)
    assert all(0 < row.rmse < 100 for row in rows)


def rendered(protocol):
    """(name, frozen, arrays) of a protocol's last scene; one sample, for depth takes one ray anyway."""
    settings = RenderSettings(preset=protocol.preset, samples=1, seed=protocol.seed, variant="llvm")
    try:
        renderer = settings.resolved().open()
    except PrimalDepthError as error:
        pytest.skip(f"cannot render here: {error}")
    scene, frozen = list(protocol.frozen_scenes.items())[-1]
    return scene, frozen, render_scene(renderer, protocol.seed, frozen["number"])


@pytest.mark.parametrize(
    "protocol", [get_protocol("rendered"), get_protocol("aligned-holes").parts(None)[-1]]
)
def test_the_factory_still_makes_the_frozen_scenes(protocol):
    _, frozen, arrays = rendered(protocol)
    found = {"depth": block_means(arrays)["depth"]}
    assert differences(found, frozen) == ""


def test_a_rendered_scene_as_a_mat_file(tmp_path):
    """The frozen scene, written as ToFMark's files would be, is read as what was rendered."""
    _, frozen, arrays = rendered(get_protocol("tofmark-sim"))
    means = block_means(arrays)
    assert differences({name: means[name] for name in ("depth", "tof")}, frozen) == ""
    case = get_protocol("tofmark").load(write_mat(tmp_path, arrays), "books", 5)
    assert np.allclose(case.truth.numpy().squeeze(), 1000 * arrays["depth"], rtol=1e-6)
    (row,) = evaluate(replace(get_protocol("tofmark"), names=("books",)), [create("bilinear")], tmp_path)
    assert 10 < row.rmse < 500
    low = resample(case.truth, case.frame.low_size, "area")
    assert float((case.frame.depth - low)[case.frame.valid].abs().median()) < 5.0
