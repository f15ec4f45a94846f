"""`bench kernels`: the fused pairwise iterations against the torch definition and the traffic floor."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from primaldepth.bench.timing import Measurement, copy_bandwidth, measure
from primaldepth.operators.pairwise import half_window, pick_backend, use_backend
from primaldepth.operators.pairwise.backends import Backend
from primaldepth.variational.huber_iterations import huber_iterations
from primaldepth.variational.primal_dual import State

ITERATIONS, WINDOW = 20, 7
FRAME, PATCHES = (1, 1088, 1376), (64, 128, 128)


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One row of the table; times in milliseconds, memory in MiB (on a GPU); None where none is known.

    Args:
        name: what was measured.
        backend: that computed it.
        ms: its time.
        reference_ms: the time of what it is compared with.
        speedup: `reference_ms` over `ms`.
        floor_ms: the time that memory or arithmetic needs at least.
        peak_mib: its memory.
        reference_peak_mib: the memory of what it is compared with.
        parts_ms: what the time goes into, where that was measured.
    """

    name: str
    backend: str
    ms: float
    reference_ms: float
    speedup: float
    floor_ms: float | None
    peak_mib: float | None
    reference_peak_mib: float | None
    parts_ms: dict[str, float] | None = None

    @classmethod
    def of(
        cls, name: str, backend: str, run: Measurement, reference: Measurement, floor_ms: float | None = None
    ) -> "BenchRow":
        """Return the row that compares two measurements.

        Args:
            name: what was measured.
            backend: that computed it.
            run: its time and memory.
            reference: time and memory of what it is compared with.
            floor_ms: the least possible time, if it is known.
        """
        speedup = reference.ms / run.ms
        peaks = run.peak_mib, reference.peak_mib
        return cls(name, backend, run.ms, reference.ms, speedup, floor_ms, *peaks)


@dataclass(frozen=True, slots=True)
class KernelInputs:
    """Random inputs of one size for the kernels; no value is 0."""

    state: State
    w: Tensor
    f: Tensor
    c: Tensor
    coefficients: Tensor

    @classmethod
    def draw(cls, shape: tuple[int, int, int], device: str, *, learn: bool = False) -> "KernelInputs":
        """Draw a random depth map and random weights in (0, 1), with the step sizes of the classical solver.

        Args:
            shape: images, rows, columns.
            device: where they lie.
            learn: whether gradients of them are needed.
        """
        images, height, width = shape
        random = torch.Generator(device).manual_seed(0)
        pairs = len(half_window(WINDOW))
        f = torch.randn((images, 1, height, width), generator=random, device=device)
        w = torch.rand((images, pairs, height, width), generator=random, device=device)
        c = torch.rand((images, 1, height, width), generator=random, device=device)
        rows = torch.tensor([0.5, 1 / 48, 0.01, 5.0, 1.0], device=device).repeat(ITERATIONS, 1)
        for tensor in (f, w, c, rows):
            tensor.requires_grad_(learn)
        return cls(State(f, f, (0.1 * w.detach(),)), w, f, c, rows)

    def run(self) -> State:
        """Run all iterations on the backend in force."""
        return huber_iterations(self.state, self.w, self.f, self.c, self.coefficients, half_window(WINDOW))

    def resident(self, storage: torch.dtype | None = None) -> Callable[[], object]:
        """Return a function that runs all iterations with Triton on maps that are in its layout already."""
        from primaldepth.operators.pairwise.padded_layout import PaddedLayout
        from primaldepth.operators.pairwise.triton import iterate

        layout = PaddedLayout.of(self.w)
        state = (layout.enter(self.state.u), layout.enter(self.state.u_bar))
        dual, w = layout.enter(self.state.p[0], storage), layout.enter(self.w, storage)
        fixed = (w, layout.enter(self.f), layout.enter(self.c))
        return lambda: iterate(layout, (*state, dual), fixed, self.coefficients)

    def train(self) -> None:
        """Run all iterations forward and backward, with the mean square of the result as loss."""
        loss = self.run().u.square().mean()
        torch.autograd.grad(loss, (self.f, self.w, self.c, self.coefficients))


def floor_ms(problem: KernelInputs, bandwidth: float, bytes_each: int = 4) -> float:
    """Return the milliseconds to read p and w and write p once per iteration, at the measured bandwidth."""
    return 1e3 * ITERATIONS * 3 * problem.w.numel() * bytes_each / bandwidth


def bench_kernels(device: str, *, repeats: int = 9) -> list[BenchRow]:
    """Measure forward on a frame (on a GPU in bfloat16 too), and on a GPU forward and backward on patches."""
    bandwidth = copy_bandwidth(device)
    frame = KernelInputs.draw(FRAME, device)
    backend = pick_backend(frame.f)
    slow = 3 if device == "cpu" else repeats
    with torch.no_grad():
        reference = _forced("torch", frame.run, device, slow)
        fused = frame.resident() if backend == "triton" else frame.run
        fast = measure(fused, device, repeats=repeats)
        name, floor = "forward 20 x nlh-l2 1088x1376", floor_ms(frame, bandwidth)
        rows = [BenchRow.of(f"{name} fp32", backend, fast, reference, floor)]
        if backend == "triton":
            half = measure(frame.resident(torch.bfloat16), device, repeats=repeats)
            floor = floor_ms(frame, bandwidth, 2)
            rows.append(BenchRow.of(f"{name} bf16 storage", backend, half, reference, floor))
    if device == "cuda":
        patches = KernelInputs.draw(PATCHES, device, learn=True)
        reference = _forced("torch", patches.train, device, 3)
        fast = measure(patches.train, device, repeats=repeats)
        floor = 3 * floor_ms(patches, bandwidth)  # backward: p, w, both gradients read and written
        rows.append(BenchRow.of("forward + backward 64 x 128x128 fp32", backend, fast, reference, floor))
    return rows


def _forced(name: Backend, run: Callable[[], object], device: str, repeats: int) -> Measurement:
    with use_backend(name):
        return measure(run, device, repeats=repeats, warmup=1)
