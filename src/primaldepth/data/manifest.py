"""`manifest.json` of a folder of shards: what the scenes were made with, and the checksum of every shard."""

import itertools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator
from typing_extensions import Self

from primaldepth.core.documents import RECORDED
from primaldepth.core.errors import FileFormatError, InputError, MissingFileError, shortened
from primaldepth.core.settings import Settings
from primaldepth.io.atomic import write_bytes
from primaldepth.io.files import read_json

MANIFEST = "manifest.json"
SCENES_PER_SHARD = 64
MOST_SCENES = 2**22  # of a job: their numbers are kept in lists

_Count = Annotated[int, Field(ge=0, le=MOST_SCENES, strict=True)]
_Positive = Annotated[int, Field(ge=1, le=MOST_SCENES, strict=True)]


class ShardEntry(Settings):
    """A file of the manifest, which holds the scenes first .. first + count - 1 in order."""

    file: Annotated[str, Field(pattern=r"^[\w.-]+\.safetensors$")]
    first: _Count
    count: _Positive
    bytes: Annotated[int, Field(ge=1, le=2**48, strict=True)]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]

    @property
    def stop(self) -> int:
        """Number after that of the last scene."""
        return self.first + self.count


class Manifest(Settings):
    """What is in a folder of shards; equal jobs have equal manifests, byte for byte.

    Args:
        made_with: every setting the bytes depend on.
        versions: the packages they depend on.
        count: scenes of the whole job; shards appear as they are finished.
    """

    format: Literal["primaldepth-shards"] = "primaldepth-shards"
    version: Literal[1] = 1
    made_with: dict[str, str | int | None]
    versions: dict[str, str]
    scenes_per_shard: _Positive = SCENES_PER_SHARD
    count: _Count
    shards: tuple[ShardEntry, ...] = ()

    @field_validator("shards")
    @classmethod
    def _apart(cls, shards: tuple[ShardEntry, ...]) -> tuple[ShardEntry, ...]:
        """Raise an error if two shards hold scenes of the same number or have the same file."""
        for before, entry in itertools.pairwise(sorted(shards, key=lambda each: each.first)):
            if entry.first < before.stop:
                raise ValueError(f"two shards hold scene {entry.first}")
        if len({entry.file for entry in shards}) < len(shards):
            raise ValueError("two shards are in one file")
        return shards

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Self:
        """Read the manifest of a folder; an error says what is wrong with it."""
        path = Path(folder) / MANIFEST
        if Path(folder).exists() and not Path(folder).is_dir():
            raise InputError(folder, "not a folder", "make one with 'primaldepth render'")
        try:
            values = read_json(path, what="readable manifest", limits=RECORDED)
        except MissingFileError as error:
            what = "holds no rendered scenes (no manifest.json)" if Path(folder).is_dir() else "not a folder"
            raise InputError(folder, f"{what}", "make some with 'primaldepth render'") from error
        if not isinstance(values, dict) or values.get("format") != "primaldepth-shards":
            raise FileFormatError(path, "not a manifest of rendered scenes")
        if values.get("version") != 1:
            found = shortened(values.get("version"))
            raise FileFormatError(path, f"format version {found}, this program reads 1", "update primaldepth")
        return cls.parse(values, str(path))

    def write(self, folder: Path) -> None:
        """Replace the manifest of a folder atomically; a shard is one line."""
        values = self.model_dump()
        shards = values.pop("shards")
        head = json.dumps(values, indent=1).removesuffix("\n}")
        lines = ",".join("\n  " + json.dumps(shard) for shard in shards)
        write_bytes(folder / MANIFEST, f'{head},\n "shards": [{lines}\n ]\n}}\n'.encode())

    def differences(self, other: "Manifest") -> list[str]:
        """Return in words each setting in which `other` differs from this manifest."""
        mine = {**self.made_with, **_prefixed(self.versions), "scenes per shard": self.scenes_per_shard}
        theirs = {**other.made_with, **_prefixed(other.versions), "scenes per shard": other.scenes_per_shard}
        keys = dict.fromkeys([*mine, *theirs])
        return [
            f"{key} is {shortened(mine.get(key))} there and {shortened(theirs.get(key))} now"
            for key in keys
            if mine.get(key) != theirs.get(key)
        ]


def _prefixed(versions: Mapping[str, str]) -> dict[str, Any]:
    return {f"version of {name}": version for name, version in versions.items()}
