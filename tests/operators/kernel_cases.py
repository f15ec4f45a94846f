"""Fused pairwise iterations against their definition; also a program, for backends that need a process.

`python kernel_cases.py triton` prints {case: {tensor: error}} as JSON. Triton reads TRITON_INTERPRET
when it is imported, so its interpreter gets a process of its own.
"""

import importlib
import json
import sys
from contextlib import ExitStack
from types import ModuleType
from unittest.mock import patch

import numpy as np
import torch

from primaldepth.operators.pairwise import half_window, use_backend
from primaldepth.operators.pairwise.reference import ends
from primaldepth.operators.sampling import MixedResample, PointSamples, Resample, SampleTerm
from primaldepth.variational.huber_iterations import huber_from_affinities, huber_iterations
from primaldepth.variational.primal_dual import State

NAMES = ("u", "u_bar", "p", "w", "f", "c", "coefficients", "q", "d", "lam")
RESULTS = ("u+", "u_bar+", "p+", "q+")
# (height, width), window, images
CASES = [((1, 1), 3, 2), ((1, 1), 11, 1), ((7, 7), 3, 2), ((7, 7), 7, 2), ((7, 5), 11, 1), ((63, 63), 3, 1)]
CASES += [((63, 5), 7, 2), ((5, 63), 11, 1), ((130, 3), 3, 2), ((3, 130), 7, 2), ((3, 130), 11, 1)]
CASES += [((130, 130), 3, 1)]


# (height, width), (height, width) of the samples or their number, kernel, window, images
SAMPLE_CASES = [
    ((1, 1), (1, 1), "bicubic", 3, 2),
    ((7, 7), (3, 2), "bicubic", 3, 2),
    ((7, 5), (7, 5), "bicubic", 5, 1),
    ((12, 9), (3, 4), "point", 3, 1),
    ((63, 5), (8, 2), "bicubic", 3, 2),
    ((3, 130), (1, 48), "bicubic", 3, 1),
    ((130, 3), (33, 1), "point", 3, 1),
    ((9, 8), 20, "scattered", 3, 2),
    ((12, 16), (12, 16), "mixed", 3, 6),
]
MIXED = ((1, "point"), (2, "bicubic"), (4, "point"))  # reductions of the images of a batch, in turns
AFFINITY_CASES = [((9, 11), 7), ((4, 3), 3), ((5, 4), 11)]


def case_id(case):
    (height, width), window, images = case
    return f"{images}x{height}x{width}-window{window}"


def sample_case_id(case):
    size, low, kernel, *_ = case
    return f"{size[0]}x{size[1]}-to-{low}-{kernel}".replace(" ", "")


