"""Everything that can be written of a result: one table, over which all front ends loop.

To add an output, write its writer here and add a row to `OUTPUTS`.
"""

import io
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import InputError, MissingDependencyError, Worded, did_you_mean
from primaldepth.geometry.normals import surface_normals
from primaldepth.io import Unit, output_unit, write_bytes
from primaldepth.io.atomic import check_extension, check_place
from primaldepth.io.depth import encode_values, writer_for
from primaldepth.io.formats import CODECS, png
from primaldepth.io.formats.base import row_blocks
from primaldepth.io.mesh import write_mesh
from primaldepth.io.pointcloud import write_cloud
from primaldepth.io.rrd import write_rrd
from primaldepth.io.units import per_metre, whole_stored
from primaldepth.pipeline.load import GIVE_CAMERAS, Inputs
from primaldepth.pipeline.request import Request
from primaldepth.pipeline.run import Outcome, first, first_mask
from primaldepth.pipeline.views import cloud_of, guide_camera, mesh_of, preview_of, recorded_of

Need = Literal["metric", "sigma", "cameras"]


@dataclass(frozen=True, slots=True)
class Output:
    """One thing that can be written of a result.

    Args:
        title: what it is, for messages.
        suffixes: of the formats it can be written in; the first is that of a batch.
        write: makes the file.
        help: for the command line.
        needs: metric depth, a method that says how far it may be off, or the guide's camera.
        guesses_camera: whether it assumes a camera where none is given.
        most_pixels: up to which the page makes it.
        package: that it needs, brought by the extra of the same name; empty for none.
    """

    title: str
    suffixes: tuple[str, ...]
    write: Callable[[Path, Outcome], object]
    help: str
    needs: tuple[Need, ...] = ()
    guesses_camera: bool = False
    most_pixels: int = 2**40
    package: str = ""

    @property
    def installed(self) -> bool:
        """Whether the package that it needs is there."""
        return not self.package or find_spec(self.package) is not None

    @property
    def metavar(self) -> str:
        """The formats as one word of the command line's help."""
        return "FILE" if len(self.suffixes) > 2 else "|".join(each[1:].upper() for each in self.suffixes)


@dataclass(frozen=True, slots=True)
class DepthResult:
    """What is written as depth: (H, W) values, where they count, and the unit of the file.

    Args:
        rounded_off: estimates that are holes only because the format would round them to its invalid 0.
        beyond: estimates that are holes only because they are larger than the format can hold.
    """

    values: NDArray[np.floating[Any]]
    valid: NDArray[np.bool_]
    unit: Unit
    rounded_off: int = 0
    beyond: int = 0


def _unit_of(path: Path, inputs: Inputs) -> Unit:
    """The unit `path` is written in: the input's, where the format can mean it."""
    unit = output_unit(path, inputs.unit or "m")
    return "disparity" if inputs.kind == "disparity" and unit == "m" else unit


def depth_result(path: Path, outcome: Outcome) -> DepthResult:
    """Return the first depth map of the outcome, as it is to be written to `path`.

    An estimate that is not finite and positive, that an integer format would round to its invalid 0, or that
    is larger than such a format can hold, is a hole.
    """
    unit, largest = _unit_of(path, outcome.inputs), _largest_stored(path)
    values = outcome.prediction.depth[0, 0].cpu().numpy()
    valid = np.array(first_mask(outcome.kept.valid))
    rounded_off = beyond = 0
    for rows in row_blocks(*values.shape):
        block = values[rows].astype(np.float64)
        valid[rows] &= np.isfinite(block) & (block > 0)
        if np.isfinite(largest):
            stored = whole_stored(block, unit)
            rounded_off += int((valid[rows] & (stored < 1)).sum())
            beyond += int((valid[rows] & (stored > largest)).sum())
            valid[rows] &= (stored >= 1) & (stored <= largest)
    return DepthResult(values, valid, unit, rounded_off, beyond)


