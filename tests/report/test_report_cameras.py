"""The tables of sensors with holes, and the first table: means, gaps, and who is ahead in words."""

import pytest

from primaldepth.evaluation.protocols import get_protocol
from primaldepth.evaluation.rows import Row
from primaldepth.report.blocks import Paragraph, SideBySide, TableColumn
from primaldepth.report.camera_section import VariantRows, section
from primaldepth.report.summary_section import Measure, behind, camera_measures
from primaldepth.report.summary_section import section as evidence_section

METHODS = ("bicubic", "pdn-any")


def row(method, scene, rmse, **more):
    return Row(method, scene, 4, rmse, rmse / 2, 1.0, more, "", "noisy")


@pytest.fixture
def view():
    rows = [
        row("bicubic", "a", 10.0, rmse_tol4=4.0, far_surface=0.0, coverage=None),
        row("bicubic", "b", 20.0, rmse_tol4=6.0, far_surface=1.0, coverage=None),
        row("pdn-any", "a", 8.0, rmse_tol4=7.0, far_surface=None, coverage=0.6),
        row("pdn-any", "b", 12.0, rmse_tol4=9.0, far_surface=3.0, coverage=0.8),
    ]
    return VariantRows("real-holdout", "noisy", 4, "mm", rows)


def cells(table, name):
    heads = [column.title for column in table.columns]
    found = next(line.cells for line in table.rows if line.cells[0].text == name)
    return dict(zip(heads, found, strict=True))


def test_means_are_over_the_frames_that_have_the_number(view):
    assert view.mean("bicubic", "rmse") == 15.0
    assert view.mean("pdn-any", "far_surface") == 3.0
    assert view.mean("bicubic", "coverage") is None
    assert view.mean("nearest", "rmse") is None


def test_every_view_has_a_table_with_the_best_marked(view):
    protocols = [get_protocol("real-holdout"), get_protocol("aligned-holes")]
    found = section(protocols, [view], ("nearest", *METHODS), ["Not run: no renderer here."])
    ((table,),) = [block.tables for block in found.blocks if isinstance(block, SideBySide)]
    assert table.title == "real-holdout: noisy, x4, 2 frames"
    own = cells(table, "pdn-any")
    assert (own["RMSE"].text, own["RMSE"].mark) == ("10.00", "best")
    assert (own["4 px of tolerance"].text, own["4 px of tolerance"].mark) == ("8.00", "second")
    assert (own["coverage"].text, own["coverage"].mark) == ("0.70", "")
    assert table.rows[0].cells[1].text == "no weights yet"
    notices = [block.text for block in found.blocks if isinstance(block, Paragraph) and block.notice]
    assert notices == ["Not run: no renderer here."]


def test_the_first_table_has_the_first_view_of_each_protocol(view):
    later = VariantRows("real-holdout", "clean", 4, "mm", view.rows)
    other = VariantRows("aligned-holes", "middlebury point noisy", 4, "disparity", view.rows)
    groups = [each.column.group for each in camera_measures([view, later, other], METHODS)]
    assert groups == [
        *["real-holdout noisy x4 [mm]"] * 3,
        *["aligned-holes middlebury point noisy x4 [disparity]"] * 3,
    ]


def test_words_name_every_row_that_is_ahead():
    measures = [
        Measure(TableColumn("x2", "lu"), {"bicubic": 1.2, "pdn-any": 1.3}, {"best published": 0.9}),
        Measure(TableColumn("x4", "lu"), {"bicubic": 2.5, "pdn-any": 2.0}, {"best published": None}),
    ]
    text = behind(measures, "pdn-any")
    assert "in 1 of 2 columns" in text
    assert "lu: x2 (best published 0.90, `bicubic` 1.20)." in text
    assert behind(measures[1:], "pdn-any") == "`pdn-any` is ahead of every other row in all 1 columns."
    assert behind(measures, "pdn-any-small") == "There are no numbers of `pdn-any-small`."


def test_published_rows_stand_below_ours():
    measure = Measure(TableColumn("x2", "lu"), {"bicubic": 1.2, "pdn-any": None}, {"best published": 0.9})
    _, table, _ = evidence_section([measure], METHODS).blocks
    assert [line.cells[0].text for line in table.rows] == [*METHODS, "best published"]
    assert [line.cells[1].text for line in table.rows] == ["1.20", "–", "0.90"]
    assert table.rows[2].rule
    assert [line.cells[1].mark for line in table.rows] == ["best", "", ""]
