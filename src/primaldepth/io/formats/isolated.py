"""Decoders that can crash or take any amount of memory on damaged files, run in a process of their own.

The process is given the bytes of the file, never its name. Before it looks at them it gives up the right to
open any file, and takes a limit on memory and time in proportion to the image. It ends with the one that
asked. Whatever happens there is an error here, not the caller's end.
"""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from primaldepth.compute.safe_imports import python_command
from primaldepth.core.errors import MissingDependencyError
from primaldepth.io.formats.base import Pixels, Source, current_budget

_SECONDS = 120  # on the clock, should the limits of the process itself not end it
_PROGRAM = Path(__file__).with_name("isolated_program.py")
_MISSING = 3  # exit code: the package is not installed
_PACKAGES = {"exr": "OpenEXR", "hdf5": "h5py", "lzfse": "lzfse", "tiff": "pillow"}
_REAL_TYPE = re.compile(r"[<>|][iuf][1248]")
_SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",  # each arena takes 64 MiB of the limit on memory
    "HDF5_PLUGIN_PRELOAD": "::",  # HDF5 loads no filters from shared libraries
}


def read_array(source: Source, decoder: str, decoded: int, *names: str) -> Pixels:
    """Return the named channels or variables of a file, stacked along the first axis.

    Args:
        source: the file.
        decoder: one of "exr", "hdf5", "lzfse" (bytes, whatever they mean) and "tiff".
        decoded: bytes that the image takes once it is decoded, as checked by the caller.
        names: of the channels or variables.
    """
    answer = _run(source, decoder, decoded, "read", *names)
    end = answer.index(b"\n") + 1
    head = json.loads(answer[:end])
    if not _REAL_TYPE.fullmatch(head["dtype"]):
        raise source.error("decoded to numbers of type {}", "export it as float32", repr(head["dtype"][:20]))
    pixels: Pixels = np.frombuffer(answer, head["dtype"], offset=end).reshape(head["shape"])
    return pixels


def read_listing(source: Source, decoder: str) -> list[dict[str, Any]]:
    """Return the name, shape and kind of whatever the file holds."""
    found = json.loads(_run(source, decoder, 0, "list"))
    return list(found)


def _run(source: Source, decoder: str, decoded: int, *arguments: str) -> bytes:
    budget = current_budget()
    limits = {
        "memory": budget.memory(decoded, len(source.data)),
        "seconds": budget.seconds(decoded),
        "decoded": decoded,
        "members": budget.members,
        "parts": budget.parts,
    }
    code = f"exec(compile(open({str(_PROGRAM)!r}, 'rb').read(), {str(_PROGRAM)!r}, 'exec'))"
    # the caller's, without the variables that lead HDF5 to other files or code
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_")}
    command = python_command(code, str(os.getpid()), json.dumps(limits), decoder, *arguments)
    try:
        done = subprocess.run(  # noqa: S603 - our own program, arguments as a list
            command,
            input=source.data,
            capture_output=True,
            timeout=_SECONDS,
            env=environment | _SETTINGS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise source.damaged(f"not decoded within {_SECONDS} seconds") from error
    if done.returncode == _MISSING:
        package = _PACKAGES[decoder]
        raise MissingDependencyError(
            source.path, f"reading it needs {package}", f"run: pip install {package}"
        )
    if done.returncode != 0:
        detail = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["the decoder crashed"]
        hint = "copy it again, or export it without compression"
        raise source.error("not readable ({})", hint, detail[0][:120])
    return done.stdout
