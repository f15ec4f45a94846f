"""The Ray engine on a cluster of two nodes on this machine: the bytes of the local engine."""

import sys
from pathlib import Path

import pytest
from fake_scenes import SHARD, FakeScenes, begun_scenes, in_process, tree

from primaldepth.core.errors import MissingDependencyError
from primaldepth.scenes.job import render_job
from primaldepth.scenes.local_engine import WorkerError
from ray_nodes import two_nodes

COUNT = 16

# Ray warns of its own future and leaves sockets to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def cluster():
    with two_nodes(PYTHONPATH=str(Path(__file__).parent)) as nodes:  # where the workers find `fake_scenes`
        yield nodes


def run(folder, source, **options):
    return render_job(folder, source, COUNT, scenes_per_shard=SHARD, engine="ray", workers=2, **options)


def test_failing_scenes_are_reported_and_dead_workers_retried(cluster, tmp_path):
    log = str(tmp_path / "log")
    source = FakeScenes(fail=(1,), crash_once=(6,), log=log)
    progress = run(tmp_path / "a", source)
    assert progress.failures == {1: "ValueError: no light in scene 1"}
    assert progress.rendered == COUNT - 1
    assert 2 <= progress.compiles <= 6  # two of each process, and the crashed one told nothing
    expected, found = in_process(tmp_path / "b", COUNT), tree(tmp_path / "a")
    shards = [name for name in found if name.startswith("scenes-")]
    assert len(shards) == COUNT // SHARD - 1  # the first one waits for scene 1
    assert all(found[name] == expected[name] for name in shards)


def test_a_renderer_that_does_not_open(cluster, tmp_path):
    with pytest.raises(WorkerError, match="RuntimeError: no libLLVM"):
        run(tmp_path, FakeScenes(cannot_open="no libLLVM"))


def test_a_node_is_lost_half_way(cluster, tmp_path, capfd):
    log = str(tmp_path / "log")

    def lose_a_node(progress):
        if progress.rendered == COUNT // 2:
            cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)

    progress = run(tmp_path / "a", FakeScenes(delay=0.1, log=log, meet=2), on_progress=lose_a_node)
    assert (progress.rendered, progress.failures) == (COUNT, {})
    assert tree(tmp_path / "a") == in_process(tmp_path / "b", COUNT)
    begun = begun_scenes(log)
    assert len({pid for pid, _ in begun}) >= 2  # both nodes worked
    assert len(begun) <= COUNT + 2  # only what was in flight was begun again
    assert capfd.readouterr().out == ""


def test_without_ray(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'primaldepth\[cluster\]'"):
        run(tmp_path, FakeScenes())
