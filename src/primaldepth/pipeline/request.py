"""`Item` and `Request`: the inputs of one frame and every option, each declared once.

The command line, the HTTP form and the page make their options, fields and controls from these declarations.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import torch
from numpy.typing import NDArray
from torch import Tensor

from primaldepth.core.errors import InputError, Worded
from primaldepth.core.frame import SAMPLINGS, Sampling, check_sampling
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.meshing import MAX_JUMP, check_jump
from primaldepth.geometry.poses import Pose
from primaldepth.io import DepthMap, Kind, Unit
from primaldepth.io.sequences import Shot
from primaldepth.io.units import COMMON_UNITS, KINDS
from primaldepth.sensors.noise import METRIC_SENSORS, SENSORS, noise_map

PathLike = str | os.PathLike[str]
File = (str, os.PathLike)  # as `isinstance` takes them
ArrayLike = NDArray[Any] | Tensor
Spikes = Literal["drop", "keep"]
Holes = Literal["fill", "keep"]
DEFAULT_METHOD = "pdn-any"
KEEP_SAMPLES = 5.0  # sigma; chosen by real-holdout, aligned-holes and middlebury-2006, see docs/own-files.md


@dataclass(frozen=True, slots=True)
class Declaration:
    """How the command line, the HTTP form and the page present an input or an option.

    Args:
        help: what it means, in a sentence.
        label: its name on the page.
        metavar: its value in the help of the command line; the choices where it is empty.
        choices: values to choose from; others are taken too if `open_ended`.
        local: whether only the owner of the machine may choose it.
    """

    help: str
    label: str
    metavar: str = ""
    choices: tuple[str, ...] = ()
    open_ended: bool = False
    local: bool = False


def declarations(of: "type[Item | Request]") -> dict[str, Declaration]:
    """Return what is declared, by name, in the order in which it is presented."""
    hints = get_type_hints(of, include_extras=True).items()
    return {name: hint.__metadata__[0] for name, hint in hints if get_origin(hint) is Annotated}


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """The inputs of one frame, as files or arrays, and where its outputs are to be written.

    Args:
        noise: standard deviation of each sample, in place of `Request.noise`.
        outputs: a file for each name of `OUTPUTS` that is wanted.
        shot: of a recording, which then gives depth, guide, confidence and camera.
        unit: of the recording's depth files.
        pose: where the guide's camera stood, if it is known.
    """

    depth: Annotated[
        PathLike | ArrayLike,
        Declaration(
            "Depth map: PNG (16 bit), EXR, PFM, PGM, npy, npz, TIFF, mat.", "Depth: PNG, EXR, PFM, npy, TIFF"
        ),
    ]
    guide: Annotated[
        PathLike | ArrayLike,
        Declaration(
            "Image of the same view: PNG, JPEG, PPM, TIFF, EXR, npy.", "Image: PNG, JPEG, TIFF, EXR, npy"
        ),
    ]
    confidence: Annotated[
        PathLike | ArrayLike | None,
        Declaration("Confidence map of the depth's size.", "Confidence map, of the depth's size"),
    ] = None
    cameras: Annotated[
        Cameras | Intrinsics | PathLike | None,
        Declaration(
            "JSON of the guide's camera, a camera_info of ROS (YAML or JSON), its 3x3 matrix as text, or an "
            "export of a RealSense or Azure Kinect; with a depth camera, depth is registered into its view.",
            "Cameras: JSON, camera_info (YAML) or 3x3 text",
        ),
    ] = None
    noise: ArrayLike | None = None
    outputs: Mapping[str, Path] = field(default_factory=dict)
    shot: Shot | None = None
    unit: Unit | None = None
    pose: Pose | None = None

    @property
    def files(self) -> list[Path]:
        """Files that this item reads."""
        if self.shot is not None:
            return list(self.shot.files)
        given = (self.depth, self.guide, self.confidence)
        return [Path(each) for each in given if isinstance(each, str | os.PathLike)]

    def opened(self, shot: Shot, unit: Unit | None) -> "Item":
        """Return an item with what its shot holds; unit and camera are the recording's unless given."""
        content, cameras = shot.read(), self.cameras
        if unit is not None and not isinstance(content.depth, Path):
            raise InputError(f"--unit {unit}", f"{self.guide} says its own unit", "leave the option out")
        if cameras is None:
            cameras = content.cameras
        own = self.unit if isinstance(content.depth, Path) else "m"
        return Item(content.depth, content.guide, content.confidence, cameras, unit=own, pose=content.pose)


