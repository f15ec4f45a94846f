"""A batch that was stopped goes on: what is finished is kept, and nothing else is."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from small_files import Cli, depth_values

from primaldepth.cli.remaining_time import RemainingTime
from primaldepth.core.errors import InputError
from primaldepth.io import DepthMap, write_depth
from primaldepth.io.locks import held
from primaldepth.pipeline.ledger import LEDGER_NAME as NAME
from primaldepth.pipeline.sequence_ledger import MEMORY_NAME as MEMORY
from waiting import wait_until

FAST = ("--method", "bilinear")
COUNT = 12
MOST = 3  # pairs of a run before it is killed
PROGRAM = f"""
import sys, time
from primaldepth.cli.main import run
from primaldepth.pipeline import batches

compute, begun = batches.compute, []

def at_most(*arguments):
    begun.append(arguments)
    if len(begun) > {MOST}:
        time.sleep(600)
    return compute(*arguments)

batches.compute = at_most
sys.exit(run())
"""


@pytest.fixture
def many(files: Path) -> Path:
    for index in range(COUNT):
        write_depth(f"many/{index:02d}.png", DepthMap.from_array(depth_values() + 0.01 * index, unit="mm"))
    return files


def contents(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.name != NAME}


def finished(outcome) -> int:
    return sum("kept" not in report for report in outcome.json)


def test_the_same_command_keeps_what_is_finished(cli: Cli, many: Path) -> None:
    call = ("upsample", "many", "guide.png", "-o", "out", *FAST, "--json")
    first, second = cli(*call), cli(*call)
    assert finished(first) == COUNT
    assert finished(second) == 0
    assert f"{COUNT} of {COUNT} are finished already and kept" in second.lines[0]
    assert [report["out"] for report in second.json] == [report["out"] for report in first.json]
    assert finished(cli(*call, "--overwrite")) == COUNT


CHANGES = {
    "method": ("--method", "nearest"),
    "noise": (*FAST, "--noise", "5"),
    "unit": (*FAST, "--unit", "5000"),
    "holes": (*FAST, "--holes", "keep"),
    "spikes": (*FAST, "--spikes", "keep"),
    "sampling": (*FAST, "--sampling", "point"),
    "preview": (*FAST, "--preview", "look"),
}


@pytest.mark.parametrize("options", CHANGES.values(), ids=CHANGES)
def test_other_settings_are_done_anew(cli: Cli, many: Path, options: tuple[str, ...]) -> None:
    cli("upsample", "many", "guide.png", "-o", "out", *FAST)
    assert finished(cli("upsample", "many", "guide.png", "-o", "out", *options, "--json")) == COUNT


def test_changed_files_are_done_anew(cli: Cli, many: Path) -> None:
    call = ("upsample", "many", "guide.png", "-o", "out", *FAST, "--json")
    cli(*call)
    write_depth("many/03.png", DepthMap.from_array(depth_values() + 1, unit="mm"))
    Path("out/05.png").unlink()
    Path("out/07.png").write_bytes(b"cut off")
    before = contents("out")["03.png"]
    assert finished(cli(*call)) == 3
    after = contents("out")
    assert after["03.png"] != before
    assert set(after) == {f"{index:02d}.png" for index in range(COUNT)}


def test_results_of_other_settings_in_the_same_place_are_not_kept(cli: Cli, many: Path) -> None:
    for index in range(3):
        write_depth(f"arrays/{index}.npy", DepthMap.from_array(depth_values() + index, unit="m"))
    method = ("--method", "nlh-l2", "--set", "iterations=5", "--set", "coarse_iterations=5")
    call = ("upsample", "arrays", "guide.png", "-o", "out", "--unit", "m", *method, "--json", "--noise")
    assert cli(*call, "0.001").code == 0
    first = contents("out")
    assert finished(cli(*call, "0.1")) == 3
    other = contents("out")
    assert all(len(other[name]) == len(first[name]) and other[name] != first[name] for name in first)
    assert finished(cli(*call, "0.001")) == 3
    assert contents("out") == first
    assert finished(cli(*call, "0.001")) == 0


def test_lines_without_times_count_for_nothing(cli: Cli, many: Path) -> None:
    call = ("upsample", "many", "guide.png", "-o", "out", *FAST, "--json")
    cli(*call)
    journal = Path("out") / NAME
    lines = [json.loads(line) for line in journal.read_text().split("\n") if line]
    for line in lines:
        line["sizes"] = {option: size for option, (size, _) in line.pop("outputs").items()}
    journal.write_text("\n".join(json.dumps(line) for line in lines))
    assert finished(cli(*call)) == COUNT
    assert finished(cli(*call)) == 0


def test_a_failure_is_tried_again(cli: Cli, many: Path) -> None:
    call = ("upsample", "many", "guide.png", "-o", "out", *FAST, "--json")
    good = Path("many/04.png").read_bytes()
    Path("many/04.png").write_bytes(good[:50])
    assert cli(*call).code == 1
    again = cli(*call)
    assert (again.code, finished(again)) == (1, 1)
    Path("many/04.png").write_bytes(good)
    assert (cli(*call).code, len(contents("out"))) == (0, COUNT)


def test_a_journal_that_was_cut_off_costs_one_result(cli: Cli, many: Path) -> None:
    call = ("upsample", "many", "guide.png", "-o", "out", *FAST, "--json")
    cli(*call)
    journal = Path("out") / NAME
    journal.write_bytes(journal.read_bytes()[:-40])
    assert finished(cli(*call)) == 1
    assert finished(cli(*call)) == 0


def test_leftovers_of_dead_processes_are_removed(cli: Cli, many: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    Path("out").mkdir()
    stale, other = Path(f"out/.03.{dead.pid}-0123abcd.png"), Path(f"out/.theirs.{dead.pid}-0123abcd.png")
    running = Path(f"out/.04.{os.getpid()}-0123abcd.png")
    for path in (stale, other, running):
        path.touch()
    cli("upsample", "many", "guide.png", "-o", "out", *FAST)
    assert [path.exists() for path in (stale, other, running)] == [False, True, True]


def test_leftovers_of_a_single_run_are_removed(cli: Cli, files: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    stale, other = Path(f".fine.{dead.pid}-0123abcd.png"), Path(f".other.{dead.pid}-0123abcd.png")
    for path in (stale, other):
        path.touch()
    assert cli("upsample", "depth.png", "guide.png", "-o", "fine.png", *FAST).code == 0
    assert [path.exists() for path in (stale, other)] == [False, True]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_single_run_that_is_told_to_end_leaves_nothing(
    cli: Cli, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGTERM arrives between the writing of the file and its renaming."""
    before, seen = set(os.listdir()), set()

    def end(path: Path) -> None:
        seen.update(set(os.listdir()) - before)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("primaldepth.io.atomic._sync", end)
    handler = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda number, frame: pytest.fail("nothing heeds SIGTERM"))
    try:
        outcome = cli("upsample", "depth.png", "guide.png", "-o", "fine.png", *FAST)
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert outcome.code == 128 + signal.SIGTERM
    assert len(seen) == 1  # the temporary file was there
    assert set(os.listdir()) == before


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_batch_killed_at_several_moments_ends_like_one_that_was_not(cli: Cli, many: Path) -> None:
    """Each run is killed a little later after its first result than the one before; none does all."""
    method = ("--method", "nlh-l2", "--set", "iterations=60", "--set", "coarse_iterations=20")
    extras = ("--preview", "look", "--cloud", "clouds")
    assert cli("upsample", "many", "guide.png", "-o", "whole", *method).code == 0
    call = ("upsample", "many", "guide.png", "-o", "out", *method, *extras)
    for pause in (0.0, 0.04, 0.1):
        _killed(call, pause)
    assert 0 < len(results()) < COUNT
    last = cli(*call, "--json")
    assert last.code == 0, last.err
    assert 0 < finished(last) < COUNT
    assert contents("out") == contents("whole")
    assert len(contents("look")) == len(contents("clouds")) == COUNT


