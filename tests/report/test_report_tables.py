"""The report's tables: the paper's marks are the paper's, ours follow the numbers."""

import math

import pytest

from primaldepth.evaluation.rows import Row
from primaldepth.report import tables
from primaldepth.report.blocks import TableColumn
from primaldepth.report.columns import DASH, assemble, differences, marks, mean, ours, ratios
from primaldepth.report.plan import NO_WEIGHTS, Line, ReportSettings, lines
from primaldepth.report.published import published
from primaldepth.report.window_section import window_heads

SCENES, SCALES = ("art", "books", "moebius"), (2, 4, 8, 16)
PDN_D, PDN_S, NLH_D, NLH_S = "fcn-pdn-d", "fcn-pdn-s", "fcn+nlh-d", "fcn+nlh-s"
COLOURED = {  # (best, second best) of Art, Books, Moebius, as the paper colours them
    2: [(PDN_D, "fcn-d"), (PDN_S, PDN_D), (PDN_S, PDN_D)],
    4: [(PDN_D, NLH_D), (PDN_D, PDN_S), (PDN_S, PDN_D)],
    8: [(PDN_S, NLH_S), (PDN_S, NLH_S), (PDN_S, "ferstl13")],
    16: [(PDN_S, NLH_S), (PDN_S, "ferstl13"), ("ferstl13", PDN_S)],
}


def row(method, scene, scale, rmse, seconds=1.0):
    return Row(method, scene, scale, rmse, rmse / 2, seconds, {}, "")


def column(table, index):
    """Cells of a column by the name of their row; a cell that spans it counts."""
    found = {}
    for each in table.rows:
        place = 0
        for cell in each.cells:
            if place <= index < place + cell.span:
                found[each.cells[0].text] = cell
            place += cell.span
    return found


@pytest.mark.parametrize("scale", SCALES)
def test_marks_in_the_published_columns_are_those_of_the_paper(scale):
    table = tables.benchmark_table(lines(ReportSettings(), SCALES), {}, SCENES, scale)
    for index, (best, second) in enumerate(COLOURED[scale]):
        marked = {name: cell.mark for name, cell in column(table, 1 + 3 * index).items() if cell.mark}
        assert marked == {best: "best", second: "second"}


def test_marks_of_the_paper_do_not_depend_on_the_rows_shown():
    table = tables.benchmark_table([Line("he10", "filter", SCALES)], {}, SCENES, 8)
    assert column(table, 1)["he10"].mark == ""


def test_published_figures_are_complete():
    known = published()
    assert {(name, scale) for name in known.source_of for scale in SCALES} == set(known.benchmark)
    assert all(set(numbers) == set(SCENES) for numbers in known.benchmark.values())
    assert set(known.source_of.values()) == set(known.sources)
    assert len(known.energies) == 8
    assert list(known.windows) == list(range(3, 18, 2))
    assert known.benchmark["ferstl13", 16] == {"art": 7.61, "books": 3.54, "moebius": 3.50}


def test_ours_are_marked_among_ours_and_compared():
    own = {"nearest": 6.0, "bilinear": 5.0, "he10": 4.004, "park11": 4.001}
    rows = {(m, s, 8): row(m, s, 8, value) for m, value in own.items() for s in SCENES}
    table = tables.benchmark_table([Line(name, "any", (8,)) for name in own], rows, SCENES, 8)
    assert {name: cell.mark for name, cell in column(table, 2).items()} == {
        "nearest": "",
        "bilinear": "second",
        "he10": "best",
        "park11": "best",
    }
    assert column(table, 3)["he10"].text == "−1.72"
    assert column(table, 3)["park11"].text == "−1.93"


def test_overview_has_geometric_means_and_tells_what_is_beyond():
    printed = published().benchmark["he10", 8]
    rows = {("he10", s, 8): row("he10", s, 8, 1.2 * value) for s, value in printed.items()}
    table = tables.overview_table([Line("he10", "filter", (8,))], rows, SCENES, (8,))
    theirs, own, ratio = (column(table, i)["he10"] for i in (1, 2, 3))
    expected = math.prod(printed.values()) ** (1 / 3)
    assert (theirs.text, own.text) == (f"{expected:.2f}", f"{1.2 * expected:.2f}")
    assert (ratio.text, ratio.kind) == ("1.20", "beyond")


