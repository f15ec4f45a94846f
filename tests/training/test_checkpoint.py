"""Checkpoints: what is written is read, in small files, and damage is named."""

import json
import math
import os

import pytest
import torch
from safetensors.torch import load, save

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.training import checkpoint as files
from primaldepth.training.checkpoint import decoded, encoded, read_checkpoint, write_checkpoint
from primaldepth.training.optimisation import restore_optimiser, sums_of
from primaldepth.training.state import Position, TrainState

PARTS = ("weights", "average", "best", "optimiser")


def adamw():
    """One step from the weights 0 .. 1."""
    weight = torch.nn.Parameter(torch.linspace(0, 1, 6).view(2, 3))
    optimiser = torch.optim.AdamW([weight], lr=0.1)
    weight.grad = torch.ones(2, 3)
    optimiser.step()
    return optimiser


def state(**changes):
    weight = torch.linspace(0, 1, 6).view(2, 3)
    values = {
        "recipe": json.dumps({"seed": 0, "net": {"layers": 3}, "stages": [{"rate": 0.1}], "on_nan": "stop"}),
        "scenes": "10 rendered scenes",
        "position": Position(1, 20, 12.5, 0.1, 2, {"held-out": 0.1}, 33.25, 7),
        "weights": {"a.weight": weight, "a.scalar": torch.tensor(3.0)},
        "average": {"a.weight": weight},  # the same memory
        "best": {"a.weight": weight.T},  # not contiguous
        "optimiser": sums_of(adamw()),
    }
    return TrainState(**{**values, **changes})


def assert_same(found, expected):
    assert (found.recipe, found.scenes, found.position) == (
        expected.recipe,
        expected.scenes,
        expected.position,
    )
    for part in PARTS:
        stored, wanted = getattr(found, part), getattr(expected, part)
        assert stored.keys() == wanted.keys()
        assert all(torch.equal(stored[key], wanted[key]) for key in wanted)


@pytest.fixture
def written(tmp_path):
    """A folder with a checkpoint in one piece."""
    write_checkpoint(tmp_path, state())
    return tmp_path


@pytest.fixture
def pieces(tmp_path, monkeypatch):
    """A folder with a checkpoint in several pieces."""
    monkeypatch.setattr(files, "LARGEST", 300)
    write_checkpoint(tmp_path, state())
    found = sorted(tmp_path.glob("checkpoint-*"))
    assert len(found) > 2
    return found


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_is_written_is_read(written):
    assert_same(read_checkpoint(written), state())


def test_an_optimiser_goes_on(written):
    weight = torch.nn.Parameter(torch.zeros(2, 3))
    optimiser = torch.optim.AdamW([weight], lr=0.3)
    restore_optimiser(optimiser, read_checkpoint(written).optimiser)
    assert optimiser.param_groups[0]["lr"] == 0.3  # which follows from the recipe
    expected = adamw().state_dict()["state"][0]
    assert expected.keys() == {"step", "exp_avg", "exp_avg_sq"}
    assert all(torch.equal(optimiser.state[weight][key], value) for key, value in expected.items())


def test_between_stages(tmp_path):
    write_checkpoint(tmp_path, state(average={}, best={}, optimiser={}))
    found = read_checkpoint(tmp_path)
    assert (found.average, found.best, found.optimiser) == ({}, {}, {})


def test_none(tmp_path):
    assert read_checkpoint(tmp_path) is None


