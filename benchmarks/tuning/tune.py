"""Choose parameters of a method on middlebury-2006, all scales at once.

    python -m benchmarks.tuning.tune diebel05 smoothness contrast --data DIR --trials 40
    python -m benchmarks.tuning.tune nlh-l2 lam growth sigma_d sigma_v eps --data DIR --device cuda
    python -m benchmarks.tuning.tune nlh-l2 --data DIR --set lam=8 growth=1

A seeded evolution in the logarithm of each named parameter, from the present defaults or those that are
set. The score is the geometric mean of RMSE over scenes and scales, on crops, so that a trial takes seconds.
"""

import argparse
import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from primaldepth.core.frame import Frame
from primaldepth.evaluation.metrics import geometric_mean, rmse
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.methods import create, list_methods

SCENES = ("aloe", "bowling1", "cloth3", "flowerpots", "lampshade1", "rocks1")
TOP, LEFT, SIZE = 96, 128, (320, 384)  # multiples of 16: the crop has the phase of the whole frame

Case = tuple[Frame, torch.Tensor, torch.Tensor]


def load_case(data: Path, scene: str, scale: int, device: str) -> Case:
    """The middle of a scene at one scale."""
    case = get_protocol("middlebury-2006").load(data, scene, scale).to(device)

    def cut(image: torch.Tensor, step: int) -> torch.Tensor:
        top, left, height, width = (n // step for n in (TOP, LEFT, *SIZE))
        return image[..., top : top + height, left : left + width].contiguous()

    low = {name: cut(getattr(case.frame, name), scale) for name in ("depth", "valid", "sigma")}
    return Frame(guide=cut(case.frame.guide, 1), **low), cut(case.truth, 1), cut(case.known, 1)


def score(name: str, options: Mapping[str, Any], cases: Sequence[Case]) -> float:
    method = create(name, options)
    return geometric_mean([rmse(method(frame).depth, truth, known) for frame, truth, known in cases])


def tune(
    name: str, keys: Sequence[str], options: dict[str, Any], cases: Mapping[int, list[Case]], trials: int
) -> None:
    """One parent, one child; the width grows with success and shrinks without."""
    best, best_score, width = options, math.inf, 0.3
    for trial in range(trials + 1):
        factors = {key: math.exp(random.gauss(0.0, width)) if trial else 1.0 for key in keys}
        candidate = {**best, **{key: float(best[key]) * factors[key] for key in keys}}
        scores = {scale: score(name, candidate, group) for scale, group in cases.items()}
        value = geometric_mean(list(scores.values()))
        if value < best_score:
            best, best_score, width = candidate, value, min(1.5 * width, 0.6)
            shown = {key: float(f"{best[key]:.3g}") for key in keys}
            parts = " ".join(f"x{scale} {each:.3f}" for scale, each in scores.items())
            print(f"{trial} {value:.4f} ({parts}) {json.dumps(shown)}", flush=True)
        else:
            width = max(0.85 * width, 0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("method")
    parser.add_argument("keys", nargs="*", help="settings to search; none: score the defaults")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--scales", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--scenes", nargs="+", default=list(SCENES))
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()
    random.seed(0)
    torch.set_num_threads(args.threads)
    cases = {
        scale: [load_case(args.data, scene, scale, args.device) for scene in args.scenes]
        for scale in args.scales
    }
    defaults = {info.name: dict(info.settings) for info in list_methods()}[args.method]
    options = {**defaults, **dict(item.split("=") for item in args.set)}
    tune(args.method, args.keys, options, cases, args.trials if args.keys else 0)


if __name__ == "__main__":
    main()
