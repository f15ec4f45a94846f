"""The kernels themselves; triton_steps.py and padded_layout.py beside this file launch them.

All arrays lie in the layout of padded_layout.py: rows above and below the frame, columns to the right
that also serve as the left margin of the next row. The weights are zero in the margin and
at pairs that leave the frame, and a pair of weight zero carries nothing, so no access needs a mask.
Pairwise maps are interleaved by rows, (B, rows, N, pitch): what a tile needs of all N maps lies in
one stretch of memory.
"""

import triton
import triton.language as tl

UNROLLED = tl.constexpr(24)  # most pairs that are unrolled: beyond, compiling takes minutes


@triton.jit
def _offset(k, RADIUS: tl.constexpr):
    """(dy, dx) of pair k of the half window."""
    return k // (2 * RADIUS + 1) - RADIUS, k % (2 * RADIUS + 1) - RADIUS


@triton.jit
def _stays(y, x, dy, dx, height, width):
    """True where both ends of the pair are pixels of the frame."""
    inside = (y >= 0) & (y < height) & (x < width)
    return inside & (y + dy >= 0) & (x + dx >= 0) & (x + dx < width)


@triton.jit
def _tile(pitch, area, RADIUS: tl.constexpr, PAIRS: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr):
    """Start of this program's rows in a padded image, and from there each pixel and its first pair."""
    start = tl.program_id(2).to(tl.int64) * area + (tl.program_id(1) * BY + RADIUS + 1).to(tl.int64) * pitch
    y = tl.arange(0, BY)[:, None]
    x = tl.program_id(0) * BX + tl.arange(0, BX)[None, :]
    return start, y * pitch + x, y * (PAIRS * pitch) + x


@triton.jit
def _program():
    """Number of this program among all of the launch."""
    row = tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)
    return row * tl.num_programs(0) + tl.program_id(0)


