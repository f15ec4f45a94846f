"""Batches on a Ray cluster: frames go out to the workers, predictions come back.

This process alone reads and writes files, so workers on other machines need not see them, and the ledger
knows all that is done.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import torch

from primaldepth.compute.ray_cluster import RayCluster
from primaldepth.core.errors import InputError, PrimalDepthError
from primaldepth.core.frame import Frame, Method, Prediction
from primaldepth.methods import create
from primaldepth.pipeline.load import Inputs
from primaldepth.pipeline.outcome import Outcome, outcome_of, predict
from primaldepth.pipeline.request import Item, Request
from primaldepth.version import __version__

LEAST_SHARE = 1e-4  # of a GPU that Ray can hand out
WAITING = 2  # frames that lie ready beside those that are worked on


@dataclass(frozen=True, slots=True)
class RayTask:
    """What a worker needs beside the frame: the method and the device.

    Args:
        method: its name.
        options: of the method.
        device: "cpu" or "cuda".
        version: of this package; a worker that has another refuses.
    """

    method: str
    options: tuple[tuple[str, str], ...]
    device: str
    version: str = __version__


def check_engine(engine: str, gpus: float, temporal: bool) -> bool:
    """Return whether a cluster is asked for; raise on options that do not go together.

    Args:
        engine: "local" or "ray".
        gpus: share of a GPU, or number of GPUs, of each frame.
        temporal: whether each result depends on the frames before.
    """
    if engine not in ("local", "ray"):
        raise InputError(f"--engine {engine}", "choose local or ray")
    if not (gpus == 0 or LEAST_SHARE <= gpus <= 1 or (math.isfinite(gpus) and gpus > 1 and gpus % 1 == 0)):
        raise InputError(f"--gpus-per-task {gpus}", "expected 0, a share such as 0.25, or a whole number")
    if engine == "local" and gpus:
        raise InputError(f"--gpus-per-task {gpus}", "only goes with --engine ray")
    if engine == "ray" and temporal:
        raise InputError("--temporal", "each frame needs the one before, so it does not go with --engine ray")
    return engine == "ray"


def worker_device(device: str, gpus: float) -> str:
    """Return the device of the workers: "cuda" if each gets a share of a GPU, else "cpu".

    Args:
        device: "auto", "cpu" or "cuda", as the user asked for.
        gpus: share of a GPU of each frame.

    Raises:
        InputError: if the two contradict each other.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"--device {device}", "choose auto, cpu or cuda")
    if device != "auto" and (device == "cuda") != (gpus > 0):
        raise InputError(f"--device {device} with --gpus-per-task {gpus}", "leave --device out")
    return "cuda" if gpus else "cpu"


def run_on_ray(
    items: Iterable[Item], request: Request, prepare: Callable[[Item], Inputs], gpus: float
) -> Iterator[tuple[Item, Callable[[], Outcome]]]:
    """Yield each item with a function that returns its outcome, or raises what went wrong with it.

    Args:
        items: the frames; they end in any order.
        request: that holds for all of them.
        prepare: reads the inputs of an item, here and not on a worker.
        gpus: share of a GPU of each frame; 0 computes on CPUs.
    """
    inputs: dict[Item, Inputs] = {}
    task = RayTask(request.method, tuple(request.options.items()), request.device)

    def arguments(item: Item) -> tuple[RayTask, Frame]:
        inputs[item] = prepare(item)
        return task, inputs[item].frame

    queue = deque(items)
    if not queue:
        return
    with RayCluster() as cluster:
        at_once = _places(cluster, gpus) + WAITING
        for item, value in cluster.run(_predict, queue, arguments, at_once=at_once, gpus=gpus):
            yield item, partial(_outcome, request, inputs.pop(item, None), value)


def _places(cluster: RayCluster, gpus: float) -> int:
    """Return how many tasks fit into the cluster at the same time."""
    places = cluster.resource("CPU")
    if gpus:
        total = cluster.resource("GPU")
        if total < gpus:
            raise InputError(
                f"--gpus-per-task {gpus}", f"the Ray cluster has {total:g} GPUs", "use 0 for CPUs"
            )
        places = min(places, total / gpus)
    return max(1, int(places))


def _outcome(request: Request, inputs: Inputs | None, value: tuple[Prediction, float] | Exception) -> Outcome:
    if isinstance(value, PrimalDepthError | OSError):
        raise value
    if isinstance(value, Exception) or inputs is None:
        text = " ".join(str(value).split())
        raise PrimalDepthError("", f"the cluster failed ({type(value).__name__}: {text})")
    return outcome_of(request, inputs, *value)


def _predict(task: RayTask, frame: Frame) -> tuple[Prediction, float] | PrimalDepthError:
    """Return the prediction of a task and the seconds it took, or an error of this package."""
    try:
        if task.version != __version__:
            versions = f"this worker has primaldepth {__version__}, the batch {task.version}"
            raise InputError("", versions, "install the same")
        method, start = _method(task), time.perf_counter()
        found = predict(task.method, method, frame, torch.device(task.device))
    except PrimalDepthError as error:
        return type(error)(error.subject, error.found, error.hint, error.quoted)
    seconds = time.perf_counter() - start
    return replace(found.to("cpu"), info=dict(found.info)), seconds  # the process that asked may have no GPU


@lru_cache(maxsize=1)
def _method(task: RayTask) -> Method:
    """Return the method with its weights, which the worker keeps for the next frame."""
    return create(task.method, dict(task.options))