def sampling(case):
    """The operator of a case with samples."""
    size, low, kernel, _, images = case
    if kernel == "mixed":
        parts = [Resample(size, (size[0] // scale, size[1] // scale), name) for scale, name in MIXED]
        return MixedResample.interleaved(parts, images // len(parts), torch.zeros(1)).unit()
    if kernel != "scattered":
        return Resample(size, low, kernel)
    place = torch.rand((low, 2), generator=torch.Generator().manual_seed(8))
    return PointSamples(size, place * torch.tensor(size) - 0.5)


def staying(size, window):
    """1 at pairs with both ends in the frame: (N, H, W). What p holds elsewhere has no meaning."""
    offsets = half_window(window)
    mask = torch.zeros((len(offsets), *size))
    for k, offset in enumerate(offsets):
        rows, columns = ends(offset, size)[0]
        mask[k, rows, columns] = 1.0
    return mask


def problem(size, window, images, iterations=2):
    """All arguments in float32, on the CPU; a third of the pixels are holes."""
    random = torch.Generator().manual_seed(window)
    pairs = len(half_window(window))
    u, u_bar, f, trust = torch.rand((4, images, 1, *size), generator=random)
    w = 0.05 + 0.3 * torch.rand((images, pairs, *size), generator=random)
    p = 1.2 * w * (2 * torch.rand(w.shape, generator=random) - 1) * staying(size, window)
    rows = torch.tensor([0.3, 0.05, 0.2, 4.0, 0.9]) * (0.5 + torch.rand((iterations, 5), generator=random))
    return u, u_bar, p, w, f, torch.where(trust < 0.33, 0.0, trust), rows


def problem_with_samples(case):
    """As `problem`, with q, samples and their precisions behind; a third of the samples are holes."""
    size, _, _, window, images = case
    *others, rows = problem(size, window, images)
    random = torch.Generator().manual_seed(5)
    q, d, lam = torch.rand((3, images, *sampling(case).out_shape), generator=random)
    step = 0.5 + torch.rand((len(rows), 1), generator=random)
    return *others, torch.cat([rows, step], dim=1), q - 0.5, d, torch.where(lam < 0.33, 0.0, 8.0 * lam)


def directions(results, window):
    """Fixed cotangents, one per result."""
    random = torch.Generator().manual_seed(99)
    found = [torch.randn(r.shape, generator=random) for r in results]
    found[2] *= staying(found[2].shape[2:], window)
    return [d.to(results[0].device) for d in found]


def run(arguments, window, A=None):
    u, u_bar, p, w, f, c, rows, *measured = arguments
    q, samples = (measured[:1], SampleTerm(A, *measured[1:])) if measured else ([], None)
    last = huber_iterations(State(u, u_bar, (p, *q)), w, f, c, rows, half_window(window), samples)
    return last.u, last.u_bar, *last.p


def run_with_gradients(backend, arguments, window, A=None):
    """Results without gradients, the same with them, and the gradient of each argument."""
    with use_backend(backend):
        with torch.no_grad():
            plain = run(arguments, window, A)
        leaves = [a.clone().requires_grad_() for a in arguments]
        results = run(leaves, window, A)
        grads = torch.autograd.grad(results, leaves, directions(results, window))
    return [*plain, *(r.detach() for r in results), *grads]


def poisoned(make):
    """An allocator whose memory is full of NaN."""

    def allocate(*args, **kwargs):
        memory = make(*args, **kwargs)
        kind = memory.dtype
        floating = kind.is_floating_point if isinstance(kind, torch.dtype) else kind.kind == "f"
        if floating:
            memory[...] = float("nan")
        return memory

    return allocate


def poison(backend):
    """Every buffer that a kernel is to fill holds NaN before it runs."""
    stack = ExitStack()
    stack.enter_context(patch.object(torch, "empty_like", poisoned(torch.empty_like)))
    stack.enter_context(patch.object(torch.Tensor, "new_empty", poisoned(torch.Tensor.new_empty)))
    if backend == "numba":
        module = importlib.import_module("primaldepth.operators.pairwise.cpu")
        numpy = ModuleType("numpy")  # what is compiled meanwhile still finds the rest of it
        numpy.__dict__.update(vars(np), empty=poisoned(np.empty))
        stack.enter_context(patch.object(module, "np", numpy))
    return stack


def errors(backend, case, device="cpu"):
    """Largest difference of every result and gradient, over its largest value; NaN counts as infinite."""
    size, window, images = case
    return differences(backend, problem(size, window, images), window, device)


def sample_errors(backend, case, device="cpu"):
    """As `errors`, of a case with samples."""
    A = sampling(case)
    if isinstance(A, PointSamples):
        A.index, A.weight = A.index.to(device), A.weight.to(device)
    if isinstance(A, MixedResample):
        A.rows, A.columns, A.norms = A.rows.to(device), A.columns.to(device), A.norms.to(device)
    return differences(backend, problem_with_samples(case), case[3], device, A, sampling(case))


def differences(backend, arguments, window, device, A=None, A_here=None):
    expected = run_with_gradients("torch", arguments, window, A_here)
    moved = [a.to(device) for a in arguments]
    with poison(backend):
        found = run_with_gradients(backend, moved, window, A)
    unchanged = all(a.equal(b.cpu()) for a, b in zip(arguments, moved, strict=True))
    results, names = (RESULTS, NAMES) if A else (RESULTS[:3], NAMES[:7])
    names = [*results, *(f"{r} (kept)" for r in results), *(f"grad {n}" for n in names)]
    report = {"an argument was changed": 0.0 if unchanged else float("inf")}
    for name, a, b in zip(names, found, expected, strict=True):
        error = float((a.cpu() - b).abs().max() / b.abs().max().clamp_min(1e-3))
        report[name] = error if error == error else float("inf")
    return report


def affinity_errors(backend, size, window, device="cpu", storage=None):
    """Of huber_from_affinities and its gradients, |found - defined| / |defined|; channels last and not.

    Args:
        storage: type in which the backend keeps p and w.
    """
    random = torch.Generator().manual_seed(window)
    offsets = half_window(window)
    f, c, cotangent = torch.rand((3, 2, 1, *size), generator=random)
    a = torch.randn((2, len(offsets), *size), generator=random)
    scales, rows = torch.tensor([2.0, 0.7]), problem(size, window, 1)[-1]
    low = tuple(-(-side // 2) for side in size)
    d, lam = torch.rand((2, 2, 1, *low), generator=random)
    steps = torch.cat([rows, torch.full((len(rows), 1), 0.7)], dim=1)
    report = {}
    for form, measured in ((torch.contiguous_format, (d, lam)), (torch.channels_last, ())):
        tensors = (f, a.to(memory_format=form), c, scales, steps if measured else rows, *measured)
        arguments = [t.to(device) for t in tensors]
        with use_backend("torch"):
            expected = from_affinities(arguments, size, offsets, cotangent.to(device))
        with use_backend(backend), poison(backend):
            found = from_affinities(arguments, size, offsets, cotangent.to(device), storage)
        for name, one, other in zip(FROM_AFFINITIES, found, expected, strict=False):
            error = float((one - other).norm() / other.norm().clamp_min(1e-3))
            report[f"{name} {form}"] = error if error == error else float("inf")
    return report


FROM_AFFINITIES = ("u", "u kept", *(f"grad {name}" for name in ("f", "a", "c", "scales", "rows", "d", "lam")))


def from_affinities(arguments, size, offsets, cotangent, storage=None):
    """Result without a gradient, with one, and the gradients of all arguments."""

    def result(f, a, c, scales, rows, *measured):
        samples = SampleTerm(Resample(size, tuple(measured[0].shape[2:])), *measured) if measured else None
        return huber_from_affinities(f, a, c, scales, rows, offsets, storage=storage, samples=samples)

    with torch.no_grad():
        plain = result(*arguments)
    leaves = [t.clone().requires_grad_() for t in arguments]
    kept = result(*leaves)
    return [plain, kept.detach(), *torch.autograd.grad(kept, leaves, cotangent)]


def worst(report):
    return max(report, key=report.get), max(report.values())


def all_errors(backend):
    layout = importlib.import_module("primaldepth.operators.pairwise.padded_layout")
    checks = [(case, case_id, errors) for case in CASES]
    checks += [(case, sample_case_id, sample_errors) for case in SAMPLE_CASES]
    found = {}
    for case, name, check in checks:
        height, width = case[0]
        y, x = 64 if height > 7 else 4, 128 if width > 7 else 8
        sides = {"FORWARD": (y, x), "BACKWARD": (2 * y, x), "IMAGES": (y, x), "ENTER": (256, 256)}
        tiles = {name: layout.Tile(*side, 1) for name, side in sides.items()}
        with patch.multiple(layout.PaddedLayout, **tiles):  # few programs: the interpreter's time is theirs
            found[name(case)] = check(backend, case)
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    found = all_errors(sys.argv[1])
    for size, window in AFFINITY_CASES:
        found[f"affinities {size} {window}"] = affinity_errors(sys.argv[1], size, window)
    print(json.dumps(found))
