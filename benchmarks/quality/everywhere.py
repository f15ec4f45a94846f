"""Is the default method at least as good as the classical ones at every ratio, noise and kind of sample?

    python -m benchmarks.quality.everywhere --data DATA --scenes 2 --json FILE

Frames of middlebury-2006 and of the sets of noise-free are reduced by each ratio, as averages over the area
of a sample and as points at its centre, with noise of some parts of the scene's range (its 5th to 95th
percentile), which the methods are told. Prints a Markdown row for each kind of sample, noise and ratio: the
RMSE of each method over that of `bicubic`, as a geometric mean over the frames, and what the best classical
method has against which the network is worse.
"""

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor

from primaldepth.core.frame import Frame, Sampling
from primaldepth.core.seeds import generator
from primaldepth.evaluation.metrics import rmse
from primaldepth.evaluation.protocol import Case
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.evaluation.rows import comparable
from primaldepth.methods import create
from primaldepth.operators.sampling import Kernel, Resample
from primaldepth.sensors.degradations import fill_occlusions
from primaldepth.sensors.draws import normal

RATIOS = (1.0, 2.0, 2.7, 4.0, 7.5, 8.0, 16.0)
KINDS: tuple[tuple[Sampling, float], ...] = (
    ("average", 0.0),
    ("average", 0.005),
    ("average", 0.02),
    ("point", 0.0),
    ("point", 0.02),
)
NETWORKS = ("pdn-any", "pdn-any-small")
CLASSICAL = ("bicubic", "nlh-l2", "ferstl13")
LEAST_SIGMA = 1e-4  # of the range: what rounding leaves


def cases(data: Path, scenes: int) -> Iterator[Case]:
    """Yield the first frames of each set, whole."""
    for name in ("middlebury-2006", "noise-free"):
        for part in get_protocol(name).parts(data):
            root = part.root(data)
            yield from (part.load(root, scene, 2) for scene in part.scenes[:scenes])


def sampled(case: Case, ratio: float, sampling: Sampling, noise: float) -> Frame:
    """Return the case's truth as samples of a smaller grid, with noise as a part of the range."""
    truth, size = fill_occlusions(case.truth, case.known), case.frame.high_size
    low_size = (round(size[0] / ratio), round(size[1] / ratio))
    kernel: Kernel = "bicubic" if sampling == "average" else "point"
    low: Tensor = Resample(size, low_size, kernel)(truth) if ratio > 1 else truth.clone()
    low_end, high_end = torch.quantile(low, torch.tensor([0.05, 0.95])).tolist()
    sigma = max(noise, LEAST_SIGMA) * (high_end - low_end)
    drawn = normal(low, generator("everywhere", case.scene, str(ratio), sampling, str(noise)))
    noisy = (low + (sigma * drawn if noise else 0.0)).clamp_min(1e-3 * high_end)
    everywhere = torch.ones_like(noisy, dtype=torch.bool)
    return Frame(noisy, everywhere, case.frame.guide, sigma=torch.full_like(noisy, sigma), sampling=sampling)


def main() -> None:
    """Print the table, and write every number."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--scenes", type=int, default=2, help="of each set")
    parser.add_argument("--ratios", type=float, nargs="+", default=RATIOS)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    names, rows = (*CLASSICAL, *NETWORKS), []
    methods = [comparable(create(name)) for name in names]
    frames = list(cases(arguments.data, arguments.scenes))
    print(f"| samples | noise | ratio | {' | '.join(names)} | best classical |")
    print("|---" * (len(names) + 4) + "|", flush=True)
    for sampling, noise in KINDS:
        for ratio in arguments.ratios:
            errors: dict[str, list[float]] = {name: [] for name in names}
            for case in frames:
                frame = sampled(case, ratio, sampling, noise)
                for name, method in zip(names, methods, strict=True):
                    errors[name].append(rmse(method(frame).depth, case.truth, case.known))
            rows.append({"sampling": sampling, "noise": noise, "ratio": ratio, "rmse": errors})
            print(_line(sampling, noise, ratio, errors), flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


def _line(sampling: str, noise: float, ratio: float, errors: dict[str, list[float]]) -> str:
    """Return a row of the table: errors over those of bicubic, or as they are where that has none."""
    means = {name: _relative(found, errors["bicubic"]) for name, found in errors.items()}
    best = min(CLASSICAL, key=means.__getitem__)
    worse = [name for name in NETWORKS if means[name] > means[best]]
    cells = [f"{value:.3f}" for value in means.values()]
    note = f"{best}, ahead of {' and '.join(worse)}" if worse else best
    return f"| {sampling} | {100 * noise:g} % | {ratio:g} | {' | '.join(cells)} | {note} |"


def _relative(found: list[float], base: list[float]) -> float:
    """Return the geometric mean of the ratios; the plain mean of the errors where the base has none."""
    if min(base) < 1e-6:
        return fmean(found)
    return math.exp(fmean(math.log(one / other) for one, other in zip(found, base, strict=True)))


if __name__ == "__main__":
    main()
