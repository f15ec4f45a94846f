"""Which files a call of `upsample` means: one pair, the pairs of folders and globs, or a recording."""

import glob
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from primaldepth.cli.output import note
from primaldepth.cli.places import EXTENSIONS, check_extension, check_place
from primaldepth.core.errors import InputError
from primaldepth.io import Unit
from primaldepth.io.files import check_unlinked
from primaldepth.io.formats import CODECS
from primaldepth.io.sequences import Recording, Shot, is_recording, not_a_recording, read_recording
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

_READABLE = frozenset(extension for codec in CODECS for extension in codec.extensions)
_WRITABLE = EXTENSIONS["--out"]
_Files = dict[Number, Path]
_TOGETHER = 0.1  # seconds between the files of a pair: three frames of most cameras


@dataclass(frozen=True, slots=True)
class Job:
    """One pair and where its results go.

    Args:
        shot: of a recording, which then gives depth, guide and confidence.
        unit: of the recording's depth files.
    """

    depth: Path
    guide: Path
    out: Path
    confidence: Path | None = None
    preview: Path | None = None
    cloud: Path | None = None
    measured: Path | None = None
    mesh: Path | None = None
    sigma: Path | None = None
    shot: Shot | None = None
    unit: Unit | None = None

    @property
    def inputs(self) -> list[Path]:
        """Files that are read."""
        if self.shot is not None:
            return list(self.shot.files)
        return [path for path in (self.depth, self.guide, self.confidence) if path is not None]

    @property
    def outputs(self) -> list[tuple[str, Path]]:
        """(option, file) of everything that is written."""
        pairs = (
            ("--out", self.out),
            ("--preview", self.preview),
            ("--cloud", self.cloud),
            ("--measured", self.measured),
            ("--mesh", self.mesh),
            ("--sigma", self.sigma),
        )
        return [(option, path) for option, path in pairs if path is not None]


@dataclass(frozen=True, slots=True)
class Targets:
    """The arguments that name files, as typed."""

    depth: str
    guide: str | None
    out: Path
    confidence: Path | None = None
    preview: Path | None = None
    cloud: Path | None = None
    measured: Path | None = None
    mesh: Path | None = None
    sigma: Path | None = None

    @property
    def folders(self) -> list[Path]:
        """Where a batch writes to."""
        places = (self.out, self.preview, self.cloud, self.measured, self.mesh, self.sigma)
        return [place for place in places if place is not None]


def list_jobs(targets: Targets) -> tuple[list[Job], bool]:
    """The pairs to run, and whether they are a batch; every place to write to is checked."""
    recording = _recording(targets)
    batch = recording is not None or _is_many(targets.depth)
    if recording is not None:
        jobs = _shots(targets, recording)
    else:
        jobs = _batch(targets) if batch else [_pair(targets)]
    for job in jobs:
        for option, path in job.outputs:
            check_extension(option, path)
            check_place(option, path)
            if batch:  # the user has named the folder alone
                check_unlinked(path)
    _refuse_collisions(jobs)
    return jobs, batch


def pairs(depths: str, guides: str) -> list[tuple[Path, Path]]:
    """Return depth map and image of each frame: one pair, or those of two folders or globs."""
    found = _matches(depths) if _is_many(depths) else [Path(depths)]
    return list(zip(found, _partners(guides, "images", found), strict=True))


def _recording(t: Targets) -> Recording | None:
    """What DEPTH is without GUIDE, or depth files with a video; None for plain files."""
    if t.guide is None:
        if not is_recording(Path(t.depth)):
            raise InputError(f"Missing argument 'GUIDE': {not_a_recording(Path(t.depth))}")
        if t.confidence is not None:
            raise InputError(f"--confidence: a recording brings its own; leave it out for {t.depth}")
        return read_recording(Path(t.depth))
    film = Path(t.guide)
    if film.suffix.lower() not in VIDEOS or not film.is_file():
        return None
    depths = _matches(t.depth) if _is_many(t.depth) else [Path(t.depth)]
    return with_depths(depths, film, _trusts(t, depths))


