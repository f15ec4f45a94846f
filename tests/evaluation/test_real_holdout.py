"""real-holdout on a folder of small frames: what the samples are, what counts, and what is refused."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from PIL import Image
from real_frames import SHAPE, write_frame
from small_benchmark import digest

from primaldepth.core.errors import InputError
from primaldepth.evaluation.cache import ResultCache
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.evaluation.real_holdout import cut_outs
from primaldepth.evaluation.rows import Row
from primaldepth.evaluation.run import as_json, evaluate
from primaldepth.methods import create

FRAMES = ("desk", "shelf")


@pytest.fixture
def own(tmp_path):
    """(parts by variant, data): two frames of one's own."""
    for seed, name in enumerate(FRAMES):
        write_frame(tmp_path / "real_holdout", name, seed)
    parts = get_protocol("real-holdout").parts(tmp_path)
    return {part.variant: part for part in parts}, tmp_path


def test_every_variant_is_a_part_with_the_frames_of_the_folder(own):
    parts, data = own
    assert {name: part.scales for name, part in parts.items()} == {
        "noisy": (4, 8),
        "clean": (4, 8),
        "cut-outs": (1,),
    }
    assert all(part.scenes == FRAMES for part in parts.values())
    assert parts["noisy"].made_of == "2 frames of one's own"
    itself = get_protocol("real-holdout").parts(data / "real_holdout")
    assert [part.scenes for part in itself] == [FRAMES] * 3


def test_without_a_folder_the_frozen_frames_are_asked_for(tmp_path):
    part = get_protocol("real-holdout").parts(tmp_path)[0]
    assert len(part.scenes) == 11
    with pytest.raises(InputError, match="no folder 'real_holdout' there"):
        part.root(tmp_path)


def test_clean_samples_are_pixels_of_the_map(own):
    parts, data = own
    case = parts["clean"].load(data, "desk", 4)
    assert (case.frame.high_size, case.frame.low_size) == ((96, 128), (24, 32))
    assert case.frame.depth.equal(case.truth[..., 2::4, 2::4])
    assert case.frame.valid.equal(case.truth[..., 2::4, 2::4] > 0)
    assert case.known.equal(case.truth > 0)
    assert set(case.truth.unique().tolist()) == {0.0, 1000.0, 2000.0}
    assert float(case.frame.sigma[case.frame.valid].min()) > 0


def test_noise_is_one_percent_in_whole_millimetres(own):
    parts, data = own
    clean, noisy = (parts[name].load(data, "desk", 4).frame for name in ("clean", "noisy"))
    assert noisy.valid.equal(clean.valid)
    assert noisy.depth.equal(noisy.depth.round())
    ratio = (noisy.depth / clean.depth - 1)[clean.valid]
    assert 0.008 < float(ratio.std()) < 0.012
    assert noisy.sigma.equal(0.01 * noisy.depth)
    assert noisy.depth.equal(parts["noisy"].load(data, "desk", 4).frame.depth)
    assert not noisy.depth.equal(parts["noisy"].load(data, "shelf", 4).frame.depth)


def test_cut_outs_are_scored_inside(own):
    parts, data = own
    case = parts["cut-outs"].load(data, "desk", 1)
    measured = case.truth > 0
    assert case.frame.low_size == case.frame.high_size
    assert case.known.any()
    assert case.frame.valid.equal(measured & ~case.known)
    assert case.frame.depth.equal(case.truth)
    assert case.reference.equal(measured)


def test_cut_outs_have_the_sides_they_should():
    known = torch.ones(1, 1, 480, 640, dtype=torch.bool)
    removed = cut_outs(known, torch.Generator().manual_seed(3))
    assert 12 * 20 * 20 / 4 < int(removed.sum()) <= 12 * 60 * 60
    one = cut_outs(known[..., :150, :150], torch.Generator().manual_seed(3))
    rows, columns = one.any(dim=3).sum().item(), one.any(dim=2).sum().item()
    assert rows * columns == int(one.sum())
    assert max(rows, columns) <= 60


def test_a_cut_out_of_a_small_frame_leaves_something():
    known = torch.ones(1, 1, 64, 64, dtype=torch.bool)
    assert 0 < int(cut_outs(known, torch.Generator().manual_seed(0)).sum()) <= 32 * 32


