"""The kernels of triton.py beside this file: products with banded matrices along one axis, and the dual step.

A row of a resampling matrix has a few weights that are not 0, next to each other: `count` of them from column
`first` on. Weight t of row i lies at weights[t, i], `rows` apart. The images of a batch share one matrix, or each
has its own: `per_image` rows lie between the matrix of one image and that of the next, 0 where it is shared, and
`taps` weights belong to each row. Images may be parts of padded planes: strides say where their rows and images
start.
"""

import triton
import triton.language as tl


@triton.jit
def rows_kernel(
    source, target, first, count, weights, taps, rows, per_image, width,
    source_image, source_row, target_image, target_row,
    BX: tl.constexpr,
):  # fmt: skip
    """target(i, x) = sum_t weights(i, t) source(first(i) + t, x)."""
    x = tl.program_id(0) * BX + tl.arange(0, BX)
    i = tl.program_id(1)
    image = tl.program_id(2).to(tl.int64)
    inside = x < width
    row = image * per_image + i
    weights += image * per_image * taps + i
    at = source + image * source_image + tl.load(first + row).to(tl.int64) * source_row + x
    total = tl.zeros((BX,), dtype=tl.float32)
    for t in range(tl.load(count + row)):
        total += tl.load(weights + t * rows) * tl.load(at + t * source_row, inside, 0.0)
    to = target + image * target_image + i.to(tl.int64) * target_row + x
    tl.store(to, total, inside)


@triton.jit
def _along_row(
    source, first, count, weights, taps, rows, per_image, used, used_per_image, width, height, source_row,
    BX: tl.constexpr,
):  # fmt: skip
    """Sums of weighted numbers of this program's row of all images' rows, where they go, and which are inside.

    They are 0 where `used` says that nothing is in the row.
    """
    x = tl.program_id(0) * BX + tl.arange(0, BX)
    y = tl.program_id(1).to(tl.int64)
    inside = x < width
    image = y // height
    row = image * per_image + x
    weights += image * per_image * taps + x
    start = source + y * source_row + tl.load(first + row, inside, 0)
    total = tl.zeros((BX,), dtype=tl.float32)
    most = tl.max(tl.load(count + row, inside, 0))
    filled = tl.load(used + image * used_per_image + y % height) > 0
    for t in range(tl.where(filled, most, 0)):
        total += tl.load(weights + t * rows, inside, 0.0) * tl.load(start + t, inside, 0.0)
    return total, y * width + x, inside


@triton.jit
def columns_kernel(
    source, target, first, count, weights, taps, rows, per_image, used, used_per_image, width, height, source_row,
    BX: tl.constexpr,
):  # fmt: skip
    """target(y, j) = sum_t weights(j, t) source(y, first(j) + t); rows of all images behind each other."""
    total, at, inside = _along_row(
        source, first, count, weights, taps, rows, per_image, used, used_per_image, width, height, source_row, BX
    )  # fmt: skip
    tl.store(target + at, total, inside)


@triton.jit
def dual_columns_kernel(
    source, first, count, weights, taps, rows, per_image, used, used_per_image, width, height, source_row,
    q, d, lam, step, arrived, q_out, BX: tl.constexpr,
):  # fmt: skip
    """The last pass of A u_bar, then arrived = q + s (A u_bar - d) and q+ = lam arrived / (lam + s)."""
    seen, at, inside = _along_row(
        source, first, count, weights, taps, rows, per_image, used, used_per_image, width, height, source_row, BX
    )  # fmt: skip
    s = tl.load(step)
    value = tl.load(q + at, inside, 0.0) + s * (seen - tl.load(d + at, inside, 0.0))
    precision = tl.load(lam + at, inside, 0.0)
    tl.store(arrived + at, value, inside)
    tl.store(q_out + at, precision * value / (precision + s), inside)


@triton.jit
def dual_backward_kernel(
    grad_q, grad_pull, q, arrived, lam, step, grad_q_out, grad_seen, grad_d, grad_lam, partial, total,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Through q+ = lam (q + s (A u_bar - d)) / (lam + s) and the pull A' q+."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < total
    s = tl.load(step)
    precision = tl.load(lam + i, inside, 0.0)
    weight = 1.0 / (precision + s)
    value = tl.load(arrived + i, inside, 0.0)
    g = tl.load(grad_q + i, inside, 0.0) + tl.load(grad_pull + i, inside, 0.0)
    through = g * precision * weight
    departure = (value - tl.load(q + i, inside, 0.0)) / s
    tl.store(grad_q_out + i, through, inside)
    tl.store(grad_seen + i, s * through, inside)
    tl.store(grad_d + i, tl.load(grad_d + i, inside, 0.0) - s * through, inside)
    tl.store(grad_lam + i, tl.load(grad_lam + i, inside, 0.0) + g * value * s * weight * weight, inside)
    tl.store(
        partial + tl.program_id(0), tl.sum(tl.where(inside, through * (departure - value * weight), 0.0))
    )
