"""The floating-point type of a network's convolutions: as asked for, or what suits the processor."""

import functools
from typing import Literal

import torch

from primaldepth.networks.joint import DepthNet

Precision = Literal["auto", "fp32", "bf16", "fp16"]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
INSTRUCTIONS = ("avx512_bf16", "amx_bf16")


@functools.cache
def bfloat16_instructions() -> tuple[str, ...]:
    """Return the instructions of this CPU that multiply bfloat16; none where torch cannot say."""
    known = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return tuple(name for name in INSTRUCTIONS if known.get(name, False))


def usual_dtype(net: DepthNet, device: torch.device) -> torch.dtype:
    """Return the type that "auto" means: bfloat16 where a CPU has instructions for it, else float32.

    It is float32 for the paper's networks, which are there to be compared.

    Args:
        net: the network.
        device: it runs on.
    """
    fast = net.is_for_any_scale and device.type == "cpu" and bool(bfloat16_instructions())
    return torch.bfloat16 if fast else torch.float32


def name_of(dtype: torch.dtype) -> str:
    """Return the name by which options and reports call the type.

    Args:
        dtype: one of `DTYPES`.
    """
    return next(name for name, each in DTYPES.items() if each == dtype)
