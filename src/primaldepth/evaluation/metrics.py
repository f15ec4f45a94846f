"""Errors of a depth map, over the pixels where the truth is known. Pure functions."""

import torch
from torch import Tensor


def _errors(depth: Tensor, truth: Tensor, known: Tensor) -> Tensor:
    if not bool(known.any()):
        raise ValueError("no pixel with known truth")
    return (depth.double() - truth.double())[known]


def rmse(depth: Tensor, truth: Tensor, known: Tensor) -> float:
    """sqrt(mean (d - t)^2)."""
    return float(_errors(depth, truth, known).square().mean().sqrt())


def mae(depth: Tensor, truth: Tensor, known: Tensor) -> float:
    """Mean |d - t|."""
    return float(_errors(depth, truth, known).abs().mean())


def geometric_mean(values: list[float]) -> float:
    """exp(mean(log v)): every scene and scale counts by its ratio, not its size."""
    return float(torch.tensor(values, dtype=torch.float64).log().mean().exp())
