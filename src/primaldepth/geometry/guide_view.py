"""A depth camera's map in the guide's view, and a sentence that says what was done and assumed."""

import math
from collections.abc import Sequence

from torch import Tensor

from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.registration import Registered, register
from primaldepth.geometry.rig import MetricKind, Rig


def to_guide_view(
    depth: Tensor,
    valid: Tensor,
    cameras: Cameras,
    guide_size: tuple[int, int],
    kind: str,
    *,
    maps: Sequence[Tensor] = (),
    metres: float = 1.0,
) -> tuple[Registered, str]:
    """Register depth into the guide's view, with both cameras scaled to the size of their images.

    Args:
        depth: (B, 1, h, w).
        valid: (B, 1, h, w).
        cameras: with a depth camera.
        guide_size: (H, W) of the image.
        kind: z or radial.
        maps: other maps of the depth's size that shall come along.
        metres: length of the depth's unit.

    Returns:
        The samples, averaged over cells of the guide's image, and a sentence that says what was done.

    Raises:
        InputError: if the depth is a disparity, a camera is not that of its image, or no sample falls into
            the guide's view.
    """
    if kind not in ("z", "radial"):
        raise InputError(
            "cameras", f"a depth camera beside the guide's needs metric depth, but this is {kind}"
        )
    metric: MetricKind = "radial" if kind == "radial" else "z"
    rig = Rig.of(cameras).scaled(1.0 / metres)
    height, width = int(depth.shape[2]), int(depth.shape[3])
    source = fitted(rig.source, width, height, "depth camera", "depth map")
    target = fitted(rig.target, guide_size[1], guide_size[0], "guide's camera", "guide")
    rig = Rig(source, target, rig.rotation, rig.translation)
    samples = register(depth, valid, rig, metric, maps=maps)
    if not bool(samples.valid.flatten(1).any(dim=1).all()):
        raise InputError(
            "cameras",
            "no sample of the depth camera falls into the guide's view",
            "check 'depth_to_guide' (X_guide = R X_depth + t, its units) and the unit of the depth",
        )
    return samples, _note(samples, rig, metric)


def fitted(camera: Intrinsics, width: int, height: int, name: str, what: str) -> Intrinsics:
    """Return the camera scaled to an image of another size; refuse images of another aspect ratio."""
    if abs(height - width * camera.height / camera.width) > 1.0:
        raise InputError(
            "cameras",
            f"the {name} has {camera.width}x{camera.height} pixels, but the {what} has "
            f"{width}x{height}, which is not the same field of view",
            "give the calibration of this mode",
        )
    return camera.scaled_to(width, height)


def _note(samples: Registered, rig: Rig, kind: MetricKind) -> str:
    rows, columns = samples.depth.shape[2:]
    share = 100 * float(samples.valid.float().mean())
    high, wide = samples.cell
    return (
        f"registered from the depth camera ({_named(rig.source)}) into the guide's view "
        f"({_named(rig.target)}): {columns}x{rows} cells of {wide:.3g}x{high:.3g} pixels, "
        f"{share:.1f} % with a sample that the guide sees; "
        f"assumed: {kind} in metres, X_guide = R X_depth + t with |t| = {math.hypot(*rig.translation):.4g}"
    )


def _named(camera: Intrinsics) -> str:
    lens = "no distortion" if camera.distortion is None else camera.distortion.model
    return f"{camera.width}x{camera.height}, {lens}"