def results() -> set[str]:
    """Names of those that are complete."""
    return {name for name in os.listdir("out") if not name.startswith(".")} if Path("out").is_dir() else set()


def _killed(call: tuple[str, ...], pause: float) -> None:
    """SIGKILL `pause` seconds after a new result has appeared."""
    before = results()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *call], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: results() - before)
        time.sleep(pause)
    finally:
        process.kill()
    assert process.wait() == -signal.SIGKILL


def test_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([10.0, 16.0, 16.0])
    monkeypatch.setattr("primaldepth.cli.remaining_time.time", SimpleNamespace(monotonic=lambda: next(now)))
    clock = RemainingTime(5)
    clock.tick()
    clock.tick()
    assert clock.left() == pytest.approx(9.0)
    assert str(clock) == "2 of 5, 0:00:09 left"


@pytest.mark.skipif(sys.platform == "win32", reason="no locks")
@pytest.mark.parametrize("shared", ["out", "clouds"])
def test_two_batches_into_one_folder_are_refused(cli: Cli, many: Path, shared: str) -> None:
    """The other process ends without a word, and then the folder is free again."""
    Path(shared).mkdir()
    code = f"import fcntl, os; fcntl.flock(os.open({shared!r}, os.O_RDONLY), fcntl.LOCK_EX); print(); input()"
    call = ("upsample", "many", "guide.png", "-o", "out", "--cloud", "clouds", "--method", "bilinear")
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        other.stdout.readline()
        refused = cli(*call)
        other.kill()
    assert refused.code == 2
    assert f"{Path(shared).absolute()}: another process is writing a batch to this folder" in refused.err
    assert results() == set()
    assert cli(*call).code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="no locks")
