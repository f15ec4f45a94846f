"""The protocol real-holdout: frames of real cameras, reduced and scored against the sensor's own map.

In one variant rectangles are cut out of the map, to see how well a method fills holes whose depth is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame
from primaldepth.core.seeds import generator
from primaldepth.evaluation.middlebury import guide_tensor
from primaldepth.evaluation.protocol import Case, NamedFrames, Protocol, file_sha256
from primaldepth.evaluation.sampling import cropped, point_samples
from primaldepth.evaluation.zone_scoring import ZoneCase, ZoneScoring
from primaldepth.io import read_depth
from primaldepth.sensors.draws import normal
from primaldepth.sensors.noise import noise_map

DEPTH, IMAGE = "_depth_mm.png", "_rgb.png"
LEAST_SIDE = 64
LEAST_MEASURED = 0.01  # of the pixels
SIDES = (20, 60)  # shortest and longest side of a cut-out, in pixels
PIXELS_PER_CUT_OUT = 25_600  # 12 in a frame of 640x480
_MM = 1000.0


@dataclass(frozen=True, slots=True)
class HoldoutVariant:
    """One way in which the protocol makes the samples of a frame.

    Args:
        name: of the variant.
        scales: for which the variant exists.
        noise: standard deviation of the noise in parts of the depth.
        cut_outs: whether rectangles are cut out of the map instead of reducing it.
    """

    name: str
    scales: tuple[int, ...]
    noise: float = 0.0
    cut_outs: bool = False


@dataclass(frozen=True, kw_only=True)
class RealHoldoutProtocol(NamedFrames):
    """Pairs NAME_depth_mm.png (16 bit, 0 for a hole) and NAME_rgb.png of one size.

    Args:
        variants: all ways to make samples.
        way: that of this protocol; `parts` has one protocol for each.
        files: SHA-256 of the frozen frames' files, by frame and file name.
    """

    scoring: ZoneScoring
    variants: tuple[HoldoutVariant, ...]
    way: HoldoutVariant
    files: Mapping[str, Mapping[str, str]]

    @property
    def made_of(self) -> str:
        """The protocol's inputs, in a few words."""
        return f"{len(self.names)} frames" if self.is_frozen else f"{len(self.names)} frames of one's own"

    @property
    def is_frozen(self) -> bool:
        """Whether the frames are those that were frozen, so that their checksums have to hold."""
        return set(self.names) == set(self.files)

    def parts(self, data: Path | None) -> tuple[Protocol, ...]:
        """Return one protocol for each variant, with the frames that lie in the folder."""
        root = self.find(data)
        names = self.names if root is None else frames_in(root)
        return tuple(
            replace(self, variant=way.name, way=way, scales=way.scales, names=names) for way in self.variants
        )

    def holds(self, folder: Path) -> bool:
        """Return whether the folder has a depth map of this form."""
        return bool(frames_in(folder))

    def inputs(self, root: Path, scene: str) -> dict[str, str]:
        """Return the checksums of the frame's two files."""
        return {path.name: file_sha256(path) for path in _paths(root, scene)}

    def problems(self, root: Path, scene: str) -> list[str]:
        """Return one line for each file that is missing, has another size, or differs from the frozen one."""
        paths = _paths(root, scene)
        if self.is_frozen:
            return self.changed_files({path: self.files[scene][path.name] for path in paths})
        return [f"{path}: missing" for path in paths if not path.is_file()] or _size_problems(*paths)

    def build(self, root: Path, scene: str, scale: int) -> Case:
        """Return the case, from inputs that were checked."""
        return real_case(self, self.way, scene, scale, _read(*_paths(root, scene)), self.scoring)


def real_case(
    protocol: Protocol,
    way: HoldoutVariant,
    scene: str,
    scale: int,
    maps: tuple[Tensor, Tensor, Tensor],
    scoring: ZoneScoring,
) -> ZoneCase:
    """Return the case of a frame whose reference is the sensor's own map.

    Args:
        protocol: its name and version are part of the seeds.
        way: how samples are made of the frame.
        scene: name of the frame.
        scale: pixels per sample, each way.
        maps: depth, where it is measured, and the image, all of one size, cropped.
        scoring: of the protocol.
    """
    truth, known, guide = maps
    random = generator(protocol.name, protocol.version, scene, scale)
    if way.cut_outs:
        removed = cut_outs(known, random)
        depth, valid, scored = truth, known & ~removed, known & removed
    else:
        (depth, valid), scored = point_samples(truth, known, scale), known
    frame = _frame(depth, valid, guide, way.noise, random)
    return ZoneCase(scene, scale, frame, truth, scored, scoring=scoring, reference=known, holes=~known)


