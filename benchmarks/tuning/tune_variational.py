"""Choose the default parameters of a variational model on middlebury-2006, all scenes at once.

    python -m benchmarks.tuning.tune_variational nlh-l2 --data DIR --seconds 120 --device cuda
    python -m benchmarks.tuning.tune_variational nlh-l2 --data DIR --seconds 0 --set lam=8 growth=1

A seeded evolution in the logarithm of each parameter, from the present defaults or those that are set.
The score is the geometric mean of RMSE over scenes and scales; that of the start is printed scale by scale.
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
    "atv-l2": ("lam", "growth", "beta", "gamma"),
    "atgv-l2": ("lam", "growth", "alpha_0", "beta", "gamma"),
    "nltv-l2": ("lam", "growth", "sigma_d", "sigma_v"),
    "nlh-l2": ("lam", "growth", "sigma_d", "sigma_v", "eps"),
    "nlh-l1": ("lam", "growth", "sigma_d", "sigma_v", "eps"),
    "nltgv-l2": ("lam", "growth", "alpha_0", "sigma_d", "sigma_v"),
    "nltgv-l1": ("lam", "growth", "alpha_0", "sigma_d", "sigma_v"),
}
SCENES = ("aloe", "bowling1", "flowerpots", "lampshade1", "rocks1")
CORNER, SIZE = (160, 192), (192, 256)  # one crop for all scenes, so that they form one batch

Batch = tuple[Frame, torch.Tensor, torch.Tensor]


def load_batch(data: Path, scale: int, device: str) -> Batch:
    protocol = get_protocol("middlebury-2006")
    cases = [protocol.load(data, scene, scale) for scene in SCENES]

    def stack(images: list[torch.Tensor], pixels: int = 1) -> torch.Tensor:
        """The crop of each image, whose samples are `pixels` apart."""
        (top, left), (height, width) = ((a // pixels, b // pixels) for a, b in (CORNER, SIZE))
        return torch.cat([image[..., top : top + height, left : left + width] for image in images]).to(device)

    frame = Frame(
        stack([c.frame.depth for c in cases], scale),
        stack([c.frame.valid for c in cases], scale),
        stack([c.frame.guide for c in cases]),
        sigma=stack([c.frame.sigma for c in cases if c.frame.sigma is not None], scale),
    )
    return frame, stack([c.truth for c in cases]), stack([c.known for c in cases])


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
    keys, best = SEARCHED[name], start
    first = [score(name, start, [batch]) for batch in batches]
    best_score = geometric_mean(first)
    shown = " ".join(f"{each:.3f}" for each in first)
    print(f"{name} start {best_score:.4f}, at each scale {shown}", flush=True)
    end, width, tried = time.monotonic() + seconds, 0.35, 0
    while time.monotonic() < end:
        candidate = perturbed(best, keys, width)
        value = score(name, candidate, batches)
        tried += 1
        if value < best_score:
            best, best_score, width = candidate, value, min(1.5 * width, 0.8)
            values = {key: float(f"{getattr(best, key):.3g}") for key in keys}
            print(f"{name} {tried} {value:.4f} {json.dumps(values)}", flush=True)
        else:
            width = max(0.9 * width, 0.05)
    print(f"{name} tried {tried}, best {best_score:.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=sorted(SEARCHED), nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--scales", type=int, nargs="+", default=[2, 4, 8, 16])
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
