"""Kill a batch of `upsample` at random moments and start it again: are the files always the same?

    python -m benchmarks.robustness.kill_upsample --frames 200 --kills 10
    python -m benchmarks.robustness.kill_upsample --frames 200 --kills 10 --temporal

Every kill is SIGKILL; the moments are spread at random over the batch. Depth, picture and point cloud of
each frame are compared with those of a run that was not killed.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from primaldepth.io import DepthMap, write_depth
from primaldepth.pipeline.ledger import LEDGER_NAME as JOURNAL
from primaldepth.pipeline.sequence_ledger import MEMORY_NAME as MEMORY

COMMAND = "import sys; from primaldepth.cli.main import run; sys.exit(run())"
WIDTH, HEIGHT, SCALE = 64, 48, 4
METHOD = ("--method", "nlh-l2", "--set", "iterations=20", "--set", "coarse_iterations=10")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--temporal", action="store_true")
    options = parser.parse_args()
    extra = ("--temporal",) if options.temporal else ()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_inputs(root, options.frames)
        start = time.perf_counter()
        run(root, "whole", *extra)
        seconds = time.perf_counter() - start
        done = kill(root, options.frames, options.kills, seconds, random.Random(options.seed), *extra)
        reports = run(root, "out", *extra)
        different = compare(root)
    kept = sum("kept" in report for report in reports)
    print(f"undisturbed: {seconds:.1f} s; frames finished at the kills: {', '.join(map(str, done))}")
    print(f"the last run kept {kept} of {options.frames}; {len(different)} files differ {different[:5]}")
    sys.exit(bool(different))


def write_inputs(root: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    for index in range(count):
        depth = 2.0 + rng.normal(0, 0.02, (HEIGHT // SCALE, WIDTH // SCALE))
        depth[3:8, 4:9] -= 0.5
        write_depth(root / f"depth/{index:04d}.png", DepthMap.from_array(depth, unit="mm"))
        path = root / f"rgb/{index:04d}.png"
        path.parent.mkdir(exist_ok=True)
        noisy = np.clip(image + rng.normal(0, 2, image.shape), 0, 255)
        Image.fromarray(noisy.astype(np.uint8)).save(path)


def call(root: Path, out: str, *extra: str) -> list[str]:
    places = [
        word
        for option, name in (("-o", "depth"), ("--preview", "look"), ("--cloud", "clouds"))
        for word in (option, str(root / out / name))
    ]
    inputs = (str(root / "depth"), str(root / "rgb"))
    return [sys.executable, "-c", COMMAND, "upsample", *inputs, *places, *METHOD, *extra, "--json"]


def run(root: Path, out: str, *extra: str) -> list[dict[str, object]]:
    done = subprocess.run(call(root, out, *extra), check=True, capture_output=True, text=True)
    reports: list[dict[str, object]] = json.loads(done.stdout)
    return reports


def kill(root: Path, frames: int, times: int, seconds: float, rng: random.Random, *extra: str) -> list[int]:
    """Frames that were finished after each kill; moments are uniform over the batch."""
    found = []
    for moment in sorted(rng.uniform(0, frames) for _ in range(times)):
        process = subprocess.Popen(
            call(root, "out", *extra), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while _finished(root) < int(moment) and process.poll() is None:
            time.sleep(0.001)
        time.sleep(moment % 1 * seconds / frames)
        process.send_signal(signal.SIGKILL)
        process.wait()
        found.append(_finished(root))
    return found


def _finished(root: Path) -> int:
    return len(list((root / "out" / "depth").glob("[0-9]*.png")))


def compare(root: Path) -> list[str]:
    """Names of files that are missing, too many, or not the same, byte by byte."""
    whole, out = (
        {
            str(path.relative_to(root / name)): path.read_bytes()
            for path in (root / name).rglob("*")
            if path.is_file() and path.name not in (JOURNAL, MEMORY)
        }
        for name in ("whole", "out")
    )
    return sorted(name for name in whole.keys() | out.keys() if whole.get(name) != out.get(name))


if __name__ == "__main__":
    main()
