"""The kernels themselves; triton.py beside this file launches them and says what they compute."""

import triton
import triton.language as tl


@triton.jit
def _clamped(p, w, step, shrink):
    return tl.minimum(tl.maximum((p + step) * shrink, -w), w)


@triton.jit
def _forward_pair(u_bar, p, w, p_out, bar, y, x, dy, dx, height, width, sigma, shrink):
    """Write p+ of the pairs that start in the tile; return what it adds to the divergence, both ends."""
    here = y * width + x
    shift = dy * width + dx
    inside = (y < height) & (x < width)
    starts = inside & (y + dy >= 0) & (x + dx >= 0) & (x + dx < width)
    ends = inside & (y - dy < height) & (x - dx >= 0) & (x - dx < width)
    w_here = tl.load(w + here, inside, 0.0).to(tl.float32)
    p_here = tl.load(p + here, inside, 0.0).to(tl.float32)
    w_there = tl.load(w + here - shift, ends, 0.0).to(tl.float32)
    p_there = tl.load(p + here - shift, ends, 0.0).to(tl.float32)
    step = tl.where(starts, sigma * (bar - tl.load(u_bar + here + shift, starts, 0.0)), 0.0)
    new = _clamped(p_here, w_here, step, shrink)
    tl.store(p_out + here, new, inside)
    back = sigma * (tl.load(u_bar + here - shift, ends, 0.0) - bar)
    return tl.where(starts, new, 0.0) - tl.where(ends, _clamped(p_there, w_there, back, shrink), 0.0)


@triton.jit
def forward_kernel(
    u, u_bar, p, w, f, c, coefficients, u_out, u_bar_out, p_out,
    height, width, p_stride, w_stride,
    RADIUS: tl.constexpr, PAIRS: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr,
):  # fmt: skip
    y = tl.program_id(1) * BY + tl.arange(0, BY)[:, None]
    x = tl.program_id(0) * BX + tl.arange(0, BX)[None, :]
    image = tl.program_id(2).to(tl.int64)
    area = tl.cast(height, tl.int64) * width
    u += image * area
    u_bar += image * area
    f += image * area
    c += image * area
    u_out += image * area
    u_bar_out += image * area
    p += image * p_stride
    p_out += image * PAIRS * area
    w += image * w_stride
    inside = (y < height) & (x < width)
    here = y * width + x
    sigma = tl.load(coefficients)
    tau = tl.load(coefficients + 1)
    eps = tl.load(coefficients + 2)
    lam = tl.load(coefficients + 3)
    theta = tl.load(coefficients + 4)
    shrink = 1.0 / (1.0 + sigma * eps)
    bar = tl.load(u_bar + here, inside, 0.0)
    divergence = tl.zeros((BY, BX), tl.float32)
    for dy in range(-RADIUS, 0):
        for j in tl.static_range(2 * RADIUS + 1):
            k = (dy + RADIUS) * (2 * RADIUS + 1) + j
            divergence += _forward_pair(
                u_bar,
                p + k * area,
                w + k * area,
                p_out + k * area,
                bar,
                y,
                x,
                dy,
                j - RADIUS,
                height,
                width,
                sigma,
                shrink,
            )
    for j in tl.static_range(RADIUS):
        k = RADIUS * (2 * RADIUS + 1) + j
        divergence += _forward_pair(
            u_bar,
            p + k * area,
            w + k * area,
            p_out + k * area,
            bar,
            y,
            x,
            0,
            j - RADIUS,
            height,
            width,
            sigma,
            shrink,
        )
    old = tl.load(u + here, inside, 0.0)
    pull = tau * lam * tl.load(c + here, inside, 0.0)
    value = (old - tau * divergence + pull * tl.load(f + here, inside, 0.0)) / (1.0 + pull)
    tl.store(u_out + here, value, inside)
    tl.store(u_bar_out + here, value + theta * (value - old), inside)


