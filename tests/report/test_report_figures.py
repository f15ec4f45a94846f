"""Plots parse and keep their labels apart; pictures show what they say; weights are those of the formula."""

import io
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from multiprocessing import get_context
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import torch
from PIL import Image
from small_benchmark import SCENES

from primaldepth.core.errors import MissingDependencyError
from primaldepth.core.frame import Prediction
from primaldepth.evaluation.run import ScoringTask
from primaldepth.methods import create
from primaldepth.methods.variational import DEFAULTS
from primaldepth.pictures.preview import DEPTH_COLORS, ERROR_COLORS, INVALID
from primaldepth.report import figures
from primaldepth.report.cached_runs import PeakMemory
from primaldepth.report.figures import Point, require_matplotlib
from primaldepth.report.picture_sheet import Predicted, Sheet, indexed_png, unpacked
from primaldepth.report.runtime_figure import Rectangle, label_offsets, runtime_figure
from primaldepth.report.support_weights import (
    guide_support,
    support_figure,
    surroundings,
    true_support,
)


def texts(svg):
    return "".join(ET.fromstring(svg).itertext())  # noqa: S314


def test_plots_are_svg_with_text_and_the_same_every_time():
    points = [Point("he10", "filter", 0.5, 3.0), Point("nlh-l2", "variational", 60.0, 2.5)]
    first, again = (runtime_figure(points, "px") for _ in range(2))
    assert first == again
    assert all(word in texts(first) for word in ("he10", "nlh-l2", "filter", "[px]", "seconds"))
    ratio = figures.ratio_figure(["he10", "park11"], {2: [0.9, None], 4: [1.0, 1.2]})
    assert all(word in texts(ratio) for word in ("he10", "park11", "x2", "x4"))
    window = figures.window_figure("RMSE", {"ours": {3: 1.0, 5: 0.9}}, {3: 2.0, 5: 1.9})
    assert "paper" in texts(window)
    assert "error [mm]" in texts(figures.bars_figure((0.0, 9.0), (-1.0, 1.0), "mm"))


def test_missing_matplotlib_is_told_before_the_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'primaldepth\[report\]'"):
        require_matplotlib()


def test_labels_meet_neither_each_other_nor_points():
    rng = np.random.default_rng(3)
    places = [(float(x), float(y)) for x, y in rng.uniform(60, 240, (14, 2))]
    names = [f"method{i}" for i in range(14)]
    frame = Rectangle(0.0, 0.0, 320.0, 300.0)
    boxes = [
        Rectangle(x + dx, y + dy - 4.7, x + dx + 5 * len(name), y + dy + 4.7)
        for name, (x, y), (dx, dy) in zip(names, places, label_offsets(names, places, frame), strict=True)
    ]
    assert not any(a.meets(b) for a, b in combinations(boxes, 2))
    assert all(frame.holds(box) for box in boxes)


def test_indexed_png_has_the_colours_of_the_table():
    values = np.array([[0.0, 10.0, 99.0, 5.0]])
    valid = np.array([[True, True, True, False]])
    image = np.asarray(
        Image.open(io.BytesIO(indexed_png(values, valid, (0.0, 10.0), DEPTH_COLORS, (8, 2)))).convert("RGB")
    )
    assert image.shape == (2, 8, 3)
    assert image[0, 0].tolist() == list(DEPTH_COLORS[0])
    assert image[1, 2].tolist() == image[1, 5].tolist() == list(DEPTH_COLORS[-1])
    assert image[0, 7].tolist() == [INVALID] * 3


def test_sheet_shows_signed_errors_on_one_scale(small):
    protocol, data = small
    sheet = Sheet(protocol.load(data, SCENES[0], 4), error=2.0, width=48)
    truth = sheet.case.truth[0, 0].double().numpy()
    picture = sheet.error_of("he10", truth + 2.0, 2.0)
    image = np.asarray(Image.open(io.BytesIO(picture.data)).convert("RGB"))
    known = sheet.case.known[0, 0].numpy()
    assert (image[known] == ERROR_COLORS[-1]).all()
    assert (image[~known] == INVALID).all()
    assert "RMSE 2.00" in picture.label
    sizes = {Image.open(io.BytesIO(p.data)).size for p in (sheet.guide(), sheet.truth(), sheet.samples())}
    assert sizes == {(48, 32)}


def test_prediction_survives_packing(small):
    protocol, data = small
    task = ScoringTask(protocol, create("bilinear"), protocol.root(data), SCENES[0], 4, "cpu")
    depth = create("bilinear")(protocol.load(data, SCENES[0], 4).frame).depth[0, 0].double().numpy()
    step = (depth.max() - depth.min()) / 65535
    assert np.abs(unpacked(Predicted(task)()) - depth).max() <= 0.51 * step


@dataclass(frozen=True)
class Hungry:
    """Holds 64 MiB for a moment."""

    name: str = "hungry"

    def __call__(self, frame):
        ballast = torch.ones(2**24)
        depth = torch.full((1, 1, *frame.high_size), float(ballast[0]))
        return Prediction(depth, depth > 0, depth > 0)


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="peak memory needs Linux")
def test_peak_memory_is_what_the_method_held(small):
    """In a new process: of an old one the system may take back more idle memory than the method adds."""
    protocol, data = small
    work = PeakMemory(ScoringTask(protocol, Hungry(), protocol.root(data), SCENES[0], 4, "cpu"))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        result = pool.submit(work).result()
    assert 60 < result["peak_mib"] < 90
    assert result["method"] == "hungry"
    assert work.key() != work.task.key()


def test_support_weights_are_those_of_the_formula(small):
    protocol, data = small
    case, pixel, q = protocol.load(data, SCENES[0], 4), (16, 24), DEFAULTS["nlh-l2"]
    found = guide_support(case, pixel, "nlh-l2")
    guide = case.frame.guide[0].double().numpy()
    for dy in range(-3, 4):
        for dx in range(-3, 4):
            a = np.linalg.norm(guide[:, 16, 24] - guide[:, 16 + dy, 24 + dx])
            d = np.hypot(dy, dx)
            assert found.affinity[3 + dy, 3 + dx] == pytest.approx(a, abs=1e-6)
            assert found.nearness[3 + dy, 3 + dx] == pytest.approx(d, abs=1e-6)
            assert found.weight[3 + dy, 3 + dx] == pytest.approx(
                np.exp(-d / q.sigma_d - a / q.sigma_v), abs=1e-6
            )
    truth = true_support(case, pixel, 7)
    assert truth.affinity[0, 6] == 0.0  # the plane is constant along this diagonal
    assert truth.affinity[6, 6] == 6.0


def test_support_figure_has_a_row_for_each_source(small):
    protocol, data = small
    case = protocol.load(data, SCENES[0], 4)
    svg = support_figure([guide_support(case, (16, 24), "nlh-l2"), true_support(case, (16, 24), 7)])
    assert all(word in texts(svg) for word in ("guide", "truth", "window"))
    image = Image.open(io.BytesIO(surroundings(case, (16, 24), 7, radius=8)))
    assert image.size == (51, 51)
    assert np.asarray(image)[3 * (8 - 3), 25].tolist() == [255, 59, 31]
