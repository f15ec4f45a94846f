"""The page: what it draws, what it says, and that it asks no other machine for anything."""

import os
import re
import time
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import torch
from PIL import Image

from primaldepth.api import load_inputs
from primaldepth.app.page import visitor_requests
from primaldepth.app.page.charts import colour_bar, histogram
from primaldepth.app.page.readable_files import ReadableFiles
from primaldepth.app.page.result_files import FORMATS, draw
from primaldepth.app.page.visitor_folders import VisitorFolders
from primaldepth.core.errors import InputError
from primaldepth.io import read_depth
from primaldepth.methods import create
from primaldepth.pipeline.outcome import Outcome
from primaldepth.pipeline.request import Request
from primaldepth.samples import example_scenes, sample_files

ANYWHERE = ReadableFiles([Path("/")])


@pytest.fixture(scope="module")
def computed():
    sample = sample_files()
    inputs = load_inputs(sample.depth, sample.guide, cameras=sample.cameras)
    return Outcome(Request("bilinear"), inputs, create("bilinear")(inputs.frame), 0.5)


def picture(path):
    with Image.open(path) as image:
        return np.array(image)


def test_a_result_is_drawn_and_written_in_every_format(computed, tmp_path):
    drawn = draw(computed, folder=tmp_path, prefix="a-")
    for path in (drawn.before, drawn.after, drawn.residual, drawn.guide):
        assert picture(path).shape == (480, 640, 3)
    names = {path.name for path in drawn.files}
    assert {f"a-depth{suffix}" for suffix in FORMATS} <= names
    assert {"a-preview.png", "a-measured.png", "a-cloud.ply", "a-normals.png"} <= names
    expected = computed.prediction.depth[0, 0].numpy()
    for suffix in FORMATS:
        found = read_depth(tmp_path / f"a-depth{suffix}").values
        np.testing.assert_allclose(found, expected, atol=5.1e-4 if suffix == ".png" else 1e-6)
    for mesh in (drawn.mesh_before, drawn.mesh_after):
        assert mesh.read_bytes()[:4] == b"glTF"
    assert drawn.sigma is None
    assert drawn.report["method"] == "bilinear"


def test_before_and_after_share_one_colour_scale(computed, tmp_path):
    """A result that equals its samples looks like them."""
    inputs = computed.inputs
    frame = replace(inputs.frame, guide=torch.rand(1, 3, *inputs.frame.low_size))
    whole = torch.where(frame.valid, frame.depth, 1.0)
    prediction = replace(
        computed.prediction, depth=whole, valid=frame.valid, measured=torch.ones_like(frame.valid)
    )
    same = replace(computed, inputs=replace(inputs, frame=frame), prediction=prediction)
    drawn = draw(same, folder=tmp_path, prefix="a-")
    np.testing.assert_array_equal(picture(drawn.before), picture(drawn.after))


def test_certainty_is_shown_where_a_method_tells_it(computed, tmp_path):
    sigma = torch.full_like(computed.prediction.depth, 0.02)
    drawn = draw(
        replace(computed, prediction=replace(computed.prediction, sigma=sigma)), folder=tmp_path, prefix="a-"
    )
    assert drawn.sigma.exists()
    assert "68 % of the errors are below [mm]" in drawn.sigma_bar
    assert any(path.name == "a-sigma.npy" for path in drawn.files)


def test_disparity_has_no_mesh_and_is_named(computed, tmp_path):
    inputs = replace(computed.inputs, kind="disparity", unit="disparity")
    drawn = draw(replace(computed, inputs=inputs), folder=tmp_path, prefix="a-")
    assert drawn.mesh_after is None
    assert "Disparity [px]" in drawn.bar


def test_charts_are_well_formed_and_escape_their_title():
    values = np.linspace(0.0, 10.0, 200)
    for text in (
        colour_bar("a < b & c", (0.0, 10.0)),
        histogram("a < b & c", (0.0, 10.0), values, values[:50]),
    ):
        root = ET.fromstring(text)  # noqa: S314 - our own text
        assert "a < b & c" in "".join(root.itertext())


