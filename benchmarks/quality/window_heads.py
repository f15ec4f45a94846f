"""The size of the non-local window with networks: one FCN; affinities and a solver trained for each window.

    python -m benchmarks.quality.window_heads --scenes SCENES --data DATA --out runs/window-heads

The features of `fcn-s` at x8 stay as they are. For every window the last layer and the coefficients of 20
iterations are trained on the same patches, in the same order, from equal affinities; then the network is
scored at x8. Weights that exist are not trained again, scores that exist are not computed again. The report
shows `src/primaldepth/report/window_heads.json`, which is what this script writes.
"""

import argparse
import datetime as dt
import json
import math
import time
from pathlib import Path

import torch
from torch import Tensor, nn

from primaldepth.data.patches import Scenes
from primaldepth.data.shards import Shards
from primaldepth.evaluation.metrics import rmse
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.methods import create
from primaldepth.networks import DepthNet
from primaldepth.networks.card import ModelCard
from primaldepth.networks.zoo import load, save_model
from primaldepth.operators.pairwise import half_window
from primaldepth.training.batches import TrainingBatch, draw_batch
from primaldepth.training.losses import affinity_loss, get_loss
from primaldepth.training.recipe import Recipe

WINDOWS = (3, 5, 7, 9, 11, 13, 15, 17)
SCALE, ITERATIONS, PATCH, PATCHES, BATCH, STEPS = 8, 20, 128, 160, 4, 480
RATE_HEAD, RATE_SOLVER, WARMUP = 1e-3, 2e-2, 20
PROTOCOLS = ("middlebury-2006", "noisy-middlebury")


def main() -> None:
    """Train and score every window; print and write the rows as they come."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--window", type=int, nargs="*", default=list(WINDOWS))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    base = load("fcn-s", scale=SCALE)
    drawn: tuple[TrainingBatch, Tensor] | None = None
    rows: dict[str, dict[str, float]] = {name: {} for name in PROTOCOLS}
    for window in args.window:
        path = args.out / f"window-{window}.safetensors"
        if not path.exists():
            drawn = drawn or _patches(base, args.scenes)
            _train(base, window, drawn, args.steps, path)
        for protocol in PROTOCOLS:
            rows[protocol][str(window)] = _score(path, window, protocol, args.data)
        (args.out / "window_heads.json").write_text(
            json.dumps({"steps": args.steps, "rows": rows}, indent=2) + "\n"
        )


def _patches(base: DepthNet, folder: Path) -> tuple[TrainingBatch, Tensor]:
    """Draw the patches all windows learn from, and compute the FCN's features of them."""
    stage = {"part": "head", "steps": 1, "batch": BATCH, "patch": PATCH}
    recipe = Recipe.parse({"name": "window-heads", "scale": SCALE, "stages": [stage]}, "window-heads")
    batch = draw_batch(Scenes.load(Shards(folder)), recipe, PATCHES, PATCH, (0, 0, 0))
    with torch.no_grad():
        parts = [_inputs(batch.part(slice(i, i + 8))) for i in range(0, PATCHES, 8)]
        features = torch.cat([base.fcn.features(part).bfloat16() for part in parts])
    return batch, features


def _inputs(batch: TrainingBatch) -> Tensor:
    return torch.cat([batch.maps.depth, batch.maps.sigma, batch.maps.guide], dim=1)


def _fresh(base: DepthNet, window: int) -> DepthNet:
    """Return a network with the base's features and residual, equal affinities and an untrained solver."""
    net = DepthNet(base.settings.model_copy(update={"window": window, "iterations": ITERATIONS}))
    net.fcn.features.load_state_dict(base.fcn.features.state_dict())
    with torch.no_grad():
        net.fcn.head.weight[:1] = base.fcn.head.weight[:1]
        net.fcn.head.bias[:1] = base.fcn.head.bias[:1]
    return net


def _train(base: DepthNet, window: int, drawn: tuple[TrainingBatch, Tensor], steps: int, path: Path) -> None:
    net, began = _fresh(base, window), time.process_time()
    learned: list[dict[str, object]] = [
        {"params": net.fcn.head.parameters(), "lr": RATE_HEAD},
        {"params": net.pdn.parameters(), "lr": RATE_SOLVER},
    ]
    optimiser = torch.optim.AdamW(learned, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, steps))
    order = torch.Generator().manual_seed(5)
    mean = 0.0
    for step in range(steps):
        chosen = torch.randperm(PATCHES, generator=order)[:BATCH]
        loss = _loss(net, window, *drawn, chosen)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        mean += (float(loss.detach()) - mean) / min(step + 1, 40)
        if (step + 1) % 80 == 0:
            print(
                f"window {window}: step {step + 1}, loss {mean:.4f}, {time.process_time() - began:.0f} s",
                flush=True,
            )
    card = ModelCard(
        name="fcn-pdn-s",
        scale=SCALE,
        settings=net.settings,
        created=dt.datetime.now(dt.UTC),
        seed=5,
        seconds=time.process_time() - began,
        notes=f"Window study: last layer and solver, {steps} steps on {PATCHES} patches.",
    )
    save_model(path, net, card)


def _rate(step: int, steps: int) -> float:
    return min(1.0, (step + 1) / WARMUP) * 0.5 * (1.0 + math.cos(math.pi * step / steps))


def _loss(net: DepthNet, window: int, batch: TrainingBatch, features: Tensor, chosen: Tensor) -> Tensor:
    """Penalise the errors of the result and, a tenth, of the first estimate and of the affinities."""
    depth, trust, guide = (getattr(batch.maps, name)[chosen] for name in ("depth", "trust", "guide"))
    truth, valid, unit = batch.truth[chosen], batch.valid[chosen], batch.unit[chosen]
    out = net.fcn.head(features[chosen].float())
    first, affinities = depth + out[:, :1], out[:, 1:]
    result = net.pdn(first, affinities, trust, guide)
    penalty = get_loss("rmse")
    own, early = (penalty((u - truth) * unit, valid, truth * unit) for u in (result, first))
    return own + 0.1 * early + 0.1 * affinity_loss(affinities, truth, valid, half_window(window))


def _score(path: Path, window: int, name: str, data: Path) -> float:
    """Return the mean RMSE over the scenes of a protocol."""
    kept = path.with_suffix(f".{name}.json")
    if not kept.exists():
        protocol, method = get_protocol(name), create(str(path))
        found = {}
        for scene in protocol.scenes:
            case = protocol.load(data, scene, SCALE)
            prediction = method(case.frame)
            found[scene] = float(rmse(prediction.depth, case.truth, case.known))
        kept.write_text(json.dumps(found))
    scores = json.loads(kept.read_text())
    mean = sum(scores.values()) / len(scores)
    print(f"window {window}: {name} x{SCALE} mean RMSE {mean:.4f}", flush=True)
    return round(mean, 4)


if __name__ == "__main__":
    main()
