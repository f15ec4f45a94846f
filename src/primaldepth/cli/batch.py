"""Which files a call of `upsample` means: one pair, or the sorted pairs of folders and globs."""

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from primaldepth.cli.places import EXTENSIONS, check_extension, check_place
from primaldepth.core.errors import InputError
from primaldepth.io.formats import CODECS

_READABLE = frozenset(extension for codec in CODECS for extension in codec.extensions)
_WRITABLE = EXTENSIONS["--out"]


@dataclass(frozen=True, slots=True)
class Job:
    """One pair and where its results go."""

    depth: Path
    guide: Path
    out: Path
    confidence: Path | None = None
    preview: Path | None = None
    cloud: Path | None = None
    measured: Path | None = None
    mesh: Path | None = None

    @property
    def inputs(self) -> list[Path]:
        """Files that are read."""
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
        )
        return [(option, path) for option, path in pairs if path is not None]


@dataclass(frozen=True, slots=True)
class Targets:
    """The arguments that name files, as typed."""

    depth: str
    guide: str
    out: Path
    confidence: Path | None = None
    preview: Path | None = None
    cloud: Path | None = None
    measured: Path | None = None
    mesh: Path | None = None


def list_jobs(targets: Targets) -> tuple[list[Job], bool]:
    """The pairs to run, and whether they are a batch; every place to write to is checked."""
    batch = _is_many(targets.depth)
    jobs = _batch(targets) if batch else [_pair(targets)]
    for job in jobs:
        for option, path in job.outputs:
            check_extension(option, path)
            check_place(option, path)
    _refuse_collisions(jobs)
    return jobs, batch


def _pair(t: Targets) -> Job:
    return Job(Path(t.depth), Path(t.guide), t.out, t.confidence, t.preview, t.cloud, t.measured, t.mesh)


def _batch(t: Targets) -> list[Job]:
    depths = _matches(t.depth)
    guides = _partners(t.guide, "guides", len(depths))
    trusts: Sequence[Path | None] = [None] * len(depths)
    if t.confidence is not None:
        trusts = _partners(str(t.confidence), "confidence maps", len(depths))
    folders = (("--out", t.out), ("--preview", t.preview), ("--cloud", t.cloud), ("--measured", t.measured))
    for option, folder in (*folders, ("--mesh", t.mesh)):
        if folder is not None:
            _check_folder(option, folder, len(depths))
    return [
        Job(
            depth,
            guide,
            t.out / f"{depth.stem}{_output_suffix(depth)}",
            trust,
            t.preview and t.preview / f"{depth.stem}.png",
            t.cloud and t.cloud / f"{depth.stem}.ply",
            t.measured and t.measured / f"{depth.stem}.png",
            t.mesh and t.mesh / f"{depth.stem}.glb",
        )
        for depth, guide, trust in zip(depths, guides, trusts, strict=True)
    ]


def _is_many(name: str) -> bool:
    return not Path(name).is_file() and (Path(name).is_dir() or any(sign in name for sign in "*?["))


def _matches(name: str) -> list[Path]:
    """Files of a folder whose extension is a known format, or of a glob; sorted."""
    if Path(name).is_dir():
        found = [path for path in Path(name).iterdir() if path.suffix.lower() in _READABLE and path.is_file()]
        if not found:
            raise InputError(f"{name}: no depth or image file in this folder")
    else:
        found = [Path(path) for path in glob.glob(name, recursive=True) if Path(path).is_file()]
        if not found:
            raise InputError(f"{name}: no file matches this pattern")
    return sorted(found)


def _partners(name: str, what: str, count: int) -> Sequence[Path]:
    found = _matches(name) if _is_many(name) else [Path(name)] * count
    if len(found) != count:
        raise InputError(
            f"{count} depth files but {len(found)} {what} in {name}; they are paired in sorted order"
        )
    return found


def _check_folder(option: str, folder: Path, count: int) -> None:
    named_like_file = not folder.is_dir() and folder.suffix.lower() in EXTENSIONS[option]
    if folder.is_file() or named_like_file:
        raise InputError(f"{option} {folder}: {count} depth files need a folder here, not a file")


def _output_suffix(depth: Path) -> str:
    """The input's own format, or PNG where that cannot be written."""
    return depth.suffix if depth.suffix.lower() in _WRITABLE else ".png"


def _refuse_collisions(jobs: list[Job]) -> None:
    """No result may take the place of an input or of another result."""
    inputs = {path.resolve() for job in jobs for path in job.inputs}
    taken: set[Path] = set()
    for job in jobs:
        for option, path in job.outputs:
            place = path.resolve()
            if place in inputs:
                raise InputError(f"{option} {path}: would overwrite an input; choose another place")
            if place in taken:
                raise InputError(f"{option} {path}: two results would be written there; choose other places")
            taken.add(place)