@dataclass(frozen=True, slots=True)
class Request:
    """Options that hold for every frame; they are checked when the request is made.

    Args:
        options: parameters of the method in place of its defaults.
    """

    method: Annotated[str, Declaration("A name of `primaldepth methods`.", "Method", "NAME")] = DEFAULT_METHOD
    unit: Annotated[
        Unit | None,
        Declaration(
            "Unit of the depth, where its file does not say; NUMBER: per metre, 5000 for TUM, 256 for KITTI.",
            "Unit of the depth",
            "mm|m|NUMBER|disparity",
            COMMON_UNITS,
            open_ended=True,
        ),
    ] = None
    kind: Annotated[
        Kind | None, Declaration("radial: along rays; needs cameras, gives z.", "Kind of depth", "", KINDS)
    ] = None
    noise: Annotated[
        str | float,
        Declaration(
            "auto: estimated; a standard deviation in the depth's unit; or a sensor such as realsense-d435.",
            "Noise",
            "auto|SIGMA|SENSOR",
            ("auto", *SENSORS, *METRIC_SENSORS),
            open_ended=True,
        ),
    ] = "auto"
    invalid: Annotated[
        float | None,
        Declaration("Stored number that means no depth besides 0, such as 65535.", "No depth", "NUMBER"),
    ] = None
    max_depth: Annotated[
        float | None,
        Declaration("Samples farther away than this many metres become holes.", "Farthest depth", "METRES"),
    ] = None
    spikes: Annotated[
        Spikes,
        Declaration("drop: samples far from all around them are holes.", "Spikes", "", get_args(Spikes)),
    ] = "drop"
    sampling: Annotated[
        Sampling | None,
        Declaration(
            "A sample is the mean over its pixel or the depth at its centre; default: by the sensor.",
            "Sampling",
            "",
            SAMPLINGS,
        ),
    ] = None
    holes: Annotated[
        Holes, Declaration("fill: estimate depth in holes; keep: leave them.", "Holes", "", get_args(Holes))
    ] = "fill"
    keep_samples: Annotated[
        float,
        Declaration(
            "Correct the result where it departs from a sample that its neighbours confirm by more than K "
            "sigma; 0: leave it.",
            "Keep samples within so many sigma",
            "K",
        ),
    ] = KEEP_SAMPLES
    max_sigma: Annotated[
        float | None,
        Declaration(
            "Estimates whose sigma exceeds this, in the depth's unit, become holes.", "Largest sigma", "SIGMA"
        ),
    ] = None
    mesh_jump: Annotated[
        float, Declaration("Cut the mesh where depths differ by a share above R.", "Jump", "R", local=True)
    ] = MAX_JUMP
    device: Annotated[
        str, Declaration("Where to compute.", "Device", "", ("auto", "cpu", "cuda"), local=True)
    ] = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("spikes", "holes"):
            known, given = declarations(Request)[name].choices, getattr(self, name)
            if given not in known:
                raise InputError(name, f"'{given}' is not {' or '.join(known)}")
        custom = "disparity" if self.kind == "disparity" else "m"
        DepthMap.from_array([[1.0]], unit=self.unit or custom, kind=self.kind)
        one = torch.ones(1, 1, 1, 1)
        noise_map(self.noise, one, one > 0)
        check_sampling(self.sampling)
        check_jump(self.mesh_jump)
        for name in ("keep_samples", "max_sigma", "max_depth"):
            found: float | None = getattr(self, name)
            zero = name == "keep_samples"  # which then keeps none
            if found is not None and not ((found > 0 or (zero and found == 0)) and math.isfinite(found)):
                option = Worded(f"--{name.replace('_', '-')}", name)
                expected = "0 or a positive number of sigma" if zero else "a positive number"
                raise InputError(option, f"{found:g} is no limit", f"give {expected}")

    @property
    def meaning(self) -> str | None:
        """Unit or kind of the depth as the user gave it."""
        return self.unit or self.kind
