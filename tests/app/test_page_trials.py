"""Frames of a visitor's own camera: pairs, the table, what is computed, and what is refused."""

import io
import secrets
from concurrent.futures import Future
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import torch
from PIL import Image
from visitor import Visitor

from primaldepth.app.frame_trials import Trial, attempt
from primaldepth.app.page.method_comparison import MOST_FRAMES, comparer, paired, table_of
from primaldepth.app.page.readable_files import ReadableFiles
from primaldepth.app.page.visitor_folders import VisitorFolders
from primaldepth.app.page.visitor_requests import AS_FILE_SAYS
from primaldepth.app.problems import RefusedError
from primaldepth.evaluation.own_frames import own_frames
from primaldepth.evaluation.rows import Row
from primaldepth.evaluation.run import evaluate
from primaldepth.methods import create


def png(array):
    stream = io.BytesIO()
    Image.fromarray(array).save(stream, "PNG")
    return stream.getvalue()


def frame_bytes(shape=(64, 80)):
    """A wall in 2 m and a box in 1 m, and an image that shows the box."""
    depth, image = np.full(shape, 2000, np.uint16), np.full((*shape, 3), 90, np.uint8)
    depth[20:44, 30:60], image[20:44, 30:60] = 1000, 200
    depth[20:44, 26:30] = 0
    return png(depth), png(image)


@pytest.fixture
def uploads(tmp_path):
    """Paths of two depth maps and two images, each in a folder of its own, not in order."""
    depth, image = frame_bytes()
    found = {}
    for name, content in (("d10.png", depth), ("d9.png", depth), ("i10.png", image), ("i9.png", image)):
        path = tmp_path / "gradio" / secrets.token_hex(4) / name
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        found[name] = str(path)
    return found


class Inline:
    """An engine that computes at once, with bicubic in place of every method, and counts."""

    def __init__(self):
        self.tasks = []

    def submit(self, task):
        self.tasks.append(task)
        promise = Future()
        files = task.folder / "depth", task.folder / "guide"
        promise.set_result(
            attempt(task.wanted, create("bicubic"), files, task.request.unit, torch.device("cpu"))
        )
        return promise


@pytest.fixture
def compare(tmp_path):
    """(what a click does, the engine behind it)."""
    engine = Inline()
    folders = VisitorFolders(tmp_path / "page", most_bytes=1e9)
    return comparer(engine, folders, ReadableFiles([tmp_path / "gradio"])), engine


def test_uploads_are_paired_by_their_numbers(uploads):
    pairs = paired([uploads["d10.png"], uploads["d9.png"]], [uploads["i9.png"], uploads["i10.png"]])
    assert [(pair.name, pair.depth.name, pair.image.name) for pair in pairs] == [
        ("d9", "d9.png", "i9.png"),
        ("d10", "d10.png", "i10.png"),
    ]


def test_frames_of_one_name_are_told_apart():
    pairs = paired(["/a/depth.png", "/b/depth.png"], ["/c/image.png", "/d/image.png"])
    assert [pair.name for pair in pairs] == ["depth-1", "depth-2"]


@pytest.mark.parametrize(
    ("depths", "images", "text"),
    [
        ([], [], "are missing"),
        (["/d1.png"], [], "are missing"),
        (["/d1.png", "/d2.png"], ["/i1.png"], "2 depth maps but 1 images"),
        (["/d1.png", "/d2.png"], ["/i1.png", "/i3.png"], "numbers in the names"),
        ([f"/d{n}.png" for n in range(MOST_FRAMES + 1)], ["/i.png"], "takes 8 frames at a time"),
    ],
)
def test_what_cannot_be_paired_is_refused(depths, images, text):
    with pytest.raises(RefusedError, match=text):
        paired(depths, images)


