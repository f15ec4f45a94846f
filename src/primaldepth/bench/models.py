"""`bench models`: whole frames through a network, beside its eager definition and the arithmetic floor."""

import copy
from dataclasses import replace

import torch
from torch.utils.flop_counter import FlopCounterMode

from primaldepth.bench.kernels import BenchRow
from primaldepth.bench.stages import bench_stages
from primaldepth.bench.timing import Measurement, measure
from primaldepth.networks import DepthNet, NetworkSettings, load
from primaldepth.networks.inference import Inference
from primaldepth.networks.inputs import NetworkInput, SensorSamples
from primaldepth.networks.precision import bfloat16_instructions
from primaldepth.networks.zoo import SHIPPED
from primaldepth.operators.pairwise import pick_backend, use_backend
from primaldepth.operators.sampling import Resample

SIZES = {"cuda": ((1088, 1376), (2160, 3840)), "cpu": ((1088, 1376),)}


def matrix_rate(device: str, dtype: torch.dtype) -> float:
    """Return the floating point operations per second of a large matrix product on random data."""
    side = 8192 if device == "cuda" else 2048
    a, b = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
    return 2 * side**3 / (measure(lambda: a @ b, device, repeats=5).ms * 1e-3)


def convolution_flops(settings: NetworkSettings, size: tuple[int, int]) -> int:
    """Return how many multiplications and additions the convolutions of a frame need; nothing is computed."""
    with torch.device("meta"):
        net, maps = DepthNet(settings), _maps(settings, size, "meta")
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        net.features(*maps[:5])
    return int(counter.get_total_flops())


def bench_models(device: str, *, repeats: int = 9) -> list[BenchRow]:
    """Measure networks on random frames in each precision of interest, then all stages of a frame.

    Convolutions are in bfloat16 on a GPU; on a CPU in float32, and in bfloat16 where it has the instructions.
    """
    rates = {dtype: matrix_rate(device, dtype) for dtype in _dtypes(device)}
    rows = [
        _bench_size(name, settings, size, device, dtype, rate, repeats)
        for size in SIZES[device]
        for name, settings in _networks().items()
        for dtype, rate in rates.items()
    ]
    return rows + bench_stages(device, repeats=repeats)


def _dtypes(device: str) -> tuple[torch.dtype, ...]:
    if device == "cuda":
        return (torch.bfloat16,)
    return (torch.float32, torch.bfloat16) if bfloat16_instructions() else (torch.float32,)


def _networks() -> dict[str, NetworkSettings]:
    """Return the paper's network, and those for every scale that are shipped."""
    shipped = {name: load(name).settings for name, each in SHIPPED.items() if None in each.present}
    return {"fcn-pdn-s": NetworkSettings(), **shipped}


def _maps(settings: NetworkSettings, size: tuple[int, int], device: str) -> NetworkInput:
    """Draw depth, noise, trust and guide; and samples of x4 for a network with the sample term."""
    guide = torch.rand((1, settings.colours, *size), device=device)
    depth, sigma, trust = torch.rand((3, 1, 1, *size), device=device)
    A = Resample(size, (size[0] // 4, size[1] // 4))
    samples = SensorSamples(A, *torch.rand((3, 1, *A.out_shape), device=device)) if settings.samples else None
    return NetworkInput(depth, sigma, trust, guide, samples=samples)


def _bench_size(
    name: str,
    settings: NetworkSettings,
    size: tuple[int, int],
    device: str,
    dtype: torch.dtype,
    rate: float,
    repeats: int,
) -> BenchRow:
    torch.manual_seed(0)
    net = DepthNet(settings).to(device).eval()
    maps = _maps(settings, size, device)
    fast = _time(copy.deepcopy(net).stored_as(dtype), maps, dtype, device, repeats)
    net = net.stored_as(torch.float32)
    with use_backend("torch"):
        reference = _time(net, maps, torch.float32, device, 3)
    title = f"{name} {size[1]}x{size[0]} {str(dtype).removeprefix('torch.')}"
    floor_ms = 1e3 * convolution_flops(settings, size) / rate
    return BenchRow.of(title, pick_backend(maps.depth), fast, reference, floor_ms)


def _time(net: DepthNet, window: NetworkInput, dtype: torch.dtype, device: str, repeats: int) -> Measurement:
    """Measure a network as methods run it; memory call by call, since a recording has its own already."""
    inference = Inference(net, dtype)
    if device != "cuda":
        return measure(lambda: inference(window), device, repeats=repeats, warmup=1)
    by_call = measure(lambda: inference.run(window), device, repeats=1)
    return replace(measure(lambda: inference(window), device, repeats=repeats), peak_mib=by_call.peak_mib)
