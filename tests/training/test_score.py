"""The score of several protocols: its parts, what a recipe may ask for, and that it chooses the weights."""

import json
import math
import sys
from pathlib import Path

import pytest
import torch
from toy_runs import FCN, recipe, run

from primaldepth.core.errors import InputError
from primaldepth.evaluation import protocols
from primaldepth.evaluation.weighted_score import Criterion, ScorePart, weighted_score
from primaldepth.networks.card import read_card
from primaldepth.training.recipe import read_recipe
from primaldepth.training.validation import Validator
from primaldepth.training.validation_plan import planned

sys.path.insert(0, str(Path(__file__).parents[1] / "evaluation"))
from small_sets import freeze_sets

LU = {"protocol": "noise-free", "scenes": ("lu",), "scales": (2,)}


@pytest.fixture
def sets(tmp_path, monkeypatch):
    """A data folder with small sets of noise-free."""
    small = freeze_sets(tmp_path / "data")
    monkeypatch.setitem(protocols._KINDS, "noise-free", lambda *_: small)
    return tmp_path / "data"


def plan(data, *entries, **changes):
    return planned(recipe(validation={"protocols": entries, **changes}), data)


class TestScore:
    def test_errors_count_by_their_ratios(self):
        parts = {"a": ScorePart(weight=3.0, reference=2.0), "b": ScorePart(weight=1.0)}
        assert weighted_score({"a": 2.0, "b": 1.0}, parts) == pytest.approx(1.0)
        assert weighted_score({"a": 1.0, "b": 1.0}, parts) == pytest.approx(0.5 ** (3 / 4))
        halved = weighted_score({"a": 2.0, "b": 0.5}, parts)
        assert halved == pytest.approx(0.5 ** (1 / 4))

    def test_references_of_errors_do_not_change_the_order(self):
        first, second = {"a": 1.0, "b": 9.0}, {"a": 4.0, "b": 2.0}
        for reference in (0.01, 1.0, 300.0):
            parts = {"a": ScorePart(weight=2.0, reference=reference), "b": ScorePart()}
            assert weighted_score(first, parts) < weighted_score(second, parts)

    def test_a_count_of_nothing_contributes_nothing(self):
        parts = {"error": ScorePart(), "count": ScorePart(reference=5.0, is_error=False)}
        assert weighted_score({"error": 4.0, "count": 0.0}, parts) == pytest.approx(2.0)
        at_reference = weighted_score({"error": 4.0, "count": 5.0}, parts)
        assert at_reference == pytest.approx(weighted_score({"error": 8.0, "count": 0.0}, parts))
        large = [weighted_score({"error": 1.0, "count": n}, parts) for n in (1e6, 2e6)]
        assert large[1] / large[0] == pytest.approx(math.sqrt(2), rel=1e-5)

    def test_what_is_not_a_number_stays_so(self):
        for part in (ScorePart(), ScorePart(is_error=False)):
            assert math.isnan(weighted_score({"a": math.nan, "b": 1.0}, {"a": part, "b": ScorePart()}))

    def test_a_number_that_no_frame_has(self):
        with pytest.raises(InputError, match="'a abs_rel' is not defined on any frame"):
            weighted_score({"a": 1.0}, {"a abs_rel": ScorePart()})