def test_histogram_shows_shares():
    """Half of the values in the first bin and half in the last: two full steps, nothing between."""
    text = histogram("x", (0.0, 1.0), np.array([0.0, 1.0]), np.array([0.0, 0.0]))
    line = re.search(r'pd-line" points="([^"]+)"', text)[1].split()
    heights = [float(point.split(",")[1]) for point in line]
    assert heights[0] == heights[-1] == 110.0  # half as high as the highest, which is the result's
    assert set(heights[2:-2]) == {220.0}


def test_problems_are_told_at_once_and_escaped():
    text = visitor_requests.problem_text(InputError("noise: '<b>' is not known; use auto"))
    root = ET.fromstring(text)  # noqa: S314 - our own text
    assert root.get("role") == "alert"
    assert "".join(root.itertext()) == "Noise: '<b>' is not known. Use auto."


def test_old_results_are_removed(tmp_path):
    folders = VisitorFolders(tmp_path / "page", most_bytes=1e9)
    old, young = folders.new(), folders.new()
    os.utime(old, (0, 0))
    folders.new()
    assert not old.exists()
    assert young.exists()
    folders.remove()
    assert not folders.root.exists()


def test_the_oldest_uploads_and_results_make_room(tmp_path):
    folders = VisitorFolders(tmp_path / "page", most_bytes=250_000)
    upload = folders.gradio / "a1"
    upload.mkdir()
    middle, young = folders.new(), folders.new()
    for age, folder in ((30, upload), (20, middle), (10, young)):
        (folder / "file").write_bytes(bytes(100_000))
        os.utime(folder, (time.time() - age,) * 2)
    folders.tidy()
    assert (upload.exists(), middle.exists(), young.exists()) == (False, True, True)
    folders.remove()


def test_a_folder_that_another_visitor_removes_meanwhile_is_passed_over(tmp_path, monkeypatch):
    folders = VisitorFolders(tmp_path / "page", most_bytes=1e9)
    gone = folders.root / "result-gone"
    monkeypatch.setattr(Path, "glob", lambda self, pattern: [gone])
    assert folders.new().exists()
    folders.remove()


def test_every_example_can_be_read():
    for example in example_scenes():
        inputs = load_inputs(example.depth, example.guide, cameras=example.cameras)
        low, high = inputs.frame.low_size, inputs.frame.high_size
        assert f"{low[1]}x{low[0]} to {high[1]}x{high[0]}" in example.title
        assert float(inputs.frame.valid.float().mean()) > 0.7


@pytest.mark.parametrize("keep", [False, True])
def test_spikes_are_told_unless_they_are_kept(service, tmp_path, keep):
    depth = read_depth(sample_files().depth)
    values = np.array(depth.values)
    values[20, 30] = 20.0
    np.save(tmp_path / "spiked.npy", np.where(depth.valid, values, np.nan))
    drawn, _ = page_results(service, tmp_path, depth=str(tmp_path / "spiked.npy"), unit="m", keep_spikes=keep)
    assert (
        "far from all their neighbours, count as holes" in visitor_requests.facts(drawn, None)
    ) is not keep


def shown_warnings(drawn, other):
    facts = ET.fromstring(visitor_requests.facts(drawn, other))  # noqa: S314 - our own text
    return [each.text for each in facts.iter("li")]


def test_warnings_are_shown_in_the_words_of_the_page(service, tmp_path):
    """Millimetres taken for metres."""
    drawn, _ = page_results(service, tmp_path, unit="m")
    expected = (
        r"The median depth is \S+ m; if that is wrong, give the right 'Unit of the depth', such as mm\."
    )
    assert [re.fullmatch(expected, shown) is not None for shown in shown_warnings(drawn, None)].count(
        True
    ) == 1


