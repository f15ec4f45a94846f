"""Checkpoints: one safetensors file, written whole or not at all, from which a run goes on bit for bit."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.io.atomic import write_bytes

FORMAT = "primaldepth-checkpoint 1"


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
    """

    stage: int = 0
    step: int = 0
    seconds: float = 0.0
    best: float | None = None
    waited: int = 0
    scores: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything a run needs to go on; `recipe` is the resolved one as JSON."""

    recipe: str
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
        notes = {"recipe": self.recipe, "position": asdict(self.position), "optimiser": state}
        # a copy each: averages may share memory with weights, which the format refuses
        copies = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
        write_bytes(path, save(copies, {"format": FORMAT, "notes": json.dumps(notes)}))


def read_checkpoint(path: Path, device: torch.device | str = "cpu") -> Checkpoint:
    """What `Checkpoint.write` wrote; a damaged or foreign file is named and refused."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  not a dict
    except (SafetensorError, OSError) as error:
        raise FileFormatError(
            f"{path}: truncated or not a checkpoint ({error}); remove it to start the run again"
        ) from error
    if metadata.get("format") != FORMAT:
        raise FileFormatError(f"{path}: not a checkpoint of this version; start the run in another folder")
    notes = json.loads(metadata["notes"])
    named: dict[str, dict[str, Tensor]] = {"weights": {}, "average": {}, "best": {}, "optimiser": {}}
    for name, value in tensors.items():
        prefix, _, rest = name.partition("/")
        named[prefix][rest] = value
    return Checkpoint(
        notes["recipe"],
        Position(**notes["position"]),
        named["weights"],
        named["average"],
        named["best"],
        _restored(notes["optimiser"], named["optimiser"]),
    )


def check_recipe(path: Path, stored: str, wanted: str) -> None:
    """A run can only go on with the recipe it was started with."""
    if stored == wanted:
        return
    before, now = json.loads(stored), json.loads(wanted)
    changed = [key for key in now if before.get(key) != now[key]]
    raise InputError(
        f"{path.parent}: the run was started with another recipe: {', '.join(changed) or 'its keys'} differ; "
        "repeat that one, or choose another folder"
    )


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
