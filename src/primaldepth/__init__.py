"""primaldepth: a small noisy depth map and a sharp image become one clean, high-resolution depth map."""

import os

# torch and numba bring an OpenMP pool each. Waiting threads of one that spin keep the cores from the
# other, which costs up to twenty times the run time on a busy machine; waiting threads that sleep do not.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from primaldepth.api import upsample
from primaldepth.core.errors import PrimalDepthError
from primaldepth.core.frame import Frame, Method, Prediction
from primaldepth.networks import from_pretrained, load
from primaldepth.pipeline.warnings import DepthWarning
from primaldepth.session import Session
from primaldepth.version import __version__

__all__ = [
    "DepthWarning",
    "Frame",
    "Method",
    "Prediction",
    "PrimalDepthError",
    "Session",
    "__version__",
    "from_pretrained",
    "load",
    "upsample",
]
