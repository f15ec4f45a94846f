"""Two processes on the CPU give the curve of one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from toy_runs import FCN, JOINT, log, recipe, run, tensors

from primaldepth.core.errors import InputError
from primaldepth.training.run import check_recipe

SCRIPT = """
import json, os, sys
from pathlib import Path
import torch
from primaldepth.training import callbacks, run
from primaldepth.training.recipe import Recipe

torch.set_num_threads(1)
callbacks.LOG_EVERY = 5
shards, out, values = sys.argv[1:]
events = []
written = run.train(Recipe.model_validate_json(values), Path(shards), Path(out), observer=events.append)
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
Path(f"{out}-{rank}.json").write_text(json.dumps([world, len(events), len(written)]))
"""


def wanted():
    """Patches with holes, so that the processes have unequal numbers of pixels, and accumulation."""
    fcn = {**FCN, "affinity": 0.5, "optimiser": "sgd", "rate": 2e-3, "clip": 10.0, "save_as": "toy-fcn"}
    joint = {**JOINT, "optimiser": "sgd", "rate": 1e-4, "clip": 10.0, "save_as": "toy-pdn"}
    return recipe(fcn, joint, accumulate=2)


def test_the_same_curve(shards, tmp_path):
    run(wanted(), shards, tmp_path / "one")
    (tmp_path / "script.py").write_text(SCRIPT)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    arguments = [tmp_path / "script.py", shards, tmp_path / "two", wanted().model_dump_json()]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [*launch, *arguments], env=environment, timeout=200, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    one, two = (log(tmp_path / name) for name in ("one", "two"))
    assert [step for step, _ in one] == [step for step, _ in two]
    assert [loss for _, loss in two] == pytest.approx([loss for _, loss in one], rel=1e-5)
    assert log(tmp_path / "two", "held-out") == [
        (step, pytest.approx(score, rel=1e-5)) for step, score in log(tmp_path / "one", "held-out")
    ]
    for name in ("toy-fcn", "toy-pdn"):
        first, second = (tensors(tmp_path / each / f"{name}-x2.safetensors") for each in ("one", "two"))
        assert all((first[key] - second[key]).abs().max() < 1e-5 for key in first)
    ranks = [json.loads(Path(f"{tmp_path}/two-{rank}.json").read_text()) for rank in (0, 1)]
    assert [world for world, _, _ in ranks] == [2, 2]
    assert ranks[0][1] > 0 and ranks[0][2] == 2  # noqa: PT018
    assert ranks[1][1:] == [0, 0]  # only the main process reports


def test_a_batch_that_cannot_be_shared_out():
    with pytest.raises(InputError, match=r"stages.0: batch 4 cannot be shared out evenly to 3 processes"):
        check_recipe(recipe(), 3)
