"""How closely the solver with the sample term reproduces samples, before any training of it.

The first estimate and the affinities are those of a shipped network without the term; the coefficients are
those an untrained solver starts with.

lu: distance from the samples, for N_gt.png and N_rgb.png; sampling: what it costs to assume the wrong one.

    python -m benchmarks.quality.sample_fidelity lu FOLDER
    python -m benchmarks.quality.sample_fidelity sampling FOLDER
"""

import argparse
import json
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from primaldepth.core.frame import SAMPLINGS, Frame, Sampling
from primaldepth.core.seeds import generator
from primaldepth.methods.network_inputs import NetworkInputs, Window, sampling_operator
from primaldepth.networks import DepthNet, PrimalDualNet, load
from primaldepth.sensors.degradations import fill_occlusions
from primaldepth.sensors.draws import normal

RATIO = 4
STRIDE = 32


class TrueScene(NamedTuple):
    """Truth (1, 1, H, W) in pixels of disparity, where it is known, and the image (1, 3, H, W)."""

    truth: Tensor
    known: Tensor
    image: Tensor


class Estimates(NamedTuple):
    """What the network says of a frame, all normalised by `inputs.scaling`."""

    inputs: NetworkInputs
    first: Tensor
    affinities: Tensor
    weight: Tensor
    plain: Tensor


def scene(depth: Path, image: Path) -> TrueScene:
    """Read a scene and cut it to a multiple of the network's stride."""
    values = torch.from_numpy(np.asarray(Image.open(depth)).astype(np.float32))
    colours = torch.from_numpy(np.asarray(Image.open(image).convert("RGB")).astype(np.float32) / 255)
    height, width = (int(side) // STRIDE * STRIDE for side in values.shape)
    truth = values[:height, :width].reshape(1, 1, height, width)
    known = truth > 0
    return TrueScene(fill_occlusions(truth, known), known, colours[:height, :width].permute(2, 0, 1)[None])


def sampled(given: TrueScene, sampling: Sampling, noise: float) -> Frame:
    """Return the scene's samples with equal noise everywhere."""
    size = (int(given.truth.shape[2]), int(given.truth.shape[3]))
    low = sampling_operator(size, (size[0] // RATIO, size[1] // RATIO), sampling)(given.truth)
    low = low + noise * normal(low, generator("sample-fidelity"))
    return Frame(low, torch.ones_like(low, dtype=torch.bool), given.image, sigma=torch.full_like(low, noise))


def estimated(net: DepthNet, frame: Frame) -> Estimates:
    """Run the shipped network once."""
    inputs = NetworkInputs.of(frame)
    maps = inputs.window(Window(0, frame.high_size[0], 0, frame.high_size[1]), frame.guide, 3)
    with torch.no_grad():
        found = net(*maps)
    weight = maps.trust if found.features.weight is None else maps.trust * found.features.weight
    return Estimates(inputs, found.first, found.affinities, weight, found.depth)


def solved(net: DepthNet, given: Estimates, sampling: Sampling, iterations: int) -> Tensor:
    """Return the result of an untrained solver with samples, in the frame's unit."""
    solver = PrimalDualNet(iterations, net.settings.window, samples=True)
    assert net.pdn is not None and given.inputs.measured is not None  # noqa: S101, PT018
    with torch.no_grad():
        solver.log_support.copy_(net.pdn.log_support)
        _, high, wide = given.inputs.enlarge.out_shape
        _, low, narrow = given.inputs.enlarge.in_shape
        A = sampling_operator((high, wide), (low, narrow), sampling)
        samples = given.inputs.measured._replace(A=A).weighed(None)
        u = solver(given.first, given.affinities, given.weight, given.first, samples=samples)
    return given.inputs.scaling.restore(u)


def rms(error: Tensor) -> float:
    """Root of the mean square."""
    return float(error.square().mean().sqrt())


def fidelity(net: DepthNet, scenes: list[TrueScene]) -> dict[str, float]:
    """Mean over the scenes of the RMS of A u - d and of the RMSE, before and after 16 and 60 iterations."""
    rows: list[dict[str, float]] = []
    for each in scenes:
        frame = sampled(each, "average", 0.0)
        given = estimated(net, frame)
        A = sampling_operator(frame.high_size, frame.low_size, "average")
        plain = given.inputs.scaling.restore(given.plain)
        results = {"shipped": plain} | {str(n): solved(net, given, "average", n) for n in (16, 60)}
        row = {f"A u - d, {name}": rms(A(u) - frame.depth) for name, u in results.items()}
        rows.append(row | {f"rmse, {name}": rms((u - each.truth)[each.known]) for name, u in results.items()})
    return {name: fmean(row[name] for row in rows) for name in rows[0]}


def wrong_sampling(net: DepthNet, scenes: list[TrueScene]) -> dict[str, float]:
    """Mean RMSE for each way the samples were made and each that is assumed, without and with noise."""
    found: dict[str, list[float]] = {}
    for noise in (0.0, 2.0):
        for each in scenes:
            for made in SAMPLINGS:
                given = estimated(net, sampled(each, made, noise))
                results = {f"assumed {how}": solved(net, given, how, 16) for how in SAMPLINGS}
                results["shipped"] = given.inputs.scaling.restore(given.plain)
                for name, u in results.items():
                    key = f"noise {noise:g}, made by {made}, {name}"
                    found.setdefault(key, []).append(rms((u - each.truth)[each.known]))
    return {name: fmean(values) for name, values in found.items()}


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("lu", "sampling"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--method", default="pdn-any")
    parser.add_argument("--scenes", type=int, default=6)
    arguments = parser.parse_args()
    net, folder = load(arguments.method), arguments.folder
    if arguments.what == "lu":
        names = sorted(path.name.removesuffix("_gt.png") for path in folder.glob("*_gt.png"))
        pairs = [(folder / f"{name}_gt.png", folder / f"{name}_rgb.png") for name in names]
    else:
        pairs = [(path, path.with_name("color.png")) for path in sorted(folder.glob("*/disparity_gt.png"))]
    scenes = [scene(*pair) for pair in pairs[: arguments.scenes]]
    print(json.dumps((fidelity if arguments.what == "lu" else wrong_sampling)(net, scenes), indent=1))


if __name__ == "__main__":
    main()