def write_depth(path: Path, outcome: Outcome) -> DepthResult:
    """Write the depth file and return what it holds.

    Raises:
        InputError: if no estimate can be held by the format.
    """
    result = depth_result(path, outcome)
    write_bytes(path, encode_values(path, result.values, result.valid, result.unit))
    return result


def _write_preview(path: Path, outcome: Outcome) -> None:
    from primaldepth.io.picture_files import png_bytes

    write_bytes(path, png_bytes(preview_of(outcome)))


def _write_cloud(path: Path, outcome: Outcome) -> None:
    write_cloud(path, cloud_of(outcome))


def _write_measured(path: Path, outcome: Outcome) -> None:
    mask = first_mask(outcome.prediction.measured)
    if png.CODEC.encode is not None:
        write_bytes(path, png.CODEC.encode(mask * np.uint8(255), mask))


def _write_mesh(path: Path, outcome: Outcome) -> None:
    write_mesh(path, mesh_of(outcome))


def _write_sigma(path: Path, outcome: Outcome) -> None:
    if outcome.prediction.sigma is not None:
        values = outcome.prediction.sigma[0, 0].cpu().numpy()
        valid = np.isfinite(values) & (values > 0)
        write_bytes(path, encode_values(path, values, valid, _unit_of(path, outcome.inputs)))


def _write_normals(path: Path, outcome: Outcome) -> None:
    kept = outcome.kept
    depth = first(kept.depth)
    normals = surface_normals(depth, first_mask(kept.valid) & (depth > 0), guide_camera(outcome.inputs))
    if path.suffix.lower() == ".npy":
        with io.BytesIO() as stream:
            np.save(stream, normals)
            write_bytes(path, stream.getvalue())
    elif png.CODEC.encode is not None:
        known = np.asarray(np.isfinite(normals).all(-1))
        stored = np.where(known[..., None], np.rint((normals + 1.0) * 32767.5), 0.0)
        write_bytes(path, png.CODEC.encode(stored.astype(np.uint16), known))


def _write_rerun(path: Path, outcome: Outcome) -> None:
    write_rrd(path, recorded_of(outcome))


_DEPTH = tuple(name for codec in CODECS if codec.encode is not None for name in codec.extensions)
_FRACTIONS = (".npy", ".npz", ".exr", ".pfm", ".tif", ".tiff")
OUTPUTS: dict[str, Output] = {
    "out": Output("a depth map", _DEPTH, write_depth, "Output file; a folder for a batch."),
    "preview": Output(
        "a picture", (".png",), _write_preview, "Picture of input and result; a folder for a batch."
    ),
    "cloud": Output(
        "a point cloud",
        (".ply", ".glb"),
        _write_cloud,
        "Point cloud in metres; a folder (of PLY) for a batch.",
        needs=("metric",),
        guesses_camera=True,
        most_pixels=2**22,
    ),
    "measured": Output(
        "a mask", (".png",), _write_measured, "8-bit mask: 255 measured, 0 filled in; a folder for a batch."
    ),
    "mesh": Output(
        "a mesh",
        (".glb", ".ply"),
        _write_mesh,
        "Triangle mesh in metres; a folder (of GLB) for a batch.",
        needs=("metric",),
        guesses_camera=True,
        most_pixels=0,  # the page shows one of its own
    ),
    "sigma": Output(
        "a map of certainty",
        _FRACTIONS,
        _write_sigma,
        "How far the result may be off (.npy, .exr, ...), by methods that know; a folder for a batch.",
        needs=("sigma",),
    ),
    "normals": Output(
        "a map of normals",
        (".png", ".npy"),
        _write_normals,
        "Surface normals in the camera's frame, 16-bit PNG or .npy; a folder for a batch.",
        needs=("metric", "cameras"),
    ),
    "rerun": Output(
        "a recording of rerun",
        (".rrd",),
        _write_rerun,
        "Image, samples, result, sigma and cloud for the viewer of rerun; a folder for a batch.",
        needs=("metric",),
        guesses_camera=True,
        most_pixels=0,  # only the owner of the machine has the viewer
        package="rerun",
    ),
}


