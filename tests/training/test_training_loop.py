"""Whole runs at toy size: they learn, say what they do, leave weights that work, and stop at NaN."""

import json
import math
from collections import Counter
from statistics import fmean

import pytest
import torch
from toy_runs import FCN, JOINT, NET, log, recipe, run, same_tensors, scene, tensors, write_scenes

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.core.frame import Frame
from primaldepth.data.patches import Scenes
from primaldepth.data.shards import Shards
from primaldepth.io.locks import held
from primaldepth.methods.registry import create
from primaldepth.networks import from_pretrained
from primaldepth.networks.card import read_card
from primaldepth.training import losses
from primaldepth.training.batches import TOGETHER, draw_batch
from primaldepth.training.checkpoint import read_checkpoint
from primaldepth.training.losses import get_loss, masked_mean, register_loss
from primaldepth.training.run import TrainingError
from primaldepth.training.validation import selection_score

RUINED = {**FCN, "rate": 3.0, "warmup": 0, "schedule": "constant", "ema": 0.0}
PROTOCOLS = {"every": 0, "protocols": ("middlebury-2006",)}


@pytest.fixture
def own_losses(monkeypatch):
    """Losses registered in a test are gone after it."""
    monkeypatch.setattr(losses, "LOSSES", dict(losses.LOSSES))


@pytest.fixture
def nan_at(own_losses):
    """The loss `poisoned` is L2, but NaN the n-th time it is called."""

    def poison(number, value=math.nan):
        calls = 0

        @register_loss("poisoned")
        def poisoned(error, valid, truth):
            nonlocal calls
            calls += 1
            return masked_mean(error.square(), valid) * (value if calls == number else 1.0)

    return poison


class TestLearning:
    def test_the_loss_falls(self, shards, tmp_path):
        stage = {**FCN, "steps": 100, "batch": 8, "save_as": "toy"}
        events = run(recipe(stage, validation={"every": 50, "protocols": ()}), shards, tmp_path / "run")
        curve = [value for _, value in log(tmp_path / "run")]
        assert fmean(curve[-4:]) < 0.5 * fmean(curve[:2])
        validated = [event.values["held-out"] for event in events if event.kind == "validation"]
        assert validated[-1] < validated[0]

    def test_the_primal_dual_part_learns_on_a_fixed_fcn(self, finished, shards, tmp_path):
        start = str(finished / "toy-fcn-x2.safetensors")
        stage = {**JOINT, "part": "pdn", "steps": 10, "rate": 0.05, "save_as": "pdn"}
        run(recipe(stage, start=start), shards, tmp_path / "run")
        before, after = (
            tensors(finished / "toy-fcn-x2.safetensors"),
            tensors(tmp_path / "run/pdn-x2.safetensors"),
        )
        assert all(torch.equal(after[name], value) for name, value in before.items())
        moved = after["pdn.log_coefficients"] - from_pretrained(finished / "toy-pdn-x2").pdn.log_coefficients
        assert moved.abs().max() > 0.01

    def test_a_start_with_another_number_of_iterations(self, finished, shards, tmp_path):
        first, more = from_pretrained(finished / "toy-pdn-x2"), NET["iterations"] + 2
        stage = {**JOINT, "steps": 1, "rate": 1e-12, "ema": 0.0, "save_as": "more"}
        wanted = recipe(stage, start=str(finished / "toy-pdn-x2"), net={**NET, "iterations": more})
        run(wanted, shards, tmp_path / "run")
        found = tensors(tmp_path / "run/more-x2.safetensors")
        expected = first.with_iterations(more).state_dict()
        assert len(found["pdn.log_coefficients"]) == more
        assert all(torch.allclose(found[name], value, atol=1e-3) for name, value in expected.items())

    def test_a_share_of_the_start_is_kept(self, finished, shards, tmp_path):
        start, file = finished / "toy-pdn-x2.safetensors", "toy-pdn-x2.safetensors"
        for name, keep in (("new", 0.0), ("mixed", 0.25), ("old", 1.0)):
            run(recipe({**JOINT, "save_as": "toy-pdn"}, start=str(start), keep=keep), shards, tmp_path / name)
        new, mixed, old = (tensors(tmp_path / name / file) for name in ("new", "mixed", "old"))
        backbone, solver = ([name for name in new if name.startswith(part)] for part in ("fcn.", "pdn."))
        assert all(
            torch.equal(old[name], value) for name, value in tensors(start).items() if name in backbone
        )
        assert any(not torch.equal(new[name], old[name]) for name in backbone)
        assert all(torch.allclose(mixed[name], 0.75 * new[name] + 0.25 * old[name]) for name in backbone)
        assert all(torch.equal(mixed[name], new[name]) for name in solver)
        scores = [
            read_card(tmp_path / name / "toy-pdn-x2.json").scores["held-out"] for name in ("new", "mixed")
        ]
        assert scores[0] != scores[1]

    def test_nothing_is_kept_of_nothing(self):
        with pytest.raises(ValueError, match="no 'start' to keep"):
            recipe(keep=0.5)

    def test_the_log_tells_the_mean_loss_in_pixels(self, shards, tmp_path):
        wanted = recipe({**FCN, "steps": 2, "rate": 1e-12}, data={"held_out": 0})  # it does not learn
        run(wanted, shards, tmp_path / "run")
        scenes = Scenes.load(Shards(shards))
        drawn = draw_batch(scenes, wanted, TOGETHER * 4, 16, (0, 0, 0))
        batches = [drawn.part(slice(4 * step, 4 * step + 4)) for step in range(2)]
        expected = [get_loss("l2")((b.maps[0] - b.truth) * b.unit, b.valid, b.truth) for b in batches]
        assert log(tmp_path / "run") == [(2, pytest.approx(float(sum(expected)) / 2, rel=1e-4))]


