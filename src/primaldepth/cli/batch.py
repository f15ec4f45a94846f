"""Which files a call of `upsample` means: one pair, or the sorted pairs of folders and globs."""

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from primaldepth.core.errors import InputError
from primaldepth.io.formats import CODECS


@dataclass(frozen=True, slots=True)
class Job:
    """One pair and where its results go."""

    depth: Path
    guide: Path
    out: Path
    confidence: Path | None = None
    preview: Path | None = None
    cloud: Path | None = None


@dataclass(frozen=True, slots=True)
class Targets:
    """The arguments that name files, as typed."""

    depth: str
    guide: str
    out: Path
    confidence: Path | None
    preview: Path | None
    cloud: Path | None


def list_jobs(targets: Targets) -> tuple[list[Job], bool]:
    """The pairs to run, and whether they are a batch."""
    t = targets
    if not _is_many(t.depth):
        return [Job(Path(t.depth), Path(t.guide), t.out, t.confidence, t.preview, t.cloud)], False
    depths = _matches(t.depth)
    guides = _partners(t.guide, "guides", len(depths))
    trusts = (
        [None] * len(depths)
        if t.confidence is None
        else _partners(str(t.confidence), "confidence maps", len(depths))
    )
    for name, target in (("--out", t.out), ("--preview", t.preview), ("--cloud", t.cloud)):
        if target is not None and (target.suffix or target.is_file()):
            raise InputError(f"{name} {target}: {len(depths)} depth files need a folder here, not a file")
    jobs = [
        Job(
            depth,
            guide,
            t.out / f"{depth.stem}{_output_suffix(depth)}",
            trust,
            t.preview and t.preview / f"{depth.stem}.png",
            t.cloud and t.cloud / f"{depth.stem}.ply",
        )
        for depth, guide, trust in zip(depths, guides, trusts, strict=True)
    ]
    _refuse_collisions(jobs)
    return jobs, True


def _is_many(name: str) -> bool:
    return not Path(name).is_file() and (Path(name).is_dir() or any(sign in name for sign in "*?["))


def _matches(name: str) -> list[Path]:
    """Files of a folder whose extension is a known format, or of a glob; sorted."""
    if Path(name).is_dir():
        known = {extension for codec in CODECS for extension in codec.extensions}
        found = [path for path in Path(name).iterdir() if path.suffix.lower() in known and path.is_file()]
    else:
        found = [Path(path) for path in glob.glob(name, recursive=True) if Path(path).is_file()]
    if not found:
        raise InputError(f"{name}: no depth or image file there")
    return sorted(found)


def _partners(name: str, what: str, count: int) -> Sequence[Path]:
    found = _matches(name) if _is_many(name) else [Path(name)] * count
    if len(found) != count:
        raise InputError(
            f"{count} depth files but {len(found)} {what} in {name}; they are paired in sorted order"
        )
    return found


def _output_suffix(depth: Path) -> str:
    """The input's own format, or PNG where that cannot be written."""
    writable = {extension for codec in CODECS if codec.encode is not None for extension in codec.extensions}
    return depth.suffix if depth.suffix.lower() in writable else ".png"


def _refuse_collisions(jobs: list[Job]) -> None:
    seen: dict[Path, Path] = {}
    for job in jobs:
        if job.out in seen:
            raise InputError(f"{seen[job.out]} and {job.depth} would both be written to {job.out}")
        seen[job.out] = job.depth
        if job.out.exists() and job.out.samefile(job.depth):
            raise InputError(f"--out {job.out.parent}: would overwrite the input {job.depth}")
