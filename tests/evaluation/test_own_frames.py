"""One's own frames: pairs of files as a protocol, and which method is the best on them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from primaldepth.core.errors import InputError
from primaldepth.evaluation.own_frames import CUT_OUTS, own_frames, read_pair, verdict
from primaldepth.evaluation.rows import Row
from primaldepth.evaluation.run import ScoringTask
from primaldepth.methods import create


def write_pair(folder: Path, name: str, size=(64, 80), image_size=None) -> tuple[Path, Path]:
    random = np.random.default_rng(0)
    depth = np.full(size, 2000, np.uint16)
    depth[:, size[1] // 2 :] = 1000
    depth[:6] = 0
    image = random.integers(0, 255, (*(image_size or size), 3), np.uint8)
    paths = folder / f"{name}.png", folder / f"{name}_image.png"
    Image.fromarray(depth).save(paths[0])
    Image.fromarray(image).save(paths[1])
    return paths


def row(method, mae, *, frame="a", lost=0.0, interior=5.0, jumps=6.0, holes=7.0, variant="reduced x4"):
    more = {
        "far_surface": lost,
        "near_surface": None,
        "rmse_interior": interior,
        "rmse_near_jumps": jumps,
        "rmse_near_holes": holes,
    }
    return Row(method, frame, 4, 2 * mae, mae, 0.1, more, "", variant)


def test_frames_are_reduced_and_holes_stay_holes(tmp_path):
    protocol = own_frames([write_pair(tmp_path, "a")], 4)
    reduced, whole = protocol.parts(None)
    case = reduced.load(None, "a", 4)
    assert case.frame.low_size == (16, 20)
    assert case.frame.depth[0, 0, 8].tolist() == [2000.0] * 10 + [1000.0] * 10
    assert not case.frame.valid[0, 0, 0].any()
    assert case.known.equal(case.truth > 0)
    assert (whole.variant, whole.scales) == (CUT_OUTS, (1,))
    cut = whole.load(None, "a", 1)
    assert not cut.frame.valid[cut.known].any()


def test_an_image_that_is_larger_comes_to_the_size_of_the_depth(tmp_path):
    depth, known, guide = read_pair(*write_pair(tmp_path, "a", image_size=(128, 160)), None)
    assert guide.shape == (1, 3, 64, 80)
    assert depth.shape == known.shape == (1, 1, 64, 80)


@pytest.mark.parametrize("size", [(32, 40), (64, 100), (60, 80)])
def test_an_image_of_another_view_is_refused(tmp_path, size):
    paths = write_pair(tmp_path, "a", image_size=size)
    with pytest.raises(InputError, match=f"{size[1]}x{size[0]}, but a.png has 80x64; both must show"):
        read_pair(*paths, None)


def test_frames_of_one_name_are_told_apart(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    pairs = [write_pair(tmp_path / name, "a") for name in ("one", "two")]
    assert own_frames(pairs, 4).scenes == tuple(str(depth) for depth, _ in pairs)


def test_rows_of_another_unit_are_others(tmp_path):
    pair = write_pair(tmp_path, "a")
    tasks = [
        ScoringTask(own_frames([pair], 4, unit), create("nearest"), tmp_path, "a", 4, "cpu")
        for unit in ("mm", "5000")
    ]
    assert tasks[0].key() != tasks[1].key()


def test_disparities_are_scored_as_such(tmp_path):
    depth, image = write_pair(tmp_path, "a")
    protocol = own_frames([(depth, image)], 4, "disparity")
    assert protocol.unit == "disparity"
    assert torch.unique(protocol.parts(None)[0].load(None, "a", 4).truth).tolist() == [0.0, 1000.0, 2000.0]


def test_the_best_method_has_the_least_error():
    found = verdict([row("bicubic", 20.0), row("net", 10.0)], "mm")
    assert found.best == "net"
    assert found.sentence.startswith(
        "At x4 net is the best for this camera: mean error 10.0 mm (bicubic 20.0), 0.0 of"
    )
    assert "about the same everywhere" in found.sentence


def test_one_method_alone_is_not_called_the_best():
    sentence = verdict([row("bicubic", 20.0)], "mm").sentence
    assert sentence.startswith("At x4 bicubic was tried alone on this camera: mean error 20.0 mm, 0.0 of")


def test_a_method_that_loses_measured_surfaces_is_not_the_best():
    assert verdict([row("bicubic", 20.0), row("net", 10.0, lost=22.0)], "mm").best == "bicubic"
    assert verdict([row("bicubic", 20.0), row("net", 10.0, lost=4.0)], "mm").best == "net"


def test_the_zone_that_is_not_to_be_trusted_is_named():
    sentence = verdict([row("net", 10.0, holes=70.0, jumps=40.0)], "mm").sentence
    assert "Do not trust it near holes: RMSE 70.0 mm there, 5.0 mm on surfaces" in sentence


def test_the_worst_frame_is_that_of_the_best_method_without_cut_outs():
    rows = [
        row("net", 10.0, frame="a"),
        row("net", 12.0, frame="b"),
        row("bicubic", 90.0, frame="a"),
        row("bicubic", 20.0, frame="b"),
        row("net", 99.0, frame="a", variant=CUT_OUTS),
    ]
    assert verdict(rows, "mm").worst_frame == "b"


def test_a_map_that_is_reduced_to_nearly_nothing_is_refused(tmp_path):
    reduced, _ = own_frames([write_pair(tmp_path, "a")], 16).parts(None)
    with pytest.raises(InputError, match="reduced by 16 it is 5x4 samples, too few to judge by"):
        reduced.load(None, "a", 16)