class TestEvents:
    def test_what_is_told(self, shards, tmp_path):
        events = run(recipe(), shards, tmp_path / "run")
        kinds = Counter(event.kind for event in events)
        assert kinds == {"step": 14, "log": 4, "validation": 4, "saved": 2}
        assert [(event.stage, event.step) for event in events if event.kind == "log"] == [
            (0, 5),
            (0, 8),
            (1, 5),
            (1, 6),
        ]
        saved = [event.values["path"] for event in events if event.kind == "saved"]
        assert saved == [str(tmp_path / "run" / f"toy-{part}-x2.safetensors") for part in ("fcn", "pdn")]


class TestWhatIsLeft:
    def test_files(self, finished):
        pieces = [path.name for path in finished.glob("checkpoint-*.safetensors.000")]
        assert len(pieces) == 1
        assert {path.name for path in finished.iterdir()} - set(pieces) == {
            ".lock",
            "checkpoint.json",
            "config.json",
            "log.jsonl",
            "tensorboard",
            "toy-fcn-x2.json",
            "toy-fcn-x2.safetensors",
            "toy-pdn-x2.json",
            "toy-pdn-x2.safetensors",
        }
        assert json.loads((finished / "config.json").read_text()) == recipe().model_dump(mode="json")
        assert list((finished / "tensorboard").glob("events.*"))

    def test_log(self, finished):
        assert [step for step, _ in log(finished)] == [5, 8, 13, 14]
        assert [step for step, _ in log(finished, "held-out")] == [4, 8, 12, 14]
        coefficients = log(finished, "coefficients")
        assert [step for step, _ in coefficients] == [12, 14]  # the FCN alone has none
        assert {name: len(values) for name, values in coefficients[0][1].items()} == dict.fromkeys(
            ("sigma", "tau", "eps", "lam", "theta"), NET["iterations"]
        )

    def test_card(self, finished, monkeypatch):
        card = read_card(finished / "toy-pdn-x2.json")
        assert (card.name, card.scale, card.seed) == ("toy-pdn", 2, 0)
        assert card.config == recipe().model_dump(mode="json")
        assert card.data == "10 rendered scenes: preset toy, size 32"
        assert card.scores == {"held-out": min(value for _, value in log(finished, "held-out")[2:])}
        assert card.seconds > read_card(finished / "toy-fcn-x2.json").seconds > 0
        assert len(card.commit.removesuffix("-dirty")) in (0, 40)

    def test_the_commit_can_be_told(self, shards, tmp_path, monkeypatch):
        monkeypatch.setenv("PRIMALDEPTH_COMMIT", "abc1234")
        run(recipe({**FCN, "steps": 1, "save_as": "toy"}), shards, tmp_path / "run")
        assert read_card(tmp_path / "run/toy-x2.json").commit == "abc1234"

    @pytest.mark.parametrize(("name", "iterations"), [("toy-fcn", 0), ("toy-pdn", NET["iterations"])])
    def test_weights_load_and_run_as_a_method(self, finished, name, iterations):
        path = finished / f"{name}-x2.safetensors"
        assert from_pretrained(path).settings.iterations == iterations
        truth = torch.from_numpy(100.0 / scene(50)["depth"].clip(1.0))[None, None]
        depth = torch.nn.functional.avg_pool2d(truth, 2)
        frame = Frame(depth, torch.ones_like(depth, dtype=torch.bool), torch.rand(1, 3, 32, 32))
        result = create(str(path))(frame).depth
        assert result.shape == truth.shape
        assert float((result - truth).abs().mean()) < 10.0

    def test_the_best_weights_are_kept_not_the_last(self, shards, tmp_path):
        """With a rate that ruins everything, the first step is the least bad."""
        for steps in (1, 3):
            stage = {**RUINED, "steps": steps, "save_as": "toy"}
            run(recipe(stage, validation={"every": 1, "protocols": ()}), shards, tmp_path / f"{steps}")
        scores = [value for _, value in log(tmp_path / "3", "held-out")]
        assert scores[0] < min(scores[1:])
        assert read_card(tmp_path / "3/toy-x2.json").scores == {"held-out": scores[0]}
        assert same_tensors(tmp_path / "1/toy-x2.safetensors", tmp_path / "3/toy-x2.safetensors")


