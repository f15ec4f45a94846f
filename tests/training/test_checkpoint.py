"""Checkpoints: what is written is read, and damage is named."""

import json
import math
import os

import pytest
import torch

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.training.checkpoint import (
    Checkpoint,
    Position,
    _digest,
    check_fits,
    check_same_run,
    read_checkpoint,
)
from primaldepth.training.stage import restore_optimiser


def checkpoint(**changes):
    weight = torch.linspace(0, 1, 6).view(2, 3)
    parameter = torch.nn.Parameter(weight.clone())
    optimiser = torch.optim.AdamW([{"params": [parameter], "share": 2.0}], lr=0.1)
    parameter.grad = torch.ones(2, 3)
    optimiser.step()
    values = {
        "recipe": json.dumps({"seed": 0, "net": {"layers": 3}, "stages": [{"rate": 0.1}], "on_nan": "stop"}),
        "scenes": "10 rendered scenes",
        "position": Position(1, 20, 12.5, 0.1, 2, {"held-out": 0.1}, 33.25, 7),
        "weights": {"a.weight": weight, "a.scalar": torch.tensor(3.0)},
        "average": {"a.weight": weight},  # the same memory
        "best": {"a.weight": weight.T},  # not contiguous
        "optimiser": optimiser.state_dict(),
    }
    return Checkpoint(**{**values, **changes})


@pytest.fixture
def written(tmp_path):
    checkpoint().write(tmp_path / "c.safetensors")
    return tmp_path / "c.safetensors"


def test_what_is_written_is_read(written):
    found, expected = read_checkpoint(written), checkpoint()
    assert (found.recipe, found.scenes, found.position) == (
        expected.recipe,
        expected.scenes,
        expected.position,
    )
    for name in ("weights", "average", "best"):
        stored, wanted = getattr(found, name), getattr(expected, name)
        assert stored.keys() == wanted.keys()
        assert all(torch.equal(stored[key], wanted[key]) for key in wanted)
    optimiser = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(2, 3))])
    optimiser.load_state_dict(found.optimiser)
    assert optimiser.param_groups[0]["share"] == 2.0
    state = optimiser.state_dict()["state"][0]
    assert {"step", "exp_avg", "exp_avg_sq"} == state.keys()
    assert all(torch.equal(state[key], value) for key, value in expected.optimiser["state"][0].items())


def test_without_a_stage_in_progress(tmp_path):
    checkpoint(average={}, best={}, optimiser={}).write(tmp_path / "c.safetensors")
    found = read_checkpoint(tmp_path / "c.safetensors")
    assert (found.average, found.best, found.optimiser) == ({}, {}, {})


@pytest.mark.parametrize("place", [-1, -60, 12, 200])
def test_one_changed_byte_is_noticed(written, place):
    data = bytearray(written.read_bytes())
    data[place] ^= 1
    written.write_bytes(data)
    with pytest.raises(FileFormatError, match=r"c.safetensors: (differs|truncated or not|not a checkpoint)"):
        read_checkpoint(written)


@pytest.mark.parametrize("length", [0, 5, 100, -1])
def test_truncated(written, length):
    written.write_bytes(written.read_bytes()[:length])
    with pytest.raises(FileFormatError, match=r"c.safetensors: truncated or not a checkpoint .*; remove it"):
        read_checkpoint(written)


def test_a_message_does_not_repeat_what_stands_in_the_header(written):
    header = json.dumps("x" * 20_000).encode()
    written.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(FileFormatError, match="truncated or not a checkpoint") as caught:
        read_checkpoint(written)
    assert len(str(caught.value)) < 300 + len(str(written))


