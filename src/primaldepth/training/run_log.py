"""The log of a run: lines of JSON, and TensorBoard's files where that is installed."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from primaldepth.io.atomic import write_bytes
from primaldepth.io.files import check_unlinked, json_lines, open_to_append
from primaldepth.networks import DepthNet
from primaldepth.networks.unrolled import COEFFICIENTS
from primaldepth.training.validation import ValidationResult

LOG = "log.jsonl"
SHOWN = 3


class RunLog:
    """Appends to RUN/log.jsonl and RUN/tensorboard/.

    Args:
        folder: of the run.
        steps: lines of later steps are dropped: the run goes on from there.
    """

    def __init__(self, folder: Path, steps: int) -> None:
        self._path = folder / LOG
        check_unlinked(self._path)
        kept = [line for line in _lines(self._path) if _step(line) <= steps]
        write_bytes(self._path, "".join(json.dumps(line) + "\n" for line in kept).encode())
        self._board = _board(folder / "tensorboard", steps)

    def write(self, total_step: int, **values: Any) -> None:
        """Write one line, null for a number that is not finite; numbers also go to TensorBoard."""
        values = {name: _finite(value) for name, value in values.items()}
        line = json.dumps({"total_step": total_step, **values}, allow_nan=False)
        with open_to_append(self._path) as file:
            file.write(f"{line}\n".encode())
        if self._board is not None:
            for name, value in values.items():
                if isinstance(value, float):
                    self._board.add_scalar(name, value, total_step)

    def validation(
        self,
        total_step: int,
        stage: int,
        scores: dict[str, float],
        net: DepthNet,
        results: list[ValidationResult],
    ) -> None:
        """Write scores, coefficients of every iteration, and pictures of a few results with their errors.

        Args:
            total_step: steps done in all stages.
            stage: index of the stage.
            scores: by name.
            net: that was scored.
            results: its results.
        """
        found = _coefficients(net)
        self.write(total_step, stage=stage, **scores, **({"coefficients": found} if found else {}))
        if self._board is None:
            return
        for name, values in found.items():
            for iteration, value in enumerate(values):
                self._board.add_scalar(f"coefficients/{name}/{iteration:02d}", value, total_step)
        for one in results[:SHOWN]:
            self._board.add_image(f"{one.frame.group}/{one.frame.case.scene}", _picture(one), total_step)

    def close(self) -> None:
        """Close the files."""
        if self._board is not None:
            self._board.close()


def _coefficients(net: DepthNet) -> dict[str, list[float]]:
    """Return each coefficient's values, one per iteration, by name; none without a primal-dual part."""
    if net.pdn is None:
        return {}
    columns = net.pdn.coefficients.detach().cpu().T.tolist()
    return dict(zip(COEFFICIENTS[: len(columns)], columns, strict=True))


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a log; a kill may have cut the last one."""
    found = json_lines(path) if path.exists() else ()
    return [line for line in found if line is not None]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _step(line: dict[str, Any]) -> float:
    step = line.get("total_step", 0)
    return step if isinstance(step, int | float) else 0


def _board(folder: Path, steps: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=steps + 1)


def _picture(one: ValidationResult) -> np.ndarray[Any, Any]:
    """Return (3, H, 2 W): the result beside four times its error, both in greys of the truth's range."""
    case = one.frame.case
    known, truth = case.known[0, 0].cpu(), case.truth[0, 0].cpu()
    depth = one.depth[0, 0].float().cpu()
    low, high = truth[known].min(), truth[known].max()
    scale = (high - low).clamp_min(1e-6)
    error = ((depth - truth).abs() * known * 4.0 / scale).clamp(0, 1)
    grey = np.concatenate([((depth - low) / scale).clamp(0, 1).numpy(), error.numpy()], axis=1)
    return np.repeat(grey[None], 3, axis=0)
