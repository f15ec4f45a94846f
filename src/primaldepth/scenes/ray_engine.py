"""The Ray engine: scenes are the tasks, their arrays come back to this process, which writes them.

Workers may be on other machines and need not see the folder. A task whose worker or node is lost is run
again by Ray; a scene counts as rendered once its part is on disk here.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from typing_extensions import Self

from primaldepth.compute.ray_cluster import RayCluster
from primaldepth.scenes.local_engine import (
    Attempts,
    CannotOpen,
    SceneOutcome,
    WorkerError,
    describe,
    rendered,
    stored,
)
from primaldepth.scenes.scene_source import Arrays, SceneRenderer, SceneSource, open_checked

Versions = tuple[tuple[str, str], ...]


class RayEngine:
    """A context manager whose `run` yields one outcome per scene, in the order they are finished.

    Args:
        source: of the scenes; hashable, so that a worker opens it once.
        versions: of the packages; a worker that has others refuses.
        folder: where this process writes the parts.
        workers: scenes rendered at the same time in the whole cluster; GPUs are shared among them.
    """

    def __init__(self, source: SceneSource, versions: Mapping[str, str], folder: Path, workers: int) -> None:
        self._source, self._versions = source, tuple(versions.items())
        self._folder, self._workers = folder, workers
        self._cluster = RayCluster()

    def __enter__(self) -> Self:
        self._cluster.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._cluster.__exit__(*error)

    def run(self, scenes: Iterable[int]) -> Iterator[SceneOutcome]:
        """Render every scene, and yield how each ended; one that fails is tried once more.

        Args:
            scenes: their numbers.

        Raises:
            WorkerError: no worker can render.
        """
        attempts = Attempts(scenes)
        for scene, value in self._cluster.run(
            _render,
            attempts.queue,
            lambda scene: (self._source, self._versions, scene),
            at_once=self._workers,
            gpus=self._gpu_share(),
        ):
            outcome = attempts.settle(self._collect(scene, value))
            if outcome:
                yield outcome

    def _collect(self, scene: int, value: Any) -> SceneOutcome:
        if isinstance(value, Exception):
            return SceneOutcome(scene, describe(value))
        message, arrays = value
        if isinstance(message, CannotOpen):
            raise WorkerError(message.message)
        return stored(message, arrays, self._folder)

    def _gpu_share(self) -> float:
        """Return the GPUs of one task: all of the cluster's, divided by the workers."""
        if self._source.made_with().get("variant") != "cuda":
            return 0.0
        total = self._cluster.resource("GPU")
        if not total:
            raise WorkerError("variant cuda: no node of the Ray cluster has a GPU; use --variant llvm")
        return min(1.0, int(1e4 * total / self._workers) / 1e4)  # Ray counts in ten-thousandths


def _render(source: SceneSource, versions: Versions, scene: int) -> tuple[SceneOutcome | CannotOpen, Arrays]:
    """Render one scene as a Ray task; the process keeps its renderer and kernels for the next one."""
    try:
        renderer = _renderer(source, versions)
    except Exception as error:  # whatever it is, it is the user who must see it
        return CannotOpen(describe(error)), {}
    return rendered(renderer, source.seed, scene)


@lru_cache(maxsize=1)
def _renderer(source: SceneSource, versions: Versions) -> SceneRenderer:
    return open_checked(source, dict(versions))
