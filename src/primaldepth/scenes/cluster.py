"""The Ray engine: scenes are the tasks, their arrays come back to this process, which writes them.

Workers may be on other machines and need not see the folder. A task whose worker or node is lost is run
again by Ray; a scene counts as rendered once its part is on disk here.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, redirect_stdout
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from primaldepth.core.errors import MissingDependencyError
from primaldepth.data.parts import write_part
from primaldepth.scenes.source import Arrays, SceneRenderer, SceneSource, open_checked, render_scene
from primaldepth.scenes.workers import Attempts, CannotOpen, Outcome, WorkerError, describe

_LOST_WORKERS = 5  # times Ray runs one task again because its worker or node is gone

Versions = tuple[tuple[str, str], ...]


class RayEngine:
    """A context manager whose `run` yields one outcome per scene, in the order they are finished.

    It joins the cluster that RAY_ADDRESS names, or one that was started on this machine; without either it
    starts one here and stops it at the end.

    Args:
        source: of the scenes; hashable, so that a worker opens it once.
        versions: of the packages; a worker that has others refuses.
        folder: where this process writes the parts.
        workers: scenes rendered at the same time in the whole cluster; GPUs are shared among them.
    """

    def __init__(self, source: SceneSource, versions: Mapping[str, str], folder: Path, workers: int) -> None:
        self._source, self._versions = source, tuple(versions.items())
        self._folder, self._workers = folder, workers
        self._pending: dict[Any, int] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._ray = _import_ray()
        self._stack.enter_context(redirect_stdout(sys.stderr))  # Ray reports lost nodes on standard output
        if not self._ray.is_initialized():
            self._ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
            self._stack.callback(self._ray.shutdown)
        self._stack.callback(self._cancel)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, scenes: Iterable[int]) -> Iterator[Outcome]:
        """Render every scene; one that fails is tried once more."""
        attempts = Attempts(scenes)
        task = self._ray.remote(_render).options(
            num_cpus=1, num_gpus=self._gpu_share(), max_retries=_LOST_WORKERS, scheduling_strategy="SPREAD"
        )
        while attempts.queue or self._pending:
            while attempts.queue and len(self._pending) < self._workers:
                scene = attempts.queue.popleft()
                self._pending[task.remote(self._source, self._versions, scene)] = scene
            ready, _ = self._ray.wait(list(self._pending), num_returns=1)
            outcome = attempts.settle(self._collect(ready[0], self._pending.pop(ready[0])))
            if outcome:
                yield outcome

    def _collect(self, reference: Any, scene: int) -> Outcome:
        try:
            message, arrays = self._ray.get(reference)
            if isinstance(message, Outcome) and message.error is None:
                write_part(self._folder, scene, arrays)
        except (self._ray.exceptions.RayError, OSError) as error:
            return Outcome(scene, describe(error))
        if isinstance(message, CannotOpen):
            raise WorkerError(message.message)
        outcome: Outcome = message
        return outcome

    def _gpu_share(self) -> float:
        """GPUs of one task: all of the cluster's, divided by the workers."""
        if self._source.made_with().get("variant") != "cuda":
            return 0.0
        total = self._ray.cluster_resources().get("GPU", 0)
        if not total:
            raise WorkerError("variant cuda: no node of the Ray cluster has a GPU; use --variant llvm")
        return min(1.0, int(1e4 * total / self._workers) / 1e4)  # Ray counts in ten-thousandths

    def _cancel(self) -> None:
        for reference in self._pending:
            self._ray.cancel(reference, force=True)


def _render(source: SceneSource, versions: Versions, scene: int) -> tuple[Outcome | CannotOpen, Arrays]:
    """Body of a task; the process keeps its renderer, and with it the compiled kernels, for the next one."""
    try:
        renderer = _renderer(source, versions)
    except Exception as error:  # whatever it is, it is the user who must see it
        return CannotOpen(describe(error)), {}
    before = _counted.get(id(renderer), 0)
    try:
        arrays, failure = render_scene(renderer, source.seed, scene), None
    except Exception as error:  # one bad scene must not end the job
        arrays, failure = {}, describe(error)
    _counted[id(renderer)] = renderer.compiles
    return Outcome(scene, failure, renderer.compiles - before), arrays


_counted: dict[int, int] = {}  # compilations reported so far, per renderer of this process


@lru_cache(maxsize=1)
def _renderer(source: SceneSource, versions: Versions) -> SceneRenderer:
    return open_checked(source, dict(versions))


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingDependencyError(
            "--engine ray needs the package ray: pip install 'primaldepth[cluster]'"
        ) from error
    return ray
