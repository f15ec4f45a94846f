"""Time and memory of a function, measured the same way everywhere."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Measurement:
    """Milliseconds of repeated runs; on a GPU also the peak memory of one, in MiB."""

    ms: float
    peak_mib: float | None = None


def measure(run: Callable[[], object], device: str, *, repeats: int = 9, warmup: int = 2) -> Measurement:
    """Return the median milliseconds of `repeats` runs after `warmup`; on a GPU by device events.

    Args:
        run: what is measured.
        device: "cpu" or "cuda".
        repeats: runs that count.
        warmup: runs before them.
    """
    for _ in range(warmup):
        run()
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        base = torch.cuda.memory_allocated()
        times = [_cuda_ms(run) for _ in range(repeats)]
        return Measurement(statistics.median(times), (torch.cuda.max_memory_allocated() - base) / 2**20)
    return Measurement(statistics.median(_cpu_ms(run) for _ in range(repeats)))


def measure_both(
    run: Callable[[], object], reference: Callable[[], object], device: str, *, repeats: int = 9
) -> tuple[Measurement, Measurement]:
    """Return the least milliseconds of two functions, which take turns so that other load hits both."""
    both = (run, reference)
    for each in both:
        each()
    clock = _cuda_ms if device == "cuda" else _cpu_ms
    times = [[clock(each) for each in both] for _ in range(repeats)]
    least, least_reference = (Measurement(min(column)) for column in zip(*times, strict=True))
    return least, least_reference


def _cpu_ms(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return 1e3 * (time.perf_counter() - start)


def _cuda_ms(run: Callable[[], object]) -> float:
    torch.cuda._sleep(2_000_000)  # type: ignore[no-untyped-call]  # a millisecond: the host runs ahead
    start, end = [torch.cuda.Event(enable_timing=True) for _ in range(2)]  # type: ignore[no-untyped-call]
    start.record()
    run()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end))


def copy_bandwidth(device: str) -> float:
    """Return the bytes read plus bytes written per second by a large copy of random data."""
    count = 2**28 if device == "cuda" else 2**26
    source = torch.randn(count, device=device)
    target = torch.empty_like(source)
    found = measure(lambda: target.copy_(source), device, repeats=9)
    return 2 * source.numel() * source.element_size() / (found.ms * 1e-3)


def machine(device: str) -> str:
    """Describe the machine in words."""
    if device == "cuda":
        return f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}"
    return f"CPU, {torch.get_num_threads()} threads, torch {torch.__version__}"
