"""`upsample --temporal`: calmer, and the same files however often it was stopped."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from small_files import Cli

from primaldepth.io import DepthMap, read_depth, write_depth
from primaldepth.io import depth_writing as io_depth
from primaldepth.pipeline import ledger, sequence_ledger
from primaldepth.pipeline.ledger import LEDGER_NAME as JOURNAL
from primaldepth.pipeline.sequence_ledger import MEMORY_NAME as MEMORY

COUNT = 8
CALL = (
    "upsample",
    "many",
    "guide.png",
    "--method",
    "bilinear",
    "--noise",
    "20",
    "--temporal",
    "--json",
    "-o",
)


def write_frame(index: int) -> None:
    rng = np.random.default_rng(index)
    values = 2.0 + 0.1 * np.arange(8) + rng.normal(0, 0.02, (6, 8))
    write_depth(f"many/{index:02d}.png", DepthMap.from_array(values, unit="mm"))


@pytest.fixture
def many(files: Path) -> Path:
    for index in range(COUNT):
        write_frame(index)
    return files


def contents(folder: str) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() for path in Path(folder).iterdir() if path.name not in (JOURNAL, MEMORY)
    }


def ran(outcome) -> list[str]:
    return [Path(report["depth"]).name for report in outcome.json if "kept" not in report]


def flicker(folder: str) -> float:
    maps = [read_depth(path).values for path in sorted(Path(folder).glob("*.png"))]
    return sum(float(np.abs(b - a).mean()) for a, b in itertools.pairwise(maps))


def test_a_still_sequence_gets_calm(cli: Cli, many: Path) -> None:
    outcome = cli(*CALL, "calm")
    assert outcome.code == 0, outcome.err
    assert cli(*[word for word in CALL if word != "--temporal"], "plain").code == 0
    assert flicker("calm") < 0.4 * flicker("plain")
    assert outcome.json[-1]["info"]["carried"] > 0.7


@pytest.mark.parametrize("place", ["Journal.add", "write_bytes"])
@pytest.mark.parametrize("stop", [0, 1, 5, COUNT - 1])
def test_a_stopped_sequence_goes_on(cli: Cli, many: Path, monkeypatch, stop: int, place: str) -> None:
    """Stopped before a line of the journal is written, or before the memory is."""
    cli(*CALL, "whole")
    with monkeypatch.context() as patch:
        _stop(patch, place, stop)
        assert cli(*CALL, "out").code == 130
    again = cli(*CALL, "out")
    assert again.code == 0, again.err
    assert contents("out") == contents("whole")
    assert len(ran(again)) == COUNT - stop - (place == "write_bytes")


def _stop(patch: pytest.MonkeyPatch, place: str, stop: int) -> None:
    """As by Ctrl-C, at call number `stop`."""
    owner = ledger.Ledger if place == "Journal.add" else sequence_ledger
    name = place.split(".")[-1]
    original, calls = getattr(owner, name), iter(range(COUNT))

    def stopped(*arguments: object) -> None:
        if next(calls) == stop:
            raise KeyboardInterrupt
        original(*arguments)

    patch.setattr(owner, name, stopped)


def test_finished_frames_are_not_run_again(cli: Cli, many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more frame: the stored memory stands for all that were before."""
    cli(*CALL, "out")
    write_frame(COUNT)
    runs: list[object] = []
    original = sequence_ledger.Temporal.__call__
    monkeypatch.setattr(sequence_ledger.Temporal, "__call__", lambda *a: runs.append(a) or original(*a))
    assert ran(cli(*CALL, "out")) == [f"{COUNT:02d}.png"]
    assert len(runs) == 1
    cli(*CALL, "whole")
    assert contents("out") == contents("whole")


@pytest.mark.parametrize("memory", [None, b"", b"no tensors"])
def test_a_lost_memory_is_made_again(cli: Cli, many: Path, memory: bytes | None) -> None:
    cli(*CALL, "out")
    expected = contents("out")
    place = Path("out") / MEMORY
    place.unlink() if memory is None else place.write_bytes(memory)
    Path("out/06.png").unlink()
    assert ran(cli(*CALL, "out")) == ["06.png"]
    assert contents("out") == expected


def test_a_changed_frame_changes_all_that_follow(cli: Cli, many: Path) -> None:
    cli(*CALL, "out")
    write_depth("many/03.png", DepthMap.from_array(np.full((6, 8), 2.3), unit="mm"))
    assert ran(cli(*CALL, "out")) == [f"{index:02d}.png" for index in range(3, COUNT)]
    cli(*CALL, "whole")
    assert contents("out") == contents("whole")


def test_a_broken_frame_is_left_out_and_those_after_it_are_kept(cli: Cli, many: Path) -> None:
    good = Path("many/04.png").read_bytes()
    Path("many/04.png").write_bytes(good[:50])
    first, second = cli(*CALL, "out"), cli(*CALL, "out")
    assert (first.code, second.code) == (1, 1)
    assert ran(second) == ["04.png"]
    Path("many/04.png").write_bytes(good)
    assert ran(cli(*CALL, "out")) == [f"{index:02d}.png" for index in range(4, COUNT)]
    cli(*CALL, "whole")
    assert contents("out") == contents("whole")


def test_a_result_that_cannot_be_written_does_not_count(cli: Cli, many: Path, monkeypatch) -> None:
    """Its frame must not linger in the memory: a run that goes on would not have it there."""
    original = io_depth.write_bytes

    def refuse(path: Path, *arguments: object) -> None:
        if path.name == "04.png":
            raise OSError("no space")
        original(path, *arguments)

    monkeypatch.setattr(io_depth, "write_bytes", refuse)
    assert cli(*CALL, "out").code == 1
    monkeypatch.undo()
    monkeypatch.chdir(many)
    Path("many/04.png").unlink()
    cli(*CALL, "without")
    assert contents("out") == contents("without")


def test_one_pair_is_no_sequence(cli: Cli, files: Path) -> None:
    outcome = cli("upsample", "depth.png", "guide.png", "-o", "out.png", "--temporal")
    assert (outcome.code, "depth.png is one frame" in outcome.err) == (2, True)


def test_a_static_scene_is_another_sequence(cli: Cli, many: Path) -> None:
    """Nothing that was averaged the other way is kept, and a stopped one goes on with its own memory."""
    cli(*CALL, "out")
    static = cli(*CALL, "out", "--static-scene")
    assert len(ran(static)) == COUNT
    assert contents("out") != (cli(*CALL, "plain"), contents("plain"))[1]
    write_frame(COUNT)
    assert len(ran(cli(*CALL, "out", "--static-scene"))) == 1
    cli(*CALL, "whole", "--static-scene")
    assert contents("out") == contents("whole")


@pytest.mark.parametrize("call", [("upsample", "many", "guide.png", "-o", "out"), ("live", "simulated")])
def test_a_static_scene_needs_temporal(cli: Cli, many: Path, call: tuple[str, ...]) -> None:
    outcome = cli(*call, "--static-scene")
    assert outcome.code == 2
    assert "--static-scene: it says how results are averaged over time; give --temporal too" in outcome.err
    assert not Path("out").exists()
