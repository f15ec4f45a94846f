"""Count samples of measured surfaces that a result puts nearer or farther than they were measured."""

from torch import Tensor

from primaldepth.measurement.neighbours import neighbour_counts

PER = 10_000  # rates are counts among so many samples


def surface_samples(values: Tensor, valid: Tensor, same: float, least: int = 3) -> Tensor:
    """Return True for samples of a surface: `least` neighbours or more are equal, all others are holes."""
    equal, holes = neighbour_counts(values, valid, same)
    return valid & (equal >= least) & (equal + holes == 8)


def equal_samples(values: Tensor, valid: Tensor, same: float) -> Tensor:
    """Return True for samples whose eight neighbours are all measured and equal to it."""
    return surface_samples(values, valid, same, least=8)


def misplaced(result: Tensor, values: Tensor, by: float, *, disparities: bool) -> tuple[Tensor, Tensor]:
    """Return where the result is more than `by` farther than the values, and where it is as much nearer.

    Depth d' is farther than d if d' > (1 + by) d, and nearer if d' < (1 - by) d. Disparities are taken for
    inverse depths.
    """
    if disparities:
        return result * (1.0 + by) < values, result * (1.0 - by) > values
    return result > (1.0 + by) * values, result < (1.0 - by) * values


def rate(found: Tensor, among: Tensor) -> float | None:
    """Return how many of 10,000 samples of `among` are in `found`; None if there is no such sample."""
    count = int(among.sum())
    return PER * int((found & among).sum()) / count if count else None
