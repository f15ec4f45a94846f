"""What `upsample --noise auto` finds on rendered scenes, and what it costs against the true noise.

    python -m benchmarks.quality.noise_auto --scenes 6 --json benchmarks/results/noise-auto-cpu.json

Each scene is reduced by 4, 8 and 16 and gets noise of sigma = level m (d / m)^p, with m the median of its
depth d. Printed per map, model and level: the median over pixels of estimated over true sigma, and the RMSE
with the estimate over the RMSE with the true sigma.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor

from primaldepth.core.frame import Frame, Method
from primaldepth.core.seeds import generator
from primaldepth.evaluation.metrics import rmse
from primaldepth.evaluation.rendered import image_of, tensor_of
from primaldepth.methods import create
from primaldepth.operators.sampling import Resample
from primaldepth.scenes.renderer import Renderer
from primaldepth.scenes.sampler import sample
from primaldepth.sensors.degradations import fill_occlusions
from primaldepth.sensors.draws import normal
from primaldepth.sensors.noise import noise_map

SIZE = 512
SCALES = (4, 8, 16)
LEVELS = (0.001, 0.003, 0.01, 0.03, 0.05, 0.1)
POWERS = {"constant": 0, "relative": 1, "square": 2}
SIGMA_BOUND, RMSE_BOUND = 0.2, 0.05


@dataclass(frozen=True)
class RenderedView:
    """A rendered scene: image and depth without holes, (1, C, H, W), and where the depth is known."""

    scene: int
    image: Tensor
    truth: Tensor
    known: Tensor


@dataclass(frozen=True)
class NoiseRow:
    """One map: median of estimated over true sigma, RMSE with the true one, and RMSE with the estimate."""

    scene: int
    scale: int
    model: str
    level: float
    sigma_ratio: float
    rmse_true: float | None = None
    rmse_auto: float | None = None

    @property
    def rmse_ratio(self) -> float:
        return self.rmse_auto / self.rmse_true if self.rmse_true and self.rmse_auto else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scenes", type=int, default=6)
    parser.add_argument("--first", type=int, default=0, help="seed of the first scene")
    parser.add_argument("--scales", type=int, nargs="+", default=SCALES)
    parser.add_argument("--method", default="pdn-any", help="'none' for the estimates alone")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    method = None if options.method == "none" else create(options.method)
    views = list(rendered(range(options.first, options.first + options.scenes)))
    rows: list[NoiseRow] = []
    for scale, model, level in product(options.scales, POWERS, LEVELS):
        rows += [measured(view, scale, model, level, method) for view in views]
        show(rows[-len(views) :])
    summarise(rows)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def rendered(seeds: range) -> Iterator[RenderedView]:
    renderer = Renderer(preset="rich", size=SIZE, samples=16)
    for seed in seeds:
        found = renderer.render(sample("rich", seed))
        depth, known = tensor_of(found["depth"]), tensor_of(found["valid"])
        yield RenderedView(seed, image_of(found), fill_occlusions(depth, known), known)


def noisy(view: RenderedView, scale: int, model: str, level: float) -> Frame:
    """The view's depth, smaller by `scale`, with noise; what came out as 0 or less is a hole."""
    low = Resample((SIZE, SIZE), (SIZE // scale, SIZE // scale), "bicubic")(view.truth)
    middle = low.median()
    sigma = level * middle * (low / middle) ** POWERS[model]
    depth = low + sigma * normal(low, generator("noise-auto", view.scene, scale, model, str(level)))
    return Frame(depth, depth > 0, view.image, sigma=sigma)


def measured(view: RenderedView, scale: int, model: str, level: float, method: Method | None) -> NoiseRow:
    frame = noisy(view, scale, model, level)
    auto = noise_map("auto", frame.depth, frame.valid)
    row = NoiseRow(view.scene, scale, model, level, float((auto / frame.sigma)[frame.valid].median()))
    if method is None:
        return row
    errors = [
        rmse(method(each).depth, view.truth, view.known) for each in (frame, replace(frame, sigma=auto))
    ]
    return replace(row, rmse_true=errors[0], rmse_auto=errors[1])


def show(rows: list[NoiseRow]) -> None:
    sigma, error = [row.sigma_ratio for row in rows], [row.rmse_ratio for row in rows]
    row, side = rows[0], SIZE // rows[0].scale
    print(
        f"{side:3} px  {row.model:8} {100 * row.level:4.1f} %"
        f"  sigma x{fmean(sigma):.3f} ({min(sigma):.3f} to {max(sigma):.3f})"
        + (f"  rmse x{fmean(error):.3f} (worst x{max(error):.3f})" if row.rmse_auto else ""),
        flush=True,
    )


def summarise(rows: list[NoiseRow]) -> None:
    """How many maps keep to the bounds."""
    for scale in sorted({row.scale for row in rows}):
        chosen = [row for row in rows if row.scale == scale]
        sigma = sum(abs(row.sigma_ratio - 1) <= SIGMA_BOUND for row in chosen)
        error = sum(row.rmse_ratio <= 1 + RMSE_BOUND for row in chosen)
        print(
            f"{SIZE // scale:3} px: sigma within {100 * SIGMA_BOUND:.0f} % on {sigma} of {len(chosen)} maps"
            + (f", rmse at most {100 * RMSE_BOUND:.0f} % above on {error}" if chosen[0].rmse_auto else "")
        )


if __name__ == "__main__":
    main()