def test_missing_rows_say_why():
    own = [Line("nearest", "interpolation", (8,)), Line(PDN_S, "network", (), NO_WEIGHTS)]
    table = tables.benchmark_table(own, {}, SCENES, 8)
    assert column(table, 2)[PDN_S].text == NO_WEIGHTS
    assert column(table, 1)[PDN_S].text == "4.48"
    assert column(table, 2)["nearest"] == DASH
    assert table.rows[1].rule
    energies = tables.energy_table({}, SCENES, 8)
    assert [r.cells[0].text for r in energies.rows][:2] == ["fcn", "fcn+atv-l2"]
    assert {cell.text for cell in column(energies, 2).values()} == {NO_WEIGHTS}


@pytest.mark.parametrize("simulated", [True, False])
def test_tof_is_compared_only_with_the_same_scenes(simulated):
    scenes = ("s00", "s02") if simulated else ("books", "devil", "shark")
    rows = {("he10", s, 5): row("he10", s, 5, 26.11) for s in scenes}
    table = tables.tof_table(["he10", PDN_S], rows, scenes, 5, simulated=simulated)
    assert column(table, 1)["he10"].text == "27.11"
    assert column(table, 1)[PDN_S].mark == "best"
    kinds = {cell.kind for r in table.rows for cell in r.cells}
    assert ("difference" in kinds) is not simulated
    assert sum(c.span for c in table.rows[1].cells) == len(table.columns)


def test_seconds_and_windows():
    rows = {("he10", s, 8): row("he10", s, 8, 1.0, seconds=i) for i, s in enumerate(SCENES)}
    table = tables.seconds_table(
        [Line("he10", "filter", (8,)), Line(PDN_S, "network", ())], rows, SCENES, (4, 8)
    )
    assert [r.cells[0].text for r in table.rows] == ["he10"]
    assert [cell.text for cell in table.rows[0].cells[1:]] == [DASH.text, "1.00"]
    windows = tables.window_table({3: (3.5, 1.0, None), 5: (3.25, 2.0, 100.0)}, {3: 2.75})
    first = [cell.text for cell in windows.rows[0].cells]
    assert first == ["3 x 3", "4", "3.329", "2.750", "3.500", "1.0", DASH.text]
    assert windows.rows[1].cells[4].mark == "best"


def test_networks_of_every_window_of_the_report_were_measured():
    study = window_heads()
    assert set(study.rmse) == set(ReportSettings().windows)
    assert study.rmse[17] < study.rmse[3]


def test_small_parts():
    assert marks([2.0, 1.0, None, 1.001, 3.0], [2.0, 1.0, 1.001, 3.0], 2) == [
        "second",
        "best",
        "",
        "best",
        "",
    ]
    assert mean([1.0, 4.0]) == pytest.approx(2.0)
    assert mean([1.0, None]) is None
    assert mean([]) is None
    title = TableColumn("t")
    shown = differences(title, [1.0, 1.0, 1.0, None], [1.001, 2.0, 0.5, 1.0], 2).cells
    assert [cell.text for cell in shown] == ["0.00", "−1.00", "+0.50", DASH.text]
    assert [cell.kind for cell in ratios(title, [1.1, 1.11], [1.0, 1.0]).cells] == ["difference", "beyond"]
    empty = ours(title, [None], 2)
    table = assemble(["a"], [empty, empty], absent={"a": "why"})
    assert [(cell.text, cell.span) for cell in table.rows[0].cells] == [("a", 1), ("why", 2)]


def test_method_table_names_every_parameter():
    (line,) = tables.method_table(["nlh-l2"]).rows
    assert "window = 7" in line.cells[2].text
    assert tables.method_table(["nearest"]).rows[0].cells[2].text == "none"
