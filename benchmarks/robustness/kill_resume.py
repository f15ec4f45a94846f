"""Kill a job at random moments, main process or worker, and start it again: are the bytes always the same?

    python -m benchmarks.robustness.kill_resume --kills 20

Scenes are random arrays, so that most of the time goes into what is tested: files. With --render they
are small rendered ones.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from primaldepth.data.shards import Shards
from primaldepth.scenes.job import render_job
from primaldepth.scenes.scene_source import Arrays, RenderSettings, SceneSource

SIZE, SHARD, WORKERS = 256, 16, 2


@dataclass(frozen=True)
class NoiseScenes:
    seed: int = 0
    compiles: int = 0

    def made_with(self) -> dict[str, str | int | None]:
        return {"preset": "noise", "size": SIZE, "seed": self.seed}

    def open(self) -> "NoiseScenes":
        return self

    def render(self, seed: int) -> Arrays:
        time.sleep(0.02)
        rng = np.random.default_rng(seed)
        return {
            "image": rng.integers(0, 256, (SIZE, SIZE, 3), np.uint8),
            "depth": rng.random((SIZE, SIZE), np.float32),
            "normals": rng.random((SIZE, SIZE, 3), np.float32).astype(np.float16),
        }


def scenes(rendered: bool) -> SceneSource:
    if rendered:
        return RenderSettings(preset="paper", size=64, samples=4, variant="llvm").resolved()
    return NoiseScenes()


def children(pid: int) -> list[int]:
    """Worker processes of a job."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == pid and b"spawn_main" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except (OSError, IndexError, ValueError):
            continue
    return found


def tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def disturb(command: list[str], rng: np.random.Generator, kills: int, longest: float) -> dict[str, int]:
    """Run `command` until it ends by itself; until then kill something of it up to `kills` times."""
    done = {"main": 0, "worker": 0, "starts": 0}
    while True:
        job = subprocess.Popen(command)
        done["starts"] += 1
        while job.poll() is None:
            if done["main"] + done["worker"] >= kills:
                job.wait()
                break
            time.sleep(rng.uniform(0, longest))
            workers = children(job.pid)
            victim = job.pid if not workers or rng.random() < 0.5 else int(rng.choice(workers))
            if job.poll() is None:
                os.kill(victim, signal.SIGKILL)
                done["main" if victim == job.pid else "worker"] += 1
        if job.returncode == 0:
            return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--longest", type=float, default=5.0, help="seconds between two kills, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--render", action="store_true")
    parser.add_argument("--job", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        progress = render_job(
            args.job, scenes(args.render), args.count, workers=WORKERS, scenes_per_shard=SHARD
        )
        sys.exit(1 if progress.failures else 0)
    rng, total, jobs = np.random.default_rng(args.seed), {"main": 0, "worker": 0, "starts": 0}, 0
    with tempfile.TemporaryDirectory() as place:
        render_job(Path(place) / "whole", scenes(args.render), args.count, scenes_per_shard=SHARD)
        whole = tree(Path(place) / "whole")
        while total["main"] + total["worker"] < args.kills:
            folder = Path(place) / f"job{jobs}"
            command = [sys.executable, "-m", "benchmarks.robustness.kill_resume", "--job", str(folder)]
            command += ["--count", str(args.count), *(["--render"] if args.render else [])]
            left = args.kills - total["main"] - total["worker"]
            found = disturb(command, rng, left, args.longest)
            total = {name: total[name] + found[name] for name in total}
            jobs += 1
            if tree(folder) != whole or len(Shards(folder, verify=True)) != args.count:
                sys.exit(f"{folder}: differs from the job that was left alone")
    print(json.dumps({"jobs": jobs, "scenes": args.count, "kills": total, "all bytes equal": True}))


if __name__ == "__main__":
    main()