def rewritten(path, tensors=None, **changes):
    """The same file with other notes or tensors, and a checksum that vouches for them."""
    from safetensors import safe_open
    from safetensors.torch import save_file

    with safe_open(path, "pt") as file:
        metadata = file.metadata()
        kept = {name: file.get_tensor(name) for name in file.keys()} if tensors is None else tensors  # noqa: SIM118
    notes = changes.pop("text", None) or json.dumps({**json.loads(metadata["notes"]), **changes})
    save_file(kept, path, {**metadata, "notes": notes, "sha256": _digest(kept, notes)})


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "[" * 10_000},
        {"text": "[]"},
        {"text": "{}"},
        {"text": '{"recipe": ' + "1" * 5000 + "}"},
        {"position": {"stage": -1}},
        {"position": {"step": "many"}},
        {"position": 3},
        {"recipe": 3},
        {"optimiser": {}},
        {"optimiser": {"param_groups": 3}},
    ],
)
def test_notes_that_are_wrong(written, changes):
    rewritten(written, **changes)
    with pytest.raises(FileFormatError, match=r"c.safetensors: not a checkpoint \("):
        read_checkpoint(written)


@pytest.mark.parametrize(
    "name", ["other/a", "optimiser/a/step", "optimiser/²/step", "optimiser/99999999999/a"]
)
def test_tensors_that_are_not_ours(written, name):
    rewritten(written, {name: torch.zeros(2)})
    with pytest.raises(FileFormatError, match=r"c.safetensors: unknown tensor"):
        read_checkpoint(written)


def test_a_header_that_claims_to_be_huge(written):
    written.write_bytes((2**40).to_bytes(8, "little") + b"{" * 100)
    with pytest.raises(FileFormatError, match="the header is too long"):
        read_checkpoint(written)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "c.safetensors")
    with pytest.raises(InputError, match=r"c.safetensors: is not a regular file"):
        read_checkpoint(tmp_path / "c.safetensors")


def test_scores_that_are_not_finite_are_kept(tmp_path):
    position = Position(scores={"held-out": math.nan, "other": -math.inf}, loss=math.inf)
    checkpoint(position=position).write(tmp_path / "c.safetensors")
    found = read_checkpoint(tmp_path / "c.safetensors").position
    assert math.isnan(found.scores["held-out"])
    assert (found.scores["other"], found.loss) == (-math.inf, math.inf)


def test_weights_of_another_network(tmp_path):
    stored = checkpoint()
    with pytest.raises(FileFormatError, match="weights are not those of its recipe"):
        check_fits(tmp_path, stored, torch.nn.Linear(3, 2))


@pytest.mark.parametrize(
    "change", [{"exp_avg": torch.zeros(3)}, {"step": torch.zeros(2)}, {"more": torch.zeros(())}]
)
def test_sums_of_another_optimiser(change):
    state = checkpoint().optimiser
    state["state"][0] |= change
    optimiser = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(2, 3))])
    with pytest.raises(FileFormatError, match="do not fit its weights"):
        restore_optimiser(optimiser, state)


def test_other_safetensors_files(tmp_path):
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(3)}, tmp_path / "weights.safetensors")
    with pytest.raises(FileFormatError, match=r"weights.safetensors: not a checkpoint of this version"):
        read_checkpoint(tmp_path / "weights.safetensors")


class TestSameRun:
    def check(self, tmp_path, *, scenes="10 rendered scenes", **changes):
        stored = checkpoint()
        recipe = json.dumps({**json.loads(stored.recipe), **changes})
        check_same_run(tmp_path, stored, recipe, scenes)

    def test_the_same(self, tmp_path):
        self.check(tmp_path)

    def test_what_does_not_change_the_result_may_change(self, tmp_path):
        self.check(tmp_path, on_nan="skip", checkpoint_every=3)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"seed": 1}, "another recipe: seed is 0 there and 1 now; repeat"),
            ({"net": {"layers": 4}}, "net.layers is 3 there and 4 now"),
            ({"stages": [{"rate": 0.2}]}, "stages.0.rate is 0.1 there and 0.2 now"),
            ({"stages": [{"rate": 0.1}, {}]}, r"stages is \[.*\] there and \[.*\] now"),
            ({"start": "a"}, 'start is null there and "a" now'),
            (
                {"scenes": "9 rendered scenes"},
                "scenes are '10 rendered scenes' there and '9 rendered scenes' now",
            ),
        ],
    )
    def test_differences_are_named(self, tmp_path, changes, message):
        with pytest.raises(InputError, match=message):
            self.check(tmp_path, **changes)