@triton.jit
def enter_kernel(
    source, target, height, width, pitch, area, stride_image, stride_pair, stride_y, stride_x,
    PAIRS: tl.constexpr, RADIUS: tl.constexpr, PAIRWISE: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr,
):  # fmt: skip
    """Copy planes into the padded layout: zero in the margin and, if PAIRWISE, at pairs that leave."""
    row = tl.program_id(1) * BY + tl.arange(0, BY)[:, None]
    x = tl.program_id(0) * BX + tl.arange(0, BX)[None, :]
    y = row - RADIUS - 1
    k = tl.program_id(2) % PAIRS
    image = (tl.program_id(2) // PAIRS).to(tl.int64)
    dy, dx = _offset(k, RADIUS)
    stays = _stays(y, x, dy * PAIRWISE, dx * PAIRWISE, height, width)
    source += image * stride_image + k.to(tl.int64) * stride_pair
    value = tl.load(source + y.to(tl.int64) * stride_y + x * stride_x, stays, 0.0)
    target += image * area * PAIRS + k * pitch
    tl.store(target + row.to(tl.int64) * (PAIRS * pitch) + x, value, (x < pitch) & (row * pitch < area))


@triton.jit
def _row_of_pairs(RADIUS: tl.constexpr, LANES: tl.constexpr, BX: tl.constexpr):
    """Columns, row and image of this program, and in lanes beside the columns all pairs k and their offsets."""
    column = tl.program_id(0) * BX + tl.arange(0, BX)[:, None]
    k = tl.arange(0, LANES)[None, :]
    dy, dx = _offset(k, RADIUS)
    return column, tl.program_id(1), tl.program_id(2).to(tl.int64), k, dy, dx


@triton.jit
def support_kernel(
    affinities, target, scales, height, width, pitch, area, stride_image, stride_pair, stride_y, stride_x,
    PAIRS: tl.constexpr, LANES: tl.constexpr, RADIUS: tl.constexpr, BX: tl.constexpr,
):  # fmt: skip
    """Support weights exp(-|d_k| / scales[0] - |a| / scales[1]) into the padded layout, all pairs of a run."""
    column, row, image, k, dy, dx = _row_of_pairs(RADIUS, LANES, BX)
    y = row - RADIUS - 1 + 0 * column
    stays = _stays(y, column, dy, dx, height, width) & (k < PAIRS)
    source = affinities + image * stride_image + y.to(tl.int64) * stride_y
    a = tl.load(source + column * stride_x + k.to(tl.int64) * stride_pair, stays, 0.0).to(tl.float32)
    length = tl.sqrt((dy * dy + dx * dx).to(tl.float32))
    w = tl.exp(-length / tl.load(scales) - tl.abs(a) / tl.load(scales + 1))
    target += image * area * PAIRS + row.to(tl.int64) * (PAIRS * pitch)
    tl.store(target + k * pitch + column, tl.where(stays, w, 0.0), (column < pitch) & (k < PAIRS))


@triton.jit
def support_backward_kernel(
    affinities, w, grad_w, scales, grad, partial, height, width, pitch, area,
    stride_image, stride_pair, stride_y, stride_x, grad_image, grad_pair, grad_y, grad_x,
    PAIRS: tl.constexpr, LANES: tl.constexpr, RADIUS: tl.constexpr, BX: tl.constexpr,
):  # fmt: skip
    """Through w = exp(-|d_k| / scales[0] - |a| / scales[1]): gradients of a and partial sums of the scales'."""
    column, y, image, k, dy, dx = _row_of_pairs(RADIUS, LANES, BX)
    inside = (column < width) & (k < PAIRS)
    stays = _stays(y + 0 * column, column, dy, dx, height, width) & (k < PAIRS)
    source = affinities + image * stride_image + y.to(tl.int64) * stride_y
    a = tl.load(source + column * stride_x + k.to(tl.int64) * stride_pair, stays, 0.0).to(tl.float32)
    padded = image * area * PAIRS + (y + RADIUS + 1).to(tl.int64) * (PAIRS * pitch) + k * pitch + column
    flow = tl.load(w + padded, stays, 0.0).to(tl.float32) * tl.load(grad_w + padded, stays, 0.0)
    reach = tl.load(scales)
    width_of_a = tl.load(scales + 1)
    side = tl.where(a > 0.0, 1.0, tl.where(a < 0.0, -1.0, 0.0))
    target = grad + image * grad_image + y.to(tl.int64) * grad_y
    tl.store(target + column * grad_x + k.to(tl.int64) * grad_pair, -side * flow / width_of_a, inside)
    length = tl.sqrt((dy * dy + dx * dx).to(tl.float32))
    partial += _program() * 2
    tl.store(partial, tl.sum(flow * length) / (reach * reach))
    tl.store(partial + 1, tl.sum(flow * tl.abs(a)) / (width_of_a * width_of_a))


@triton.jit
def _clamped(p, w, step, shrink):
    w = w.to(tl.float32)
    return tl.minimum(tl.maximum(p.to(tl.float32) * shrink + step, -w), w)


@triton.jit
def _pair(k, u_bar, p, w, bar, here, pair, pitch, sigma, shrink, RADIUS: tl.constexpr, PAIRS: tl.constexpr):
    """P+ of pair k at the pixels where it starts, and what it adds to K' p+ at both its ends."""
    dy, dx = _offset(k, RADIUS)
    shift = dy * pitch + dx
    at = pair + k * pitch
    there = at - dy * (PAIRS * pitch) - dx
    step = sigma * shrink * (bar - tl.load(u_bar + here + shift))
    new = _clamped(tl.load(p + at), tl.load(w + at), step, shrink)
    step = sigma * shrink * (tl.load(u_bar + here - shift) - bar)
    return new, new - _clamped(tl.load(p + there), tl.load(w + there), step, shrink)


@triton.jit
def _four_pairs(
    k, u_bar, p, w, p_out, bar, here, pair, pitch, sigma, shrink, RADIUS: tl.constexpr, PAIRS: tl.constexpr
):
    """Four pairs between stores, for loads do not move past a store; returns what they add to K' p+.

    The sum is taken in order: added in twos, tiles of 1x128 took 3.17 instead of 2.67 ms for 20 iterations on
    an H200 (tiles of 4x128 did not care); why was not looked into.
    """
    p0, d0 = _pair(k, u_bar, p, w, bar, here, pair, pitch, sigma, shrink, RADIUS, PAIRS)
    p1, d1 = _pair(k + 1, u_bar, p, w, bar, here, pair, pitch, sigma, shrink, RADIUS, PAIRS)
    p2, d2 = _pair(k + 2, u_bar, p, w, bar, here, pair, pitch, sigma, shrink, RADIUS, PAIRS)
    p3, d3 = _pair(k + 3, u_bar, p, w, bar, here, pair, pitch, sigma, shrink, RADIUS, PAIRS)
    total = d0 + d1 + d2 + d3
    at = pair + k * pitch
    tl.store(p_out + at, p0)
    tl.store(p_out + at + pitch, p1)
    tl.store(p_out + at + 2 * pitch, p2)
    tl.store(p_out + at + 3 * pitch, p3)
    return total


@triton.jit
def forward_kernel(
    u, u_bar, p, w, f, c, pull_of_samples, coefficients, u_out, u_bar_out, p_out, pitch, area,
    SAMPLES: tl.constexpr, RADIUS: tl.constexpr, PAIRS: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr,
):  # fmt: skip
    """One iteration: p+ of the pairs that start in the tile, then u+ and u_bar+ of its pixels."""
    start, here, pair = _tile(pitch, area, RADIUS, PAIRS, BY, BX)
    u_bar += start
    p += start * PAIRS
    w += start * PAIRS
    p_out += start * PAIRS
    sigma = tl.load(coefficients)
    tau = tl.load(coefficients + 1)
    shrink = 1.0 / (1.0 + sigma * tl.load(coefficients + 2))
    lam = tl.load(coefficients + 3)
    theta = tl.load(coefficients + 4)
    bar = tl.load(u_bar + here)
    divergence = tl.zeros_like(bar)
    if PAIRS <= UNROLLED:
        for k in tl.static_range(0, PAIRS, 4):
            divergence += _four_pairs(
                k, u_bar, p, w, p_out, bar, here, pair, pitch, sigma, shrink, RADIUS, PAIRS
            )
    else:
        for k in range(0, PAIRS, 4):
            divergence += _four_pairs(
                k, u_bar, p, w, p_out, bar, here, pair, pitch, sigma, shrink, RADIUS, PAIRS
            )
    at = start + here
    if SAMPLES:
        divergence += tl.load(pull_of_samples + at)
    old = tl.load(u + at)
    pull = tau * lam * tl.load(c + at)
    value = (old - tau * divergence + pull * tl.load(f + at)) / (1.0 + pull)
    tl.store(u_out + at, value)
    tl.store(u_bar_out + at, value + theta * (value - old))


@triton.jit
def _through_pair(k, through, pair, pitch, RADIUS: tl.constexpr, PAIRS: tl.constexpr):
    """What pair k carries where it starts, less what it carries where it ends."""
    dy, dx = _offset(k, RADIUS)
    at = pair + k * pitch
    there = at - dy * (PAIRS * pitch) - dx
    return tl.load(through + at).to(tl.float32) - tl.load(through + there).to(tl.float32)


@triton.jit
def _gathered(through, pair, pitch, total, RADIUS: tl.constexpr, PAIRS: tl.constexpr):
    """Total + K' t: what the pairs that start at a pixel carry, less what those that end there do."""
    if PAIRS <= UNROLLED:
        for k in tl.static_range(PAIRS):
            total += _through_pair(k, through, pair, pitch, RADIUS, PAIRS)
    else:
        for k in range(PAIRS):
            total += _through_pair(k, through, pair, pitch, RADIUS, PAIRS)
    return total


@triton.jit
def image_backward_kernel(
    through, given, after, grad_bar, grad_u, u, u_next, f, c, coefficients, grad_div, grad_f, grad_c, partial,
    pitch, area,
    START: tl.constexpr, SAMPLES: tl.constexpr, END: tl.constexpr,
    RADIUS: tl.constexpr, PAIRS: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr,
):  # fmt: skip
    """Gather the gradient of u_bar after an iteration's pairs were undone, then undo the u step before it.

    That is u+ = (u - tau div + tau lam c f) / (1 + tau lam c) with u_bar+ = u+ + theta (u+ - u). At the START the
    gradient of u_bar+ is given, else it is sigma K' t, with SAMPLES plus what is given; at the END it is kept.
    """
    start, here, pair = _tile(pitch, area, RADIUS, PAIRS, BY, BX)
    at = start + here
    bar = tl.zeros((BY, BX), dtype=tl.float32)
    if not START:
        bar = tl.load(after) * _gathered(through + start * PAIRS, pair, pitch, bar, RADIUS, PAIRS)
    if START or SAMPLES:
        bar += tl.load(given + at)
    if END:
        tl.store(grad_bar + at, bar)
    else:
        tau = tl.load(coefficients + 1)
        lam = tl.load(coefficients + 3)
        theta = tl.load(coefficients + 4)
        trust = tl.load(c + at)
        h = (tl.load(grad_u + at) + (1.0 + theta) * bar) / (1.0 + tau * lam * trust)
        new = tl.load(u_next + at)
        move = new - tl.load(u + at)
        departure = tl.load(f + at) - new
        to_f = tl.load(grad_f + at) + tau * lam * trust * h
        to_c = tl.load(grad_c + at) + tau * lam * h * departure
        tl.store(grad_div + at, -tau * h)
        tl.store(grad_u + at, h - theta * bar)
        tl.store(grad_f + at, to_f)
        tl.store(grad_c + at, to_c)
        partial += _program() * 3
        tl.store(partial, tl.sum(h * move) / tau)
        tl.store(partial + 1, tl.sum(tau * trust * h * departure))
        tl.store(partial + 2, tl.sum(bar * move))


@triton.jit
def _back_pair(
    k, grad_p, grad_div, u_bar, p_next, w, bar, pull, here, pair, pitch, eps, shrink,
    RADIUS: tl.constexpr, PAIRS: tl.constexpr,
):  # fmt: skip
    """Return what passes through pair k to p, the gradient of its w, and what flows to sigma and eps."""
    dy, dx = _offset(k, RADIUS)
    shift = dy * pitch + dx
    at = pair + k * pitch
    p_here = tl.load(p_next + at).to(tl.float32)
    total = tl.load(grad_p + at).to(tl.float32) + pull - tl.load(grad_div + here + shift)
    free = tl.abs(p_here) < tl.load(w + at).to(tl.float32)
    through = tl.where(free, total * shrink, 0.0)
    to_w = tl.where(free, 0.0, tl.where(p_here > 0.0, total, tl.where(p_here < 0.0, -total, 0.0)))
    by_sigma = tl.where(free, through * (bar - tl.load(u_bar + here + shift) - eps * p_here), 0.0)
    return through, to_w, by_sigma, tl.where(free, -through * p_here, 0.0)


@triton.jit
def _two_back_pairs(
    k, grad_p, grad_div, u_bar, p_next, w, grad_w, bar, pull, here, pair, pitch, eps, shrink,
    RADIUS: tl.constexpr, PAIRS: tl.constexpr,
):  # fmt: skip
    """Two pairs between stores; return what flows to sigma and eps.

    Gradients of w are read and written at all pairs, in order: only where they get any, it took 0.48 instead of
    0.35 ms for 24 images of 288x288 on an H200.
    """
    p0, w0, sigma0, eps0 = _back_pair(
        k, grad_p, grad_div, u_bar, p_next, w, bar, pull, here, pair, pitch, eps, shrink, RADIUS, PAIRS
    )
    p1, w1, sigma1, eps1 = _back_pair(
        k + 1, grad_p, grad_div, u_bar, p_next, w, bar, pull, here, pair, pitch, eps, shrink, RADIUS, PAIRS
    )
    at = pair + k * pitch
    w0 += tl.load(grad_w + at)
    w1 += tl.load(grad_w + at + pitch)
    tl.store(grad_p + at, p0)
    tl.store(grad_p + at + pitch, p1)
    tl.store(grad_w + at, w0)
    tl.store(grad_w + at + pitch, w1)
    return sigma0 + sigma1, eps0 + eps1


@triton.jit
def pairs_backward_kernel(
    grad_p, grad_div, u_bar, p_next, w, coefficients, grad_w, partial, pitch, area,
    RADIUS: tl.constexpr, PAIRS: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr,
):  # fmt: skip
    """Through p+ = clamp((p + sigma D) / (1 + sigma eps), -w, w) and div = K' p+; grad p is overwritten."""
    start, here, pair = _tile(pitch, area, RADIUS, PAIRS, BY, BX)
    grad_div += start
    u_bar += start
    grad_p += start * PAIRS
    p_next += start * PAIRS
    w += start * PAIRS
    grad_w += start * PAIRS
    sigma = tl.load(coefficients)
    eps = tl.load(coefficients + 2)
    shrink = 1.0 / (1.0 + sigma * eps)
    bar = tl.load(u_bar + here)
    pull = tl.load(grad_div + here)
    to_sigma = tl.zeros((BY, BX), dtype=tl.float32)
    to_eps = tl.zeros((BY, BX), dtype=tl.float32)
    if PAIRS <= UNROLLED:
        for k in tl.static_range(0, PAIRS, 2):
            by_sigma, by_eps = _two_back_pairs(
                k, grad_p, grad_div, u_bar, p_next, w, grad_w, bar, pull, here, pair, pitch, eps, shrink,
                RADIUS, PAIRS,
            )  # fmt: skip
            to_sigma += by_sigma
            to_eps += by_eps
    else:
        for k in range(0, PAIRS, 2):
            by_sigma, by_eps = _two_back_pairs(
                k, grad_p, grad_div, u_bar, p_next, w, grad_w, bar, pull, here, pair, pitch, eps, shrink,
                RADIUS, PAIRS,
            )  # fmt: skip
            to_sigma += by_sigma
            to_eps += by_eps
    partial += _program() * 2
    tl.store(partial, tl.sum(to_sigma))
    tl.store(partial + 1, sigma * tl.sum(to_eps))
