"""What the guide says about depth: pairwise support weights and edge tensors."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, pad

from primaldepth.operators.differences import difference
from primaldepth.operators.pairwise import Offset
from primaldepth.operators.pairwise.reference import ends


def proximity(offsets: Sequence[Offset], like: Tensor) -> Tensor:
    """Return Delta_d = |x - y|_2 of each offset.

    Args:
        offsets: N pairs (dy, dx).
        like: a tensor of the wanted type and device.

    Returns:
        (1, N, 1, 1).
    """
    lengths = [float(dy * dy + dx * dx) ** 0.5 for dy, dx in offsets]
    return like.new_tensor(lengths).view(1, -1, 1, 1)


def guide_distance(guide: Tensor, offsets: Sequence[Offset]) -> Tensor:
    """Return Delta_a(x, k) = |g(x) - g(x + d_k)|_2 over the channels; 0 for pairs that leave the image.

    Args:
        guide: (B, C, H, W).
        offsets: N pairs (dy, dx).

    Returns:
        (B, N, H, W).
    """
    size = (int(guide.shape[2]), int(guide.shape[3]))
    out, tiny = guide.new_zeros((guide.shape[0], len(offsets), *size)), torch.finfo(guide.dtype).tiny
    for k, offset in enumerate(offsets):
        x, y = ends(offset, size)
        squares = (guide[:, :, x[0], x[1]] - guide[:, :, y[0], y[1]]).square().sum(dim=1)
        out[:, k, x[0], x[1]] = squares.clamp_min(tiny).sqrt()  # norm(dim=1) is not vectorised
    return out


def guide_affinities(guide: Tensor, offsets: Sequence[Offset], sigma_d: float, sigma_v: float) -> Tensor:
    """Return w(x, y) = exp(-Delta_d / sigma_d - Delta_a / sigma_v) of each pair.

    The paper's support weight with the affinity of a guide image. Pairs that leave the image
    carry a weight too, but their difference is 0 by definition of the pairwise operator.

    Args:
        guide: (B, C, H, W) in [0, 1].
        offsets: N pairs (dy, dx).
        sigma_d: reach in pixels.
        sigma_v: reach in values of the guide.

    Returns:
        (B, N, H, W) in (0, 1].

    Example:
        >>> import torch
        >>> from primaldepth.variational import guide_affinities
        >>> guide = torch.tensor([[[[0.0, 0.0, 1.0]]]])
        >>> w = guide_affinities(guide, [(0, 1)], sigma_d=3.0, sigma_v=0.1)
        >>> bool(w[0, 0, 0, 0] > 100 * w[0, 0, 0, 1])  # an edge of the guide parts its pixels
        True
    """
    return support_weights(guide_distance(guide, offsets), offsets, sigma_d, sigma_v)


def support_weights(
    distance: Tensor, offsets: Sequence[Offset], sigma_d: float | Tensor, sigma_v: float | Tensor
) -> Tensor:
    """Return exp(-Delta_d / sigma_d - Delta_a / sigma_v) for any affinity Delta_a >= 0, e.g. a learned one.

    Args:
        distance: (B, N, H, W) Delta_a.
        offsets: N pairs (dy, dx).
        sigma_d: reach in pixels.
        sigma_v: reach in values of the affinity.

    Returns:
        (B, N, H, W).
    """
    return torch.exp(-proximity(offsets, distance) / sigma_d - distance / sigma_v)


def smooth(image: Tensor, passes: int) -> Tensor:
    """Smooth an image binomially by `passes` 2x2 box filters each way, border repeated.

    Args:
        image: (B, C, H, W).
        passes: number of box filters.

    Returns:
        (B, C, H, W).
    """
    for i in range(passes):
        image = avg_pool2d(pad(image, (i % 2, 1 - i % 2, i % 2, 1 - i % 2), mode="replicate"), 2, stride=1)
    return image


def edge_tensor(guide: Tensor, beta: float | Tensor, gamma: float | Tensor, passes: int = 2) -> Tensor:
    """Return T = exp(-beta |grad g|^gamma) n n' + n_perp n_perp', n = grad g / |grad g|.

    Penalises little across guide edges and fully along them (Ferstl et al. 2013). With a
    colour guide the gradient is that of the channel that changes most at the pixel.

    Args:
        guide: (B, C, H, W) in [0, 1].
        beta: strength of guide edges.
        gamma: exponent of the guide's gradient.
        passes: of smoothing before the gradient is taken.

    Returns:
        (B, 3, H, W): the entries T_yy, T_yx and T_xx.
    """
    image = smooth(guide, passes)
    d_y, d_x = difference(image, -2), difference(image, -1)
    strongest = (d_y**2 + d_x**2).argmax(dim=1, keepdim=True)
    d_y, d_x = d_y.gather(1, strongest), d_x.gather(1, strongest)
    length = (d_y**2 + d_x**2 + 1e-24).sqrt()
    keep = torch.exp(-beta * length**gamma)
    safe = length.clamp_min(1e-8)
    n_y, n_x = d_y / safe, d_x / safe
    flat = length < 1e-8
    T_yy = torch.where(flat, 1.0, keep * n_y**2 + n_x**2)
    T_yx = torch.where(flat, 0.0, (keep - 1.0) * n_y * n_x)
    T_xx = torch.where(flat, 1.0, keep * n_x**2 + n_y**2)
    return torch.cat([T_yy, T_yx, T_xx], dim=1)