class TestEarlyStop:
    def test_a_stage_ends_when_nothing_gets_better(self, shards, tmp_path):
        looks = {"every": 1, "protocols": (), "patience": 3}
        wanted = recipe({**RUINED, "steps": 30}, {**FCN, "steps": 2}, validation=looks)
        events = run(wanted, shards, tmp_path / "run")
        scores = [
            event.values["held-out"] for event in events if event.kind == "validation" and event.stage == 0
        ]
        best = scores.index(min(scores))
        assert len(scores) == best + 1 + 3 < 30
        assert [event.step for event in events if event.kind == "step" and event.stage == 1] == [1, 2]

    def test_without_patience_it_goes_on(self, shards, tmp_path):
        events = run(recipe(RUINED, validation={"every": 1, "protocols": ()}), shards, tmp_path / "run")
        assert sum(event.kind == "step" for event in events) == 8


class TestNotFinite:
    @pytest.mark.parametrize("value", [math.nan, math.inf])
    def test_stop_saves_the_batch(self, shards, tmp_path, nan_at, value):
        nan_at(5, value)
        out = tmp_path / "run"
        stage = {**FCN, "loss": "poisoned", "steps": 30}
        with pytest.raises(
            TrainingError, match=r"stage 0, step 4: .* is in .*bad-batch-stage0-step4.safetensors"
        ):
            run(recipe(stage), shards, out)
        saved = tensors(out / "bad-batch-stage0-step4.safetensors")
        assert {name: tuple(value.shape) for name, value in saved.items()} == {
            **dict.fromkeys(("depth", "sigma", "trust", "guide", "truth", "valid"), (4, 1, 16, 16)),
            **dict.fromkeys(("ratio", "unit"), (4, 1, 1, 1)),
        }
        stored = read_checkpoint(out)
        assert stored.position.step == 3
        assert all(torch.isfinite(value).all() for value in stored.weights.values())
        assert all(math.isfinite(loss) for _, loss in log(out))

    def test_all_parts_of_a_batch_are_saved(self, shards, tmp_path, nan_at):
        nan_at(2)
        with pytest.raises(TrainingError):
            run(recipe({**FCN, "loss": "poisoned"}, accumulate=2), shards, tmp_path)
        assert tensors(tmp_path / "bad-batch-stage0-step0.safetensors")["truth"].shape == (4, 1, 16, 16)

    def test_skip_leaves_the_step_out_and_says_so(self, shards, tmp_path, nan_at):
        nan_at(4)
        wanted = recipe({**FCN, "loss": "poisoned", "save_as": "toy"}, on_nan="skip")
        events = run(wanted, shards, tmp_path / "run")
        told = [event.values["text"] for event in events if event.kind == "skipped"]
        assert told == ["step 3 left out: its loss or gradient is not finite"]
        values = tensors(tmp_path / "run/toy-x2.safetensors").values()
        assert all(torch.isfinite(value).all() for value in values)
        curve = [loss for _, loss in log(tmp_path / "run")]
        assert 0.2 < curve[0] / curve[1] < 5.0  # the mean of the steps that were taken

    def test_a_stopped_run_goes_on_without_the_step(self, shards, tmp_path, nan_at):
        nan_at(5)
        out = tmp_path / "run"
        wanted = recipe({**FCN, "loss": "poisoned", "save_as": "toy"})
        with pytest.raises(TrainingError):
            run(wanted, shards, out)
        skipping = wanted.model_copy(update={"on_nan": "skip"})
        assert run(skipping, shards, out, resume=True)[-1].kind == "saved"


