"""`upsample --engine ray` on a cluster of two nodes on this machine: the files of the local engine."""

import sys
from pathlib import Path

import pytest
from small_files import Cli, depth_values

from primaldepth.io import DepthMap, write_depth
from primaldepth.pipeline import batches, on_ray
from primaldepth.pipeline.ledger import LEDGER_NAME as NAME
from ray_nodes import two_nodes

COUNT = 16
METHOD = ("--method", "nlh-l2", "--set", "iterations=40", "--set", "coarse_iterations=20", "--device", "cpu")

# Ray warns of its own future and leaves sockets to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def cluster():
    with two_nodes() as nodes:
        yield nodes


@pytest.fixture
def many(files: Path) -> Path:
    for index in range(COUNT):
        write_depth(f"many/{index:02d}.png", DepthMap.from_array(depth_values() + 0.01 * index, unit="mm"))
    return files


def call(out: str, *options: str) -> tuple[str, ...]:
    return ("upsample", "many", "guide.png", "-o", out, *METHOD, "--json", *options)


def contents(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.name != NAME}


def test_a_node_is_lost_half_way(cli: Cli, many: Path, cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are those of one process, each is written once, and neither engine repeats the other."""
    assert cli(*call("whole")).code == 0
    write, written = batches.write_outputs, []

    def lose_a_node(outputs, outcome):
        written.append(outputs["out"].name)
        if len(written) == COUNT // 2:
            cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)
        return write(outputs, outcome)

    with monkeypatch.context() as patch:
        patch.setattr(batches, "write_outputs", lose_a_node)
        outcome = cli(*call("out", "--engine", "ray"))
    assert outcome.code == 0, outcome.err
    assert contents("out") == contents("whole")
    assert sorted(written) == sorted(contents("out"))
    assert [report["depth"] for report in outcome.json] == sorted(report["depth"] for report in outcome.json)
    assert all("kept" in report for report in cli(*call("out")).json)
    assert all("kept" in report for report in cli(*call("whole", "--engine", "ray")).json)


def test_a_broken_pair_is_reported_and_the_others_go_on(cli: Cli, many: Path, cluster) -> None:
    Path("many/04.png").write_bytes(b"no picture")
    outcome = cli(*call("out", "--engine", "ray"))
    assert outcome.code == 1
    assert [Path(each["depth"]).name for each in outcome.json if "error" in each] == ["04.png"]
    assert len(contents("out")) == COUNT - 1


def test_errors_of_workers_name_the_pair(cli: Cli, many: Path, cluster, monkeypatch) -> None:
    monkeypatch.setattr(
        on_ray.RayTask.__init__, "__defaults__", ("0.0.0",)
    )  # another version than the workers
    outcome = cli(*call("out", "--engine", "ray"))
    assert outcome.code == 1
    assert all("this worker has primaldepth" in report["error"] for report in outcome.json)


def test_more_gpus_than_there_are(cli: Cli, many: Path, cluster) -> None:
    options = ("--engine", "ray", "--gpus-per-task", "0.25")
    outcome = cli(*[word for word in call("out", *options) if word not in ("--device", "cpu")])
    assert outcome.code == 2
    assert "the Ray cluster has 0 GPUs" in outcome.err


REFUSED = {
    "engine": (("--engine", "dask"), "choose local or ray"),
    "temporal": (("--engine", "ray", "--temporal"), "each frame needs the one before"),
    "gpus": (("--gpus-per-task", "1"), "only goes with --engine ray"),
    "negative": (("--engine", "ray", "--gpus-per-task", "-1"), "expected 0, a share such as 0.25"),
    "too-small": (("--engine", "ray", "--gpus-per-task", "0.00001"), "expected 0, a share such as 0.25"),
    "one-and-a-half": (("--engine", "ray", "--gpus-per-task", "1.5"), "or a whole number"),
    "device": (("--engine", "ray", "--gpus-per-task", "0.5"), "leave --device out"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_options_that_do_not_go_together(
    cli: Cli, many: Path, options: tuple[str, ...], message: str
) -> None:
    outcome = cli(*call("out", *options))
    assert (outcome.code, message in outcome.err) == (2, True), outcome.err


def test_one_pair_needs_no_cluster(cli: Cli, files: Path) -> None:
    outcome = cli("upsample", "depth.png", "guide.png", "-o", "out.png", "--engine", "ray")
    assert (outcome.code, "is one pair" in outcome.err) == (2, True)


def test_without_ray(cli: Cli, many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    outcome = cli(*call("out", "--engine", "ray"))
    assert outcome.code == 2
    assert "pip install 'primaldepth[cluster]'" in outcome.err
