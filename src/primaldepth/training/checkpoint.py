"""Checkpoints: one safetensors file, written whole or not at all, from which a run goes on bit for bit."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field, TypeAdapter, ValidationError
from torch import Tensor

from primaldepth.core.documents import RECORDED, parse_json
from primaldepth.core.errors import SHOWN, FileFormatError, InputError, shortened
from primaldepth.io.atomic import write_bytes
from primaldepth.io.files import open_file, reading

FORMAT = "primaldepth-checkpoint 1"
_LONGEST_HEADER = 2**25
_Count = Annotated[int, Field(ge=0)]
FREE = ("on_nan", "checkpoint_every")  # keys of a recipe that do not change what is learned


@dataclass(slots=True)
class Position:
    """Where a run stands, and what it has found so far.

    Args:
        stage: index of the stage.
        step: steps done in it.
        seconds: spent so far.
        best: lowest validation score of the stage, None before the first.
        waited: validations since then.
        scores: of the best weights.
        loss: summed over the steps that the log does not tell of yet.
        unlogged: how many steps these are.
    """

    stage: _Count = 0
    step: _Count = 0
    seconds: float = 0.0
    best: float | None = None
    waited: _Count = 0
    scores: dict[str, float] = field(default_factory=dict)
    loss: float = 0.0
    unlogged: _Count = 0


@dataclass(frozen=True, slots=True)
class _OptimiserNotes:
    """What of an optimiser's state is no tensor."""

    param_groups: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Notes:
    """What the file says beside its tensors."""

    recipe: str
    scenes: str
    position: Position
    optimiser: _OptimiserNotes


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything a run needs to go on; `recipe` is the resolved one as JSON, `scenes` names the data."""

    recipe: str
    scenes: str
    position: Position
    weights: dict[str, Tensor]
    average: dict[str, Tensor]
    best: dict[str, Tensor]
    optimiser: dict[str, Any]

    def write(self, path: Path) -> None:
        """Atomically."""
        from safetensors.torch import save

        tensors, state = _flattened(self.optimiser)
        for prefix in ("weights", "average", "best"):
            tensors |= {f"{prefix}/{name}": value for name, value in getattr(self, prefix).items()}
        notes = json.dumps(
            {
                "recipe": self.recipe,
                "scenes": self.scenes,
                "position": _as_json(asdict(self.position)),
                "optimiser": state,
            }
        )
        # a copy each: averages may share memory with weights, which the format refuses
        copies = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
        write_bytes(path, save(copies, {"format": FORMAT, "notes": notes, "sha256": _digest(copies, notes)}))


def read_checkpoint(path: Path) -> Checkpoint:
    """What `Checkpoint.write` wrote, on the CPU; a damaged or foreign file is named and refused."""
    metadata, tensors = _opened(path)
    if metadata.get("format") != FORMAT:
        raise FileFormatError(f"{path}: not a checkpoint of this version; start the run in another folder")
    if metadata.get("sha256") != _digest(tensors, metadata.get("notes", "")):
        raise FileFormatError(f"{path}: differs from its checksum; remove it to start the run again")
    notes = _notes(path, metadata.get("notes", ""))
    named: dict[str, dict[str, Tensor]] = {"weights": {}, "average": {}, "best": {}, "optimiser": {}}
    for name, value in tensors.items():
        prefix, _, rest = name.partition("/")
        if prefix not in named:
            raise FileFormatError(
                f"{path}: unknown tensor {shortened(name)}; remove it to start the run again"
            )
        named[prefix][rest] = value
    return Checkpoint(
        notes.recipe,
        notes.scenes,
        notes.position,
        named["weights"],
        named["average"],
        named["best"],
        _restored(path, notes.optimiser, named["optimiser"]),
    )


def _opened(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Notes and tensors of a safetensors file whose header is not absurdly long."""
    from safetensors import SafetensorError, safe_open

    with open_file(path) as file, reading(path):
        length = int.from_bytes(file.read(8), "little")
    try:
        if length > _LONGEST_HEADER:
            raise ValueError("the header is too long")
        with safe_open(path, framework="pt", device="cpu") as archive:
            names = archive.keys()
            return archive.metadata() or {}, {name: archive.get_tensor(name) for name in names}
    except (SafetensorError, OSError, ValueError) as error:
        reason = shortened(str(error))
        raise FileFormatError(
            f"{path}: truncated or not a checkpoint ({reason}); remove it to start the run again"
        ) from error