@triton.jit
def primal_backward_kernel(
    grad_u, grad_bar, u, u_next, f, c, coefficients, grad_div, grad_u_out, grad_f, grad_c, partial,
    total, BLOCK: tl.constexpr,
):  # fmt: skip
    """Through u+ = (u - tau div + tau lam c f) / (1 + tau lam c) and u_bar+ = u+ + theta (u+ - u)."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < total
    tau = tl.load(coefficients + 1)
    lam = tl.load(coefficients + 3)
    theta = tl.load(coefficients + 4)
    bar = tl.load(grad_bar + i, inside, 0.0)
    trust = tl.load(c + i, inside, 0.0)
    h = (tl.load(grad_u + i, inside, 0.0) + (1.0 + theta) * bar) / (1.0 + tau * lam * trust)
    new = tl.load(u_next + i, inside, 0.0)
    move = new - tl.load(u + i, inside, 0.0)
    departure = tl.load(f + i, inside, 0.0) - new
    tl.store(grad_div + i, -tau * h, inside)
    tl.store(grad_u_out + i, h - theta * bar, inside)
    tl.store(grad_f + i, tl.load(grad_f + i, inside, 0.0) + tau * lam * trust * h, inside)
    tl.store(grad_c + i, tl.load(grad_c + i, inside, 0.0) + tau * lam * h * departure, inside)
    partial += tl.program_id(0) * 3
    tl.store(partial, tl.sum(h * move) / tau)
    tl.store(partial + 1, tl.sum(tau * trust * h * departure))
    tl.store(partial + 2, tl.sum(bar * move))


@triton.jit
def _backward_pair(
    grad_p, grad_div, u_bar, p_next, w, grad_p_out, grad_w, bar, pull, y, x, dy, dx, height, width, shrink,
    FIRST: tl.constexpr,
):  # fmt: skip
    """Write the gradients of p and w; return that of p, what flows to u_bar, D and p+."""
    here = y * width + x
    shift = dy * width + dx
    inside = (y < height) & (x < width)
    starts = inside & (y + dy >= 0) & (x + dx >= 0) & (x + dx < width)
    ends = inside & (y - dy < height) & (x - dx >= 0) & (x - dx < width)
    p_here = tl.load(p_next + here, inside, 0.0)
    w_here = tl.load(w + here, inside, 0.0)
    total = tl.load(grad_p + here, inside, 0.0)
    total += tl.where(starts, pull - tl.load(grad_div + here + shift, starts, 0.0), 0.0)
    free = tl.abs(p_here) < w_here
    through = tl.where(free, total * shrink, 0.0)
    tl.store(grad_p_out + here, through, inside)
    side = tl.where(p_here > 0.0, 1.0, tl.where(p_here < 0.0, -1.0, 0.0))
    to_w = tl.where(free, 0.0, side * total)
    if not FIRST:
        to_w += tl.load(grad_w + here, inside, 0.0)
    tl.store(grad_w + here, to_w, inside)
    D = tl.where(starts, bar - tl.load(u_bar + here + shift, starts, 0.0), 0.0)
    p_there = tl.load(p_next + here - shift, ends, 0.0)
    w_there = tl.load(w + here - shift, ends, 0.0)
    other = tl.load(grad_p + here - shift, ends, 0.0) + tl.load(grad_div + here - shift, ends, 0.0) - pull
    incoming = tl.where(ends & (tl.abs(p_there) < w_there), other * shrink, 0.0)
    return through, tl.where(starts, through, 0.0) - incoming, D, p_here


@triton.jit
def dual_backward_kernel(
    grad_p, grad_div, u_bar, p_next, w, coefficients, grad_p_out, grad_w, grad_bar_out, partial,
    height, width, w_stride, FIRST: tl.constexpr,
    RADIUS: tl.constexpr, PAIRS: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr,
):  # fmt: skip
    """Through p+ = clamp((p + sigma D) / (1 + sigma eps), -w, w) and div = K' p+."""
    y = tl.program_id(1) * BY + tl.arange(0, BY)[:, None]
    x = tl.program_id(0) * BX + tl.arange(0, BX)[None, :]
    image = tl.program_id(2).to(tl.int64)
    area = tl.cast(height, tl.int64) * width
    grad_div += image * area
    u_bar += image * area
    grad_bar_out += image * area
    grad_p += image * PAIRS * area
    p_next += image * PAIRS * area
    grad_p_out += image * PAIRS * area
    grad_w += image * PAIRS * area
    w += image * w_stride
    inside = (y < height) & (x < width)
    here = y * width + x
    sigma = tl.load(coefficients)
    eps = tl.load(coefficients + 2)
    shrink = 1.0 / (1.0 + sigma * eps)
    bar = tl.load(u_bar + here, inside, 0.0)
    pull = tl.load(grad_div + here, inside, 0.0)
    grad_bar = tl.zeros((BY, BX), tl.float32)
    to_sigma = tl.zeros((BY, BX), tl.float32)
    to_eps = tl.zeros((BY, BX), tl.float32)
    for dy in range(-RADIUS, 0):
        for j in tl.static_range(2 * RADIUS + 1):
            k = (dy + RADIUS) * (2 * RADIUS + 1) + j
            through, other, D, p_here = _backward_pair(
                grad_p + k * area, grad_div, u_bar, p_next + k * area, w + k * area, grad_p_out + k * area,
                grad_w + k * area, bar, pull, y, x, dy, j - RADIUS, height, width, shrink, FIRST,
            )  # fmt: skip
            grad_bar += sigma * other
            to_sigma += through * (D - eps * p_here)
            to_eps -= through * sigma * p_here
    for j in tl.static_range(RADIUS):
        k = RADIUS * (2 * RADIUS + 1) + j
        through, other, D, p_here = _backward_pair(
            grad_p + k * area, grad_div, u_bar, p_next + k * area, w + k * area, grad_p_out + k * area,
            grad_w + k * area, bar, pull, y, x, 0, j - RADIUS, height, width, shrink, FIRST,
        )  # fmt: skip
        grad_bar += sigma * other
        to_sigma += through * (D - eps * p_here)
        to_eps -= through * sigma * p_here
    tl.store(grad_bar_out + here, grad_bar, inside)
    program = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(0) + tl.program_id(
        0
    )
    tl.store(partial + program * 2, tl.sum(to_sigma))
    tl.store(partial + program * 2 + 1, tl.sum(to_eps))
