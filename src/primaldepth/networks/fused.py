"""Convolution, bias and ReLU in one call on CUDA, forward and backward: activations cross memory once."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from primaldepth.operators.pairwise import pick_backend

ALIGNED = 8  # channels: tensor cores read whole groups of them
ONE = (1, 1)


class ConvReLU(torch.autograd.Function):
    """max(0, w * x + b), or max(0, z + w * x + b), with 3x3 kernels that keep the size."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, z: Tensor | None = None) -> Tensor:
        """(B, C, H, W), (D, C, 3, 3), (D,), perhaps (B, D, H, W) -> (B, D, H, W)."""
        if z is None:
            y = torch.cudnn_convolution_relu(x, weight, bias, ONE, ONE, ONE, 1)
        else:
            y = torch.cudnn_convolution_add_relu(x, weight, z, 1.0, bias, ONE, ONE, ONE, 1)
        ctx.save_for_backward(x, weight, y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of x, weight, bias and z."""
        x, weight, y = ctx.saved_tensors
        for_x, for_weight, for_bias, added = ctx.needs_input_grad
        grad, grad_bias = _before_relu(grad, y)
        grad_x, grad_weight, _ = torch.ops.aten.convolution_backward(
            grad, x, weight, None, ONE, ONE, ONE, False, (0, 0), 1, (for_x, for_weight, False)
        )
        return grad_x, grad_weight, grad_bias if for_bias else None, grad if added else None


def _before_relu(grad: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of what ReLU was given, and of the bias in it."""
    if pick_backend(grad) != "triton":
        grad = torch.ops.aten.threshold_backward(grad, y, 0.0)
        return grad, grad.sum((0, 2, 3))
    from primaldepth.networks.triton_relu import relu_backward

    return relu_backward(grad, y)


def conv_relu(layer: nn.Conv2d, x: Tensor, z: Tensor | None = None) -> Tensor:
    """Return max(0, layer(x)), or max(0, z + layer(x)).

    Args:
        layer: 3x3 convolution.
        x: (B, C, H, W); on CUDA with aligned channels, channels last.
        z: (B, D, H, W) that is added, or None.

    Returns:
        (B, D, H, W).
    """
    if x.is_cuda:
        found: Tensor = ConvReLU.apply(x, *aligned(layer, x.dtype), z)  # type: ignore[no-untyped-call]
        return found
    y: Tensor = layer(x)
    return torch.relu_(y) if z is None else y.add_(z).relu_()


def aligned_input(x: Tensor) -> Tensor:
    """Return x in the type of autocast, channels last, with zero channels up to a multiple of ALIGNED.

    Args:
        x: (B, C, H, W).
    """
    dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else x.dtype
    return pad(x.to(dtype), (0, 0, 0, 0, 0, -x.shape[1] % ALIGNED)).to(memory_format=torch.channels_last)


def aligned(layer: nn.Conv2d, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return weight and bias with zero channels added up to a multiple of ALIGNED.

    Args:
        layer: the convolution.
        dtype: of the result.
    """
    outputs, inputs = (-n % ALIGNED for n in (layer.out_channels, layer.in_channels))
    bias = layer.weight.new_zeros(layer.out_channels) if layer.bias is None else layer.bias
    weight, bias = layer.weight.to(dtype), bias.to(dtype)
    if inputs or outputs:
        weight, bias = pad(weight, (0, 0, 0, 0, 0, inputs, 0, outputs)), pad(bias, (0, outputs))
    return weight.contiguous(memory_format=torch.channels_last), bias