def test_what_only_the_second_method_is_warned_of_has_its_name(service, tmp_path):
    drawn, _ = page_results(service, tmp_path)
    first = replace(drawn, report=drawn.report | {"warnings": ["of both"]})
    second = replace(drawn, report=drawn.report | {"method": "fcn-s", "warnings": ["of both", "a < b"]})
    assert shown_warnings(first, second) == ["Of both.", "fcn-s: a < b."]


def test_nothing_odd_is_no_warning(service, tmp_path):
    drawn, _ = page_results(service, tmp_path)
    assert drawn.report["warnings"] == []
    assert "<li>" not in visitor_requests.facts(drawn, None)


def test_a_camera_info_can_be_chosen_and_is_used(service, tmp_path):
    pytest.importorskip("yaml")
    path = tmp_path / "camera_info.yaml"
    path.write_text(
        "width: 640\nheight: 480\nk: [600.0, 0, 319.5, 0, 600.0, 239.5, 0, 0, 1]\n"
        "d: []\ndistortion_model: plumb_bob\n"
    )
    given = [str(path), str(sample_files().cameras)]
    meshes = []
    for index, cameras in enumerate(given):
        place = tmp_path / str(index)
        place.mkdir()
        drawn, _ = page_results(service, place, kind="radial", cameras=cameras)
        meshes.append(drawn.mesh_after.read_bytes())
    assert meshes[0] == meshes[1]


def choice(**other):
    sample = sample_files()
    plain = {
        "depth": str(sample.depth),
        "guide": str(sample.guide),
        "method": "bilinear",
        "other": visitor_requests.NO_METHOD,
        "noise": "auto",
        "unit": visitor_requests.AS_FILE_SAYS,
        "kind": visitor_requests.AS_FILE_SAYS,
        "confidence": None,
        "cameras": None,
    }
    return visitor_requests.Choice(**plain | other)


def page_results(service, folder, **change):
    """What the page shows of both methods of a choice."""
    return visitor_requests.results(service.app.state.engine, choice(**change), folder, ANYWHERE)


def test_two_methods_are_computed_and_the_uploads_stay_where_they_were(service, tmp_path):
    drawn, other = page_results(service, tmp_path, other="nearest")
    assert (drawn.report["method"], other.report["method"]) == ("bilinear", "nearest")
    assert Path(drawn.after).read_bytes() != Path(other.after).read_bytes()
    assert sample_files().depth.exists()


def test_an_empty_noise_is_auto(service, tmp_path):
    drawn, _ = page_results(service, tmp_path, noise=None)
    assert drawn.report["noise_source"] == "auto"


def test_noise_that_is_only_assumed_is_not_called_estimated(tmp_path):
    inputs = load_inputs(torch.full((8, 8), 1.5), torch.rand(32, 32), unit="m")
    computed = Outcome(Request("bilinear"), inputs, create("bilinear")(inputs.frame), 0.5)
    drawn = draw(computed, folder=tmp_path, prefix="a-")
    assert "<dd>0.75 mm (the least assumed)</dd>" in visitor_requests.facts(drawn, None)


def test_where_the_second_method_is_refused_the_first_does_not_stay_in_the_queue(tmp_path):
    class Full:
        def __init__(self):
            self.promises = []

        def submit(self, task):
            if self.promises:
                raise InputError("too many")
            self.promises.append(Future())
            return self.promises[0]

    engine = Full()
    with pytest.raises(InputError, match="too many"):
        visitor_requests.results(engine, choice(other="nearest"), tmp_path, ANYWHERE)
    assert engine.promises[0].cancelled()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"guide": "/nowhere/g.png"}, "no longer kept"),
        ({"depth": None}, "a depth file is missing"),
        ({"noise": "furlong"}, "neither a number"),
        ({"method": "/etc/passwd"}, "is not known"),
        ({"unit": "disparity", "kind": "z"}, "contradicts"),
    ],
)
def test_what_cannot_be_meant_is_said(service, tmp_path, change, message):
    with pytest.raises(Exception, match=message):
        page_results(service, tmp_path, **change)