def test_a_batch_holds_its_folders_while_it_runs(
    cli: Cli, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = []

    def write(*arguments: object) -> None:
        for folder in ("out", "clouds"):
            with pytest.raises(InputError, match="another process is"), held(Path(folder), "", name=""):
                pass
        refused.append(arguments)
        raise InputError("enough is seen")

    monkeypatch.setattr("primaldepth.io.depth_writing.write_bytes", write)
    cli("upsample", "many", "guide.png", "-o", "out", "--cloud", "clouds", *FAST)
    assert len(refused) == COUNT
    with held(Path("out"), "", name=""):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
@pytest.mark.parametrize("how", ["soft", "dangling", "hard"])
@pytest.mark.parametrize("name", [NAME, MEMORY, "03.png"])
def test_a_batch_writes_through_no_link_in_its_folder(cli: Cli, many: Path, name: str, how: str) -> None:
    """A folder of a stranger may hold links under the names that a batch writes to."""
    victim, link = Path("victim.txt"), Path("out") / name
    link.parent.mkdir()
    if how != "dangling":
        victim.write_text("precious")
    if how == "hard":
        link.hardlink_to(victim)
    else:
        link.symlink_to(victim.absolute())
    temporal = ["--temporal"] if name == MEMORY else []
    done = cli("upsample", "many", "guide.png", "-o", "out", *temporal, *FAST)
    assert done.code == 2
    assert f"{link}: is a link or no regular file" in done.err
    assert victim.read_text() == "precious" if how != "dangling" else not victim.exists()


def test_a_link_that_the_user_names_is_followed(cli: Cli, files: Path) -> None:
    Path("link.png").symlink_to("real.png")
    assert cli("upsample", "depth.png", "guide.png", "-o", "link.png", *FAST).code == 0
    assert Path("link.png").is_symlink()
    assert Path("real.png").is_file()