def test_a_trial_gives_the_rows_of_the_command_line(tmp_path):
    for name, content in zip(("depth", "guide"), frame_bytes(), strict=True):
        (tmp_path / name).write_bytes(content)
    files, method = (tmp_path / "depth", tmp_path / "guide"), create("bicubic")
    tried = attempt(Trial("depth", 4), method, files, None, torch.device("cpu"))
    expected = [row for part in own_frames([files], 4).parts(None) for row in evaluate(part, [method], None)]
    without = {"seconds": 0.0}
    assert [each | without for each in tried.rows] == [row.as_json() | without for row in expected]
    assert tried.unit == "mm"


def test_a_click_tries_every_method_on_every_frame(compare, uploads):
    click, engine = compare
    depths = [uploads["d9.png"], uploads["d10.png"]]
    *steps, last = click(depths, [uploads["i9.png"], uploads["i10.png"]], "4", AS_FILE_SAYS)
    assert len(engine.tasks) == 2 * 4 + 1
    assert "0 of 8 done: now bicubic on d9" in steps[0][0]
    status, table, picture = last
    assert "is the best for this camera" in status
    assert "pdn-any-small" in table
    with Image.open(picture) as image:
        assert image.size[0] > 80
    assert {path.name for path in Path(picture).parent.iterdir()} == {"worst-frame.png"}


def test_a_file_that_is_no_depth_map_is_answered_with_a_reason(compare, uploads):
    click, _ = compare
    Path(uploads["d9.png"]).write_text("no picture")
    *_, (status, table, picture) = click([uploads["d9.png"]], [uploads["i9.png"]], "4", AS_FILE_SAYS)
    assert 'role="alert"' in status
    assert "not a format this package reads" in status
    assert (table, picture) == ("", None)


def test_a_file_of_the_server_is_not_read(compare, uploads, tmp_path):
    outside = tmp_path / "outside.png"
    outside.write_bytes(frame_bytes()[0])
    *_, (status, _, _) = compare[0]([str(outside)], [uploads["i9.png"]], "4", AS_FILE_SAYS)
    assert "was not uploaded" in status
    assert not compare[1].tasks


def test_the_table_is_well_formed_and_has_means():
    more = {"rmse_interior": 3.0, "far_surface": None}
    rows = [Row("a<b", f"f{n}", 4, float(n), 1.0, 0.5, more, "", "reduced x4") for n in (1, 4)]
    root = ET.fromstring(table_of(rows, "mm"))  # noqa: S314 - our own text
    (line,) = [each for each in root.iter("tr") if each[0].text == "a<b"]
    assert [cell.text for cell in line][1:4] == ["2.5", "1.0", "3.0"]
    assert [cell.text for cell in line][7] == "–"


@pytest.fixture
def visitor(served):
    with Visitor(served.url, secrets.token_hex(6)) as found:
        yield found


def join(visitor, depths, images, reduce="4"):
    return visitor.join([depths, images, reduce, AS_FILE_SAYS], fn_index=visitor.event("evaluate"))


def test_frames_are_compared_on_the_served_page(visitor):
    depth, image = frame_bytes()
    assert join(visitor, [visitor.file("d1.png", depth)], [visitor.file("i1.png", image)]).status_code == 200
    status, table, picture = visitor.result()
    assert "is the best for this camera" in status
    assert "<table" in table
    assert visitor.client.get(picture["url"]).content[:4] == b"\x89PNG"


@pytest.mark.parametrize("value", ["a path alone", "no list", "another type", "a reduction nobody offers"])
def test_what_the_page_would_not_send_is_refused(visitor, tmp_path, value):
    depth, image = frame_bytes()
    own, guide = visitor.file("d1.png", depth), visitor.file("i1.png", image)
    (tmp_path / "photo.png").write_bytes(depth)
    depths = {
        "a path alone": [visitor.named(str(tmp_path / "photo.png"))],
        "no list": own,
        "another type": [visitor.file("c1.json", b"{}")],
    }.get(value, [own])
    reduce = "3" if value == "a reduction nobody offers" else "4"
    assert 400 <= join(visitor, depths, [guide], reduce).status_code < 500