class TestRefused:
    def test_a_folder_that_holds_a_run(self, finished, shards):
        with pytest.raises(InputError, match=r"whole: holds a run; go on with --resume, or choose another"):
            run(recipe(), shards, finished)

    def test_a_folder_whose_run_has_no_checkpoint_yet(self, shards, tmp_path):
        (tmp_path / "log.jsonl").write_text('{"total_step": 50}\n')
        with pytest.raises(InputError, match="holds a run; go on with --resume"):
            run(recipe(), shards, tmp_path)

    def test_a_file_in_place_of_the_folder(self, shards, tmp_path):
        (tmp_path / "file").touch()
        for place in (tmp_path / "file", tmp_path / "file" / "run"):
            with pytest.raises(InputError, match=r"cannot be written to .*choose another folder"):
                run(recipe(), shards, place)

    def test_two_runs_at_once(self, shards, tmp_path):
        with held(tmp_path, "training in"), pytest.raises(InputError, match="another process is training in"):
            run(recipe(), shards, tmp_path)

    def test_another_recipe(self, finished, shards):
        with pytest.raises(InputError, match=r"another recipe: seed is 0 there and 1 now"):
            run(recipe(seed=1), shards, finished, resume=True)

    def test_other_scenes(self, finished, tmp_path):
        fewer = write_scenes(tmp_path / "scenes", count=8)
        with pytest.raises(InputError, match=r"10 rendered scenes.* there and '8 rendered scenes.* now"):
            run(recipe(), fewer, finished, resume=True)

    def test_a_damaged_checkpoint(self, finished, shards, tmp_path):
        for path in finished.glob("checkpoint*"):
            whole = path.read_bytes()
            (tmp_path / path.name).write_bytes(whole if path.suffix == ".json" else whole[:-10])
        with pytest.raises(FileFormatError, match=r"safetensors.000: differs from its checksum; remove"):
            run(recipe(), shards, tmp_path, resume=True)

    @pytest.mark.parametrize("how", ["changed", "truncated"])
    def test_a_damaged_shard(self, tmp_path, how):
        folder = write_scenes(tmp_path / "scenes")
        shard = sorted(folder.glob("scenes-*"))[1]
        data = bytearray(shard.read_bytes())
        data[-1] ^= 1
        shard.write_bytes(data if how == "changed" else data[:-1])
        with pytest.raises(FileFormatError, match=rf"{shard.name}: .*primaldepth render --verify"):
            run(recipe(), folder, tmp_path / "run")
        assert not (tmp_path / "run").exists()

    def test_the_benchmark_for_validation(self, shards, tmp_path):
        with pytest.raises(InputError, match="noisy-middlebury is the benchmark, weights must not be chosen"):
            run(recipe(validation={"protocols": ("noisy-middlebury",)}), shards, tmp_path / "run")

    def test_protocols_that_do_not_exist(self, shards, tmp_path):
        with pytest.raises(InputError, match="unknown protocol 'middelbury'"):
            run(recipe(validation={"protocols": ("middelbury",)}), shards, tmp_path / "run")

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"loss": "l3"}, "loss 'l3' is not one of"),
            ({"patch": 17}, r"stages.1: patch 17 is not a multiple of the scale 2"),
            ({"batch": 3}, r"stages.1: batch 3 cannot be shared out evenly to 1 processes in 2 parts"),
        ],
    )
    def test_a_later_stage_is_checked_at_once(self, shards, tmp_path, changes, message):
        with pytest.raises(InputError, match=message):
            run(recipe(FCN, {**FCN, **changes}, accumulate=2), shards, tmp_path / "run")

    def test_networks_that_cannot_be(self, shards, tmp_path):
        with pytest.raises(InputError, match=r"stages.0: part 'pdn' needs a primal-dual part"):
            run(recipe({**FCN, "part": "pdn"}, net={**NET, "iterations": 0}), shards, tmp_path / "a")
        with pytest.raises(
            InputError, match=r"recipe 'toy': net: widths = .* expected one of each per level"
        ):
            run(recipe(net={**NET, "backbone": "unet", "widths": [8]}), shards, tmp_path / "b")

    def test_unknown_sensors(self, shards, tmp_path):
        with pytest.raises(InputError, match="unknown sensor 'sonar'"):
            run(recipe(data={"sensor": "sonar"}), shards, tmp_path / "run")

    def test_a_start_of_another_shape(self, finished, shards, tmp_path):
        wanted = recipe(start=str(finished / "toy-fcn-x2"), net={**NET, "maps": 4})
        with pytest.raises(
            InputError, match=r"start .*toy-fcn-x2: weights of a network with .*maps=8.*maps=4"
        ):
            run(wanted, shards, tmp_path / "run")


