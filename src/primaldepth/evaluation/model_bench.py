"""`bench models`: whole frames through a network, beside its eager definition and the arithmetic floor."""

import torch
from torch import nn

from primaldepth.evaluation.kernel_bench import BenchRow
from primaldepth.evaluation.timing import Measurement, measure
from primaldepth.networks import DepthNet, NetworkSettings
from primaldepth.operators.pairwise import pick_backend, use_backend

SIZES = {"cuda": ((1088, 1376), (2160, 3840)), "cpu": ((1088, 1376),)}


def matrix_rate(device: str, dtype: torch.dtype) -> float:
    """Floating point operations per second of a large matrix product on random data."""
    side = 8192 if device == "cuda" else 2048
    a, b = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
    return 2 * side**3 / (measure(lambda: a @ b, device, repeats=5).ms * 1e-3)


def convolution_flops(net: nn.Module, size: tuple[int, int]) -> int:
    """Multiplications and additions of all 3x3 convolutions on one frame."""
    convolutions = [layer for layer in net.modules() if isinstance(layer, nn.Conv2d)]
    return sum(2 * layer.weight.numel() for layer in convolutions) * size[0] * size[1]


def bench_models(device: str, *, repeats: int = 9) -> list[BenchRow]:
    """`fcn-pdn-s`, untrained, random input: bfloat16 convolutions on a GPU, float32 on the CPU."""
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    rate = matrix_rate(device, dtype)
    return [_bench_size(size, device, dtype, rate, repeats) for size in SIZES[device]]


def _bench_size(
    size: tuple[int, int], device: str, dtype: torch.dtype, rate: float, repeats: int
) -> BenchRow:
    torch.manual_seed(0)
    net = DepthNet(NetworkSettings()).to(device).eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    maps = [torch.rand((1, 1, *size), device=device) for _ in range(4)]
    fast = _time(net, maps, dtype, device, repeats)
    with use_backend("torch"):
        reference = _time(net, maps, torch.float32, device, 3)
    return BenchRow(
        f"fcn-pdn-s {size[1]}x{size[0]} {str(dtype).removeprefix('torch.')}",
        pick_backend(maps[0]),
        fast.ms,
        reference.ms,
        reference.ms / fast.ms,
        1e3 * convolution_flops(net, size) / rate,
        fast.peak_mib,
        reference.peak_mib,
    )


def _time(
    net: DepthNet, maps: list[torch.Tensor], dtype: torch.dtype, device: str, repeats: int
) -> Measurement:
    def run() -> None:
        with torch.no_grad(), torch.autocast(device, dtype, enabled=dtype != torch.float32):
            net(*maps)

    return measure(run, device, repeats=repeats, warmup=1)
