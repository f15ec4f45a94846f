"""Decoders that can crash or eat memory on damaged files, run in a process of their own.

The process has a limit on memory and time, and ends with the one that asked; whatever happens there is an
error here, not the caller's end.
"""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from primaldepth.core.errors import MissingDependencyError
from primaldepth.io.formats.base import MAX_PIXELS, Pixels, Source

_SECONDS = 120
_SPARE_SECONDS = 10  # the process ends itself where no one is left to end it
_PROGRAM = Path(__file__).with_name("isolated_program.py")
_MISSING = 3  # exit code: the package is not installed
_PACKAGES = {"exr": "OpenEXR", "hdf5": "h5py", "tiff": "pillow"}


def read_array(source: Source, decoder: str, *names: str) -> Pixels:
    """The named channels or variables of a file, stacked along the first axis."""
    pixels: Pixels = np.load(io.BytesIO(_run(source, decoder, "read", *names)), allow_pickle=False)
    return pixels


def read_listing(source: Source, decoder: str) -> list[dict[str, Any]]:
    """Name, shape and type of what the file holds."""
    found = json.loads(_run(source, decoder, "list"))
    return list(found)


def _run(source: Source, decoder: str, *arguments: str) -> bytes:
    memory = min(2**30 + 1100 * len(source.data), 2**30 + 24 * MAX_PIXELS)
    limits = (str(memory), str(_SECONDS + _SPARE_SECONDS), str(os.getpid()))
    command = [sys.executable, "-P", str(_PROGRAM), *limits, decoder, str(source.path), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(  # noqa: S603 - our own program, arguments as a list
            command, capture_output=True, timeout=_SECONDS, env=environment, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise source.error(f"not decoded within {_SECONDS} seconds; copy or export it again") from error
    if done.returncode == _MISSING:
        package = _PACKAGES[decoder]
        raise MissingDependencyError(f"{source.path}: reading it needs {package}; run: pip install {package}")
    if done.returncode != 0:
        detail = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["the decoder crashed"]
        raise source.error(
            f"not readable ({detail[0][:120]}); copy it again, or export it without compression"
        )
    return done.stdout
