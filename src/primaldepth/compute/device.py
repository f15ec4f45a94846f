"""Where to compute: the CPU, or the GPU that kernels are launched on."""

import torch

from primaldepth.core.errors import InputError

DeviceName = str | torch.device


def pick_device(device: DeviceName) -> torch.device:
    """Return the device to run on.

    Args:
        device: "auto" (CUDA if there is a device), "cpu", "cuda", or a device of torch.

    Raises:
        InputError: if it is missing, or not known.
    """
    if isinstance(device, torch.device):
        return _current(device)
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device not in ("cpu", "cuda"):
        raise InputError("device", f"'{device}' is not one of auto, cpu, cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("device", "cuda was asked for, but torch sees no CUDA device", "use cpu or auto")
    return torch.device(device)


def _current(device: torch.device) -> torch.device:
    """Return the device; raise if it is missing, or not the GPU that kernels are launched on."""
    found = pick_device(device.type)
    if found.type == "cuda" and device.index not in (None, torch.cuda.current_device()):
        raise InputError(
            "device", f"{device} is not the current one", f"call torch.cuda.set_device({device.index}) before"
        )
    return device