def check_method(names: Mapping[str, object], method: object, called: str) -> None:
    """Raise if an output needs what the method does not give."""
    for name in names:
        if "sigma" in OUTPUTS[name].needs and not getattr(method, "gives_sigma", False):
            option = Worded(f"--{name}", "output")
            raise InputError(option, f"method '{called}' does not say how far it may be off", "use pdn-any")


def check_request(request: Request, method: object) -> None:
    """Raise if a limit is set on what the method does not give."""
    if request.max_sigma is not None and not getattr(method, "gives_sigma", False):
        option = Worded("--max-sigma", "max_sigma")
        found = f"method '{request.method}' does not say how far it may be off"
        raise InputError(option, found, "use pdn-any")


def checked_outputs(
    outputs: Mapping[str, str | os.PathLike[str]], method: object, called: str
) -> dict[str, Path]:
    """Return the wanted files by name, checked before the work is done.

    Args:
        outputs: files by names of `OUTPUTS`.
        method: that is going to make the result.
        called: the method's name, for errors.

    Raises:
        InputError: if a name is not known, or a file cannot be made by the method or written there.
    """
    for name in outputs:
        if name not in OUTPUTS:
            hint = did_you_mean(name, OUTPUTS) or f"known: {', '.join(OUTPUTS)}"
            raise InputError("outputs", f"'{name}' is no output", hint)
    found = {name: Path(path) for name, path in outputs.items()}
    check_method(found, method, called)
    check_places(found)
    return found


def check_inputs(outputs: Mapping[str, Path], inputs: Inputs) -> None:
    """Raise, before the work is done, if an output cannot be made of these inputs."""
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
    """Raise, before the work is done, if the format of `path` cannot hold the samples.

    What is too large for it becomes a hole later; so only a map without any smaller sample is refused.
    """
    middle, unit = inputs.median_depth, _unit_of(path, inputs)
    fits = middle <= _largest_stored(path) / per_metre(unit)
    stored = middle if fits else float(inputs.frame.depth[inputs.frame.valid].min())
    try:
        encode_values(path, np.full((1, 1), stored), np.ones((1, 1), bool), unit)
    except InputError as error:
        if inputs.kind == "disparity":
            raise
        raise error.advised(f"the median depth is {middle:.4g} m: is the unit right?") from error


def _largest_stored(path: Path) -> float:
    """The largest number of a format of integers; floating point numbers have room for every depth."""
    names = writer_for(path).dtypes
    if any(name.startswith("float") for name in names):
        return float("inf")
    return float(np.iinfo(names[-1]).max)


def check_places(outputs: Mapping[str, Path]) -> None:
    """Raise if a file cannot be written, not in the format of its name, or not without another package."""
    for name, path in outputs.items():
        if not OUTPUTS[name].installed:
            package = OUTPUTS[name].package
            found, hint = f"needs the package '{package}'", f"run: pip install 'primaldepth[{package}]'"
            raise MissingDependencyError(Worded(f"--{name} {path}", "output"), found, hint)
        check_extension(f"--{name}", path, OUTPUTS[name].suffixes)
        check_place(f"--{name}", path)


def write_outputs(outputs: Mapping[str, Path], outcome: Outcome) -> DepthResult:
    """Write every output, the depth map first; return that."""
    result = write_depth(outputs["out"], outcome)
    for name, path in outputs.items():
        if name != "out":
            OUTPUTS[name].write(path, outcome)
    return result


def possible(name: str, outcome: Outcome) -> bool:
    """Whether an output can be made of this result, and is small enough for the page."""
    output, prediction = OUTPUTS[name], outcome.prediction
    metric = outcome.inputs.kind != "disparity" or "metric" not in output.needs
    sure = prediction.sigma is not None or "sigma" not in output.needs
    seen = outcome.inputs.cameras is not None or "cameras" not in output.needs
    return metric and sure and seen and prediction.depth.numel() <= output.most_pixels
