"""`primaldepth train`: from a folder of scenes to weights, in process."""

from pathlib import Path

import numpy as np
import pytest
from small_files import Cli

from primaldepth.data.manifest import Manifest
from primaldepth.data.shard_writer import ShardWriter
from primaldepth.data.single_scenes import write_part
from primaldepth.scenes.job import RenderProgress
from primaldepth.scenes.scene_source import RenderSettings

IMAGE = np.zeros((24, 24, 3), np.uint8)
RECIPE = """
name = "small"
scale = 2
precision = "fp32"
checkpoint_every = 2

[net]
layers = 2
maps = 4
window = 3
iterations = 1

[validation]
every = 2
protocols = ["middlebury-2006"]

[[stages]]
part = "fcn"
steps = 3
batch = 2
patch = 16
save_as = "small-fcn"

[[stages]]
part = "joint"
steps = 2
batch = 2
patch = 16
save_as = "small"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `recipe.toml` and five scenes in `scenes`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PRIMALDEPTH_DATA", raising=False)
    (tmp_path / "recipe.toml").write_text(RECIPE)
    job = Manifest(made_with={"preset": "small"}, versions={}, count=5)
    with ShardWriter(tmp_path / "scenes", job) as writer:
        for number in writer.missing():
            rng = np.random.default_rng(number)
            depth = rng.uniform(1.0, 3.0, (24, 24)).astype(np.float32)
            image = rng.integers(0, 256, (24, 24, 3), np.uint8)
            write_part(tmp_path / "scenes", number, {"depth": depth, "image": image})
            writer.add(number)
    return tmp_path


TRAIN = ("train", "recipe.toml", "--data", "scenes", "--out", "run", "--device", "cpu")


def test_scenes_of_the_recipe_are_rendered_once(
    cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Into RUN/scenes; rendering itself is tested beside the engines."""
    (here / "recipe.toml").write_text(f"{RECIPE}\n[[scenes]]\ncount = 6\nsize = 24\nseed = 3\n")
    calls: list[tuple[Path, int, int]] = []

    def render(out: Path, settings: RenderSettings, count: int, workers: int) -> RenderProgress:
        calls.append((out, count, workers))
        job = Manifest(made_with=settings.made_with(), versions={}, count=count)
        with ShardWriter(out, job) as writer:
            for number in writer.missing():
                write_part(out, number, {"depth": np.ones((24, 24), np.float32) + number, "image": IMAGE})
                writer.add(number)
        return RenderProgress(count, count, count)

    monkeypatch.setattr("primaldepth.cli.train.render_scenes", render)
    own = ("train", "recipe.toml", "--out", "run", "--device", "cpu", "--workers", "2")
    first = cli(*own)
    assert (first.code, calls) == (0, [(Path("run/scenes/rich-6x24-seed3"), 6, 2)])
    assert cli(*own, "--resume").out == first.out
    assert len(calls) == 1
    assert cli(*own[:3], "other", *own[4:], "--data", "run/scenes").code == 0
    assert len(calls) == 1
    monkeypatch.setenv("WORLD_SIZE", "2")
    several = cli(*own[:3], "third", *own[4:])
    assert several.code == 2
    assert "rich-6x24-seed3: 0 of 6 scenes are there; 'primaldepth train' in one process" in several.err
    assert len(calls) == 1


def test_scenes_that_fail_are_named(cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "recipe.toml").write_text(f"{RECIPE}\n[[scenes]]\ncount = 6\nsize = 24\n")
    failed = RenderProgress(6, 6, 5, failures={3: "no light"})
    monkeypatch.setattr("primaldepth.cli.train.render_scenes", lambda *_: failed)
    outcome = cli("train", "recipe.toml", "--out", "run", "--device", "cpu")
    assert outcome.code == 2
    assert "rich-6x24-seed0: 1 scenes were not rendered: no light" in outcome.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("stages.1.loss=l3", "loss 'l3' is not one of"),
        (
            'validation.protocols=[{protocol="middlebury-2006"}]',
            "validation.protocols: no data folder is given",
        ),
    ],
)
def test_nothing_is_rendered_for_a_run_that_will_be_refused(
    cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch, change: str, message: str
) -> None:
    (here / "recipe.toml").write_text(f"{RECIPE}\n[[scenes]]\ncount = 6\nsize = 24\n")
    monkeypatch.setattr("primaldepth.cli.train.render_scenes", lambda *_: pytest.fail("it was rendered"))
    outcome = cli("train", "recipe.toml", "--out", "run", "--device", "cpu", "--set", change)
    assert outcome.code == 2
    assert message in outcome.err


