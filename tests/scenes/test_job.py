"""A job gives the same bytes for any number of workers and after any interruption."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from fake_scenes import (
    SHARD,
    FakeScenes,
    begun_scenes,
    fake_arrays,
    in_process,
    limit_path,
    log_lines,
    tree,
)

from primaldepth.core.errors import InputError
from primaldepth.data.shards import Shards
from primaldepth.scenes.job import FAILURES_IN_A_ROW, render_job
from primaldepth.scenes.local_engine import WORKER_ENVIRONMENT, WorkerError, worker_environment
from primaldepth.scenes.scene_source import open_checked, package_versions, scene_seed
from processes import lives
from waiting import wait_until

COUNT = 10


def run(folder, source=None, count=COUNT, **options):
    return render_job(folder, source or FakeScenes(), count, scenes_per_shard=SHARD, **options)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return in_process(tmp_path_factory.mktemp("job") / "a", COUNT)


def test_seeds_depend_on_job_and_scene():
    seeds = {scene_seed(job, scene) for job in range(3) for scene in range(100)}
    assert len(seeds) == 300
    assert scene_seed(7, 11) == scene_seed(7, 11) < 2**63


def test_the_shards_hold_the_scenes_and_their_seeds(reference, tmp_path):
    for name, content in reference.items():
        (tmp_path / name).write_bytes(content)
    found = Shards(tmp_path, verify=True).load()
    assert found["seed"].tolist() == [scene_seed(0, scene) for scene in range(COUNT)]
    assert found["depth"][7].numpy().tobytes() == fake_arrays(scene_seed(0, 7))["depth"].tobytes()


def test_four_workers(reference, tmp_path):
    seen = []
    log = str(tmp_path / "log")
    source = FakeScenes(log=log, delay=0.05)
    progress = run(tmp_path / "a", source, workers=4, on_progress=lambda now: seen.append(now.done))
    assert tree(tmp_path / "a") == reference
    assert seen == list(range(COUNT + 1))
    assert progress.rate > 0
    begun = begun_scenes(log)
    assert sorted(scene for _, scene in begun) == list(range(COUNT))
    assert len({pid for pid, _ in begun}) > 1
    assert [what for what, _, _ in log_lines(log)[:2]] == ["begin", "end"]  # one alone compiles the kernels


def test_one_worker(reference, tmp_path):
    progress = run(tmp_path)
    assert (progress.rendered, progress.done, progress.failures) == (COUNT, COUNT, {})
    assert progress.compiles == 2
    assert tree(tmp_path) == reference


def test_a_finished_job_starts_no_worker(reference, tmp_path):
    in_process(tmp_path, COUNT)
    progress = run(tmp_path, FakeScenes(cannot_open="never called"), workers=2)
    assert (progress.rendered, progress.done, progress.rate) == (0, COUNT, 0)
    assert tree(tmp_path) == reference


def test_a_failing_scene_is_tried_twice_and_reported(reference, tmp_path):
    log = str(tmp_path / "log")
    progress = run(tmp_path / "a", FakeScenes(fail=(1,), crash=(8,), log=log))
    assert progress.failures == {
        1: "ValueError: no light in scene 1",
        8: "the worker died (signal SIGKILL)",
    }
    assert (progress.rendered, progress.done) == (COUNT - 2, COUNT - 2)
    assert sorted(scene for _, scene in begun_scenes(log)) == sorted([*range(COUNT), 1, 8])
    assert len(Shards(tmp_path / "a")) == SHARD  # the one shard without a failed scene
    assert run(tmp_path / "a").rendered == 2
    assert tree(tmp_path / "a") == reference


def test_two_workers_that_die_are_replaced(reference, tmp_path):
    source = FakeScenes(crash_once=(0, 5), log=str(tmp_path / "log"))
    progress = run(tmp_path / "a", source, workers=2)
    assert (progress.rendered, progress.failures) == (COUNT, {})
    assert tree(tmp_path / "a") == reference


class TestStart:
    def test_a_renderer_that_does_not_open(self, tmp_path):
        with pytest.raises(WorkerError, match="RuntimeError: no libLLVM"):
            run(tmp_path, FakeScenes(cannot_open="no libLLVM"), workers=2)

    def test_a_renderer_that_dies_at_once(self, tmp_path):
        with pytest.raises(WorkerError, match=r"does not start: the worker died \(signal SIGKILL\), 2 times"):
            run(tmp_path, FakeScenes(crash=(0,)), count=1)

    def test_when_nothing_works_the_job_stops(self, tmp_path):
        with pytest.raises(WorkerError, match=f"stopped after {FAILURES_IN_A_ROW} scenes failed in a row"):
            run(tmp_path, FakeScenes(fail=tuple(range(100))), count=100)

    def test_other_versions_are_refused(self):
        with pytest.raises(InputError, match=r"numpy .* here, 0\.1 in the job; install the same"):
            open_checked(FakeScenes(), {**package_versions(), "numpy": "0.1"})

    @pytest.mark.parametrize(("count", "workers"), [(0, 1), (1, 0)])
    def test_numbers(self, tmp_path, count, workers):
        with pytest.raises(InputError, match="must be at least 1"):
            run(tmp_path / "a", count=count, workers=workers)
        assert not (tmp_path / "a").exists()


def start(folder, log, count=40, workers=2, delay=0.05):
    """The job in a process of its own."""
    script = Path(__file__).with_name("fake_scenes.py")
    command = [sys.executable, script, folder, log, str(count), str(workers), str(delay)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"})


def begin_more(log, scenes):
    """Wait until so many more scenes have been begun; the job comes little further by itself."""
    target = len(begun_scenes(log)) + scenes
    limit_path(log).write_text(str(target + 2))
    wait_until(lambda: len(begun_scenes(log)) >= target)


def wait_until_gone(log):
    """Wait for the end of all workers."""
    wait_until(lambda: not any(lives(pid) for pid, _ in begun_scenes(log)))


def test_workers_start_with_variables_that_the_user_has_not_set(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    before = dict(os.environ)
    with worker_environment():
        assert os.environ["OMP_NUM_THREADS"] == "3"
        assert {*WORKER_ENVIRONMENT} <= {*os.environ}
    assert dict(os.environ) == before


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at /proc")
def test_killed_at_random_moments(tmp_path):
    """Twice a worker and then the main process; what is on disk at the end is as if nothing had happened."""
    rng, folder, log = np.random.default_rng(0), tmp_path / "a", tmp_path / "log"
    for _ in range(2):
        with start(folder, log) as job:
            begin_more(log, rng.integers(3, 7))
            time.sleep(rng.uniform(0, 0.05))
            os.kill(begun_scenes(log)[-1][0], signal.SIGKILL)
            begin_more(log, rng.integers(3, 7))
            time.sleep(rng.uniform(0, 0.05))
            job.kill()
        wait_until_gone(log)
    limit_path(log).unlink()
    with start(folder, log) as job:
        assert job.communicate()[1] == b""
        assert job.returncode == 0
    assert tree(folder) == in_process(tmp_path / "whole", 40)
    begun = [scene for _, scene in begun_scenes(log)]
    assert set(begun) == set(range(40))
    assert len(begun) <= 40 + 2 * (1 + 2)  # a kill repeats at most the scenes in flight


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at /proc")
def test_interrupt(tmp_path):
    """Ctrl-C reaches the whole group of processes."""
    folder, log = tmp_path / "a", tmp_path / "log"
    code = (
        "import signal, runpy, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # jobs in the background ignore it
        "sys.argv = sys.argv[1:]\n"
        "try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except KeyboardInterrupt: sys.exit(130)\n"
    )
    script = str(Path(__file__).with_name("fake_scenes.py"))
    command = [sys.executable, "-c", code, script, str(folder), str(log), "40", "2", "0.05"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as job:
        begin_more(log, 5)
        os.killpg(job.pid, signal.SIGINT)
        assert job.communicate(timeout=60)[1] == b""
        assert job.returncode == 130
    wait_until_gone(log)
    assert not [name for name in tree(folder) if "/." in name]  # nothing half-written
    done = len(tree(folder)) - 1
    assert done > 0
    assert run(folder, count=40).done == 40


def test_a_half_written_manifest_is_removed(tmp_path):
    """A process that was killed left it, and its number may be that of another process now."""
    whole = in_process(tmp_path / "a", 4)
    (tmp_path / "a" / f".manifest.{os.getpid()}-0123abcd.json").write_text("{")
    assert in_process(tmp_path / "a", 4) == whole
