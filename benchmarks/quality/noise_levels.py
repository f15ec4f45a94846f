"""Methods on middlebury-2006 at every scale, with noise of 651 / d, of constant sigma 5, and with none.

    python -m benchmarks.quality.noise_levels --data DATA --scenes 4 --json FILE

Prints the mean RMSE in pixels of disparity for every method and column, and where the best of each column is
not `--champion`.
"""

import argparse
import json
import time
from pathlib import Path
from statistics import fmean

import torch

from benchmarks.quality.any_scale import error, reduced
from primaldepth.core.frame import Frame
from primaldepth.core.seeds import generator
from primaldepth.evaluation.protocol import Case
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.methods import create
from primaldepth.sensors.draws import normal

NOISES = ("651/d", "5", "none")
ROUNDING = 1 / 12**0.5
METHODS = (
    "pdn-any",
    "pdn-any-small",
    "fcn-pdn-s",
    "nlh-l2",
    "ferstl13",
    "barron16",
    "park11",
    "diebel05",
    "he10",
    "chan08",
    "yang07",
    "kopf07",
    "bicubic",
    "bilinear",
    "nearest",
)


def observed(case: Case, scale: int, noise: str) -> Frame:
    """The case at its scale with this noise, rounded to whole disparities; 651 / d is the protocol's own."""
    if noise == "651/d":
        return case.frame
    low = reduced(case, scale)
    sigma = 0.0 if noise == "none" else float(noise)
    drawn = normal(low, generator("noise-levels", case.scene, str(scale)))
    noisy = (low + sigma * drawn).round().clamp(1, 255)
    level = torch.full_like(noisy, (sigma**2 + ROUNDING**2) ** 0.5)
    return Frame(noisy, noisy > 0, case.frame.guide, sigma=level)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--scenes", type=int, default=4)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--champion", default="pdn-any")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    protocol = get_protocol("middlebury-2006")
    table: dict[str, dict[str, float]] = {name: {} for name in arguments.methods}
    for scale in protocol.scales:
        cases = [protocol.load(arguments.data, scene, scale) for scene in protocol.scenes[: arguments.scenes]]
        for noise in NOISES:
            frames = [observed(case, scale, noise) for case in cases]
            for name in arguments.methods:
                method, start = create(name), time.perf_counter()
                scores = [error(method, frame, case) for frame, case in zip(frames, cases, strict=True)]
                table[name][f"x{scale} {noise}"] = fmean(scores)
                print(
                    f"x{scale} {noise:6} {name:14} {fmean(scores):7.3f} {time.perf_counter() - start:6.1f} s"
                )
    for column in table[arguments.champion]:
        best = min(table, key=lambda name: table[name][column])
        if best != arguments.champion:
            print(f"{column}: {best} {table[best][column]:.3f}, not {arguments.champion}")
    if arguments.json:
        arguments.json.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
