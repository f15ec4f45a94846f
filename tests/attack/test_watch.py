"""Each thing that the program watches is seen when a reader does it."""

import os
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("h5py", reason="the extra 'mat' is not installed")

from benchmarks.attack.cases import Reader
from benchmarks.attack.watch import InputLimits, MemoryGrowth, Watch, cpu_seconds

from primaldepth.core.errors import FileFormatError
from waiting import wait_until

MIB = 2**20


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "input"
    made.mkdir()
    return made


@pytest.fixture
def watch(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return Watch(scratch)


def reader(read, apart=False):
    return Reader("planted", 1, lambda rng: [], lambda rng, seeds: None, read, apart)


def kinds(outcome):
    return [kind for kind, _ in outcome.faults]


def test_a_result_and_an_error_of_ours_are_no_faults(watch, folder):
    assert watch.look(reader(lambda path: 1), folder).faults == []

    def refuse(path):
        raise FileFormatError(f"{path / 'a.png'}: no PNG; export it again")

    outcome = watch.look(reader(refuse), folder)
    assert (outcome.ended, outcome.faults) == ("refused", [])


def test_another_exception_is_a_fault(watch, folder):
    outcome = watch.look(reader(lambda path: {}["missing"]), folder)
    assert kinds(outcome) == ["foreign"]
    assert "KeyError" in outcome.faults[0][1]


@pytest.mark.parametrize("text", ["{0}: two\nlines", "{0}: " + "x" * 2000, "no name of a file"])
def test_a_message_that_is_no_short_line_about_the_file_is_a_fault(watch, folder, text):
    def refuse(path):
        raise FileFormatError(text.format(path))

    assert kinds(watch.look(reader(refuse), folder)) == ["message"]


def test_growth_of_this_process_is_a_fault(watch, folder):
    def grow(path):
        return len(b"\1" * (400 * MIB))

    outcome = watch.look(reader(grow), folder)
    assert kinds(outcome) == ["growth"]
    assert 390 < outcome.growth_mib < 500
    assert watch.look(reader(lambda path: len(b"\1" * (100 * MIB))), folder).faults == []


def test_growth_of_a_child_is_seen(folder):
    memory = MemoryGrowth()
    memory.start(apart=True)
    grow = "import sys; data = b'1' * (60 << 20); sys.stdin.read(1)"
    with subprocess.Popen([sys.executable, "-c", grow], stdin=subprocess.PIPE) as child:
        wait_until(lambda: max(memory._far.values(), default=0.0) > 60.0)
        child.communicate(b"x")
    assert memory.growth() > 60.0


def test_a_slow_input_is_a_fault(tmp_path, folder):
    times = iter([0.0, 6.0, 10.0, 14.5])
    scratch = tmp_path / "slow"
    scratch.mkdir()
    watch = Watch(scratch, clock=lambda: next(times))
    slow = watch.look(reader(lambda path: 1), folder)
    assert (kinds(slow), slow.seconds) == (["slow"], 6.0)
    assert watch.look(reader(lambda path: 1), folder).faults == []


def test_the_clock_counts_work_here_and_in_children_but_no_waiting():
    start = cpu_seconds()
    time.sleep(0.5)
    waited = cpu_seconds() - start
    assert waited < 0.4
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", busy], check=True)
    assert cpu_seconds() - start - waited > 0.25


def test_an_input_without_end_is_ended(tmp_path, folder):
    scratch = tmp_path / "endless"
    scratch.mkdir()
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    watch = Watch(scratch, InputLimits(patience=0.1))
    outcome = watch.look(reader(lambda path: (path / "pipe").read_bytes()), folder)
    assert (outcome.ended, kinds(outcome)) == ("none", ["hang"])


def test_other_values_under_a_checksum_are_a_misread(watch, folder):
    wrong = watch.look(reader(lambda path: [1, 2]), folder, "same", expected="another")
    assert kinds(wrong) == ["misread"]
    right = watch.look(reader(lambda path: [1, 2]), folder, "same", expected=wrong.digest)
    assert right.faults == []
    assert watch.look(reader(lambda path: [1, 2]), folder, "any", expected="another").faults == []


def test_reading_what_must_be_refused_is_a_fault(watch, folder):
    assert kinds(watch.look(reader(lambda path: 1), folder, "refused")) == ["accepted"]


def test_a_temporary_file_left_behind_is_a_fault(watch, folder):
    leave = reader(lambda path: (watch.scratch / "left.tmp").write_text("x"))
    outcome = watch.look(leave, folder)
    assert outcome.faults == [("leftover", "file left.tmp")]
    beside = watch.look(reader(lambda path: (path / ".a.tmp").write_text("x")), folder)
    assert beside.faults == [("leftover", "file .a.tmp")]


def test_an_open_file_left_behind_is_a_fault(watch, folder):
    kept = []
    (folder / "a").write_text("x")
    outcome = watch.look(reader(lambda path: kept.append((path / "a").open())), folder)
    kept[0].close()
    assert kinds(outcome) == ["leftover"]
    assert "descriptor" in outcome.faults[0][1]


def test_a_thread_and_a_process_left_behind_are_faults(watch, folder):
    ended, processes = threading.Event(), []

    def leave(path):
        threading.Thread(target=ended.wait, name="planted").start()
        processes.append(subprocess.Popen(["sleep", "60"]))

    outcome = watch.look(reader(leave), folder)
    ended.set()
    processes[0].kill()
    processes[0].wait()
    assert kinds(outcome) == ["leftover"]
    assert "thread planted" in outcome.faults[0][1]
    assert f"process {processes[0].pid}" in outcome.faults[0][1]
