"""Checks before any work is done: whether each output can be made of the result, and be written."""

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from primaldepth.core.errors import InputError, MissingDependencyError, Worded, did_you_mean
from primaldepth.io.atomic import check_extension, check_place
from primaldepth.io.depth_writing import check_stored, largest_stored, output_unit, writer_for
from primaldepth.io.units import per_metre, whole_stored
from primaldepth.pipeline.load import GIVE_CAMERAS, Inputs
from primaldepth.pipeline.outputs import OUTPUTS
from primaldepth.pipeline.request import Request


def checked_outputs(
    outputs: Mapping[str, str | os.PathLike[str]], request: Request, method: object
) -> dict[str, Path]:
    """Return the wanted files by name, checked before the work is done.

    Args:
        outputs: files by names of `OUTPUTS`.
        request: that holds for the frame.
        method: that is going to make the result.

    Raises:
        InputError: if a name is not known, or a file cannot be made by the method or written there.
    """
    for name in outputs:
        if name not in OUTPUTS:
            hint = did_you_mean(name, OUTPUTS) or f"known: {', '.join(OUTPUTS)}"
            raise InputError("outputs", f"'{name}' is no output", hint)
    found = {name: Path(path) for name, path in outputs.items()}
    check_method(found, request, method)
    check_places(found)
    return found


def check_method(names: Mapping[str, object], request: Request, method: object) -> None:
    """Raise if an output or a limit needs a sigma, which the method does not give.

    Args:
        names: of the wanted outputs.
        request: that holds for the frame.
        method: that is going to make the result.

    Raises:
        InputError: if one needs it.
    """
    if getattr(method, "gives_sigma", False):
        return
    wanted = [Worded(f"--{name}", "output") for name in names if "sigma" in OUTPUTS[name].needs]
    if request.max_sigma is not None:
        wanted.append(Worded("--max-sigma", "max_sigma"))
    for option in wanted:
        found = f"method '{request.method}' does not say how far it may be off"
        raise InputError(option, found, "use pdn-any")


def check_inputs(outputs: Mapping[str, Path], inputs: Inputs) -> None:
    """Raise, before the work is done, if an output cannot be made of these inputs.

    Args:
        outputs: files by names of `OUTPUTS`.
        inputs: of one frame.

    Raises:
        InputError: if one needs metric depth or the guide's camera, or its format cannot hold the samples.
    """
    for name, path in outputs.items():
        if name == "out":
            _check_fits(path, inputs)
        if "metric" in OUTPUTS[name].needs and inputs.kind == "disparity":
            found = f"{OUTPUTS[name].title} needs metric depth, but the input is disparity"
            raise InputError(Worded(f"--{name} {path}", "output"), found)
        if "cameras" in OUTPUTS[name].needs and inputs.cameras is None:
            found = f"{OUTPUTS[name].title} needs the guide's camera"
            raise InputError(Worded(f"--{name} {path}", "output"), found, GIVE_CAMERAS)


def _check_fits(path: Path, inputs: Inputs) -> None:
    """Raise if the format of `path` stores integers that cannot hold the samples.

    What is too large for it becomes a hole later; so only a map without any smaller sample is refused.
    """
    largest, unit = largest_stored(path), output_unit(path, inputs.unit or "m", inputs.kind)
    if largest == np.inf:
        return
    middle = inputs.median_depth
    fits = middle <= largest / per_metre(unit)
    depth = middle if fits else float(inputs.frame.depth[inputs.frame.valid].min())
    stored = float(whole_stored(np.asarray(depth), unit))
    try:
        check_stored(path, writer_for(path), stored, stored, unit)
    except InputError as error:
        if inputs.kind == "disparity":
            raise
        raise error.advised(f"the median depth is {middle:.4g} m: is the unit right?") from error


def check_places(outputs: Mapping[str, Path]) -> None:
    """Raise if a file cannot be written, not in the format of its name, or not without another package.

    Args:
        outputs: files by names of `OUTPUTS`.

    Raises:
        InputError: if one cannot be written there, or not in that format.
        MissingDependencyError: if a package is missing that one needs.
    """
    for name, path in outputs.items():
        if not OUTPUTS[name].installed:
            package = OUTPUTS[name].package
            found, hint = f"needs the package '{package}'", f"run: pip install 'primaldepth[{package}]'"
            raise MissingDependencyError(Worded(f"--{name} {path}", "output"), found, hint)
        check_extension(f"--{name}", path, OUTPUTS[name].suffixes)
        check_place(f"--{name}", path)
