"""The noise-free protocol on small sets of its own: layout, crop, border, samples, refusal by checksum."""

import json
from importlib import resources

import numpy as np
import pytest
import torch
from PIL import Image
from small_sets import SIZE, frame, freeze_sets, write_arrays, write_png

from primaldepth.cli import main
from primaldepth.core.errors import InputError
from primaldepth.evaluation import protocols
from primaldepth.evaluation.metrics import rmse
from primaldepth.evaluation.protocol import chosen_scenes
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.evaluation.run import as_json, evaluate
from primaldepth.methods import create


def test_the_public_files_are_frozen_by_checksum():
    protocol = get_protocol("noise-free")
    assert protocol.made_of == "30 frames of middlebury, 6 frames of lu, 449 frames of nyu"
    assert protocol.scenes[0] == "middlebury/1"
    assert protocol.scenes[-1] == "nyu/1449"
    for scene in protocol.scenes:
        name, number = scene.split("/")
        for part in ("rgb", "gt"):
            assert len(protocol.files[f"{name}/{part}/{number}.npy"]) == 64
    assert {"lu/6_gt.png", "lu/6_rgb.png", "nyu/1002_depth_5000.png"} <= set(protocol.files)


def test_every_set_is_a_part_with_its_unit(tmp_path):
    parts = freeze_sets(tmp_path).parts(tmp_path)
    assert {part.variant: part.unit for part in parts} == {
        "middlebury": "levels",
        "lu": "levels",
        "nyu": "cm",
    }
    assert parts[1].scenes == ("lu/1", "lu/2")
    assert parts[1].load(tmp_path, "lu/1", 2).scoring.unit == "levels"


@pytest.mark.parametrize("write", [write_arrays, write_png])
@pytest.mark.parametrize(("name", "unit"), [("lu", 1.0), ("nyu", 100.0 / 50)])
def test_arrays_and_png_hold_the_same_frames(tmp_path, write, name, unit):
    protocol = freeze_sets(tmp_path, write, [name])
    scene = protocol.parts(tmp_path)[0].scenes[0]
    levels, image = frame(1)
    case = protocol.load(tmp_path, scene, 4)
    height, width = case.truth.shape[2:]
    torch.testing.assert_close(case.truth[0, 0], unit * torch.from_numpy(levels)[:height, :width])
    assert case.frame.guide[0, 2, 7, 9] == pytest.approx(image[7, 9, 2] / 255)


