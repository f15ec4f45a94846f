"""Protocols refuse what they were not frozen with; on a small copy, no benchmark files needed."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from primaldepth.core.errors import InputError
from primaldepth.evaluation.protocols import get_protocol, protocol_names
from primaldepth.evaluation.run import as_json, evaluate, score
from primaldepth.methods import create

SCENES = ("art", "books")


def write_scene(folder, seed):
    """A 32x48 disparity plane with unknown pixels, its colour image and its samples at x2 and x4."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    truth = (60 + np.add.outer(np.arange(32), np.arange(48)) + seed).astype(np.uint8)
    truth[3, 5:9] = 0
    Image.fromarray(truth).save(folder / "disparity_gt.png")
    Image.fromarray(rng.integers(0, 255, (32, 48, 3), dtype=np.uint8)).save(folder / "color.png")
    for scale in (2, 4):
        samples = np.maximum(truth[::scale, ::scale], 60)
        Image.fromarray(samples).save(folder / f"disparity_x{scale}_noisy.png")


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def small(tmp_path):
    """(protocol, data): noisy-middlebury frozen anew on two small scenes."""
    frozen = get_protocol("noisy-middlebury")
    root = tmp_path / frozen.folder
    for seed, scene in enumerate(SCENES):
        write_scene(root / scene, seed)
    files = {
        scene: {path.name: digest(path) for path in sorted((root / scene).iterdir())} for scene in SCENES
    }
    return replace(frozen, files=files, scales=(2, 4)), tmp_path


@pytest.mark.parametrize("name", protocol_names())
def test_frozen_descriptions_are_complete(name):
    protocol = get_protocol(name)
    assert protocol.version == 1
    assert protocol.scales == (2, 4, 8, 16)
    assert protocol.unit == "disparity"
    for files in protocol.files.values():
        assert {"color.png", "disparity_gt.png"} <= set(files)
        assert all(len(sha) == 64 and int(sha, 16) > 0 for sha in files.values())


def test_scenes_of_the_benchmark_are_not_among_those_for_tuning():
    test, tuning = (set(get_protocol(name).scenes) for name in ("noisy-middlebury", "middlebury-2006"))
    assert test == {"art", "books", "moebius"}
    assert len(tuning) == 14
    assert not test & tuning


def test_unknown_protocols_list_the_known():
    with pytest.raises(
        InputError, match="unknown protocol 'kitti' \\(known: noisy-middlebury, middlebury-2006"
    ):
        get_protocol("kitti")


def test_a_case_is_what_lies_in_the_files(small):
    protocol, data = small
    case = protocol.load(data, "books", 4)
    assert (case.scene, case.scale) == ("books", 4)
    assert case.frame.low_size == (8, 12)
    assert case.frame.high_size == case.truth.shape[2:] == (32, 48)
    assert case.truth[0, 0, 10, 20] == 60 + 30 + 1
    assert int((~case.known).sum()) == 4
    assert case.frame.sigma.median() == pytest.approx(651 / 100, rel=0.1)


def test_the_folder_may_be_given_itself(small):
    protocol, data = small
    assert protocol.load(data / protocol.folder, "art", 2).truth.equal(protocol.load(data, "art", 2).truth)


def test_a_changed_file_is_refused(small):
    protocol, data = small
    path = data / protocol.folder / "books" / "disparity_x4_noisy.png"
    path.write_bytes(path.read_bytes() + b"x")
    protocol.load(data, "art", 4)
    with pytest.raises(InputError, match=r"books/disparity_x4_noisy.png: differs .* noisy-middlebury v1"):
        protocol.load(data, "books", 4)


def test_a_file_changed_after_it_was_read_is_refused(small):
    protocol, data = small
    protocol.load(data, "art", 2)
    path = data / protocol.folder / "art" / "color.png"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match=r"color.png: differs"):
        protocol.load(data, "art", 2)


def test_a_missing_file_is_named(small):
    protocol, data = small
    (data / protocol.folder / "art" / "color.png").unlink()
    with pytest.raises(InputError, match=r"art/color.png: missing"):
        protocol.load(data, "art", 2)


def test_every_problem_is_listed(small):
    protocol, data = small
    folder = data / protocol.folder / "art"
    (folder / "color.png").unlink()
    (folder / "disparity_gt.png").write_bytes(b"other")
    problems = protocol.problems(folder, "art")
    assert [problem.partition(": ")[2].split()[0] for problem in problems] == ["missing", "differs"]
    assert protocol.problems(data / protocol.folder / "books", "books") == []


def test_a_missing_folder_is_named(small, tmp_path):
    protocol, _ = small
    with pytest.raises(InputError, match="no folder 'noisy_middlebury' there"):
        protocol.load(tmp_path / "elsewhere", "art", 2)


def test_scales_outside_the_list_are_refused(small):
    protocol, data = small
    with pytest.raises(InputError, match="noisy-middlebury has the scales 2, 4, not 3"):
        protocol.load(data, "art", 3)


def test_tuning_scenes_are_cropped_and_degraded_by_seed(tmp_path):
    frozen = get_protocol("middlebury-2006")
    for scene in ("one", "two"):
        write_scene(tmp_path / frozen.folder / scene, 0)
    files = {
        scene: {
            name: digest(tmp_path / frozen.folder / scene / name)
            for name in ("color.png", "disparity_gt.png")
        }
        for scene in ("one", "two")
    }
    protocol = replace(frozen, files=files)
    first, again, other = (protocol.load(tmp_path, scene, 2) for scene in ("one", "one", "two"))
    assert first.frame.low_size == (16, 24)
    assert first.frame.depth.equal(again.frame.depth)
    assert not first.frame.depth.equal(other.frame.depth)
    assert int((~first.known).sum()) == 4
    assert torch.isfinite(first.frame.depth).all()


def test_scores_are_over_known_pixels(small):
    protocol, data = small
    case = protocol.load(data, "art", 2)

    class Off:
        name = "off by two"

        def __call__(self, frame):
            prediction = create("nearest")(frame)
            return replace(prediction, depth=torch.where(case.known, case.truth + 2, 1e6))

    row = score(Off(), case)
    assert (row.method, row.scene, row.scale) == ("off by two", "art", 2)
    assert (row.rmse, row.mae) == (2.0, 2.0)
    assert row.seconds >= 0


def test_every_method_scale_and_scene_gives_a_row(small):
    protocol, data = small
    methods = [create("nearest"), create("bilinear")]
    rows = list(evaluate(protocol, methods, data))
    keys = [(row.method, row.scale, row.scene) for row in rows]
    assert keys == [(m, s, c) for m in ("nearest", "bilinear") for s in (2, 4) for c in SCENES]
    assert [row.scale for row in evaluate(protocol, methods[:1], data, [4])] == [4, 4]


def test_json_is_the_documented_layout(small):
    protocol, data = small
    document = as_json(protocol, list(evaluate(protocol, [create("nearest")], data, [2])))
    assert set(document) == {"protocol", "version", "rows"}
    assert set(document["rows"][0]) == {"method", "scene", "scale", "rmse", "mae", "seconds"}
    assert json.loads(json.dumps(document)) == document
