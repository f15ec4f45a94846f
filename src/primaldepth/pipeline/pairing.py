"""Find the frames that a call of `upsample` names: one pair, pairs of folders and globs, or a recording."""

import glob
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from primaldepth.core.errors import InputError, MissingFileError
from primaldepth.geometry.cameras import Cameras
from primaldepth.io.files import check_unlinked
from primaldepth.io.formats import CODECS
from primaldepth.io.scanner_clouds import EXTENSIONS as CLOUDS
from primaldepth.io.sequences import Recording, is_recording, not_a_recording, read_recording
from primaldepth.io.sequences.base import (
    Number,
    ends,
    natural_order,
    nearest_in_time,
    number,
    numbered,
    time_stamp,
)
from primaldepth.io.sequences.video import EXTENSIONS as VIDEOS
from primaldepth.io.sequences.video import with_depths
from primaldepth.pipeline.output_checks import check_places
from primaldepth.pipeline.outputs import OUTPUTS
from primaldepth.pipeline.request import Item

_READABLE = frozenset(extension for codec in CODECS for extension in codec.extensions)
_NAMES = ", ".join(sorted(_READABLE))
_Files = dict[Number, Path]
Note = Callable[[str], None]
TOGETHER = 0.1  # seconds between the files of a pair: three frames of most cameras


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """Files, folders, globs and recordings, as a user named them.

    Args:
        outputs: a file for each name of `OUTPUTS` that is wanted; a folder for a batch.
        time_apart: seconds that a depth map and its image may be apart; None for what is usual.
        note: is told what was assumed.
        guide_argument: name of the argument that gives `guide`, for errors.
    """

    depth: str
    guide: str | None
    outputs: Mapping[str, Path]
    confidence: Path | None = None
    cameras: Cameras | Path | None = None
    time_apart: float | None = None
    note: Note = field(default=print, compare=False)
    guide_argument: str = "GUIDE"

    @property
    def most_apart(self) -> float:
        """The largest difference in seconds between the files of a pair, if their names are times."""
        return TOGETHER if self.time_apart is None else self.time_apart


def list_items(named: NamedFiles) -> tuple[list[Item], bool]:
    """Return the frames to run, and whether they are a batch; check every place to write to.

    Args:
        named: what the user asked for.

    Raises:
        InputError: if a file has no partner, or a result could not be written or would replace something.
    """
    recording = _recording(named)
    batch = recording is not None or _is_many(named.depth)
    if recording is not None:
        items = _shots(named, recording)
    elif batch:
        items = _batch(named)
    else:
        items = [_pair(named)]
    for item in items:
        check_places(item.outputs)
        if batch:  # the user has named the folder alone
            for path in item.outputs.values():
                check_unlinked(path)
    _refuse_collisions(items)
    return items, batch


def pairs(depths: str, guides: str, note: Note) -> list[tuple[Path, Path]]:
    """Return depth map and image of each frame: one pair, or those of two folders or globs.

    Args:
        depths: file, folder or glob.
        guides: file, folder or glob.
        note: is told what was assumed.

    Raises:
        InputError: if there are no files, or one has no partner.
    """
    found = _matches(depths) if _is_many(depths) else [Path(depths)]
    return list(zip(found, _partners(guides, "images", found, note, TOGETHER), strict=True))


def _recording(named: NamedFiles) -> Recording | None:
    """Return the recording that DEPTH is, alone or with images in its folder or a video; else None."""
    if named.guide is None and not is_recording(Path(named.depth)):
        missing, depth = f"Missing argument '{named.guide_argument}'", Path(named.depth)
        if depth.is_file() and depth.suffix.lower() in _READABLE | CLOUDS:
            raise InputError(missing, f"{depth} has no image", "give one of the same view after it")
        raise InputError(missing, f"{not_a_recording(depth)}")
    if named.guide is None or _same_folder(named):
        if named.confidence is not None:
            raise InputError("--confidence", "a recording brings its own", f"leave it out for {named.depth}")
        return read_recording(Path(named.depth), named.time_apart)
    film = Path(named.guide)
    if film.suffix.lower() not in VIDEOS or not film.is_file():
        return None
    depths = _depths(named.depth) if _is_many(named.depth) else [Path(named.depth)]
    return with_depths(depths, film, _confidences(named, depths))