@pytest.mark.parametrize(
    ("scene", "scale", "size"),
    [
        ("lu/1", 2, (32, 48)),
        ("middlebury/2", 8, (32, 48)),
        ("nyu/1001", 2, (36, 54)),
        ("nyu/1001", 8, (32, 48)),
    ],
)
def test_frames_are_cropped_to_multiples(tmp_path, scene, scale, size):
    case = freeze_sets(tmp_path).load(tmp_path, scene, scale)
    assert case.frame.high_size == case.truth.shape[2:] == size
    assert case.frame.low_size == (size[0] // scale, size[1] // scale)


def test_samples_are_the_truth_reduced_by_pillow(tmp_path):
    case = freeze_sets(tmp_path).load(tmp_path, "lu/2", 4)
    truth = Image.fromarray(frame(2)[0][:32, :48])
    expected = np.array(truth.resize((12, 8), Image.Resampling.BICUBIC))
    np.testing.assert_array_equal(case.frame.depth[0, 0].numpy(), expected)
    assert case.frame.valid.all()
    assert float((case.frame.sigma / case.frame.depth).median()) == pytest.approx(0.0005, rel=0.1)


def test_a_border_of_six_pixels_is_not_scored(tmp_path):
    case = freeze_sets(tmp_path).load(tmp_path, "lu/1", 2)
    inner = case.known[0, 0, 6:-6, 6:-6]
    assert inner.all()
    assert int(case.known.sum()) == inner.numel() == (32 - 12) * (48 - 12)
    assert rmse(torch.where(case.known, case.truth + 2, 1e6), case.truth, case.known) == 2.0


def test_a_zero_of_the_truth_counts(tmp_path):
    def write(root, name, number, truth, image):
        truth[10, 10] = 0
        write_arrays(root, name, number, truth, image)

    protocol = freeze_sets(tmp_path, write, ["lu"])
    case = protocol.load(tmp_path, "lu/1", 2)
    assert case.known[0, 0, 10, 10]
    assert case.truth[0, 0, 10, 10] == 0
    row = next(evaluate(protocol.parts(tmp_path)[0], [create("bicubic")], tmp_path, [2]))
    assert row.more["abs_rel"] is row.more["delta1"] is None
    assert row.rmse > 0


@pytest.mark.parametrize("write", [write_arrays, write_png])
def test_a_changed_file_is_refused(tmp_path, write):
    protocol = freeze_sets(tmp_path, write, ["lu"])
    path = next((tmp_path / "noise_free" / "lu").rglob("*2*.*"))
    path.write_bytes(path.read_bytes() + b"x")
    protocol.load(tmp_path, "lu/1", 2)
    with pytest.raises(InputError, match=rf"{path.name}: differs from the file noise-free v1"):
        protocol.load(tmp_path, "lu/2", 2)


def test_a_frame_with_one_of_its_files_is_refused(tmp_path):
    protocol = freeze_sets(tmp_path)
    (tmp_path / "noise_free" / "lu" / "rgb" / "1.npy").unlink()
    with pytest.raises(InputError, match=r"rgb/1.npy: missing"):
        protocol.load(tmp_path, "lu/1", 2)


def test_a_file_without_a_checksum_is_refused(tmp_path):
    protocol = freeze_sets(tmp_path, names=["lu"])
    write_png(tmp_path / "noise_free", "nyu", 1001, *(frame(1)[0] / 50, frame(1)[1]))
    with pytest.raises(InputError, match=r"1001_rgb.png: no checksum of it is known"):
        protocol.load(tmp_path, "nyu/1001", 2)


def test_arrays_are_read_before_png(tmp_path):
    protocol = freeze_sets(tmp_path, names=["lu"])
    write_png(tmp_path / "noise_free", "lu", 1, np.zeros(SIZE), frame(1)[1])  # not read, so not refused
    assert float(protocol.load(tmp_path, "lu/1", 2).truth.min()) > 0


def test_what_is_not_there_is_left_out_and_named(tmp_path):
    protocol = freeze_sets(tmp_path, names=["lu", "nyu"])
    root = tmp_path / "noise_free"
    for part in ("gt", "rgb"):
        (root / "nyu" / part / "1002.npy").unlink()
    parts = protocol.parts(tmp_path)
    assert [part.scenes for part in parts] == [("lu/1", "lu/2"), ("nyu/1001", "nyu/1003")]
    missing, partial = protocol.left_out(tmp_path)
    assert missing == f"noise-free: middlebury is left out, none of its frames is in {root / 'middlebury'}"
    assert partial == "noise-free: 2 of the 3 frames of nyu are there"
    rows = list(evaluate(parts[1], [create("bicubic")], tmp_path, [4]))
    assert [(row.scene, row.variant) for row in rows] == [("nyu/1001", "nyu"), ("nyu/1003", "nyu")]
    assert as_json(protocol, rows)["units"]["rmse"] == "8-bit levels; nyu: cm"


def test_scenes_are_chosen_by_set_or_one_by_one(tmp_path):
    parts = freeze_sets(tmp_path, names=["lu", "nyu"]).parts(tmp_path)
    assert chosen_scenes(parts, []) == [part.scenes for part in parts]
    assert chosen_scenes(parts, ["nyu/1003", "lu"]) == [("lu/1", "lu/2"), ("nyu/1003",)]
    with pytest.raises(InputError, match=r"no scene 'middlebury' there \(there is lu, nyu\)"):
        chosen_scenes(parts, ["middlebury"])


def test_the_command_prints_one_line_per_set(tmp_path, monkeypatch, capsys):
    small = freeze_sets(tmp_path, names=["lu", "nyu"])
    monkeypatch.setitem(protocols._KINDS, "noise-free", lambda *_: small)
    rows = tmp_path / "rows.json"
    chosen = ["--method", "bicubic", "--method", "nearest", "--jobs", "1", "--json", str(rows)]
    main.app(["evaluate", "noise-free", "--data", str(tmp_path), *chosen], standalone_mode=False)
    out, err = capsys.readouterr()
    assert "noise-free: middlebury is left out" in err
    head, *lines = (line.split() for line in out.splitlines()[1:])
    assert head == ["set", "frames", "unit", "method", "x2", "x4", "x8", "x16", "s/frame"]
    assert [line[:4] for line in lines] == [
        ["lu", "2", "levels", "bicubic"],
        ["lu", "2", "levels", "nearest"],
        ["nyu", "3", "cm", "bicubic"],
        ["nyu", "3", "cm", "nearest"],
    ]
    found = json.loads(rows.read_text())["rows"]
    assert len(found) == 2 * 4 * 5
    own = [row["rmse"] for row in found if row["method"] == "bicubic" and row["scale"] == 4]
    assert float(lines[0][5]) == pytest.approx(sum(own[:2]) / 2, abs=0.0006)


@pytest.mark.data
def test_bicubic_on_lu_scores_as_measured_with_pillow(benchmark_data):
    protocol = get_protocol("noise-free")
    if protocol.find(benchmark_data) is None:
        pytest.skip(f"{benchmark_data}: no folder noise_free there")
    part = next(part for part in protocol.parts(benchmark_data) if part.variant == "lu")
    rows = list(evaluate(part, [create("bicubic")], benchmark_data))
    found = {scale: np.mean([row.rmse for row in rows if row.scale == scale]) for scale in protocol.scales}
    assert found == pytest.approx({2: 1.156, 4: 2.470, 8: 4.636, 16: 7.523}, abs=0.005)


def test_the_description_says_what_a_frame_is_made_of():
    text = resources.files("primaldepth.evaluation").joinpath("frozen", "noise-free.json").read_text()
    frozen = json.loads(text)
    assert frozen["border"] == 6
    assert {name: each["crop"] for name, each in frozen["sets"].items()} == {
        "middlebury": 16,
        "lu": 16,
        "nyu": None,
    }
