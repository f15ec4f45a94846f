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
from primaldepth.variational.huber_iterations import huber_from_affinities, huber_iterations
from primaldepth.variational.primal_dual import State

NAMES = ("u", "u_bar", "p", "w", "f", "c", "coefficients")
RESULTS = ("u+", "u_bar+", "p+")
# (height, width), window, images
CASES = [
    ((1, 1), 3, 2),
    ((1, 1), 11, 1),
    ((7, 7), 3, 2),
    ((7, 7), 7, 2),
    ((7, 5), 11, 1),
    ((63, 63), 3, 1),
    ((63, 5), 7, 2),
    ((5, 63), 11, 1),
    ((130, 3), 3, 2),
    ((3, 130), 7, 2),
    ((3, 130), 11, 1),
    ((130, 130), 3, 1),
]


AFFINITY_CASES = [((9, 11), 7), ((4, 3), 3), ((7, 6), 11)]


def case_id(case):
    (height, width), window, images = case
    return f"{images}x{height}x{width}-window{window}"


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


def directions(results, window):
    """Fixed cotangents, one per result."""
    random = torch.Generator().manual_seed(99)
    *images, pairs = (torch.randn(r.shape, generator=random) for r in results)
    pairs = pairs * staying(pairs.shape[2:], window)
    return [d.to(results[0].device) for d in (*images, pairs)]


def run(arguments, window):
    u, u_bar, p, w, f, c, rows = arguments
    last = huber_iterations(State(u, u_bar, (p,)), w, f, c, rows, half_window(window))
    return last.u, last.u_bar, last.p[0]


def run_with_gradients(backend, arguments, window):
    """Three results without gradients, the same with them, and the gradient of each argument."""
    with use_backend(backend):
        with torch.no_grad():
            plain = run(arguments, window)
        leaves = [a.clone().requires_grad_() for a in arguments]
        results = run(leaves, window)
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
    arguments = problem(size, window, images)
    expected = run_with_gradients("torch", arguments, window)
    moved = [a.to(device) for a in arguments]
    with poison(backend):
        found = run_with_gradients(backend, moved, window)
    unchanged = all(a.equal(b.cpu()) for a, b in zip(arguments, moved, strict=True))
    names = [*RESULTS, *(f"{r} (kept)" for r in RESULTS), *(f"grad {n}" for n in NAMES)]
    report = {"an argument was changed": 0.0 if unchanged else float("inf")}
    for name, a, b in zip(names, found, expected, strict=True):
        error = float((a.cpu() - b).abs().max() / b.abs().max().clamp_min(1e-3))
        report[name] = error if error == error else float("inf")
    return report


def affinity_error(backend, size, window, device="cpu"):
    """Largest difference of huber_from_affinities from its definition, channels last and not."""
    random = torch.Generator().manual_seed(window)
    offsets = half_window(window)
    f, c = torch.rand((2, 2, 1, *size), generator=random)
    a = torch.randn((2, len(offsets), *size), generator=random)
    scales, rows = torch.tensor([2.0, 0.7]), problem(size, window, 1)[-1]
    found = []
    for form in (torch.contiguous_format, torch.channels_last):
        arguments = [t.to(device) for t in (f, a.to(memory_format=form), c, scales, rows)]
        with torch.no_grad(), use_backend("torch"):
            expected = huber_from_affinities(*arguments, offsets)
        with torch.no_grad(), use_backend(backend), poison(backend):
            found.append(float((huber_from_affinities(*arguments, offsets) - expected).abs().max()))
    return max(e if e == e else float("inf") for e in found)


def worst(report):
    return max(report, key=report.get), max(report.values())


def all_errors(backend):
    fused = importlib.import_module("primaldepth.operators.pairwise.triton")
    found = {}
    for case in CASES:
        height, width = case[0]
        y, x = 64 if height > 7 else 4, 128 if width > 7 else 8
        tiles = {"TILE_Y": y, "TILE_X": x, "BACK_Y": 2 * y, "BACK_X": x, "ENTER_Y": 256, "ENTER_X": 256}
        with patch.multiple(fused, **tiles):  # few programs: the interpreter's time is theirs
            found[case_id(case)] = errors(backend, case)
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    found = all_errors(sys.argv[1])
    for size, window in AFFINITY_CASES:
        found[f"affinities {size} {window}"] = {"u": affinity_error(sys.argv[1], size, window)}
    print(json.dumps(found))