def _same_folder(named: NamedFiles) -> bool:
    """Whether depth maps and images lie in one folder; each file would be paired with itself."""
    depth, guide = Path(named.depth), Path(str(named.guide))
    if not (depth.is_dir() and guide.is_dir() and depth.samefile(guide)):
        return False
    if not is_recording(depth):
        raise InputError(
            f"{depth}",
            "holds depth maps and images, but no pair that is named alike",
            "name them as in a.depth.png and a.color.png, or give globs such as 'x/*_d.png' 'x/*_c.png'",
        )
    return True


def _shots(named: NamedFiles, recording: Recording) -> list[Item]:
    """Return an item for each shot of a recording."""
    for text in (f"{recording.layout}, {len(recording)} shots", *recording.notes):
        named.note(f"{recording.root}: {text}")
    _check_folders(named, len(recording))
    items = []
    for shot in recording:
        own = shot.files[:2] if len(shot.files) > 1 else (recording.root / shot.name, recording.root)
        outputs = _outputs(named, shot.name, own[0])
        frame = Item(own[0], own[1], cameras=named.cameras, outputs=outputs)
        items.append(replace(frame, shot=shot, unit=recording.unit))
    return items


def _pair(named: NamedFiles) -> Item:
    depth, guide = Path(named.depth), Path(str(named.guide))
    for path in (depth, guide):
        if not path.exists():  # before its output is taken for a wrong file name: it may be a folder's
            raise MissingFileError(path, "no such file or folder", "check the name")
    return Item(depth, guide, named.confidence, named.cameras, outputs=named.outputs)


def _batch(named: NamedFiles) -> list[Item]:
    depths = _depths(named.depth)
    guides = _partners(str(named.guide), "guides", depths, named.note, named.most_apart)
    confidences = _confidences(named, depths)
    _check_folders(named, len(depths))
    return [
        Item(depth, guide, confidence, named.cameras, outputs=_outputs(named, depth.stem, depth))
        for depth, guide, confidence in zip(depths, guides, confidences, strict=True)
    ]


def _outputs(named: NamedFiles, name: str, depth: Path) -> dict[str, Path]:
    """Return files in the folders of a batch: depth in the input's format, or PNG where it is only read."""
    suffixes = {each: OUTPUTS[each].suffixes[0] for each in named.outputs}
    suffixes["out"] = depth.suffix if depth.suffix.lower() in OUTPUTS["out"].suffixes else ".png"
    return {each: folder / f"{name}{suffixes[each]}" for each, folder in named.outputs.items()}


def _confidences(named: NamedFiles, depths: Sequence[Path]) -> Sequence[Path | None]:
    if named.confidence is None:
        return [None] * len(depths)
    return _partners(str(named.confidence), "confidence maps", depths, named.note, named.most_apart)


def _check_folders(named: NamedFiles, count: int) -> None:
    for name, folder in named.outputs.items():
        named_like_file = not folder.is_dir() and folder.suffix.lower() in OUTPUTS[name].suffixes
        if folder.is_file() or named_like_file:
            raise InputError(f"--{name} {folder}", f"{count} depth files need a folder here, not a file")


def _is_many(name: str) -> bool:
    return not Path(name).is_file() and (Path(name).is_dir() or any(sign in name for sign in "*?["))


def _depths(name: str) -> list[Path]:
    """Return the depth files of a folder or a glob; of a folder without a map its point clouds."""
    folder = Path(name)
    if (
        folder.is_dir()
        and not _with_extension(folder, _READABLE)
        and (clouds := _with_extension(folder, CLOUDS))
    ):
        return clouds
    return _matches(name)


def _with_extension(folder: Path, extensions: Iterable[str]) -> list[Path]:
    return [path for path in numbered(folder, *extensions) if path.is_file()]


def _matches(name: str) -> list[Path]:
    """Return the files of a folder whose extension is a known format, or of a glob; 2.png before 10.png."""
    if Path(name).is_dir():
        found = _with_extension(Path(name), _READABLE)
        if not found:
            raise InputError(name, "no depth or image file in this folder", f"expected {_NAMES}")
        return found
    found = [Path(path) for path in glob.glob(name, recursive=True) if Path(path).is_file()]
    if not found:
        raise InputError(name, "no file matches this pattern")
    return sorted(found, key=natural_order)