class TestPieces:
    def test_all_are_small_and_together_a_safetensors_file(self, pieces):
        assert all(path.stat().st_size <= 300 for path in pieces)
        whole = b"".join(path.read_bytes() for path in pieces)
        assert torch.equal(load(whole)["weights/a.weight"], state().weights["a.weight"])
        assert_same(read_checkpoint(pieces[0].parent), state())

    def test_none_is_larger_than_16_mib(self, tmp_path):
        large = {"weights": {"a": torch.zeros(9 * 2**20 // 2)}}
        write_checkpoint(tmp_path, state(average={}, best={}, optimiser={}, **large))
        assert sorted(path.stat().st_size for path in tmp_path.glob("checkpoint-*"))[-1] == 16 * 2**20
        assert len(read_checkpoint(tmp_path).weights["a"]) == 9 * 2**20 // 2

    @pytest.mark.parametrize("number", [0, 1, -1])
    def test_an_incomplete_set_is_not_loaded(self, pieces, number):
        pieces[number].unlink()
        with pytest.raises(FileFormatError, match=rf"{pieces[number].name}: no such file.*remove .*\.json"):
            read_checkpoint(pieces[0].parent)

    def test_pieces_without_their_list_are_no_checkpoint(self, pieces):
        (pieces[0].parent / "checkpoint.json").unlink()
        assert read_checkpoint(pieces[0].parent) is None

    def test_pieces_of_two_checkpoints(self, pieces):
        pieces[0].write_bytes(pieces[1].read_bytes())
        with pytest.raises(FileFormatError, match=rf"{pieces[0].name}: differs from its checksum"):
            read_checkpoint(pieces[0].parent)

    def test_a_new_one_takes_the_place_of_the_old(self, pieces):
        folder = pieces[0].parent
        (folder / ".checkpoint-0123456789abcdef.safetensors.77-0123abcd.000").write_bytes(b"half")
        write_checkpoint(folder, state(position=Position(step=4)))
        assert read_checkpoint(folder).position.step == 4
        assert not set(names(folder)) & {path.name for path in pieces}
        assert not list(folder.glob(".*"))

    @pytest.mark.parametrize("fails", [1, 2, 3, 4, 5])
    def test_killed_while_it_is_written(self, pieces, monkeypatch, fails):
        """At whichever file: the old one is still there, whole."""
        folder, plain, calls = pieces[0].parent, files.write_bytes, 0

        def dies(path, data):
            nonlocal calls
            calls += 1
            if calls == fails:
                raise KeyboardInterrupt
            plain(path, data)

        monkeypatch.setattr(files, "write_bytes", dies)
        with pytest.raises(KeyboardInterrupt):
            write_checkpoint(folder, state(position=Position(step=4)))
        assert_same(read_checkpoint(folder), state())

    def test_killed_before_the_old_one_is_removed(self, pieces, monkeypatch):
        folder = pieces[0].parent
        with monkeypatch.context() as patch:
            patch.setattr(files, "_remove_others", lambda *_: None)
            write_checkpoint(folder, state(position=Position(step=4)))
        assert read_checkpoint(folder).position.step == 4
        write_checkpoint(folder, state())
        assert {path.name for path in pieces} | {"checkpoint.json"} == set(names(folder))


@pytest.mark.parametrize("place", [-1, -60, 12, 200])
def test_one_changed_byte_is_noticed(written, place):
    path = next(written.glob("checkpoint-*"))
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=r"safetensors.000: differs from its checksum; remove"):
        read_checkpoint(written)


def test_no_changed_byte_of_the_list_is_believed(written):
    path = written / "checkpoint.json"
    whole = path.read_bytes()
    for place in range(len(whole)):
        data = bytearray(whole)
        data[place] ^= 1
        path.write_bytes(data)
        try:
            found = read_checkpoint(written)
        except InputError:
            continue
        assert_same(found, state())  # white space


@pytest.mark.parametrize("length", [0, 5, 100, -1])
def test_truncated(written, length):
    path = next(written.glob("checkpoint-*"))
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(FileFormatError, match=r"safetensors.000: differs from its checksum; remove"):
        read_checkpoint(written)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"pieces": []}', '{"pieces": [{"file": "/etc/passwd", "sha256": ""}]}', '{"pieces": 3}'],
)
def test_lists_that_are_wrong(written, text):
    (written / "checkpoint.json").write_text(text)
    with pytest.raises(FileFormatError, match=r"checkpoint.json: .*remove .*checkpoint.json to start"):
        read_checkpoint(written)


def test_a_list_of_another_version(written):
    path = written / "checkpoint.json"
    path.write_text(path.read_text().replace("checkpoint 2", "checkpoint 3"))
    with pytest.raises(FileFormatError, match=r"'format'.*'primaldepth-checkpoint 3'"):
        read_checkpoint(written)


def rewritten(tensors=None, text=None, **changes):
    """The bytes of a checkpoint with other notes or tensors."""
    found = load(encoded(state()))
    notes = json.loads(bytes(found.pop("notes").tolist()))
    plain = text or json.dumps({**notes, **changes})
    return save({**(found if tensors is None else tensors), "notes": torch.tensor([*plain.encode()]).byte()})


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
    ],
)
def test_notes_that_are_wrong(tmp_path, changes):
    with pytest.raises(FileFormatError, match=r"c: not a checkpoint \("):
        decoded(rewritten(**changes), tmp_path / "c")


@pytest.mark.parametrize("name", ["other/a", "weights2/a", "a", "note"])
def test_tensors_that_are_not_ours(tmp_path, name):
    with pytest.raises(FileFormatError, match=r"c: not a checkpoint \("):
        decoded(rewritten({name: torch.zeros(2)}), tmp_path / "c")


@pytest.mark.parametrize(
    "data", [b"", b"text", (2**40).to_bytes(8, "little") + b"{" * 100, save({"x": torch.zeros(3)})]
)
def test_other_files(tmp_path, data):
    with pytest.raises(FileFormatError, match=r"c: not a checkpoint \("):
        decoded(data, tmp_path / "c")


def test_a_pipe_is_not_waited_for(written):
    path = next(written.glob("checkpoint-*"))
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputError, match=r"safetensors.000: is not a regular file"):
        read_checkpoint(written)


def test_scores_that_are_not_finite_are_kept(tmp_path):
    position = Position(scores={"held-out": math.nan, "other": -math.inf}, loss=math.inf)
    write_checkpoint(tmp_path, state(position=position))
    found = read_checkpoint(tmp_path).position
    assert math.isnan(found.scores["held-out"])
    assert (found.scores["other"], found.loss) == (-math.inf, math.inf)


def test_weights_of_another_network(tmp_path):
    with pytest.raises(FileFormatError, match="weights are not those of its recipe"):
        state().check_fits(tmp_path, torch.nn.Linear(3, 2))


@pytest.mark.parametrize(
    "change",
    [
        {"0/exp_avg": torch.zeros(3)},
        {"0/step": torch.zeros(2)},
        {"0/more": torch.zeros(())},
        {"1/step": torch.zeros(())},
        {"²/step": torch.zeros(())},
    ],
)
def test_sums_of_another_optimiser(change):
    optimiser = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(2, 3))])
    with pytest.raises(FileFormatError, match="do not fit its weights"):
        restore_optimiser(optimiser, state().optimiser | change)


class TestSameRun:
    def check(self, tmp_path, *, scenes="10 rendered scenes", **changes):
        stored = state()
        stored.check_same_run(tmp_path, json.dumps({**json.loads(stored.recipe), **changes}), scenes)

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
