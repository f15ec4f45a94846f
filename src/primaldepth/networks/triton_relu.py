"""The way back through ReLU and bias in one pass over memory, on a GPU."""

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK, MOST_PROGRAMS = 1024, 1024  # numbers that a program reads at once


@triton.jit
def _relu_backward_kernel(grad, y, out, partial, pixels, channels, C: tl.constexpr, ROWS: tl.constexpr):
    """Blocks of pixels in turns; each program sums up what it has seen of every channel."""
    c = tl.arange(0, C)[None, :]
    total = tl.zeros((C,), dtype=tl.float32)
    for block in range(tl.program_id(0), tl.cdiv(pixels, ROWS), tl.num_programs(0)):
        row = block * ROWS + tl.arange(0, ROWS)[:, None]
        inside = (row < pixels) & (c < channels)
        at = row.to(tl.int64) * channels + c
        value = tl.where(tl.load(y + at, inside, 0.0) > 0, tl.load(grad + at, inside, 0.0), 0.0)
        tl.store(out + at, value, inside)
        total += tl.sum(value.to(tl.float32), axis=0)
    tl.store(partial + tl.program_id(0) * channels + tl.arange(0, C), total, tl.arange(0, C) < channels)


def relu_backward(grad: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients before ReLU, grad where y > 0, and of the bias: its sum over images and pixels.

    Args:
        grad: (B, C, H, W) gradient of y.
        y: (B, C, H, W) result of ReLU, channels last.
    """
    grad = grad.contiguous(memory_format=torch.channels_last)
    out = torch.empty_like(grad)
    channels, pixels = y.shape[1], y.numel() // y.shape[1]
    wide = triton.next_power_of_2(channels)
    rows = max(1, BLOCK // wide)
    programs = min(MOST_PROGRAMS, triton.cdiv(pixels, rows))
    partial = y.new_empty((programs, channels), dtype=torch.float32)
    _relu_backward_kernel[(programs,)](grad, y, out, partial, pixels, channels, C=wide, ROWS=rows)
    return out, partial.sum(0).to(grad.dtype)