def _partners(name: str, what: str, depths: Sequence[Path], note: Note, within: float) -> Sequence[Path]:
    """Return a file for each depth: of the same number, nearest in time, or in order; or one for all."""
    if not _is_many(name):
        return [Path(name)] * len(depths)
    found = _matches(name)
    ours, theirs = ({number(path): path for path in paths} for paths in (depths, found))
    if ours.keys() != theirs.keys() and (nearest := _in_time(depths, found, what, note, within)):
        return nearest
    by_last = 2 * len(ours.keys() & theirs.keys()) < len(depths) and _last_numbers(depths, found)
    ours, theirs = by_last or (ours, theirs)
    alone = _without_partner(ours, theirs, len(depths))
    if len(found) != len(depths):
        hint = alone or "few names fit, and pairs in order need as many of both"
        raise InputError("", f"{len(depths)} depth files but {len(found)} {what} in {name}", hint)
    if alone:  # one is missing here and another there: their order would pair strangers
        raise InputError("", alone)
    if ours.keys() == theirs.keys() and len(ours) == len(found):  # no number occurs twice
        partners = [theirs[key] for key in ours]
        if by_last:
            note(f"{what} are paired by the last number of their names: {ends(depths, partners)}")
        return partners
    note(f"{what} are paired in order: {ends(depths, found)}")
    return found


def _last_numbers(depths: Sequence[Path], found: Sequence[Path]) -> tuple[_Files, _Files] | None:
    """Return the files by the last number of their names, if each has its own and most depths find theirs."""
    ours, theirs = ({number(path)[-1:]: path for path in paths} for paths in (depths, found))
    numbers = all(isinstance(key[0], int) for key in (*ours, *theirs))
    unique = len(ours) == len(depths) and len(theirs) == len(found)
    most = 2 * len(ours.keys() & theirs.keys()) >= len(depths)
    return (ours, theirs) if numbers and unique and most else None


def _without_partner(ours: _Files, theirs: _Files, count: int) -> str:
    """Return in words which files have no partner by name or number, if most of `count` depths have one."""
    common = ours.keys() & theirs.keys()
    if 2 * len(common) < count or ours.keys() == theirs.keys():
        return ""
    lost = [side[key] for side in (ours, theirs) for key in side.keys() - common]
    return f"no partner of the same name or number: {_listing(sorted(lost, key=natural_order))}"


def _in_time(
    depths: Sequence[Path], found: Sequence[Path], what: str, note: Note, within: float
) -> list[Path]:
    """Return the file nearest in time to each depth, or none if names are not times or clocks far apart."""
    ours = [time for path in depths if (time := time_stamp(path)) is not None]
    theirs = sorted((time, path) for path in found if (time := time_stamp(path)) is not None)
    if len(ours) < len(depths) or len(theirs) < len(found):
        return []
    indices = nearest_in_time(ours, [time for time, _ in theirs], math.inf)
    times, nearest = zip(*(theirs[index] for index in indices if index is not None), strict=True)
    gaps = [abs(time - other) for time, other in zip(ours, times, strict=True)]
    alone = [depth for depth, gap in zip(depths, gaps, strict=True) if gap > within]
    if 2 * len(alone) > len(depths):
        return []
    if alone:
        raise InputError(
            "",
            f"none of the {what} is within {within:g} s of {_listing(alone)}",
            "move them to another folder, or give --time-apart",
        )
    if list(nearest) != list(found):
        note(f"{what} are paired by time stamp, at most {max(gaps):.3f} s apart")
    return list(nearest)


def _listing(paths: Sequence[Path]) -> str:
    """Return the first four names as text."""
    more = f" and {len(paths) - 4} more" if len(paths) > 4 else ""
    return ", ".join(map(str, paths[:4])) + more


def _refuse_collisions(items: list[Item]) -> None:
    """Raise if a result would replace an input or another result."""
    inputs = {os.path.realpath(path) for item in items for path in item.files}
    taken: set[str] = set()
    for item in items:
        for name, path in item.outputs.items():
            place = os.path.realpath(path)
            if place in inputs:
                raise InputError(f"--{name} {path}", "would overwrite an input", "choose another place")
            if place in taken:
                raise InputError(
                    f"--{name} {path}", "two results would be written there", "choose other places"
                )
            taken.add(place)
