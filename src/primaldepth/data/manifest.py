"""`manifest.json` of a folder of shards: what the scenes were made with, and the checksum of every shard."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.core.settings import Settings
from primaldepth.io.atomic import write_bytes

MANIFEST = "manifest.json"
SCENES_PER_SHARD = 64

_Count = Annotated[int, Field(ge=0, strict=True)]
_Positive = Annotated[int, Field(ge=1, strict=True)]


class ShardEntry(Settings):
    """One file: scenes first .. first + count - 1, in order."""

    file: Annotated[str, Field(pattern=r"^[\w.-]+\.safetensors$")]
    first: _Count
    count: _Positive
    bytes: _Positive
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]

    @property
    def stop(self) -> int:
        """One past the last scene."""
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

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Self:
        """The manifest of a folder; an error says why it is none."""
        path = Path(folder) / MANIFEST
        try:
            values = json.loads(path.read_bytes())
        except FileNotFoundError as error:
            what = "holds no rendered scenes (no manifest.json)" if Path(folder).is_dir() else "not a folder"
            raise InputError(f"{folder}: {what}; make some with 'primaldepth render'") from error
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise FileFormatError(f"{path}: not a readable manifest ({error})") from error
        if not isinstance(values, dict) or values.get("format") != "primaldepth-shards":
            raise FileFormatError(f"{path}: not a manifest of rendered scenes")
        if values.get("version") != 1:
            found = values.get("version")
            raise FileFormatError(f"{path}: format version {found}, this program reads 1; update primaldepth")
        return cls.parse(values, str(path))

    def write(self, folder: Path) -> None:
        """Replace the manifest of a folder atomically; a shard is one line."""
        values = self.model_dump()
        shards = values.pop("shards")
        head = json.dumps(values, indent=1).removesuffix("\n}")
        lines = ",".join("\n  " + json.dumps(shard) for shard in shards)
        write_bytes(folder / MANIFEST, f'{head},\n "shards": [{lines}\n ]\n}}\n'.encode())

    def differences(self, other: "Manifest") -> list[str]:
        """What `other` would be made with instead, one text per difference."""
        mine = {**self.made_with, **_prefixed(self.versions), "scenes per shard": self.scenes_per_shard}
        theirs = {**other.made_with, **_prefixed(other.versions), "scenes per shard": other.scenes_per_shard}
        keys = dict.fromkeys([*mine, *theirs])
        return [
            f"{key} is {mine.get(key)!r} there and {theirs.get(key)!r} now"
            for key in keys
            if mine.get(key) != theirs.get(key)
        ]


def _prefixed(versions: Mapping[str, str]) -> dict[str, Any]:
    return {f"version of {name}": version for name, version in versions.items()}
