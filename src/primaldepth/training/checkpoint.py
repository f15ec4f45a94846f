"""Checkpoints: one safetensors file, written whole or not at all, from which a run goes on bit for bit."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.io.atomic import write_bytes

FORMAT = "primaldepth-checkpoint 1"
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

    stage: int = 0
    step: int = 0
    seconds: float = 0.0
    best: float | None = None
    waited: int = 0
    scores: dict[str, float] = field(default_factory=dict)
    loss: float = 0.0
    unlogged: int = 0


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
                "position": asdict(self.position),
                "optimiser": state,
            }
        )
        # a copy each: averages may share memory with weights, which the format refuses
        copies = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
        write_bytes(path, save(copies, {"format": FORMAT, "notes": notes, "sha256": _digest(copies, notes)}))


def read_checkpoint(path: Path) -> Checkpoint:
    """What `Checkpoint.write` wrote, on the CPU; a damaged or foreign file is named and refused."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  not a dict
    except (SafetensorError, OSError) as error:
        raise FileFormatError(
            f"{path}: truncated or not a checkpoint ({error}); remove it to start the run again"
        ) from error
    if metadata.get("format") != FORMAT:
        raise FileFormatError(f"{path}: not a checkpoint of this version; start the run in another folder")
    if metadata.get("sha256") != _digest(tensors, metadata.get("notes", "")):
        raise FileFormatError(f"{path}: differs from its checksum; remove it to start the run again")
    notes = json.loads(metadata["notes"])
    named: dict[str, dict[str, Tensor]] = {"weights": {}, "average": {}, "best": {}, "optimiser": {}}
    for name, value in tensors.items():
        prefix, _, rest = name.partition("/")
        named[prefix][rest] = value
    return Checkpoint(
        notes["recipe"],
        notes["scenes"],
        Position(**notes["position"]),
        named["weights"],
        named["average"],
        named["best"],
        _restored(notes["optimiser"], named["optimiser"]),
    )


def check_same_run(folder: Path, stored: Checkpoint, recipe: str, scenes: str) -> None:
    """A run can only go on with the recipe and the scenes it was started with; FREE keys may change."""
    before, now = json.loads(stored.recipe), json.loads(recipe)
    changed = [text for text in _differences(before, now) if text.split(" ")[0] not in FREE]
    if stored.scenes != scenes:
        changed.append(f"the scenes are '{stored.scenes}' there and '{scenes}' now")
    if changed:
        raise InputError(
            f"{folder}: holds a run of another recipe: {'; '.join(changed)}; "
            "repeat that one to go on, or choose another folder"
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
        yield f"{key} is {json.dumps(before)} there and {json.dumps(now)} now"


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


def _restored(state: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, Any]:
    values: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        index, _, key = name.partition("/")
        values.setdefault(int(index), {})[key] = value
    return {"state": values, "param_groups": state["param_groups"]} if state["param_groups"] else {}
