"""Single scenes in files of their own, and their stacking into a shard."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.data.tensor_file import (
    Array,
    ArraySpec,
    TensorFileLayout,
    data_chunks,
    file_order,
    header,
    read_layout,
    specs_of,
)
from primaldepth.io.atomic import atomic_path
from primaldepth.io.files import open_file, sha256_of

PARTS = "parts"


def part_path(folder: Path, scene: int) -> Path:
    """Return the file in which a finished scene waits for its shard."""
    return folder / PARTS / f"{scene:09d}.safetensors"


def write_part(folder: Path, scene: int, arrays: Mapping[str, Array]) -> None:
    """Store one finished scene, whole or not at all; any process may do this.

    The bytes depend on the arrays alone. The file is not synced: it outlives a killed process, its checksum
    shows damage by a power cut, and most parts are in a shard before the disk would have them.

    Args:
        folder: of the shards.
        scene: its number in the job.
        arrays: of the scene, by name.
    """
    records = {name: array[None] for name, array in arrays.items()}
    digest = hashlib.sha256()
    for chunk in data_chunks(records):
        digest.update(chunk)
    with atomic_path(part_path(folder, scene), sync=False) as temporary, open(temporary, "wb") as file:
        file.write(header(specs_of(records), {"sha256": digest.hexdigest()}))
        for chunk in data_chunks(records):
            file.write(chunk)


def is_whole(path: Path) -> bool:
    """Return whether the data of a part has the checksum in its header."""
    try:
        layout = read_layout(path)
    except InputError:
        return False
    with open_file(path) as file:
        file.seek(min(layout.offsets.values(), default=0))
        return sha256_of(file) == layout.notes.get("sha256")


@dataclass(frozen=True, slots=True)
class SceneRow:
    """One scene in a file of scenes."""

    path: Path
    layout: TensorFileLayout
    row: int

    def read(self, name: str) -> bytes:
        """Return the bytes of one array of the scene."""
        size = self.layout.row_specs[name].nbytes
        with open(self.path, "rb", buffering=0) as file:
            file.seek(self.layout.offsets[name] + self.row * size)
            data = file.read(size)
        if len(data) != size:
            raise FileFormatError(self.path, "cut short while it was read", "start again")
        return data


def write_shard(path: Path, rows: list[SceneRow]) -> tuple[str, int]:
    """Stack scenes array by array into one file; return its SHA-256 and size."""
    specs = rows[0].layout.row_specs
    for row in rows:
        if row.layout.row_specs != specs:
            raise FileFormatError(
                row.path, f"other arrays than in {rows[0].path}", "remove both and start again"
            )
    stacked = {name: ArraySpec(spec.dtype, (len(rows), *spec.shape)) for name, spec in specs.items()}
    digest, size = hashlib.sha256(), 0
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        for chunk in _shard_chunks(stacked, rows):
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
    return digest.hexdigest(), size


def _shard_chunks(stacked: Mapping[str, ArraySpec], rows: list[SceneRow]) -> Iterator[bytes]:
    yield header(stacked, {"format": "primaldepth-shards 1"})
    for name in file_order(stacked):
        for row in rows:
            yield row.read(name)