def _shots(t: Targets, recording: Recording) -> list[Job]:
    """A job for each shot."""
    for text in (f"{recording.layout}, {len(recording)} shots", *recording.notes):
        note(f"{recording.root}: {text}")
    _check_folders(t, len(recording))
    jobs = []
    for shot in recording:
        own = shot.files[:2] if len(shot.files) > 1 else (recording.root / shot.name, recording.root)
        jobs.append(_job(t, shot.name, *own, shot=shot, unit=recording.unit))
    return jobs


def _pair(t: Targets) -> Job:
    places = (t.out, t.confidence, t.preview, t.cloud, t.measured, t.mesh, t.sigma)
    return Job(Path(t.depth), Path(str(t.guide)), *places)


def _batch(t: Targets) -> list[Job]:
    depths = _matches(t.depth)
    guides = _partners(str(t.guide), "guides", depths)
    trusts = _trusts(t, depths)
    _check_folders(t, len(depths))
    return [
        _job(t, depth.stem, depth, guide, trust)
        for depth, guide, trust in zip(depths, guides, trusts, strict=True)
    ]


def _job(
    t: Targets,
    name: str,
    depth: Path,
    guide: Path,
    confidence: Path | None = None,
    *,
    shot: Shot | None = None,
    unit: Unit | None = None,
) -> Job:
    return Job(
        depth,
        guide,
        t.out / f"{name}{_output_suffix(depth)}",
        confidence,
        t.preview and t.preview / f"{name}.png",
        t.cloud and t.cloud / f"{name}.ply",
        t.measured and t.measured / f"{name}.png",
        t.mesh and t.mesh / f"{name}.glb",
        t.sigma and t.sigma / f"{name}.npy",
        shot,
        unit,
    )


def _trusts(t: Targets, depths: Sequence[Path]) -> Sequence[Path | None]:
    if t.confidence is None:
        return [None] * len(depths)
    return _partners(str(t.confidence), "confidence maps", depths)


def _check_folders(t: Targets, count: int) -> None:
    folders = (("--out", t.out), ("--preview", t.preview), ("--cloud", t.cloud), ("--measured", t.measured))
    for option, folder in (*folders, ("--mesh", t.mesh), ("--sigma", t.sigma)):
        if folder is not None:
            _check_folder(option, folder, count)


def _is_many(name: str) -> bool:
    return not Path(name).is_file() and (Path(name).is_dir() or any(sign in name for sign in "*?["))


def _matches(name: str) -> list[Path]:
    """Files of a folder whose extension is a known format, or of a glob; 2.png before 10.png."""
    if Path(name).is_dir():
        found = [path for path in numbered(Path(name), *_READABLE) if path.is_file()]
        if not found:
            raise InputError(f"{name}: no depth or image file in this folder")
        return found
    found = [Path(path) for path in glob.glob(name, recursive=True) if Path(path).is_file()]
    if not found:
        raise InputError(f"{name}: no file matches this pattern")
    return sorted(found, key=natural_order)


def _partners(name: str, what: str, depths: Sequence[Path]) -> Sequence[Path]:
    """A file for each depth: of the same number, nearest in time, or in order; one file serves them all."""
    if not _is_many(name):
        return [Path(name)] * len(depths)
    found = _matches(name)
    ours, theirs = ({number(path): path for path in paths} for paths in (depths, found))
    if ours.keys() != theirs.keys() and (nearest := _in_time(depths, found, what)):
        return nearest
    by_last = 2 * len(ours.keys() & theirs.keys()) < len(depths) and _last_numbers(depths, found)
    ours, theirs = by_last or (ours, theirs)
    alone = _without_partner(ours, theirs, len(depths))
    if len(found) != len(depths):
        hint = alone or "they are paired in order"
        raise InputError(f"{len(depths)} depth files but {len(found)} {what} in {name}; {hint}")
    if alone:  # one is missing here and another there: their order would pair strangers
        raise InputError(alone)
    if ours.keys() == theirs.keys() and len(ours) == len(found):  # no number occurs twice
        partners = [theirs[key] for key in ours]
        if by_last:
            note(f"{what} are paired by the last number of their names: {ends(depths, partners)}")
        return partners
    note(f"{what} are paired in order: {ends(depths, found)}")
    return found


