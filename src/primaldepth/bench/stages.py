"""`bench models`: what a frame costs outside the network, what holes add, and what the precision saves.

Every row compares two runs that take turns: `ms` is that of the row's name, `reference_ms` that of what
follows "against".
"""

import copy
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from primaldepth.bench.kernels import BenchRow
from primaldepth.bench.timing import measure_both
from primaldepth.core.frame import Frame
from primaldepth.measurement.spikes import spikes
from primaldepth.methods.deep_holes import coarser, deep_share
from primaldepth.methods.holes import measured_mask
from primaldepth.methods.network import Network
from primaldepth.methods.network_inputs import NetworkInputs
from primaldepth.methods.sparse import gathered
from primaldepth.networks import DepthNet, NetworkSettings, load
from primaldepth.networks.precision import usual_dtype
from primaldepth.networks.zoo import SHIPPED
from primaldepth.operators.pairwise import pick_backend
from primaldepth.sensors.noise import noise_map

LOW, HIGH = (120, 160), (480, 640)
HOLES, HOLE_SIDES = 0.16, (6, 25)  # share of the samples; shortest and longest side of a rectangle, exclusive
SIGMA = 0.01


def bench_frame(device: str, *, holes: float = 0.0) -> Frame:
    """Return a box before a slanted wall with noise, and rectangles without samples.

    Args:
        device: where the frame lies.
        holes: share of the samples that are missing, at least.
    """
    random = torch.Generator().manual_seed(0)
    y, x = torch.meshgrid(*(torch.linspace(0.0, 1.0, n) for n in HIGH), indexing="ij")
    scene = torch.where((x - 0.5).abs() + (y - 0.5).abs() < 0.3, 1.2, 2.0 + x + 0.5 * y)
    step = HIGH[0] // LOW[0]
    depth = scene[step // 2 :: step, step // 2 :: step] + SIGMA * torch.randn(LOW, generator=random)
    valid = torch.ones(LOW, dtype=torch.bool)
    while float(valid.float().mean()) > 1.0 - holes:
        rows, columns = torch.randint(*HOLE_SIDES, (2,), generator=random).tolist()
        top, left = (int(torch.randint(n, (1,), generator=random)) for n in LOW)
        valid[top : top + rows, left : left + columns] = False
    guide = (0.3 * scene + 0.05 * torch.rand(HIGH, generator=random)).clamp(0.0, 1.0)
    samples = torch.where(valid, depth, 0.0)[None, None]
    frame = Frame(samples, valid[None, None], guide[None, None].expand(1, 3, *HIGH).contiguous())
    return replace(frame, sigma=torch.full_like(samples, SIGMA)).to(device)


def bench_stages(device: str, *, repeats: int = 9) -> list[BenchRow]:
    """Time the stages of a frame, whole frames in two precisions, and the sample term: a row each.

    Args:
        device: to measure on.
        repeats: of every run.
    """
    with_holes, without = (bench_frame(device, holes=share) for share in (HOLES, 0.0))
    backend = pick_backend(without.depth)

    def row(title: str, run: Callable[[], object], reference: Callable[[], object]) -> BenchRow:
        return BenchRow.of(title, backend, *measure_both(run, reference, device, repeats=repeats))

    def whole(method: Network) -> Callable[[], object]:
        return _stages(without, method)["whole frame"]

    rows = []
    for name in (name for name, each in SHIPPED.items() if None in each.present):
        net = load(name, None, torch.device(device))
        method, full = _method(name, copy.deepcopy(net)), _method(name, net, torch.float32)
        plain = _stages(without, method)
        rows += [
            row(f"{name} {stage}, {HOLES:.0%} holes against none", run, plain[stage])
            for stage, run in _stages(with_holes, method).items()
        ]
        rows.append(row(f"{name} whole frame, precision auto against fp32", whole(method), whole(full)))
        nets = (_untrained(net.settings, device, samples) for samples in (True, False))
        with_term, none = (_method(name, each) for each in nets)
        rows.append(row(f"{name} whole frame, sample term against none", whole(with_term), whole(none)))
    return rows


def _stages(frame: Frame, method: Network) -> dict[str, Callable[[], object]]:
    """Return a function for each stage of a frame, by name and in order; the last runs all of them."""

    def sigma(valid: Tensor) -> Tensor:
        return noise_map("auto", frame.depth, valid)

    def inputs() -> NetworkInputs:
        return NetworkInputs.of(frame, frame).with_trusted_borders(frame.valid)

    def whole() -> object:
        kept = frame.valid & ~spikes(frame.depth, frame.valid, sigma)
        return method(replace(frame, valid=kept, sigma=sigma(kept)))

    return {
        "spikes": lambda: spikes(frame.depth, frame.valid, sigma),
        "noise estimate": lambda: sigma(frame.valid),
        "lone samples": lambda: gathered(frame),
        "filled inputs": inputs,
        "coarser samples": lambda: deep_share(frame.valid) is not None and coarser(frame),
        "measured mask": lambda: measured_mask(frame),
        "network": lambda: method(frame),
        "whole frame": whole,
    }


def _method(name: str, net: DepthNet, precision: torch.dtype | None = None) -> Network:
    dtype = precision or usual_dtype(net, next(net.parameters()).device)
    return Network(name, net.stored_as(dtype), precision=dtype)


def _untrained(settings: NetworkSettings, device: str, samples: bool) -> DepthNet:
    """Return an untrained network of these settings, with or without the sample term."""
    return DepthNet(settings.model_copy(update={"samples": samples})).to(device).eval()
