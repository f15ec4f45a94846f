"""Draw a result to the lone samples it was made of, by the image between them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from primaldepth.core.frame import Frame
from primaldepth.methods.interpolation import noise_level
from primaldepth.methods.network_inputs import sampling_operator
from primaldepth.variational.colour_pairs import NEIGHBOURS, across_steps, colour_weights
from primaldepth.variational.quadratic import PairedQuadratic

DOUBT = 0.7  # of the noise: of a residual of that size half counts
LEAST_NOISE = 3e-3  # of the median depth: samples that are held harder would slow the solver down
ITERATIONS, TOLERANCE = 300, 3e-5


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a result is drawn to samples.

    Args:
        share: of the network's slopes that the result follows.
        hold: of the median depth; noise at which a sample weighs as much as a pair of pixels of one colour.
        step: of the median depth; a pair of pixels that differ by so much loses half of its weight in a
            second solution. None: there is none.
    """

    share: float
    hold: float
    step: float | None = None


POINTS = Drawing(share=0.65, hold=0.2)
"""For samples that lie where they were measured; chosen on frames of NYU-Depth v2 with 500 samples each."""

SCAN = Drawing(share=0.4, hold=0.05, step=0.03)
"""For points of a scanner elsewhere, chosen on rendered scans.

Noise in range moves a point in the image too, by some pixels where it is near, so that it may lie beside the
edge it belongs to: it is held less. There are several points on most surfaces that the image shows, so that
less of the network's blurred steps is followed.
"""


def drawn_to_samples(depth: Tensor, frame: Frame, drawing: Drawing = POINTS) -> Tensor:
    """Correct a result by its lone samples: at them, and around them as far as the image shows one surface.

    The result is the minimiser u of

        sum_i t_i (hold m / sigma_i)^2 (u(x_i) - f_i)^2
            + sum_{x~y} w(x, y) (u(x) - u(y) - share (n(x) - n(y)))^2

    over pairs of neighbours, with the result n that was given, the weights w of `colour_weights`, the trust t
    and noise sigma of the samples d, and their median m. What colour joins has one depth, or a share of the
    slope of n, and steps lie at edges of the guide. The two err in different places: n where it has blurred
    or missed an edge, the guide alone on slopes. The samples are drawn from n by
    f_i = n(x_i) + e_i^3 / (e_i^2 + (DOUBT sigma_i)^2) with e_i = d_i - n(x_i): n is a mean over several
    samples, so that a residual within their noise counts for less.

    Faint edges blur u, since no edge parts pixels wholly. With a `step` u is found once more, with the
    weights of pairs across its steps reduced by `across_steps`.

    Args:
        depth: (B, 1, H, W) n.
        frame: with lone samples.
        drawing: the share, how samples are held, and the step.

    Returns:
        u, (B, 1, H, W).
    """
    A = sampling_operator(frame.high_size, frame.low_size, "point")
    middle = torch.stack([d[v].median() for d, v in zip(frame.depth, frame.valid, strict=True)])
    middle = middle.view(-1, 1, 1, 1)
    unit = middle.abs().clamp_min(1e-30)
    n, sigma = (depth - middle) / unit, (noise_level(frame) / unit).clamp_min(LEAST_NOISE)
    e = (frame.clean_depth() - middle) / unit - A(n)
    f = (1.0 - drawing.share) * A(n) + e.pow(3) / (e.square() + (DOUBT * sigma).square())
    lam, w = frame.trust * (drawing.hold / sigma).square(), colour_weights(frame.guide)

    def minimised(w: Tensor, start: Tensor) -> Tensor:
        energy = PairedQuadratic(f, lam, w, NEIGHBOURS, A)
        return energy.minimise(start, iterations=ITERATIONS, tolerance=TOLERANCE).u

    rest = minimised(w, (1.0 - drawing.share) * n)
    if drawing.step is not None:
        rest = minimised(w * across_steps(drawing.share * n + rest, drawing.step), rest)
    return middle + unit * (drawing.share * n + rest)
