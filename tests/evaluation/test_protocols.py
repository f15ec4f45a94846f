"""Protocols refuse what they were not frozen with; on a small copy, no benchmark files needed."""

import json
from dataclasses import dataclass, replace
from importlib import resources

import pytest
import torch
from small_benchmark import digest, write_scene

from primaldepth.core.errors import InputError, PrimalDepthError
from primaldepth.evaluation.protocol import chosen_scenes
from primaldepth.evaluation.protocols import get_protocol, protocol_names
from primaldepth.evaluation.rows import score
from primaldepth.evaluation.scoring import Scoring
from primaldepth.methods import create


@pytest.mark.parametrize("name", protocol_names())
def test_frozen_descriptions_are_complete(name):
    protocol = get_protocol(name)
    scales = {"tofmark": (5,), "tofmark-sim": (5,), "real-holdout": (1, 4, 8), "aligned-holes": (4, 8)}
    assert protocol.version == 1
    units = {
        "noise-free": "8-bit levels; nyu: cm",
        "tofmark": "mm",
        "tofmark-sim": "mm",
        "real-holdout": "mm",
    }
    assert protocol.scales == scales.get(name, (2, 4, 8, 16))
    assert protocol.unit == units.get(name, "disparity")
    assert (
        len(protocol.scenes)
        == {
            "noisy-middlebury": 3,
            "middlebury-2006": 14,
            "noise-free": 485,
            "aligned-holes": 14,
            "real-holdout": 11,
            "rendered": 12,
            "tofmark": 3,
            "tofmark-sim": 6,
        }[name]
    )


@pytest.mark.parametrize("name", protocol_names())
def test_frozen_descriptions_say_what_is_scored(name):
    text = resources.files("primaldepth.evaluation").joinpath("frozen", f"{name}.json").read_text()
    frozen = json.loads(text)
    assert set(frozen["conventions"]) == {"phase", "mask", "crop", "rounding"}
    assert set(frozen["scoring"]) == set(Scoring.model_fields)
    assert frozen["about"].endswith(".")


@pytest.mark.parametrize("name", ["noisy-middlebury", "middlebury-2006"])
def test_images_are_frozen_by_checksum(name):
    for files in get_protocol(name).files.values():
        assert {"color.png", "disparity_gt.png"} <= set(files)
        assert all(len(sha) == 64 and int(sha, 16) > 0 for sha in files.values())


def test_scenes_of_the_benchmark_are_not_among_those_for_tuning():
    test, tuning = (set(get_protocol(name).scenes) for name in ("noisy-middlebury", "middlebury-2006"))
    assert test == {"art", "books", "moebius"}
    assert len(tuning) == 14
    assert not test & tuning


def test_unknown_protocols_list_the_known():
    with pytest.raises(
        InputError, match="unknown protocol 'kitti'; known: noisy-middlebury, middlebury-2006"
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
    problems = protocol.problems(data / protocol.folder, "art")
    assert [problem.partition(": ")[2].split()[0] for problem in problems] == ["missing", "differs"]
    assert protocol.problems(data / protocol.folder, "books") == []


def test_scenes_may_be_chosen_by_name(small):
    parts = small[0].parts(small[1])
    assert chosen_scenes(parts, []) == [("art", "books")]
    assert chosen_scenes(parts, ["books"]) == [("books",)]
    with pytest.raises(InputError, match=r"no scene 'dolls' there \(there is art, books\)"):
        chosen_scenes(parts, ["dolls"])


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


@dataclass
class Predicting:
    """A method that gives the depth it was made with."""

    name: str
    depth: torch.Tensor

    def __call__(self, frame):
        return replace(create("nearest")(frame), depth=self.depth)


def test_scores_are_over_known_pixels(small):
    protocol, data = small
    case = protocol.load(data, "art", 2)

    row = score(Predicting("off by two", torch.where(case.known, case.truth + 2, 1e6)), case)
    assert (row.method, row.scene, row.scale) == ("off by two", "art", 2)
    assert (row.rmse, row.mae) == (2.0, 2.0)
    assert row.seconds >= 0


def test_a_prediction_that_is_not_finite_is_an_error(small):
    protocol, data = small
    case = protocol.load(data, "art", 2)

    depth = create("nearest")(case.frame).depth.clone()
    depth[..., 10, 10:13] = torch.nan
    depth[..., 3, 6] = torch.nan  # not known: nobody looks
    with pytest.raises(PrimalDepthError, match="holes: no finite depth at 3 of the scored pixels of art x2"):
        score(Predicting("holes", depth), case)
