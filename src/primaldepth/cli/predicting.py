"""One frame through a method, here or on a worker."""

from collections.abc import Callable

import torch

from primaldepth.core.errors import PrimalDepthError, is_out_of_memory
from primaldepth.core.frame import Frame, Prediction


def predict(
    name: str, method: Callable[[Frame], Prediction], frame: Frame, device: torch.device
) -> Prediction:
    """Run and wait for the end; too little memory is told in words."""
    try:
        prediction = method(frame.to(device))
        if device.type == "cuda":
            torch.cuda.synchronize()
        return prediction
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        height, width = frame.high_size
        raise PrimalDepthError(
            f"not enough memory on {device} for {width}x{height} pixels with '{name}'; "
            "use a smaller guide, another method or another --device"
        ) from error
