"""Rendered scenes on disk: read one, or stream many into CPU or GPU memory at memory speed."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.data.manifest import Manifest, ShardEntry
from primaldepth.data.tensor_file import Array, ArraySpec, TensorFileLayout, read_arrays, read_layout
from primaldepth.io.files import sha256_of

_CHUNK = 32 << 20  # bytes per read: enough to be fast, small enough to spread over threads
_REPAIR = "'primaldepth render --verify' makes it again"
KNOWN: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "depth": ("float32", (0, 0)),
    "valid": ("bool", (0, 0)),
    "image": ("uint8", (0, 0, 3)),
    "guide_camera": ("float64", (4,)),
}
"""Type and shape of the arrays of a scene that others read; 0 stands for any size."""


class Shards:
    """The finished scenes of a folder, in the order of their numbers.

    Args:
        folder: what `primaldepth render --out` made; it may still be incomplete.
        verify: compare every shard with its checksum first.
    """

    def __init__(self, folder: str | os.PathLike[str], *, verify: bool = False) -> None:
        self.folder = Path(folder)
        self.manifest = Manifest.read(folder)
        self._starts = [0, *accumulate(entry.count for entry in self.manifest.shards)]
        if verify and (found := shard_problems(self.folder, self.manifest)):
            raise FileFormatError(f"{'; '.join(found)}; 'primaldepth render --verify' makes them again")
        self.specs = self._record_specs()

    def __len__(self) -> int:
        return self._starts[-1]

    @property
    def missing(self) -> int:
        """Return the scenes of the job that are not in a shard yet."""
        return self.manifest.count - len(self)

    @property
    def scenes(self) -> list[int]:
        """The number of each scene in the job; 0 .. len - 1 if none is missing."""
        return [scene for entry in self.manifest.shards for scene in range(entry.first, entry.stop)]

    def __getitem__(self, index: int) -> dict[str, Array]:
        """Return the arrays of one scene as read-only views of the file."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"scene {index} of {len(self)}")
        index %= len(self)
        shard = int(np.searchsorted(self._starts, index, side="right")) - 1
        entry = self.manifest.shards[shard]
        self._layout(entry)
        arrays = read_arrays(self.folder / entry.file)
        return {name: array[index - self._starts[shard]] for name, array in arrays.items()}

    def __iter__(self) -> Iterator[dict[str, Array]]:
        for entry in self.manifest.shards:
            self._layout(entry)
            arrays = read_arrays(self.folder / entry.file)
            for row in range(entry.count):
                yield {name: array[row] for name, array in arrays.items()}

    def load(
        self,
        device: str | torch.device = "cpu",
        keys: Sequence[str] | None = None,
        *,
        start: int = 0,
        stop: int | None = None,
        out: Mapping[str, Tensor] | None = None,
        threads: int | None = None,
    ) -> dict[str, Tensor]:
        """Load scenes start .. stop - 1 as one tensor per array, (stop - start, ...), on `device`.

        Memory that was just allocated has to be cleared by the system first, which costs several times more
        than the copy; who reads range after range hands the tensors of the first call back as `out`.

        Args:
            device: where the tensors are made; a GPU is fed through pinned memory.
            keys: which arrays; all of them if None.
            start: first scene.
            stop: one past the last scene; all if None.
            out: tensors of this type and shape to fill; they are returned.
            threads: parallel reads; as many as there are cores, at most 8, if None.
        """
        names = list(self.specs) if keys is None else list(keys)
        first, last, _ = slice(start, stop).indices(len(self))
        count = max(0, last - first)
        result = {name: self._target(name, count, torch.device(device), out) for name in names}
        reads = [read for name in names for read in self._reads(name, first, last)]
        with ThreadPoolExecutor(threads or min(8, os.cpu_count() or 1)) as pool:
            for _ in pool.map(lambda read: read.into(result[read.name][read.start : read.stop]), reads):
                pass
        if torch.device(device).type == "cuda":
            torch.cuda.synchronize(device)
        return result

    def check(self, *names: str) -> None:
        """Raise an error unless every scene has these arrays in the types and shapes of `KNOWN`."""
        for name in names:
            spec, (dtype, shape) = self._spec(name), KNOWN[name]
            fits = len(spec.shape) == len(shape) and all(
                side == wanted if wanted else side > 0 for side, wanted in zip(spec.shape, shape, strict=True)
            )
            if spec.dtype != np.dtype(dtype) or not fits:
                sides = ", ".join(str(side or "n") for side in shape)
                raise FileFormatError(
                    self.folder, f"'{name}' is {spec}, expected {dtype}[{sides}]", "render the scenes again"
                )
        sizes = {self.specs[name].shape[:2] for name in names if len(KNOWN[name][1]) > 1}
        if len(sizes) > 1:
            raise FileFormatError(self.folder, "maps of different sizes", "render the scenes again")

    def _spec(self, name: str) -> ArraySpec:
        if name not in self.specs:
            raise InputError(
                self.folder, f"no array '{name}'", f"there are {', '.join(self.specs) or 'none'}"
            )
        return self.specs[name]

    def _record_specs(self) -> Mapping[str, ArraySpec]:
        if not self.manifest.shards:
            return {}
        return self._layout(self.manifest.shards[0], check_specs=False).row_specs

    def _layout(self, entry: ShardEntry, *, check_specs: bool = True) -> TensorFileLayout:
        path = self.folder / entry.file
        layout = read_layout(path)
        if layout.nbytes != entry.bytes or any(
            spec.shape[:1] != (entry.count,) for spec in layout.specs.values()
        ):
            raise FileFormatError(path, "is not the file its manifest describes", _REPAIR)
        if check_specs and layout.row_specs != self.specs:
            raise FileFormatError(path, "other arrays than in the first shard of the folder", _REPAIR)
        return layout

    def _target(
        self, name: str, count: int, device: torch.device, out: Mapping[str, Tensor] | None
    ) -> Tensor:
        spec = self._spec(name)
        dtype = torch.from_numpy(np.empty(0, spec.dtype)).dtype
        shape = (count, *spec.shape)
        if out is None or name not in out:
            return torch.empty(shape, dtype=dtype, device=device)
        given = out[name]
        fits = given.shape == shape and given.dtype == dtype and given.is_contiguous()
        if not fits or given.device.type != device.type:
            found = f"{given.dtype} {tuple(given.shape)} on {given.device}"
            raise InputError(f"out['{name}'] is {found}, expected contiguous {dtype} {shape} on {device}")
        return given

    def _reads(self, name: str, first: int, last: int) -> Iterator["_Read"]:
        """Return reads of at most about `_CHUNK` bytes each that cover scenes first .. last - 1."""
        size = self.specs[name].nbytes
        step = max(1, _CHUNK // max(size, 1))
        for entry, begin in zip(self.manifest.shards, self._starts, strict=False):
            low, high = max(first, begin), min(last, begin + entry.count)
            if low >= high:
                continue
            offset = self._layout(entry).offsets[name]
            for row in range(low, high, step):
                end = min(row + step, high)
                place = offset + (row - begin) * size
                yield _Read(self.folder / entry.file, name, place, row - first, end - first)


@dataclass(frozen=True, slots=True)
class _Read:
    """One read from a file: rows start .. stop - 1 of the array `name` begin at the byte `offset`."""

    path: Path
    name: str
    offset: int
    start: int
    stop: int

    def into(self, target: Tensor) -> None:
        """Fill the tensor `target`, on whatever device it is."""
        if target.device.type == "cpu":
            self._fill(target)
            return
        staging = torch.empty_like(target, device="cpu", pin_memory=target.device.type == "cuda")
        self._fill(staging)
        target.copy_(staging, non_blocking=True)  # torch keeps pinned memory until the copy is done

    def _fill(self, target: Tensor) -> None:
        view = target.view(-1).view(torch.uint8).numpy().data
        with open(self.path, "rb", buffering=0) as file:
            file.seek(self.offset)
            done = 0
            while done < len(view):
                count = file.readinto(view[done:])
                if not count:
                    raise FileFormatError(self.path, "cut short", _REPAIR)
                done += count


def shard_problems(folder: Path, manifest: Manifest) -> list[str]:
    """Say in words what is wrong with each shard that is missing or differs from its checksum."""
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        found = pool.map(lambda entry: shard_problem(folder, entry), manifest.shards)
        return [text for text in found if text]


def shard_problem(folder: Path, entry: ShardEntry) -> str | None:
    """Say what is wrong with a shard: missing, another size, another checksum; None if nothing is."""
    path = folder / entry.file
    if text := size_problem(folder, entry):
        return text
    with open(path, "rb") as file:
        found = sha256_of(file)
    return None if found == entry.sha256 else f"{path}: differs from its checksum"


def size_problem(folder: Path, entry: ShardEntry) -> str | None:
    """Say whether a shard is missing or has another size, without reading it; None if neither."""
    path = folder / entry.file
    if not path.is_file():
        return f"{path}: missing"
    size = path.stat().st_size
    return None if size == entry.bytes else f"{path}: {size} bytes, {entry.bytes} expected"