def _notes(path: Path, text: str) -> _Notes:
    values = parse_json(text, path, what="checkpoint", limits=RECORDED)
    try:
        return TypeAdapter(_Notes).validate_python(values)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise FileFormatError(
            f"{path}: not a checkpoint ({shortened(where)} is missing or wrong); remove it to start again"
        ) from error


def check_same_run(folder: Path, stored: Checkpoint, recipe: str, scenes: str) -> None:
    """A run can only go on with the recipe and the scenes it was started with; FREE keys may change."""
    before = parse_json(stored.recipe, folder / "checkpoint", what="recipe")
    now = json.loads(recipe)
    changed = [text for text in _differences(before, now) if text.split(" ")[0] not in FREE]
    if stored.scenes != scenes:
        changed.append(f"the scenes are '{stored.scenes}' there and '{scenes}' now")
    if changed:
        raise InputError(
            f"{folder}: holds a run of another recipe: {'; '.join(changed)}; "
            "repeat that one to go on, or choose another folder"
        )


def check_fits(folder: Path, stored: Checkpoint, net: torch.nn.Module) -> None:
    """Raise unless the stored weights have the names and shapes of the network's."""
    wanted = {name: value.shape for name, value in net.state_dict().items()}
    for part in (stored.weights, stored.average, stored.best):
        if part and {name: value.shape for name, value in part.items()} != wanted:
            raise FileFormatError(
                f"{folder}: the checkpoint's weights are not those of its recipe; "
                "remove it to start the run again"
            )


def _differences(before: Any, now: Any, key: str = "") -> Iterator[str]:
    """One text per value that differs, with its dotted key."""
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        before, now = dict(enumerate(before)), dict(enumerate(now))
    if isinstance(before, dict) and isinstance(now, dict):
        for name in dict.fromkeys([*before, *now]):
            inner = f"{key}.{name}" if key else str(name)
            yield from _differences(before.get(name), now.get(name), inner)
    elif before != now:
        yield f"{key} is {_cut(before)} there and {_cut(now)} now"


def _as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same, but NaN and infinities as text, which JSON has no numbers for."""
    plain: dict[str, Any] = {}
    for name, value in values.items():
        endless = isinstance(value, float) and not math.isfinite(value)
        plain[name] = _as_json(value) if isinstance(value, Mapping) else str(value) if endless else value
    return plain


def _cut(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def _digest(tensors: Mapping[str, Tensor], notes: str) -> str:
    """SHA-256 of names, values and notes."""
    digest = hashlib.sha256(notes.encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _flattened(optimiser: dict[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors of an optimiser's state by name, and the rest as plain values."""
    tensors = {
        f"optimiser/{index}/{key}": value
        for index, values in optimiser.get("state", {}).items()
        for key, value in values.items()
        if isinstance(value, Tensor)
    }
    return tensors, {"param_groups": optimiser.get("param_groups", [])}


def _restored(path: Path, state: _OptimiserNotes, tensors: dict[str, Tensor]) -> dict[str, Any]:
    values: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        index, _, key = name.partition("/")
        if not (index.isascii() and index.isdecimal() and len(index) < 10):
            raise FileFormatError(f"{path}: unknown tensor 'optimiser/{name[:40]}'; remove it to start again")
        values.setdefault(int(index), {})[key] = value
    return {"state": values, "param_groups": state.param_groups} if state.param_groups else {}