def _last_numbers(depths: Sequence[Path], found: Sequence[Path]) -> tuple[_Files, _Files] | None:
    """The files by the last number of their names, if each has its own and most depths find theirs."""
    ours, theirs = ({number(path)[-1:]: path for path in paths} for paths in (depths, found))
    numbers = all(isinstance(key[0], int) for key in (*ours, *theirs))
    unique = len(ours) == len(depths) and len(theirs) == len(found)
    most = 2 * len(ours.keys() & theirs.keys()) >= len(depths)
    return (ours, theirs) if numbers and unique and most else None


def _without_partner(ours: _Files, theirs: _Files, count: int) -> str:
    """Names those that are alone, if most of `count` depths have a partner of the same name or number."""
    common = ours.keys() & theirs.keys()
    if 2 * len(common) < count or ours.keys() == theirs.keys():
        return ""
    lost = [side[key] for side in (ours, theirs) for key in side.keys() - common]
    return f"no partner of the same name or number: {_listing(sorted(lost, key=natural_order))}"


def _in_time(depths: Sequence[Path], found: Sequence[Path], what: str) -> list[Path]:
    """The file nearest in time to each depth; none where not all names are times, or of clocks far apart."""
    ours = [time for path in depths if (time := time_stamp(path)) is not None]
    theirs = sorted((time, path) for path in found if (time := time_stamp(path)) is not None)
    if len(ours) < len(depths) or len(theirs) < len(found):
        return []
    indices = nearest_in_time(ours, [time for time, _ in theirs], math.inf)
    times, nearest = zip(*(theirs[index] for index in indices if index is not None), strict=True)
    gaps = [abs(time - other) for time, other in zip(ours, times, strict=True)]
    alone = [depth for depth, gap in zip(depths, gaps, strict=True) if gap > _TOGETHER]
    if 2 * len(alone) > len(depths):
        return []
    if alone:
        raise InputError(
            f"none of the {what} is within {_TOGETHER} s of {_listing(alone)}; move them to another folder"
        )
    if list(nearest) != list(found):
        note(f"{what} are paired by time stamp, at most {max(gaps):.3f} s apart")
    return list(nearest)


def _listing(paths: Sequence[Path]) -> str:
    """The first four."""
    more = f" and {len(paths) - 4} more" if len(paths) > 4 else ""
    return ", ".join(map(str, paths[:4])) + more


def _check_folder(option: str, folder: Path, count: int) -> None:
    named_like_file = not folder.is_dir() and folder.suffix.lower() in EXTENSIONS[option]
    if folder.is_file() or named_like_file:
        raise InputError(f"{option} {folder}: {count} depth files need a folder here, not a file")


def _output_suffix(depth: Path) -> str:
    """The input's own format, or PNG where that cannot be written."""
    return depth.suffix if depth.suffix.lower() in _WRITABLE else ".png"


def _refuse_collisions(jobs: list[Job]) -> None:
    """No result may take the place of an input or of another result."""
    inputs = {os.path.realpath(path) for job in jobs for path in job.inputs}
    taken: set[str] = set()
    for job in jobs:
        for option, path in job.outputs:
            place = os.path.realpath(path)
            if place in inputs:
                raise InputError(f"{option} {path}: would overwrite an input; choose another place")
            if place in taken:
                raise InputError(f"{option} {path}: two results would be written there; choose other places")
            taken.add(place)