def test_results_on_stdout_and_the_log_on_stderr(cli: Cli, here: Path) -> None:
    outcome = cli(*TRAIN)
    assert (outcome.code, outcome.out.split()) == (
        0,
        ["run/small-fcn-x2.safetensors", "run/small-x2.safetensors"],
    )
    heads = [line.partition(": ")[::2] for line in outcome.lines]
    assert [head for head, _ in heads] == [
        "fcn 0/3",
        "fcn 2/3",
        "fcn 3/3",
        "fcn 3/3",
        "fcn 3/3",
        *["joint 2/2"] * 3,
    ]
    assert heads[0][1].startswith("not validated: no data folder is given; middlebury-2006 needs it")
    assert heads[1][1].startswith("held-out ")
    assert heads[2][1].startswith("loss ")
    assert heads[4][1].startswith("wrote run/small-fcn-x2.safetensors (held-out ")


def test_weights_are_a_method(cli: Cli, here: Path, files: Path) -> None:
    assert cli(*TRAIN).code == 0
    upsample = ("upsample", "depth.png", "guide.png", "-o", "fine.png", "--device", "cpu")
    assert cli(*upsample, "--method", "run/small-x2.safetensors").code == 0
    assert (here / "fine.png").is_file()


def test_again_and_resume(cli: Cli, here: Path) -> None:
    first = cli(*TRAIN)
    again = cli(*TRAIN)
    assert (again.code, again.out, len(again.lines)) == (2, "", 1)
    assert again.err.startswith("primaldepth: run: holds a run; go on with --resume")
    assert cli(*TRAIN, "--resume").out == first.out
    other = cli(*TRAIN, "--resume", "--set", "stages.1.rate=0.5")
    assert other.code == 2
    assert "stages.1.rate is 0.001 there and 0.5 now" in other.err


def test_set_changes_the_recipe(cli: Cli, here: Path) -> None:
    outcome = cli(*TRAIN, "--set", "stages.0.save_as=other", "--set", "validation.protocols=[]")
    assert outcome.out.split()[0] == "run/other-x2.safetensors"
    assert "not validated" not in outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "gone.toml", "--data", "scenes", "--out", "run"), "gone.toml: no such file"),
        (("train", "recipe.toml", "--data", "gone", "--out", "run"), "gone: not a folder"),
        (("train", "recipe.toml", "--out", "run"), "the recipe 'small' names no scenes; give some by --data"),
        ((*TRAIN, "--set", "stages.0.stps=1"), "unknown key 'stps'; did you mean 'steps'"),
        ((*TRAIN, "--set", "stages.1.patch=64"), "scenes of 24x24 are smaller than stages.1.patch, 64"),
        ((*TRAIN, "--set", "stages.1.loss=l3"), "loss 'l3' is not one of l2"),
        ((*TRAIN, "--set", 'validation.protocols=["noisy-middlebury"]'), "noisy-middlebury is the benchmark"),
        ((*TRAIN[:-1], "gpu"), "device: 'gpu' is not one of auto, cpu, cuda"),
    ],
)
def test_errors_are_one_line(cli: Cli, here: Path, arguments: tuple[str, ...], message: str) -> None:
    outcome = cli(*arguments)
    assert (outcome.code, outcome.out, len(outcome.lines)) == (2, "", 1)
    assert message in outcome.err


def test_help(cli: Cli) -> None:
    outcome = cli("train", "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("Usage: primaldepth train")
