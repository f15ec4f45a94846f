"""primaldepth: a small noisy depth map and a sharp image become one clean, high-resolution depth map."""

from primaldepth.api import upsample
from primaldepth.core.errors import PrimalDepthError
from primaldepth.core.frame import Frame, Method, Prediction
from primaldepth.networks import from_pretrained, load
from primaldepth.version import __version__

__all__ = [
    "Frame",
    "Method",
    "Prediction",
    "PrimalDepthError",
    "__version__",
    "from_pretrained",
    "load",
    "upsample",
]
