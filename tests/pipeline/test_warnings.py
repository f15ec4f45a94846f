"""What is odd about a result, said in the words of who asked; the command line's tests provoke each doubt."""

import json
from dataclasses import fields, replace

import pytest

from primaldepth.api import ADVICE as PYTHON
from primaldepth.app.page.result_files import ADVICE as PAGE
from primaldepth.app.response_formats import ADVICE as FORM
from primaldepth.cli.upsample import ADVICE as OPTIONS
from primaldepth.geometry.alignment import Alignment, View
from primaldepth.pipeline.frame_report import Report
from primaldepth.pipeline.warnings import Advice, warnings_of

PLAIN = {
    "method": "pdn-any",
    "unit": "mm",
    "input_unit": "mm",
    "noise_is_least": False,
    "samples": 48,
    "beyond": 0,
    "noise_unit": "m",
    "measured_fraction": 1.0,
    "empty_fraction": 0.0,
    "info": {},
    "residual_rms": 0.1,
    "alignment": None,
    "seconds": 0.1,
}
ODD = {
    "kind": "z",
    "median_depth": 1500.0,
    "noise_sigma": 0.01,
    "noise_source": "auto",
    "residual_sigmas": 12.0,
    "residual_median": 4.0,
    "residual_outliers": 12.0,
    "spikes": 30,
    "overruled": 30,
    "put_back": True,
    "uncertain": 30,
    "largest_samples": 3,
    "rounded_off": 192,
    "input_size": [8, 6],
    "output_size": [2400, 3200],
}
FINE = ODD | {
    "median_depth": 1.5,
    "residual_sigmas": 1.0,
    "residual_median": 0.7,
    "residual_outliers": 0.7,
    "spikes": 0,
    "overruled": 0,
    "uncertain": 0,
    "largest_samples": 0,
    "rounded_off": 0,
    "output_size": [32, 24],
}


def doubts(figures, method, meaning, advice):
    """The sentences of the warnings about a report with these figures."""
    report = Report(**PLAIN | figures | {"method": method})
    return [str(each) for each in warnings_of(report, meaning, advice)]


def test_all_doubts_together_fit_a_header():
    """Proxies take 4096 bytes of headers at least; the rest of the report has about 450."""
    most = ODD | {
        "spikes": 2**28, "overruled": 2**28, "uncertain": 2**28,
        "largest_samples": 2**28, "rounded_off": 2**28,
        "input_size": [9000, 16384], "output_size": [16384, 9000],
    }  # fmt: skip
    assert len(json.dumps(doubts(most, "pdn-any", None, FORM))) < 1200


def test_nothing_odd_is_no_doubt():
    assert doubts(FINE, "pdn-any", None, OPTIONS) == []


@pytest.mark.parametrize(
    ("source", "kind", "doubted"), [("5", "z", 1), ("auto", "z", 0), ("5", "disparity", 0)]
)
def test_noise_that_no_camera_has_is_doubted_where_it_was_given(source, kind, doubted):
    noisy = FINE | {"noise_sigma": 0.31, "noise_source": source, "kind": kind}
    found = doubts(noisy, "pdn-any", kind, OPTIONS)
    assert found == ["the noise is 310 mm, 21 % of the depth; if that is wrong, check --noise"] * doubted
    assert doubts(noisy | {"noise_sigma": 0.29}, "pdn-any", kind, OPTIONS) == []


@pytest.mark.parametrize(("median", "doubted"), [(1605.0, 1), (161.0, 1), (160.0, 0), (40.0, 0)])
def test_distances_are_not_taken_for_disparities(median, doubted):
    """Millimetres read as pixels; the image is 320 pixels wide."""
    disparity = FINE | {"kind": "disparity", "median_depth": median, "output_size": [320, 240]}
    said = f"disparities of {median:.4g} px in an image 320 px wide; if they are distances, give --unit"
    assert doubts(disparity, "bicubic", "disparity", OPTIONS) == [said] * doubted


@pytest.mark.parametrize(
    ("unit", "median", "example"), [("m", 1605.0, ", such as mm"), ("m", 0.05, ""), ("mm", 1e-3, "")]
)
def test_a_unit_that_would_fit_is_named(unit, median, example):
    wrong = FINE | {"median_depth": median, "input_unit": unit}
    said = f"the median depth is {median:.4g} m; if that is wrong, give the right --unit{example}"
    assert doubts(wrong, "bicubic", None, OPTIONS) == [said]


@pytest.mark.parametrize("advice", [OPTIONS, FORM, PAGE, PYTHON])
def test_every_way_in_has_the_same_doubts_in_its_own_words(advice):
    """All words of advice are said, and none of another way in."""
    found = doubts(ODD, "pdn-any", None, advice)
    outliers = doubts(ODD | {"residual_median": 1.0}, "pdn-any", None, advice)
    assert len(found) == len(outliers) == 7
    text = " ".join((*found, *outliers))
    assert all(getattr(advice, each.name) in text for each in fields(Advice))
    assert ("--" in text) is (advice is OPTIONS)


@pytest.mark.parametrize("advice", [OPTIONS, FORM, PAGE, PYTHON])
def test_views_that_differ_are_told_in_every_way_in(advice):
    moved = Alignment(View(offset=(-12.2, 5.4)), score=50.0, as_given=20.0, rival=25.0, limit=8.0)
    found = doubts(FINE | {"alignment": moved}, "pdn-any", None, advice)
    assert found == [
        "the depth seems to lie (+12, -5) px (right, down) off the image; register it, or give "
        f"{advice.cameras} ('primaldepth align' makes such a file)"
    ]
    wide = replace(moved, view=View(1.583), degrees=55.0)
    found = doubts(FINE | {"alignment": wide}, "pdn-any", None, advice)
    assert "1.58 times as wide as the image's (79 against 55 degrees)" in found[0]


@pytest.mark.parametrize(
    "other",
    [
        {"view": View(offset=(3.0, 2.0))},  # as cameras that register by themselves are off
        {"rival": 46.0},  # another view fits nearly as well
        {"as_given": 46.0},  # and so does the frame as it is
        {"score": 15.0, "rival": 5.0, "as_given": 1.0},  # hardly more than chance
        {"inside": False},
    ],
)
def test_views_are_left_alone_in_doubt(other):
    moved = Alignment(View(offset=(-12.2, 5.4)), score=50.0, as_given=20.0, rival=25.0, limit=8.0)
    assert doubts(FINE | {"alignment": replace(moved, **other)}, "pdn-any", None, OPTIONS) == []
