"""The section without noise: means, marks, families kept apart, sentences that follow from the numbers."""

import pytest
from small_sets import freeze_sets

from primaldepth.evaluation.protocols import get_protocol
from primaldepth.evaluation.rows import Row
from primaldepth.report.blocks import Paragraph, Table
from primaldepth.report.noise_free_section import COMPLETE, SetFrames, section, standing
from primaldepth.report.published import published


def row(method, scene, scale, rmse):
    return Row(method, scene, scale, rmse, rmse, 1.0, {}, "", "")


@pytest.fixture
def made(tmp_path):
    """(section, tables): pdn-any loses to bicubic at x2 and wins elsewhere."""
    protocol = freeze_sets(tmp_path, names=["lu", "nyu"])
    sets = [SetFrames.of(protocol, part, 2) for part in protocol.parts(tmp_path)]
    rows = {
        (method, scene, scale): row(method, scene, scale, size * scale + number)
        for method, size in (("bicubic", 0.5), ("pdn-any", 0.3))
        for each in sets
        for scale in protocol.scales
        for number, scene in enumerate(each.scenes)
    }
    rows |= {(m, s, 2): row(m, s, 2, 9.0) for m, s, scale in rows if m == "pdn-any" and scale == 2}
    found = section(protocol, sets, ("bicubic", "pdn-any"), rows)
    return found, [block for block in found.blocks if isinstance(block, Table)]


def cells(table, name):
    return next(line.cells[1:] for line in table.rows if line.cells[0].text == name)


def test_published_numbers_are_there_for_both_families():
    families = published().noise_free
    assert list(families) == ["synthetic", "nyu"]
    assert families["synthetic"].rows["WAVE"]["lu", 8] == 2.35
    assert families["nyu"].rows["WAVE"]["lu", 8] == 1.40
    assert len(families["synthetic"].rows) == 10
    assert len(families["nyu"].rows) == 13
    assert published().noise_free_bicubic["middlebury", 4] == 2.296


def test_the_sets_are_those_of_the_protocol():
    known = {name for name, _ in published().noise_free_bicubic}
    assert known == set(get_protocol("noise-free").frame_sets)


def test_frames_are_spread_evenly(tmp_path):
    protocol = freeze_sets(tmp_path, names=["nyu"])
    part = protocol.parts(tmp_path)[0]
    assert SetFrames.of(protocol, part, 3).scenes == part.scenes
    assert SetFrames.of(protocol, part, 3).is_complete
    assert SetFrames.of(protocol, part, 2).scenes == ("nyu/1001", "nyu/1003")
    assert SetFrames.of(protocol, part, 1).scenes == ("nyu/1001",)
    assert not SetFrames.of(protocol, part, 1).is_complete


def test_the_uncertainty_is_the_largest_standard_error(tmp_path):
    protocol = freeze_sets(tmp_path, names=["lu"])
    sample = SetFrames.of(protocol, protocol.parts(tmp_path)[0], 2)
    rows = {
        ("m", f"lu/{n}", s): row("m", f"lu/{n}", s, 10.0 + (n if s == 4 else 0))
        for n in (1, 2)
        for s in (2, 4)
    }
    assert sample.uncertainty(rows, "m") == pytest.approx(0.5 / 11.5)


def test_ours_stands_with_its_family_and_apart_from_the_other(made):
    first, second = made[1]
    names = [line.cells[0].text for line in first.rows]
    assert names[:4] == ["bicubic", "pdn-any", COMPLETE, "DJF"]
    assert "JIIF" not in names
    assert second.title == "Trained on NYU"
    assert "pdn-any" not in [line.cells[0].text for line in second.rows]


def test_means_and_marks(made):
    first = made[1][0]
    own = cells(first, "pdn-any")
    assert [cell.text for cell in own[:4]] == ["9.00", "1.70", "2.90", "5.30"]  # lu; x4: (1.2 + 2.2) / 2
    assert own[0].mark == "second"  # of two
    assert own[1].mark == "second"  # behind DuCos, 1.38
    assert cells(first, "DuCos")[1].mark == "best"
    assert cells(first, "pdn-any")[7].mark == "best"  # nyu is run in part: among ours alone
    assert cells(first, "WAVE")[7].mark == "best"
    assert {column.group for column in first.columns[1:]} == {"lu [levels]", "nyu [cm], 2 of 3 frames"}
    assert cells(first, COMPLETE)[1].kind == "published"
    assert cells(first, COMPLETE)[1].mark == ""


def test_the_words_follow_from_the_numbers(made):
    about, where, *_ = (block.text for block in made[0].blocks if isinstance(block, Paragraph))
    assert "2 of the 2 frames of lu, 2 of the 3 frames of nyu" in about
    assert f"{COMPLETE}' shows how far the part lies off" in where
    assert "nyu x8" not in where  # a part of a set does not compare
    assert "`pdn-any` is worse than `bicubic` on lu x2, nyu x2." in where
    assert "trained on synthetic data only it is ahead of: lu x4 0 of 1, lu x8 4 of 10" in where
    means = {"bicubic": {("lu", 4): 2.0}, "pdn-any": {("lu", 4): 1.0}}
    assert standing("pdn-any", means, ["lu"])[0] == "`pdn-any` is worse than `bicubic` on none of them."
