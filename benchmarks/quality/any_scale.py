"""What a network for every scale promises, measured on middlebury-2006: ratios, holes, units, calibration.

python -m benchmarks.quality.any_scale --data DATA [--method pdn-any] [--scenes N]
"""

import argparse
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor

from primaldepth.core.frame import Frame, Method
from primaldepth.core.seeds import generator
from primaldepth.evaluation.metrics import rmse
from primaldepth.evaluation.protocol import Case
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.methods import create
from primaldepth.operators.sampling import Resample
from primaldepth.sensors.degradations import fill_occlusions
from primaldepth.sensors.draws import normal
from primaldepth.sensors.noise import MIDDLEBURY_NOISE, middlebury_sigma

RATIOS = (2.0, 2.7, 4.0, 6.0, 7.5, 8.0)
HOLES = 0.3


def reduced(case: Case, ratio: float) -> Tensor:
    """The case's truth, smaller by any ratio."""
    size = case.frame.high_size
    low_size = (round(size[0] / ratio), round(size[1] / ratio))
    return Resample(size, low_size, "bicubic")(fill_occlusions(case.truth, case.known))


def degraded(case: Case, ratio: float) -> Frame:
    """The case's truth reduced by any ratio, with noise of 651 / d, rounded."""
    low = reduced(case, ratio)
    noise = normal(low, generator("any-scale", case.scene, str(ratio)))
    noisy = (low + noise * MIDDLEBURY_NOISE / low.clamp_min(1.0)).round().clamp(1, 255)
    valid = torch.ones_like(noisy, dtype=torch.bool)
    return Frame(noisy, valid, case.frame.guide, sigma=middlebury_sigma(noisy, valid))


def error(method: Method, frame: Frame, case: Case) -> float:
    """RMSE where the truth is known."""
    return rmse(method(frame).depth, case.truth, case.known)


def with_holes(frame: Frame) -> Frame:
    """Without 30 % of the samples, at random."""
    drawn = torch.rand(frame.depth.shape, generator=generator("holes"))
    return replace(frame, valid=frame.valid & (drawn > HOLES))


def unit_change(method: Method, frame: Frame) -> float:
    """Largest change of the result, as a part of its range, when the unit is a thousand times smaller."""
    one = method(frame).depth
    sigma = None if frame.sigma is None else 1000.0 * frame.sigma
    other = method(replace(frame, depth=1000.0 * frame.depth, sigma=sigma)).depth / 1000.0
    return float((one - other).abs().max() / (one.max() - one.min()))


def calibration(errors: Iterable[Tensor], sigmas: Iterable[Tensor], bins: int = 20) -> dict[str, float]:
    """Share of errors within one sigma, expected calibration error, and correlation of sigma and |error|.

    The calibration error is the mean over bins of equal count of |mean |e| sqrt(pi / 2) - mean sigma|, over
    the mean sigma: for a normal error both means agree.
    """
    e, s = torch.cat(list(errors)).abs(), torch.cat(list(sigmas))
    order = s.argsort()
    gaps = [
        (1.2533 * e[part].mean() - s[part].mean()).abs() for part in order.tensor_split(bins) if len(part)
    ]
    both = torch.stack([e, s])
    return {
        "within one sigma": float((e <= s).float().mean()),
        "expected calibration error": float(torch.stack(gaps).mean() / s.mean()),
        "correlation": float(torch.corrcoef(both)[0, 1]),
    }


def data_and_method(description: str | None) -> argparse.ArgumentParser:
    """A parser with --data, the folder of the benchmarks, and --method."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--method", default="pdn-any")
    return parser


def main() -> None:
    """Print all figures as JSON."""
    parser = data_and_method(__doc__)
    parser.add_argument("--scenes", type=int, default=14)
    arguments = parser.parse_args()
    protocol, method = get_protocol("middlebury-2006"), create(arguments.method)
    scenes = protocol.scenes[: arguments.scenes]
    cases = {s: [protocol.load(arguments.data, scene, s) for scene in scenes] for s in (2, 4, 8)}
    found: dict[str, object] = {
        f"rmse x{ratio}": fmean(error(method, degraded(case, ratio), case) for case in cases[4])
        for ratio in RATIOS
    }
    whole = fmean(error(method, case.frame, case) for case in cases[4])
    holed = fmean(error(method, with_holes(case.frame), case) for case in cases[4])
    found["rmse x4 with 30 % holes over without"] = holed / whole
    found["largest change by unit"] = max(unit_change(method, case.frame) for case in cases[8])
    errors, sigmas = [], []
    for case in (each for group in cases.values() for each in group):
        result = method(case.frame)
        if result.sigma is not None:
            errors.append((result.depth - case.truth)[case.known])
            sigmas.append(result.sigma[case.known])
    if errors:
        found |= calibration(errors, sigmas)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
