"""A user's own frames as a protocol: the sensor's map is reduced, upsampled and compared with itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from primaldepth.core.errors import InputError
from primaldepth.evaluation.middlebury import guide_tensor
from primaldepth.evaluation.protocol import Case, Protocol, file_sha256
from primaldepth.evaluation.real_holdout import HoldoutVariant, real_case
from primaldepth.evaluation.rows import Row, mean_number
from primaldepth.evaluation.sampling import cropped
from primaldepth.evaluation.zone_scoring import ZoneScoring
from primaldepth.io import Unit, read_depth
from primaldepth.operators.sampling import resample

MM = 1000.0
CUT_OUTS = "cut-outs"
SAME_ASPECT = 0.01  # relative difference of the aspect ratios of image and depth
SMALLEST = 8  # samples a side of a reduced map
UNSAFE = 5.0  # surface samples of 10,000 that a method may misplace more than the safest one


@dataclass(frozen=True, kw_only=True)
class OwnFrames(Protocol):
    """Pairs of a depth map and an image of the same view.

    Args:
        pairs: files of depth and image, by the name of the frame.
        stored: unit of the depth files; None if the files tell it.
        way: how samples are made.
    """

    scoring: ZoneScoring
    pairs: Mapping[str, tuple[Path, Path]]
    stored: Unit | None
    way: HoldoutVariant

    @property
    def scenes(self) -> tuple[str, ...]:
        """Names of the frames."""
        return tuple(self.pairs)

    @property
    def is_frozen(self) -> bool:
        """False: the files are the user's own."""
        return False

    @property
    def made_of(self) -> str:
        """The protocol's inputs, in a few words."""
        return f"{len(self.pairs)} frames of one's own"

    def parts(self, data: Path | None) -> tuple[Protocol, ...]:
        """Return the reduced frames, and the frames with cut-outs."""
        ways = self.way, HoldoutVariant(CUT_OUTS, (1,), cut_outs=True)
        return tuple(replace(self, variant=way.name, way=way, scales=way.scales) for way in ways)

    def holds(self, folder: Path) -> bool:
        """Return True: the files were named one by one."""
        return True

    def find(self, data: Path | None) -> Path | None:
        """Return the current folder, to which the names of the files are relative."""
        return Path()

    def inputs(self, root: Path, scene: str) -> dict[str, str]:
        """Return the checksums of the frame's two files, and the unit in which the depth is read."""
        return {"unit": str(self.stored), **{str(path): file_sha256(path) for path in self.pairs[scene]}}

    def problems(self, root: Path, scene: str) -> list[str]:
        """Return one line for each file that is missing."""
        return [f"{path}: no such file" for path in self.pairs[scene] if not path.is_file()]

    def build(self, root: Path, scene: str, scale: int) -> Case:
        """Return the case of a frame."""
        maps = cropped(*read_pair(*self.pairs[scene], self.stored))
        height, width = (side // scale for side in maps[0].shape[2:])
        if min(height, width) < SMALLEST:
            raise InputError(
                self.pairs[scene][0],
                f"reduced by {scale} it is {width}x{height} samples, too few to judge by",
                f"reduce it to {SMALLEST} a side at least",
            )
        return real_case(self, self.way, scene, scale, maps, self.scoring)


def own_frames(pairs: Sequence[tuple[Path, Path]], scale: int, unit: Unit | None = None) -> OwnFrames:
    """Return the protocol of these files.

    Args:
        pairs: depth map and image of each frame.
        scale: by how much the maps are reduced.
        unit: of the depth files; None if the files tell it.
    """
    names = [depth.stem for depth, _ in pairs]
    if len(set(names)) < len(names):
        names = [str(depth) for depth, _ in pairs]
    kind = read_depth(pairs[0][0], unit=unit).kind
    scoring = ZoneScoring(unit="disparity" if kind == "disparity" else "mm")
    way = HoldoutVariant(f"reduced x{scale}", (scale,))
    return OwnFrames(
        name="own frames",
        version=1,
        folder=".",
        scales=(1, scale),
        scoring=scoring,
        variant=way.name,
        pairs=dict(zip(names, pairs, strict=True)),
        stored=unit,
        way=way,
    )


def read_pair(depth: Path, image: Path, unit: Unit | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return depth in mm or disparities, where it is measured, and the image on the grid of the depth.

    Raises:
        InputError: for an image that is smaller than the depth map, or of another aspect ratio.
    """
    found = read_depth(depth, unit=unit)
    known = torch.tensor(found.valid)[None, None]
    factor = 1.0 if found.kind == "disparity" else MM
    truth = torch.where(known, torch.tensor(factor * found.values)[None, None].float(), 0.0)
    guide = guide_tensor(image)
    (h, w), (height, width) = truth.shape[2:], guide.shape[2:]
    if height < h or width < w or abs(width * h / (height * w) - 1.0) > SAME_ASPECT:
        raise InputError(
            image,
            f"{width}x{height}, but {depth.name} has {w}x{h}",
            "both must show the same view, the image at least as large",
        )
    if (height, width) != (h, w):
        guide = resample(guide, (int(h), int(w)), "area")
    return truth, known, guide


@dataclass(frozen=True, slots=True)
class Verdict:
    """The method that is best on a user's frames, and what to say about it.

    Args:
        best: name of the method.
        worst_frame: frame on which it has the largest mean error.
        sentence: for people.
    """

    best: str
    worst_frame: str
    sentence: str


def verdict(rows: Sequence[Row], unit: str) -> Verdict:
    """Choose the method with the least mean absolute error among those that keep measured surfaces.

    A method keeps them if it misplaces at most 5 of 10,000 surface samples more than the safest one.

    Args:
        rows: of all methods and frames, those of the cut-outs may be among them.
        unit: of the errors.
    """
    reduced = [row for row in rows if row.variant != CUT_OUTS]
    methods = list(dict.fromkeys(row.method for row in reduced))
    lost = {
        name: _mean(reduced, name, "far_surface") + _mean(reduced, name, "near_surface") for name in methods
    }
    safe = [name for name in methods if lost[name] <= min(lost.values()) + UNSAFE]
    best = min(safe, key=lambda name: _mean(reduced, name, "mae"))
    own = [row for row in reduced if row.method == best]
    scale, error = own[0].scale, _mean(reduced, best, "mae")
    others = ", ".join(f"{name} {_mean(reduced, name, 'mae'):.1f}" for name in methods if name != best)
    rank = "is the best for this camera" if others else "was tried alone on this camera"
    text = f"At x{scale} {best} {rank}: mean error {error:.1f} {unit}"
    text += f" ({others})" if others else ""
    text += f", {lost[best]:.1f} of 10,000 measured surface samples put more than 10 % elsewhere."
    text += f" {_where_not(reduced, best, unit)}"
    return Verdict(best, max(own, key=lambda row: row.mae).scene, text)


def _where_not(rows: Sequence[Row], method: str, unit: str) -> str:
    """Name the zone in which the result is not to be trusted."""
    inside = _mean(rows, method, "rmse_interior")
    zones = {"near jumps of depth": "rmse_near_jumps", "near holes": "rmse_near_holes"}
    errors = {words: _mean(rows, method, key) for words, key in zones.items()}
    worst = max(errors, key=lambda words: errors[words])
    if errors[worst] < 2.0 * inside or errors[worst] == 0.0:
        return (
            f"Its errors are about the same everywhere (RMSE {inside:.1f} {unit} away from jumps and holes)."
        )
    return (
        f"Do not trust it {worst}: RMSE {errors[worst]:.1f} {unit} there, {inside:.1f} {unit} on surfaces "
        "away from jumps and holes."
    )


def _mean(rows: Sequence[Row], method: str, key: str) -> float:
    """Return the mean of a number over a method's frames; 0 if no frame has it."""
    return mean_number([row for row in rows if row.method == method], key) or 0.0
