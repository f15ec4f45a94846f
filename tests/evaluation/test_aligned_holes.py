"""aligned-holes on small scenes of both sources: holes where they belong, truth that is known in them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from rendered_folder import plain_arrays, store
from small_benchmark import digest, write_scene

from primaldepth.evaluation.aligned_holes import cosines
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.evaluation.rendered import block_means
from primaldepth.evaluation.run import evaluate
from primaldepth.methods import create

VARIANTS = ["point noisy", "point clean", "mean noisy", "mean clean"]


def seen_arrays(seed, size=64):
    """A rendered scene whose surfaces all face the camera."""
    normals = np.zeros((size, size, 3), np.float16)
    normals[..., 2] = -1.0
    camera = np.array([size, size, size / 2, size / 2], np.float64)
    return {**plain_arrays(seed, size), "normals": normals, "guide_camera": camera}


@pytest.fixture
def small(tmp_path):
    """(parts by variant, data): one scene of each source."""
    frozen = get_protocol("aligned-holes")
    write_scene(tmp_path / frozen.folder / "one", 0)
    names = ("color.png", "disparity_gt.png")
    files = {"one": {name: digest(tmp_path / frozen.folder / "one" / name) for name in names}}
    arrays = seen_arrays(0)
    scenes = {"s0": {"number": 0, "gain": 240.0, "shadows_to_right": False, **block_means(arrays)}}
    parts = {}
    for part in frozen.parts(tmp_path):
        if part.variant.startswith("middlebury"):
            parts[part.variant] = replace(part, files=files)
        else:
            parts[part.variant] = replace(part, frozen_scenes=scenes, count=1, size=64)
    rendered = parts["rendered point clean"]
    store(tmp_path / rendered.folder, rendered, [arrays])
    return parts, tmp_path


def test_both_sources_have_every_variant(small):
    parts, _ = small
    assert list(parts) == [f"{source} {way}" for source in ("middlebury", "rendered") for way in VARIANTS]
    assert get_protocol("aligned-holes").variant == "middlebury point noisy"
    assert all(part.unit == "disparity" for part in parts.values())


def test_unknown_disparities_are_the_holes(small):
    parts, data = small
    case = parts["middlebury point clean"].load(data, "one", 4)
    assert case.holes.equal(~case.known)
    assert int(case.holes.sum()) == 4
    assert case.frame.depth.equal(case.truth[..., 2::4, 2::4])
    assert case.frame.valid.equal(case.known[..., 2::4, 2::4])
    means = parts["middlebury mean clean"].load(data, "one", 8).frame
    assert means.depth[0, 0, 1, 1] == case.truth[0, 0, 8:16, 8:16].mean()


def test_noise_of_one_pixel_is_told(small):
    parts, data = small
    for source, scene in (("middlebury", "one"), ("rendered", "s0")):
        clean, noisy = (parts[f"{source} {way}"].load(data, scene, 4).frame for way in VARIANTS[1::-1])
        assert noisy.sigma.equal(torch.ones_like(noisy.depth))
        difference = (noisy.depth - clean.depth)[clean.valid]
        assert 0.7 < float(difference.std()) < 1.3
        assert noisy.depth.equal(parts[f"{source} point noisy"].load(data, scene, 4).frame.depth)


def test_rendered_holes_are_shadows_and_are_scored(small):
    parts, data = small
    case = parts["rendered point clean"].load(data, "s0", 4)
    arrays = seen_arrays(0)
    assert case.known.numpy().squeeze().tolist() == arrays["valid"].tolist()
    shadow = case.holes & case.known
    rows, columns = shadow[0, 0].nonzero().unbind(dim=1)
    assert 10 <= int(rows.min()) <= int(rows.max()) < 30  # beside the nearer square, in its rows
    assert int(columns.max()) == 19
    assert int(columns.min()) < 10
    assert not case.frame.valid[shadow[..., 2::4, 2::4]].any()
    assert case.truth[0, 0, 40, 40] == pytest.approx(240.0 / arrays["depth"][40, 40])


def test_cosines_are_those_of_the_rays():
    found = cosines(seen_arrays(0))
    assert found[0, 0, 32, 32] == pytest.approx(1.0, abs=1e-3)
    x = (0.5 - 32) / 64
    assert found[0, 0, 0, 0] == pytest.approx(1 / (1 + 2 * x**2) ** 0.5, abs=1e-3)


def test_methods_are_scored_in_holes_where_the_truth_is_known(small):
    parts, data = small
    rows = [row for part in parts.values() for row in evaluate(part, [create("nearest")], data, [4])]
    assert [row.variant for row in rows] == list(parts)
    for row in rows:
        assert 0 < row.rmse < 100
        assert (row.more["rmse_in_holes"] is None) == row.variant.startswith("middlebury")
