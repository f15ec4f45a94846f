"""Compute one row: a method on one scene at one scale, scored, with the time it took.

On the CPU every case is computed by one thread: how sums are split among threads changes their last bits, and
cases are easier to share out than pixels. So a row does not depend on the number of cores or jobs. Networks
compute in float32 unless another precision is asked for, so it does not depend on the processor either.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from primaldepth.core.errors import PrimalDepthError
from primaldepth.core.frame import Method, Prediction
from primaldepth.evaluation.protocol import Case, Protocol
from primaldepth.evaluation.scoring import Scores


@dataclass(frozen=True, slots=True)
class Row:
    """The numbers of one method on one scene and scale, and the time it took.

    Args:
        rmse: in the protocol's unit, as is `mae`.
        seconds: of the method alone, as `predict` measures them.
        more: the other numbers of `Scoring.scores`.
        prediction: SHA-256 of the predicted depth, bit for bit.
        variant: of the protocol, see `Protocol.variant`.
    """

    method: str
    scene: str
    scale: int
    rmse: float
    mae: float
    seconds: float
    more: Scores
    prediction: str
    variant: str = ""

    def number(self, name: str) -> float | None:
        """Return a number of the row by its name; None if the row has none, or the number is not known."""
        return getattr(self, name) if name in ("rmse", "mae", "seconds") else self.more.get(name)

    def as_json(self) -> dict[str, Any]:
        """Return the row as a flat dictionary in the documented order."""
        head = {name: getattr(self, name) for name in ("method", "scene", "scale", "rmse", "mae", "seconds")}
        variant = {"variant": self.variant} if self.variant else {}
        return {**head, **variant, **self.more, "prediction": self.prediction}

    @classmethod
    def of(cls, values: dict[str, Any]) -> "Row":
        """Return the row of what `as_json` returned."""
        head = ("method", "scene", "scale", "rmse", "mae", "seconds", "prediction")
        more = {name: value for name, value in values.items() if name not in (*head, "variant")}
        variant = values.get("variant", "")
        return cls(**{name: values[name] for name in head}, more=more, variant=variant)


def mean_number(rows: Iterable[Row], name: str) -> float | None:
    """Return the mean of a number over the rows that have it; None if no row has it."""
    found = [value for row in rows if (value := row.number(name)) is not None]
    return fmean(found) if found else None


@contextmanager
def reproducible(device: torch.device | str) -> Iterator[None]:
    """Make computations in this block repeatable: one thread on the CPU, fixed algorithms on a GPU."""
    threads = torch.get_num_threads()
    with ExitStack() as stack:
        if torch.device(device).type == "cuda":
            stack.enter_context(torch.backends.cudnn.flags(enabled=True, deterministic=True))
        else:
            torch.set_num_threads(1)
            stack.callback(torch.set_num_threads, threads)
        yield


def comparable(method: Method) -> Method:
    """Return the method with arithmetic that machines share: networks in float32, others as they are."""
    adapted: Callable[[], Method] = getattr(method, "comparable", lambda: method)
    return adapted()


def compute_row(
    protocol: Protocol, method: Method, root: Path, scene: str, scale: int, device: torch.device | str
) -> Row:
    """Return the row of a method on a scene and scale.

    Args:
        protocol: which samples and metrics.
        method: to be scored.
        root: folder of the protocol's inputs.
        scene: of the protocol.
        scale: of the protocol.
        device: to compute on.
    """
    with reproducible(device):  # samples are made by sums, too
        case = protocol.load(root, scene, scale)
        return replace(score(method, case, device), variant=protocol.variant)


def predict(method: Method, case: Case, device: torch.device | str = "cpu") -> tuple[Prediction, float]:
    """Return the prediction on the CPU, not rounded, and the seconds it took.

    On the CPU these are seconds of computing time, so that a busy machine gives the same numbers as an idle
    one: there is one thread. On a GPU they are seconds of the clock.

    Args:
        method: to be run.
        case: has the frame.
        device: to compute on.

    Raises:
        PrimalDepthError: the depth is not finite at a scored pixel.
    """
    frame, method = case.frame.to(device), comparable(method)
    now = time.perf_counter if torch.device(device).type == "cuda" else time.process_time
    with reproducible(device):
        start = now()
        prediction = method(frame)
        if prediction.depth.is_cuda:
            torch.cuda.synchronize()
        seconds = now() - start
    prediction = prediction.to("cpu")
    if missing := int((~torch.isfinite(prediction.depth[case.known])).sum()):
        raise PrimalDepthError(
            method.name, f"no finite depth at {missing} of the scored pixels of {case.scene} x{case.scale}"
        )
    return prediction, seconds


def score(method: Method, case: Case, device: torch.device | str = "cpu") -> Row:
    """Run the method on the case and return its row; the prediction is not rounded.

    Args:
        method: to be scored.
        case: frame and truth.
        device: to compute on.

    Returns:
        Every metric, the time, and a checksum of the prediction.
    """
    prediction, seconds = predict(method, case, device)
    with reproducible("cpu"):
        found = case.scores(prediction)
    more = {name: value for name, value in found.items() if name not in ("rmse", "mae")}
    digest = hashlib.sha256(prediction.depth.contiguous().numpy().tobytes()).hexdigest()
    rmse, mae = float(found["rmse"] or 0.0), float(found["mae"] or 0.0)
    return Row(method.name, case.scene, case.scale, rmse, mae, seconds, more, digest)
