"""The one list of operators: a new one added here gets every test of the contract."""

from collections.abc import Callable

import torch

from primaldepth.operators import (
    EdgeTensor,
    ForwardDifference,
    GradientMinusField,
    LinearOperator,
    Mask,
    PairwiseDifference,
    PairwiseSlope,
    PointSamples,
    Resample,
    SelectChannels,
    SymmetrizedGradient,
    half_window,
)

Factory = Callable[[torch.dtype], LinearOperator]
KERNELS = ("nearest", "bilinear", "bicubic", "area", "point")
GRIDS = [((7, 9), size) for size in ((14, 27), (3, 4), (11, 5), (7, 9))]
GRIDS += [((12, 9), (4, 3)), ((1, 1), (1, 1)), ((1, 1), (4, 3)), ((1, 6), (3, 2)), ((5, 1), (13, 1))]

SENSORS = [((5, 6), (1.0, 1.0)), ((5, 6), (2.0, 2.0)), ((10, 10), (2.7, 2.7))]
SENSORS += [((4, 3), (4.0, 4.0)), ((4, 5), (7.5, 3.2)), ((2, 2), (16.0, 16.0))]


def random_tensor(size, dtype, batch=1):
    """Symmetric 2x2 matrices with eigenvalues in [0, 1], one per pixel."""
    random = torch.Generator().manual_seed(5)
    angle, across, along = torch.rand((3, batch, *size), generator=random, dtype=torch.float64)
    n_y, n_x = (6 * angle).sin(), (6 * angle).cos()
    entries = [
        across * n_y**2 + along * n_x**2,
        (across - along) * n_y * n_x,
        across * n_x**2 + along * n_y**2,
    ]
    return torch.stack(entries, dim=1).to(dtype)


def random_mask(size, dtype, batch=1):
    random = torch.Generator().manual_seed(6)
    return torch.rand((batch, 2, *size), generator=random, dtype=torch.float64).round().to(dtype)


def on_grid(size) -> dict[str, Factory]:
    """Every operator that acts on one grid."""
    three = (3, *size)
    return {
        "gradient": lambda dtype: ForwardDifference(size),
        "symmetrized": lambda dtype: SymmetrizedGradient(size),
        "minus-field": lambda dtype: GradientMinusField(size),
        "mask": lambda dtype: Mask(random_mask(size, dtype)),
        "edge-tensor": lambda dtype: EdgeTensor(random_tensor(size, dtype)),
        "select": lambda dtype: SelectChannels(three, 1, 3),
        "pairs3": lambda dtype: PairwiseDifference(size, half_window(3)),
        "pairs5": lambda dtype: PairwiseDifference(size, half_window(5)),
        "pairs7": lambda dtype: PairwiseDifference(size, half_window(7)),
        "pairs7-two-channels": lambda dtype: PairwiseDifference(size, half_window(7), channels=2),
        "slope3": lambda dtype: PairwiseSlope(size, half_window(3)),
        "slope7": lambda dtype: PairwiseSlope(size, half_window(7)),
        "tensor@gradient": lambda dtype: EdgeTensor(random_tensor(size, dtype)) @ ForwardDifference(size),
        "symmetrized@select": lambda dtype: SymmetrizedGradient(size) @ SelectChannels(three, 1, 3),
        "resample@select": lambda dtype: Resample(size, (3, 2)) @ SelectChannels(three, 0, 1),
    }


def wide_windows(size) -> dict[str, Factory]:
    return {
        "pairs17": lambda dtype: PairwiseDifference(size, half_window(17)),
        "pairs17-two-channels": lambda dtype: PairwiseDifference(size, half_window(17), channels=2),
        "slope17": lambda dtype: PairwiseSlope(size, half_window(17)),
    }


def between_grids() -> dict[str, Factory]:
    def make(kernel, grids) -> Factory:
        return lambda dtype: Resample(*grids, kernel)

    cases = {
        f"{kernel}-{a}x{b}-to-{c}x{d}": make(kernel, ((a, b), (c, d)))
        for kernel in KERNELS
        for (a, b), (c, d) in GRIDS
    }
    return cases | {"bicubic-two-channels": lambda dtype: Resample((7, 9), (4, 12), "bicubic", channels=2)}


def of_sensors() -> dict[str, Factory]:
    """How samples come from the image: every ratio of the sizes, both ways of sampling, scattered points."""

    def scattered(count) -> Factory:
        random = torch.Generator().manual_seed(7)
        points = 12.0 * torch.rand((count, 2), generator=random, dtype=torch.float64) - 1.0
        return lambda dtype: PointSamples((7, 10), points.to(dtype))

    def make(kernel, low, ratio) -> Factory:
        high = tuple(round(side * factor) for side, factor in zip(low, ratio, strict=True))
        return lambda dtype: Resample(high, low, kernel)

    reduced = {
        f"{kernel}-ratio-{y:g}x{x:g}": make(kernel, low, (y, x))
        for kernel in ("bicubic", "point")
        for low, (y, x) in SENSORS
    }
    return reduced | {"scattered": scattered(30), "one-point": scattered(1)}


def named(cases, size) -> dict[str, Factory]:
    return {f"{name}-{size[0]}x{size[1]}": make for name, make in cases(size).items()}


def magnitude_of(make: Factory) -> Factory:
    return lambda dtype: make(dtype).magnitude()


SMALL: dict[str, Factory] = (
    named(on_grid, (7, 9))
    | named(on_grid, (1, 1))
    | named(on_grid, (1, 6))
    | named(on_grid, (5, 1))
    | named(wide_windows, (7, 9))
    | named(wide_windows, (1, 1))
    | between_grids()
    | of_sensors()
)
MAGNITUDES: dict[str, Factory] = {
    f"|{name}|": magnitude_of(make)
    for name, make in SMALL.items()
    if name.startswith(("bicubic", "scattered")) or name.endswith(("7x9", "1x6", "1x1"))
}
OPERATORS: dict[str, Factory] = SMALL | MAGNITUDES
LARGE: dict[str, Factory] = named(on_grid, (24, 20)) | named(wide_windows, (28, 28))
