"""Choose the default parameters of a variational model on middlebury-2006, all scenes at once.

    python -m benchmarks.tune_variational nlh-l2 --data DIR --seconds 120 --device cuda

A seeded evolution in the logarithm of each parameter, from the present defaults.
The score is the geometric mean of RMSE over scenes and scales.
"""

import argparse
import json
import math
import random
import time
from pathlib import Path

import torch

from primaldepth.core.frame import Frame
from primaldepth.evaluation.metrics import geometric_mean, rmse
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.methods.variational import DEFAULTS, Variational, VariationalSettings

SEARCHED = {
    "atv-l2": ("lam", "beta", "gamma"),
    "atgv-l2": ("lam", "alpha_0", "beta", "gamma"),
    "nltv-l2": ("lam", "sigma_d", "sigma_v"),
    "nlh-l2": ("lam", "sigma_d", "sigma_v", "eps"),
    "nlh-l1": ("lam", "sigma_d", "sigma_v", "eps"),
    "nltgv-l2": ("lam", "alpha_0", "sigma_d", "sigma_v"),
    "nltgv-l1": ("lam", "alpha_0", "sigma_d", "sigma_v"),
}
SCENES = ("aloe", "baby2", "bowling1", "cloth3", "flowerpots", "lampshade1", "rocks1")
SIZE = (384, 448)  # one crop for all scenes, so that they form one batch

Batch = tuple[Frame, torch.Tensor, torch.Tensor]


def load_batch(data: Path, scale: int, device: str) -> Batch:
    protocol = get_protocol("middlebury-2006")
    low = (SIZE[0] // scale, SIZE[1] // scale)
    cases = [protocol.load(data, scene, scale) for scene in SCENES]

    def stack(images: list[torch.Tensor], size: tuple[int, int]) -> torch.Tensor:
        return torch.cat([image[..., : size[0], : size[1]] for image in images]).to(device)

    frame = Frame(
        stack([c.frame.depth for c in cases], low),
        stack([c.frame.valid for c in cases], low),
        stack([c.frame.guide for c in cases], SIZE),
        sigma=stack([c.frame.sigma for c in cases if c.frame.sigma is not None], low),
    )
    return frame, stack([c.truth for c in cases], SIZE), stack([c.known for c in cases], SIZE)


def score(name: str, settings: VariationalSettings, batches: list[Batch]) -> float:
    errors = []
    for frame, truth, known in batches:
        depth = Variational(name, settings)(frame).depth
        errors += [rmse(*parts) for parts in zip(depth, truth, known, strict=True)]
    value = geometric_mean(errors)
    return value if math.isfinite(value) else math.inf


def perturbed(settings: VariationalSettings, keys: tuple[str, ...], width: float) -> VariationalSettings:
    """A neighbour: every searched parameter times a log-normal factor."""
    update = {key: getattr(settings, key) * math.exp(random.gauss(0.0, width)) for key in keys}
    return settings.model_copy(update=update)


def tune(name: str, start: VariationalSettings, batches: list[Batch], seconds: float) -> None:
    """Evolution with one parent and one child; the width grows with success and shrinks without."""
    keys, best, best_score = SEARCHED[name], start, score(name, start, batches)
    print(f"{name} start {best_score:.4f}", flush=True)
    end, width, tried = time.monotonic() + seconds, 0.35, 0
    while time.monotonic() < end:
        candidate = perturbed(best, keys, width)
        value = score(name, candidate, batches)
        tried += 1
        if value < best_score:
            best, best_score, width = candidate, value, min(1.5 * width, 0.8)
            shown = {key: float(f"{getattr(best, key):.3g}") for key in keys}
            print(f"{name} {tried} {value:.4f} {json.dumps(shown)}", flush=True)
        else:
            width = max(0.9 * width, 0.05)
    print(f"{name} tried {tried}, best {best_score:.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=sorted(SEARCHED), nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--scales", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--seconds", type=float, default=60.0, help="per model")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()
    random.seed(0)
    batches = [load_batch(args.data, scale, args.device) for scale in args.scales]
    overrides = dict(item.split("=") for item in args.set)
    for name in args.model:
        settings = {**DEFAULTS[name].model_dump(), **overrides}
        tune(name, VariationalSettings.parse(settings, "--set"), batches, args.seconds)


if __name__ == "__main__":
    main()
