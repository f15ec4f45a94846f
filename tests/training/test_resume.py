"""A run that was killed gives the uninterrupted weights, bit for bit, and the same log."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from toy_runs import FCN, JOINT, log, recipe, run, same_tensors, tensors

from primaldepth.core.errors import InputError
from primaldepth.networks.card import read_card
from primaldepth.training.checkpoint import read_checkpoint
from primaldepth.training.run import train

KILLED = """
import os, signal, sys
from pathlib import Path
import torch
from toy_runs import recipe, train
from primaldepth.training import callbacks

torch.set_num_threads(1)
callbacks.LOG_EVERY = 5
steps = 0

def observer(event):
    global steps
    steps += event.kind == "step"
    if steps == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

train(recipe(), Path(sys.argv[1]), Path(sys.argv[2]), observer=observer)
"""


def interrupted(wanted, shards, out, step, **options):
    """Run until `step` steps are done in all stages, then lose everything that is not on disk."""

    def observer(event):
        done = sum(stage.steps for stage in wanted.stages[: event.stage]) + event.step
        if event.kind == "step" and done == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(wanted, shards, out, observer=observer, **options)


def assert_same_run(out, whole):
    for name in ("toy-fcn-x2.safetensors", "toy-pdn-x2.safetensors"):
        assert same_tensors(out / name, whole / name), name
    found, expected = read_checkpoint(out), read_checkpoint(whole)
    assert all(torch.equal(found.weights[name], value) for name, value in expected.weights.items())
    assert found.position.stage == expected.position.stage
    for key in ("loss", "rate", "held-out", "coefficients"):
        assert log(out, key) == log(whole, key), key


@pytest.mark.parametrize(
    "step",
    [
        1,  # before the first checkpoint: from the start
        5,  # after step 3: validated since, and half of what the log's next line tells of
        8,  # the last step of the first stage, which is lost
        9,  # the first of the second stage
        13,  # amid the second
    ],
)
def test_stopped_and_resumed(finished, shards, tmp_path, step):
    interrupted(recipe(), shards, tmp_path / "run", step)
    run(recipe(), shards, tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", finished)


def test_stopped_again_and_again(finished, shards, tmp_path):
    for step in (4, 7, 7, 10, 13):
        interrupted(recipe(), shards, tmp_path / "run", step, resume=True)
    run(recipe(), shards, tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", finished)


def test_kill_9(finished, shards, tmp_path):
    out = tmp_path / "run"
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n{KILLED}"
    killed = subprocess.run(
        [sys.executable, "-c", code, shards, out, "7"], timeout=120, capture_output=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    halves = (
        "checkpoint-0123456789abcdef.safetensors.77-0123abcd.000",
        "log.77-0123abcd.jsonl",
        "toy-fcn-x2.77-0123abcd.json",
    )
    for name in (*halves, f"config.{os.getpid()}-0123abcd.json"):  # as if it had been killed while writing
        (out / f".{name}").write_bytes(b"half")
    with (out / "log.jsonl").open("a") as file:
        file.write('{"total_step": 7, "lo')
    run(recipe(), shards, out, resume=True)
    assert_same_run(out, finished)
    assert [path.name for path in out.glob(".*")] == [".lock"]


def test_momentum_is_kept(shards, tmp_path):
    sgd = {"optimiser": "sgd", "rate": 1e-3, "clip": 0.1, "ema": 0.0}
    wanted = recipe({**FCN, **sgd, "save_as": "toy-fcn"}, {**JOINT, **sgd, "save_as": "toy-pdn"})
    run(wanted, shards, tmp_path / "whole")
    interrupted(wanted, shards, tmp_path / "run", 5)
    run(wanted, shards, tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", tmp_path / "whole")


def test_patience_is_kept(shards, tmp_path):
    """The counter of validations without improvement goes on where it was."""
    ruined = {**FCN, "steps": 30, "rate": 3.0, "warmup": 0, "schedule": "constant", "ema": 0.0}
    looks = {"every": 1, "protocols": (), "patience": 6}
    wanted = recipe({**ruined, "save_as": "toy-fcn"}, validation=looks)
    events = run(wanted, shards, tmp_path / "whole")
    steps = sum(event.kind == "step" for event in events)
    assert steps < 30
    interrupted(wanted, shards, tmp_path / "run", steps - 1)
    run(wanted, shards, tmp_path / "run", resume=True)
    assert log(tmp_path / "run", "held-out") == log(tmp_path / "whole", "held-out")
    assert same_tensors(*(tmp_path / name / "toy-fcn-x2.safetensors" for name in ("run", "whole")))


def test_a_frozen_part_has_no_gradient_left_from_the_stage_before(shards, tmp_path):
    wanted = recipe(
        {**JOINT, "steps": 3, "save_as": "toy-fcn"}, {**JOINT, "part": "pdn", "save_as": "toy-pdn"}
    )
    run(wanted, shards, tmp_path / "whole")
    interrupted(wanted, shards, tmp_path / "run", 4)  # goes on at the start of the second stage
    run(wanted, shards, tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", tmp_path / "whole")


def test_a_finished_run_has_nothing_left_to_do(finished, shards):
    before = {path.name: path.read_bytes() for path in finished.glob("checkpoint*")}
    events = []
    written = train(recipe(), shards, finished, resume=True, observer=events.append)
    assert events == []
    assert written == {name: finished / f"{name}-x2.safetensors" for name in ("toy-fcn", "toy-pdn")}
    assert {path.name: path.read_bytes() for path in finished.glob("checkpoint*")} == before


def test_resume_where_there_is_nothing_starts(finished, shards, tmp_path):
    run(recipe(), shards, tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", finished)


def test_weights_of_a_finished_run_that_are_gone_are_named(shards, tmp_path):
    wanted = recipe({**FCN, "save_as": "toy"})
    run(wanted, shards, tmp_path)
    (tmp_path / "toy-x2.safetensors").unlink()
    with pytest.raises(InputError, match=r"toy-x2.safetensors: this run wrote it, and it is gone"):
        run(wanted, shards, tmp_path, resume=True)


def test_the_weights_it_started_from_are_not_needed_any_more(finished, shards, tmp_path):
    start = tmp_path / "start.safetensors"
    for ending in (".safetensors", ".json"):
        start.with_suffix(ending).write_bytes((finished / f"toy-pdn-x2{ending}").read_bytes())
    wanted = recipe(start=str(start))
    interrupted(wanted, shards, tmp_path / "run", 5)
    run(wanted, shards, tmp_path / "whole")
    start.unlink()
    run(wanted, shards, tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", tmp_path / "whole")


def test_scores_on_other_frames_are_not_compared(shards, tmp_path, monkeypatch):
    """As when the folder of the validation data is not given again."""
    interrupted(recipe(), shards, tmp_path, 7)
    monkeypatch.setattr("primaldepth.training.validation.HELD_OUT", "other")
    with pytest.raises(InputError, match="was validated on held-out, and now on other; say with"):
        run(recipe(), shards, tmp_path, resume=True)


def test_what_a_lost_run_has_learned_can_be_used(shards, tmp_path):
    out = tmp_path / "run"
    interrupted(recipe(), shards, out, 13)
    left = out / "toy-pdn-x2-unfinished.safetensors"
    average = read_checkpoint(out).average
    assert all(torch.equal(average[name], value) for name, value in tensors(left).items())
    assert read_card(left.with_suffix(".json")).notes.startswith("unfinished: step ")
    run(recipe(), shards, out, resume=True)
    assert not list(out.glob("*-unfinished*"))


def test_muon_goes_on_where_it_stopped(shards, tmp_path):
    wanted = recipe(
        {**FCN, "optimiser": "muon", "save_as": "toy-fcn"},
        {**JOINT, "optimiser": "muon", "save_as": "toy-pdn"},
    )
    run(wanted, shards, tmp_path / "whole")
    interrupted(wanted, shards, tmp_path / "run", 13)
    run(wanted, shards, tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", tmp_path / "whole")
