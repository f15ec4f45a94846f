"""What a request asks for, in a form that can be handed to another process."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from primaldepth.api import Inputs, Spikes, check_meaning, check_noise, load_inputs
from primaldepth.app.problems import Problem, RefusedError
from primaldepth.app.trials import Trial
from primaldepth.core.errors import did_you_mean
from primaldepth.core.frame import Prediction, Sampling
from primaldepth.io import Kind, Unit
from primaldepth.methods import list_methods

Holes = Literal["fill", "keep"]


@dataclass(frozen=True, slots=True)
class Computed:
    """What is known when a task is done.

    Args:
        seconds: of computing, the batch's divided by its size.
        meaning: unit or kind of the depth as the client gave it, or None.
    """

    inputs: Inputs
    prediction: Prediction
    method: str
    noise: str
    seconds: float
    meaning: str | None = None


@dataclass(frozen=True, slots=True)
class DepthFile:
    """Ask for the result as one depth file, whose bytes are the HTTP answer."""

    media_type: str
    holes: Holes


@dataclass(frozen=True, slots=True)
class PageFiles:
    """Ask for everything the page shows of a result, as files in `folder` whose names begin with `prefix`."""

    folder: Path
    prefix: str


@dataclass(frozen=True, slots=True)
class Task:
    """One frame to compute; it holds plain values only, so that it can be sent as JSON.

    Args:
        folder: where the uploads lie, under names of ours: depth, guide, confidence, cameras.
        wanted: what to make of the result.
    """

    folder: Path
    method: str
    wanted: DepthFile | PageFiles | Trial
    unit: Unit | None = None
    kind: Kind | None = None
    noise: str = "auto"
    spikes: Spikes = "drop"
    sampling: Sampling | None = None

    def load(self) -> Inputs:
        """Read and check the uploads."""
        confidence, cameras = (
            path if path.exists() else None for path in (self.folder / "confidence", self.folder / "cameras")
        )
        return load_inputs(
            self.folder / "depth",
            self.folder / "guide",
            unit=self.unit,
            kind=self.kind,
            noise=self.noise,
            confidence=confidence,
            cameras=cameras,
            spikes=self.spikes,
            sampling=self.sampling,
        )


def method_names() -> list[str]:
    """The methods that may be asked for. Files of weights are not: a client names no path."""
    return [info.name for info in list_methods()]


def check_fields(method: str, unit: str | None, kind: str | None, noise: str) -> None:
    """Raise on a field that cannot be meant, before any upload is looked at."""
    names = method_names()
    if method not in names:
        hint = did_you_mean(method, names) or "see /v1/methods for those there are"
        raise RefusedError(Problem(422, "unknown_method", f"method: '{method[:60]}' is not known", hint))
    check_meaning(unit, kind)
    check_noise(noise)