def cut_outs(known: Tensor, generator: torch.Generator) -> Tensor:
    """Return where rectangles are cut out, (1, 1, H, W); each has a known pixel at its centre.

    A side has 20 to 60 pixels, but at most half of the frame's.

    Args:
        known: (1, 1, H, W), at least one True.
        generator: on the CPU; decides places and sides.
    """
    height, width = known.shape[2:]
    centres = known[0, 0].nonzero()
    removed = torch.zeros_like(known)
    for _ in range(max(1, height * width // PIXELS_PER_CUT_OUT)):
        index = int(torch.randint(len(centres), (1,), generator=generator))
        rows, columns = torch.randint(SIDES[0], SIDES[1] + 1, (2,), generator=generator).tolist()
        rows, columns = min(rows, height // 2), min(columns, width // 2)
        y, x = centres[index].tolist()
        top, left = max(0, y - rows // 2), max(0, x - columns // 2)
        removed[..., top : y - rows // 2 + rows, left : x - columns // 2 + columns] = True
    return removed


def frames_in(folder: Path) -> tuple[str, ...]:
    """Return the names of the depth maps of the protocol's form in the folder, sorted."""
    return tuple(sorted(path.name.removesuffix(DEPTH) for path in folder.glob(f"*{DEPTH}")))


def _paths(root: Path, scene: str) -> tuple[Path, Path]:
    return root / f"{scene}{DEPTH}", root / f"{scene}{IMAGE}"


def _size_problems(depth: Path, image: Path) -> list[str]:
    try:
        with Image.open(depth) as first, Image.open(image) as second:
            sizes = first.size, second.size
    except OSError as error:
        return [f"{depth} and {image.name}: one of them cannot be read ({error})"]
    if sizes[0] != sizes[1]:
        (w, h), (width, height) = sizes
        return [f"{image}: {width}x{height}, but {depth.name} has {w}x{h}; both must have one size"]
    if min(sizes[0]) < LEAST_SIDE:
        return [f"{depth}: {sizes[0][0]}x{sizes[0][1]}; both sides must have {LEAST_SIDE} pixels or more"]
    return []


def _read(depth: Path, image: Path) -> tuple[Tensor, Tensor, Tensor]:
    """Return depth in mm, where it is known, and the guide, all cropped."""
    found = read_depth(depth, unit="mm")
    known = torch.tensor(found.valid)[None, None]
    if float(known.float().mean()) < LEAST_MEASURED:
        raise InputError(depth, f"less than {LEAST_MEASURED:.0%} of the pixels are measured")
    truth = torch.where(known, torch.tensor(_MM * found.values)[None, None].round().float(), 0.0)
    return cropped(truth, known, guide_tensor(image))


def _frame(depth: Tensor, valid: Tensor, guide: Tensor, noise: float, random: torch.Generator) -> Frame:
    """Return samples with noise in whole millimetres and its sigma; without noise sigma is estimated."""
    if not noise:
        return Frame(depth, valid, guide, sigma=noise_map("auto", depth, valid), sampling="point")
    noisy = (depth + noise * depth * normal(depth, random)).round()
    samples = torch.where(valid, noisy.clamp_min(1.0), 0.0)
    return Frame(samples, valid, guide, sigma=noise * samples, sampling="point")


def real_holdout_protocol(frozen: Mapping[str, Any], common: Mapping[str, Any]) -> RealHoldoutProtocol:
    """Return the protocol from its frozen description; on its own it is the variant with noise."""
    variants = tuple(
        HoldoutVariant(key, tuple(each["scales"]), each["noise"], each["cut_outs"])
        for key, each in frozen["variants"].items()
    )
    return RealHoldoutProtocol(
        **{**common, "scoring": ZoneScoring.extending(common["scoring"], frozen["zones"])},
        variant=variants[0].name,
        variants=variants,
        way=variants[0],
        files=frozen["files"],
        names=tuple(frozen["files"]),
    )
