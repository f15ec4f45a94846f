"""Filling a folder of shards so that a kill at any moment loses only what was in flight.

A finished scene is one file in `parts/`, complete and with its checksum. Once all scenes of a shard are
there the shard is written, then the manifest that names it, and only then are the parts removed. So at any
moment every finished scene is in a part or in a shard of the manifest, and all else is a leftover.
"""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from contextvars import copy_context
from pathlib import Path
from types import TracebackType

from typing_extensions import Self

from primaldepth.core.errors import InputError
from primaldepth.core.part_seconds import part
from primaldepth.data.manifest import MANIFEST, Manifest, ShardEntry
from primaldepth.data.shards import shard_problem, size_problem
from primaldepth.data.single_scenes import PARTS, SceneRow, is_whole, part_path, write_shard
from primaldepth.data.tensor_file import read_layout
from primaldepth.io.atomic import remove_leftovers
from primaldepth.io.locks import held


class ShardWriter:
    """The one writer of a folder; a context manager that holds its lock.

    Args:
        folder: made if it does not exist.
        wanted: manifest of the job, without shards; a folder that was made with anything else is refused.
        verify: compare every shard that is there with its checksum.
    """

    def __init__(self, folder: Path, wanted: Manifest, *, verify: bool = False) -> None:
        self.folder = folder
        self.damaged: list[str] = []
        self._wanted, self._verify = wanted, verify
        self._packer = ThreadPoolExecutor(1)
        self._packing: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(self.folder, "is a file, not a folder", "choose another place")
        with ExitStack() as stack:
            stack.enter_context(held(self.folder, "rendering into"))
            self._resume()
            self._lock = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._packer.shutdown(wait=True, cancel_futures=error is not None)
            if error is None:
                self.flush()
            self._remove_leftovers()
        finally:
            self._lock.close()

    def missing(self) -> list[int]:
        """Return the scenes of the job that are neither in a shard nor waiting for one."""
        stored = {scene for entry in self._shards.values() for scene in range(entry.first, entry.stop)}
        return [scene for scene in range(self.count) if scene not in stored and scene not in self._parts]

    def add(self, scene: int) -> None:
        """Note that the part of a scene has been written; write its shard if it was the last one missing."""
        self._parts.add(scene)
        self._pack_if_complete(scene // self._wanted.scenes_per_shard)
        while self._packing and self._packing[0].done():  # a full disk should not wait until the end
            self._packing.popleft().result()

    def flush(self) -> None:
        """Wait until all complete shards are on disk; raise the error if writing one failed."""
        while self._packing:
            self._packing.popleft().result()

    def _resume(self) -> None:
        self._shards = self._usable_shards()
        end = max((entry.stop for entry in self._shards.values()), default=0)
        self.count = max(self._wanted.count, end)
        self._save()
        self._parts: set[int] = set()
        self._remove_leftovers()
        self._parts = self._usable_parts()
        for group in {scene // self._wanted.scenes_per_shard for scene in self._parts}:
            self._pack_if_complete(group)

    def _usable_shards(self) -> dict[int, ShardEntry]:
        if not (self.folder / MANIFEST).exists():
            _refuse_foreign(self.folder)
            return {}
        there = Manifest.read(self.folder)
        if differences := there.differences(self._wanted):
            raise InputError(
                self.folder,
                f"holds scenes of another job: {'; '.join(differences)}",
                "repeat those settings to go on, or choose another folder",
            )
        check = shard_problem if self._verify else size_problem
        found = {entry.first // there.scenes_per_shard: check(self.folder, entry) for entry in there.shards}
        self.damaged = [text for text in found.values() if text]
        groups = {entry.first // there.scenes_per_shard: entry for entry in there.shards}
        return {group: entry for group, entry in groups.items() if not found[group]}

    def _usable_parts(self) -> set[int]:
        """Return the scenes that have a part with the right checksum; remove other parts."""
        usable = set()
        for path in sorted((self.folder / PARTS).glob("*.safetensors")):
            if path.stem.isdecimal() and is_whole(path):
                usable.add(int(path.stem))
            else:
                path.unlink()
        return usable

    def _remove_leftovers(self) -> None:
        """Remove unfinished files, shards the manifest does not name, parts that are in a shard."""
        remove_leftovers([self.folder / MANIFEST], locked=True)
        named = {entry.file for entry in self._shards.values()}
        for path in [*self.folder.glob("scenes-*.safetensors"), *self.folder.glob(".*.safetensors")]:
            if path.name not in named:
                path.unlink(missing_ok=True)
        stored = {scene for entry in self._shards.values() for scene in range(entry.first, entry.stop)}
        for path in (self.folder / PARTS).glob("*"):
            if path.name.startswith(".") or (path.stem.isdecimal() and int(path.stem) in stored):
                path.unlink(missing_ok=True)
        with suppress(OSError):  # it stays while parts wait in it
            (self.folder / PARTS).rmdir()

    def _scenes(self, group: int) -> range:
        size = self._wanted.scenes_per_shard
        return range(group * size, min((group + 1) * size, self.count))

    def _pack_if_complete(self, group: int) -> None:
        entry = self._shards.get(group)
        stored = range(entry.first, entry.stop) if entry else range(0)
        new = [scene for scene in self._scenes(group) if scene not in stored]
        if new and self._parts.issuperset(new):
            self._packing.append(self._packer.submit(copy_context().run, self._pack, group))

    def _pack(self, group: int) -> None:
        scenes, old = self._scenes(group), self._shards.get(group)
        rows = [self._row(scene, old) for scene in scenes]
        name = f"scenes-{scenes.start:09d}-{scenes.stop:09d}.safetensors"
        with part("shards"):
            digest, size = write_shard(self.folder / name, rows)
        entry = ShardEntry(file=name, first=scenes.start, count=len(scenes), bytes=size, sha256=digest)
        self._shards[group] = entry
        self._save()
        if old and old.file != name:
            (self.folder / old.file).unlink()
        for scene in scenes:
            part_path(self.folder, scene).unlink(missing_ok=True)

    def _row(self, scene: int, old: ShardEntry | None) -> SceneRow:
        if old and old.first <= scene < old.stop:
            path = self.folder / old.file
            return SceneRow(path, read_layout(path), scene - old.first)
        path = part_path(self.folder, scene)
        return SceneRow(path, read_layout(path), 0)

    def _save(self) -> None:
        shards = tuple(self._shards[group] for group in sorted(self._shards))
        self._wanted.model_copy(update={"count": self.count, "shards": shards}).write(self.folder)


def _refuse_foreign(folder: Path) -> None:
    """Raise an error if a folder without a manifest is not empty: its files are somebody else's."""
    strangers = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if strangers:
        raise InputError(
            folder,
            f"holds other files ({', '.join(strangers[:3])}) and no manifest.json",
            "choose an empty folder",
        )