class TestPlan:
    def test_a_weight_is_shared_among_sets_and_scales(self, sets):
        both = {"protocol": "noise-free", "scenes": ("lu", "nyu"), "scales": (2, 4), "weight": 2.0}
        found = plan(sets, both, {**LU, "metric": "bad_1", "reference": 0.1, "weight": 3.0})
        names = ["noise-free lu x2", "noise-free lu x4", "noise-free nyu x2", "noise-free nyu x4"]
        assert list(found.groups) == names
        assert [found.parts[name] for name in names] == [ScorePart(0.5)] * 4
        assert found.parts["noise-free lu x2 bad_1"] == ScorePart(3.0, 0.1, is_error=False)
        assert found.groups["noise-free lu x2"].metrics == {"bad_1"}  # the frames are there once

    def test_a_name_alone_is_a_criterion_with_all_its_defaults(self, sets):
        found = plan(sets, "noise-free", scales=(2, 4))
        assert set(found.groups) == {f"noise-free {s} x{n}" for s in ("lu", "nyu") for n in (2, 4)}
        assert set(found.parts.values()) == {ScorePart(0.25)}
        assert list(plan(sets, "noise-free").groups) == ["noise-free lu", "noise-free nyu"]

    def test_single_scenes(self, sets):
        found = plan(sets, {**LU, "scenes": ("nyu/1002",)})
        assert found.groups["noise-free nyu x2"].scenes == ("nyu/1002",)

    def test_a_criterion_may_name_its_own_folder(self, sets):
        wanted = recipe(validation={"protocols": ({**LU, "data": str(sets)},)})
        frames = Validator(wanted, None, None, torch.device("cpu")).frames
        assert [each.case.scene for each in frames] == ["lu/1", "lu/2"]

    @pytest.mark.parametrize(
        ("entry", "message"),
        [
            (
                {"protocol": "noisy-middlebury"},
                "is the benchmark, weights must not be chosen by it",
            ),
            ({**LU, "scenes": ("middlebury",)}, "middlebury of noise-free is kept for judging"),
            ({**LU, "scenes": ("middlebury/1",)}, "middlebury/1 of noise-free is kept for judging"),
            ({**LU, "scenes": ("kitti",)}, "no scene 'kitti' there"),
            ({**LU, "scales": (3,)}, "has the scales 2, 4, 8, 16, not 3"),
            ({**LU, "metric": "rmsee"}, r"noise-free: no metric 'rmsee' \(known: rmse, mae"),
            ({**LU, "metric": "delta1"}, "cannot choose by 'delta1', larger is better"),
            ({**LU, "metric": "bad_3"}, "'bad_3' may be 0 and needs a reference"),
            ({"protocol": "middlebury-2006"}, "no folder 'middlebury_2006_half' there"),
        ],
    )
    def test_what_cannot_be_chosen_by(self, sets, entry, message):
        with pytest.raises(InputError, match=message):
            plan(sets, entry)

    def test_the_same_number_twice(self, sets):
        with pytest.raises(InputError, match="noise-free lu x2 is named twice"):
            plan(sets, LU, {**LU, "weight": 2.0})

    def test_what_is_left_out_is_told(self, sets):
        for path in (sets / "noise_free" / "nyu").rglob("*1002.npy"):
            path.unlink()
        assert plan(sets, "noise-free").missing == ["noise-free: 2 of the 3 frames of nyu are there"]


class TestRun:
    def test_the_log_has_every_number_and_the_score_and_the_best_is_kept(self, sets, shards, tmp_path):
        entries = (LU, {**LU, "metric": "bad_1", "reference": 0.5, "weight": 0.5})
        wanted = recipe({**FCN, "save_as": "toy"}, validation={"every": 2, "protocols": entries})
        events = run(wanted, shards, tmp_path / "run", data=sets)
        told = [event.values for event in events if event.kind == "validation"]
        for values in told:
            error, share = values["noise-free lu x2"], values["noise-free lu x2 bad_1"]
            expected = (math.log(error) + 0.5 * math.log1p(share / 0.5)) / 1.5
            assert math.log(values["score"]) == pytest.approx(expected)
            assert "held-out" in values
        lines = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
        scored = [line for line in lines if "score" in line]
        assert [line["score"] for line in scored] == [values["score"] for values in told]
        best = min(scored, key=lambda line: line["score"])
        card = read_card(tmp_path / "run/toy-x2.json")
        assert card.scores == {name: best[name] for name in card.scores}
        assert set(card.scores) == {"held-out", "noise-free lu x2", "noise-free lu x2 bad_1"}

    def test_a_run_with_criteria_goes_on(self, sets, shards, tmp_path):
        wanted = recipe({**FCN, "save_as": "toy"}, validation={"every": 2, "protocols": (LU,)})
        run(wanted, shards, tmp_path / "run", data=sets)
        run(wanted, shards, tmp_path / "run", data=sets, resume=True)


RECIPE = """
name = "x"
scale = 2
[validation]
protocols = ["middlebury-2006", {protocol = "noise-free", scenes = ["lu"], weight = 2}]
[[stages]]
part = "fcn"
steps = 1
"""


class TestRecipe:
    def test_names_and_criteria_stand_side_by_side(self, tmp_path):
        (tmp_path / "r.toml").write_text(RECIPE)
        found = read_recipe(tmp_path / "r.toml").validation
        assert found.protocols == (
            "middlebury-2006",
            Criterion(protocol="noise-free", scenes=("lu",), weight=2.0),
        )
        assert found.names == ("middlebury-2006", "noise-free")

    def test_an_unknown_key_of_a_criterion_is_named(self, tmp_path):
        (tmp_path / "r.toml").write_text(RECIPE.replace("weight", "wieght"))
        with pytest.raises(
            InputError, match=r"validation.protocols.1: unknown key 'wieght'; did you mean 'weight'"
        ):
            read_recipe(tmp_path / "r.toml")