class TestValidation:
    def test_protocols_without_data_are_left_out_with_a_word(self, shards, tmp_path):
        events = run(recipe({**FCN, "steps": 2}, validation=PROTOCOLS), shards, tmp_path / "run")
        told = [event.values["text"] for event in events if event.kind == "note"]
        assert len(told) == 1
        assert told[0].startswith("not validated: no data folder is given; middlebury-2006 needs it")

    def test_protocols_decide_where_there_are_any(self):
        assert selection_score({"held-out": 1.0, "a": 2.0, "b": 8.0}) == pytest.approx(4.0)
        assert selection_score({"held-out x2": 1.0, "held-out x4": 4.0}) == pytest.approx(2.0)
        assert selection_score({}) is None

    @pytest.mark.parametrize(
        "scores", [{"a": math.nan}, {"a": math.nan, "b": 1.0}, {"a": 1.0, "b": math.nan}]
    )
    def test_what_is_not_a_number_is_a_bad_score_and_not_none(self, scores):
        assert math.isnan(selection_score(scores))

    def test_perfection(self):
        assert selection_score({"a": 0.0, "b": 2.0}) == 0.0

    def test_without_anything_to_look_at_the_last_weights_are_kept(self, shards, tmp_path):
        wanted = recipe({**FCN, "ema": 0.0, "save_as": "toy"}, data={"held_out": 0})
        run(wanted, shards, tmp_path / "run")
        assert read_card(tmp_path / "run/toy-x2.json").scores == {}
        stored = read_checkpoint(tmp_path / "run").weights
        saved = tensors(tmp_path / "run/toy-x2.safetensors")
        assert all(torch.equal(stored[name], value) for name, value in saved.items())


class TestSensors:
    @pytest.mark.parametrize("sensor", ["tof-v1", "structured-light-v1", "lidar-v1"])
    def test_every_sensor_can_be_trained_for(self, shards, tmp_path, sensor):
        run(recipe({**FCN, "steps": 2}, data={"sensor": sensor}), shards, tmp_path / "run")
        assert all(math.isfinite(loss) for _, loss in log(tmp_path / "run"))