def test_frozen_frames_are_checked_and_own_ones_are_not(tmp_path):
    folder = tmp_path / "real_holdout"
    write_frame(folder, "desk")
    files = {"desk": {path.name: digest(path) for path in folder.iterdir()}}
    part = replace(get_protocol("real-holdout"), files=files).parts(tmp_path)[0]
    assert part.made_of == "1 frames"
    part.load(tmp_path, "desk", 4)
    write_frame(folder, "desk", seed=5)
    with pytest.raises(InputError, match=r"desk_rgb.png: differs from the file real-holdout v1"):
        part.load(tmp_path, "desk", 4)
    write_frame(folder, "shelf")
    replace(part, names=("desk", "shelf")).load(tmp_path, "desk", 4)


def test_what_is_not_of_the_form_is_refused(tmp_path):
    folder = tmp_path / "real_holdout"
    write_frame(folder, "alone")
    (folder / "alone_rgb.png").unlink()
    write_frame(folder, "small", shape=(40, 128))
    write_frame(folder, "unlike", image_shape=(200, 260))
    write_frame(folder, "broken")
    (folder / "broken_rgb.png").write_bytes(b"no image")
    part = get_protocol("real-holdout").parts(tmp_path)[0]
    found = {name: part.problems(folder, name) for name in part.scenes}
    assert "alone_rgb.png: missing" in found["alone"][0]
    assert "128x40; both sides must have 64 pixels or more" in found["small"][0]
    assert "unlike_rgb.png: 260x200, but unlike_depth_mm.png has 131x101" in found["unlike"][0]
    assert "cannot be read" in found["broken"][0]


def test_a_map_of_few_pixels_is_refused(tmp_path):
    folder = tmp_path / "real_holdout"
    write_frame(folder, "few")
    depth = np.zeros(SHAPE, np.uint16)
    depth[0] = 2000
    Image.fromarray(depth).save(folder / "few_depth_mm.png")
    part = get_protocol("real-holdout").parts(tmp_path)[0]
    with pytest.raises(InputError, match=r"few_depth_mm.png: less than 1% of the pixels are measured"):
        part.load(tmp_path, "few", 4)


@dataclass(frozen=True)
class Pushed:
    """The truth of a part's frame, with the box put 20 % farther."""

    part: object
    data: object
    name: str = "pushed"

    def __call__(self, frame):
        prediction = create("nearest")(frame)
        case = self.part.load(self.data, "desk", 4)
        depth = torch.where(case.truth == 1000, 1200.0, case.truth)
        return replace(prediction, depth=depth, sigma=torch.full_like(depth, 100.0))


def test_a_surface_that_is_pushed_back_is_counted(own):
    parts, data = own
    part = parts["clean"]
    method = Pushed(part, data)
    (row, _) = evaluate(part, [method], data, [4])
    case = part.load(data, "desk", 4)
    box = case.truth == 1000
    assert row.rmse == pytest.approx(200 * float(box[case.known].double().mean()) ** 0.5)
    assert row.more["coverage"] == pytest.approx(1 - float(box[case.known].double().mean()))
    valid = case.frame.valid
    assert row.more["far_samples"] == pytest.approx(
        1e4 * float((case.frame.depth == 1000).sum() / valid.sum())
    )
    assert row.more["near_samples"] == row.more["near_surface"] == 0.0
    assert row.more["far_equal"] > 0
    assert row.more["rmse_tol4"] == pytest.approx(row.rmse)
    assert row.more["median"] == 0.0


def test_rows_say_which_variant_they_are_of(own):
    parts, data = own
    rows = [row for part in parts.values() for row in evaluate(part, [create("nearest")], data)]
    assert [(row.variant, row.scale) for row in rows[::2]] == [
        ("noisy", 4),
        ("noisy", 8),
        ("clean", 4),
        ("clean", 8),
        ("cut-outs", 1),
    ]
    document = as_json(get_protocol("real-holdout"), rows)
    others = {"method", "scene", "scale", "seconds", "variant", "prediction"}
    assert set(document["units"]) == set(document["rows"][0]) - others
    assert [Row.of(row).as_json() for row in document["rows"]] == document["rows"]


def test_variants_are_kept_apart_in_the_cache(own, tmp_path):
    parts, data = own
    cache = ResultCache(tmp_path / "kept")
    first, again = (
        [row for part in parts.values() for row in evaluate(part, [create("nearest")], data, cache=cache)]
        for _ in range(2)
    )
    assert first == again
    assert len({row.prediction for row in first if row.scene == "desk"}) == 5


def test_a_changed_frame_of_ones_own_is_computed_anew(own, tmp_path):
    parts, data = own
    cache, part = ResultCache(tmp_path / "kept"), parts["clean"]
    before, _ = evaluate(part, [create("nearest")], data, [4], cache=cache)
    write_frame(data / "real_holdout", "desk", seed=1, shape=(96, 136))
    after, _ = evaluate(part, [create("nearest")], data, [4], cache=cache)
    assert before.prediction != after.prediction
