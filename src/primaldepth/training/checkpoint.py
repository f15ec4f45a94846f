"""Checkpoints: a state in files of at most 16 MiB, which another machine can go on from, bit for bit.

    checkpoint.json                        list of the pieces with their checksums
    checkpoint-<name>.safetensors.000      the pieces: one safetensors file, cut
    checkpoint-<name>.safetensors.001

The pieces of a new checkpoint have a new name. The new list replaces the old one when they are all written,
and only then are the old pieces deleted: a kill at any moment leaves one whole checkpoint.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, TypeAdapter, ValidationError
from torch import Tensor

from primaldepth.core.documents import RECORDED, parse_json
from primaldepth.core.errors import FileFormatError, PrimalDepthError, shortened
from primaldepth.core.settings import Settings
from primaldepth.io.atomic import write_bytes
from primaldepth.io.files import read_file, read_json
from primaldepth.training.state import Position, TrainState

LIST, PIECE = "checkpoint.json", "checkpoint-*.safetensors.*"
LARGEST = 2**24  # bytes of a piece
PARTS = ("weights", "average", "best", "optimiser")  # of a state, all of them tensors by name


class _Piece(Settings):
    file: Annotated[str, Field(pattern=r"^checkpoint-[0-9a-f]{16}\.safetensors\.[0-9]{3}$")]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _Pieces(Settings):
    format: Literal["primaldepth-checkpoint 2"] = "primaldepth-checkpoint 2"
    pieces: Annotated[tuple[_Piece, ...], Field(min_length=1, max_length=1000)]


@dataclass(frozen=True, slots=True)
class _Notes:
    """The part of a state that is no tensor."""

    recipe: str
    scenes: str
    position: Position


def write_checkpoint(folder: Path, state: TrainState) -> None:
    """Replace the checkpoint in a folder."""
    data = encoded(state)
    name = hashlib.sha256(data).hexdigest()[:16]
    pieces = []
    for number, start in enumerate(range(0, len(data), LARGEST)):
        piece, file = data[start : start + LARGEST], f"checkpoint-{name}.safetensors.{number:03d}"
        write_bytes(folder / file, piece)
        pieces.append(_Piece(file=file, sha256=hashlib.sha256(piece).hexdigest()))
    listed = _Pieces(pieces=tuple(pieces))
    write_bytes(folder / LIST, (listed.model_dump_json(indent=1) + "\n").encode())
    _remove_others(folder, listed)


def read_checkpoint(folder: Path) -> TrainState | None:
    """Read the checkpoint in a folder onto the CPU; None if there is none.

    Raises:
        FileFormatError: a piece is missing, or something is damaged or was not written by us.
    """
    path = folder / LIST
    if not path.exists():
        return None
    try:
        values = read_json(path, what="list of a checkpoint's pieces")
        listed = _Pieces.parse(values if isinstance(values, dict) else {}, str(path))
        data = b"".join(_read_piece(folder, piece) for piece in listed.pieces)
    except PrimalDepthError as error:
        raise FileFormatError(f"{error}; remove {path} to start the run again") from error
    return decoded(data, path)


def _read_piece(folder: Path, piece: _Piece) -> bytes:
    data = read_file(folder / piece.file, LARGEST)
    if hashlib.sha256(data).hexdigest() != piece.sha256:
        raise FileFormatError(folder / piece.file, "differs from its checksum")
    return data


def _remove_others(folder: Path, listed: _Pieces) -> None:
    """Delete the pieces of other checkpoints, and what a kill has left of some."""
    kept = {piece.file for piece in listed.pieces}
    for path in (*folder.glob(PIECE), *folder.glob(f".{PIECE}")):
        if path.name not in kept:
            path.unlink(missing_ok=True)


def encoded(state: TrainState) -> bytes:
    """Return a state as one safetensors file; its tensor `notes` is JSON."""
    from safetensors.torch import save

    position = _as_json(asdict(state.position))
    notes = json.dumps({"recipe": state.recipe, "scenes": state.scenes, "position": position})
    tensors = {  # copies, because averages may share memory with weights, which the format refuses
        f"{part}/{name}": value.detach().cpu().contiguous().clone()
        for part in PARTS
        for name, value in getattr(state, part).items()
    }
    return save({**tensors, "notes": torch.frombuffer(bytearray(notes.encode()), dtype=torch.uint8)})


def decoded(data: bytes, path: Path) -> TrainState:
    """Return the state that `encoded` was given; `path` names it in errors."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    named: dict[str, dict[str, Tensor]] = {part: {} for part in PARTS}
    try:
        tensors = load(data)
        text = tensors.pop("notes").numpy().tobytes().decode()
        for name, value in tensors.items():
            part, _, rest = name.partition("/")
            named[part][rest] = value
        values = parse_json(text, path, what="checkpoint", limits=RECORDED)
        notes = TypeAdapter(_Notes).validate_python(values)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        reason = ".".join(map(str, error.errors()[0]["loc"])) if isinstance(error, ValidationError) else error
        raise FileFormatError(
            path, f"not a checkpoint ({shortened(str(reason))})", "remove it to start the run again"
        ) from error
    return TrainState(notes.recipe, notes.scenes, notes.position, **named)


def _as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same with NaN and infinities as text, which JSON has no numbers for."""
    plain: dict[str, Any] = {}
    for name, value in values.items():
        endless = isinstance(value, float) and not math.isfinite(value)
        plain[name] = _as_json(value) if isinstance(value, Mapping) else str(value) if endless else value
    return plain
