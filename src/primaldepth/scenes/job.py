"""Render jobs: a folder, a source of scenes and a count become shards; interrupted jobs can be resumed."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from primaldepth.core.errors import InputError
from primaldepth.core.part_seconds import PartSeconds, add_parts, collected
from primaldepth.data.manifest import SCENES_PER_SHARD, Manifest
from primaldepth.data.shard_writer import ShardWriter
from primaldepth.scenes.local_engine import SceneOutcome, WorkerError, WorkerPool
from primaldepth.scenes.ray_engine import RayEngine
from primaldepth.scenes.scene_source import SceneSource, package_versions

Engine = Literal["local", "ray"]
FAILURES_IN_A_ROW = 16


@dataclass(slots=True)
class RenderProgress:
    """Where a job stands.

    Args:
        count: scenes that the folder has in the end.
        to_do: scenes that this run has to render.
        rendered: scenes that it has rendered so far.
        compiles: kernel compilations.
        seconds: since the start.
        start_seconds: until the first scene was finished.
        parts: time of all workers, and of this process, in which the scenes become shards.
        failures: why scenes could not be rendered, by number.
        damaged: shards that had to be made again.
    """

    count: int
    to_do: int
    rendered: int = 0
    compiles: int = 0
    seconds: float = 0.0
    start_seconds: float = 0.0
    parts: PartSeconds = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)

    @property
    def done(self) -> int:
        """Number of scenes that are safe on disk."""
        return self.count - self.to_do + self.rendered

    @property
    def rate(self) -> float:
        """Images per second of this run, the start of the workers included."""
        return self.rendered / self.seconds if self.seconds else 0.0


def render_job(
    folder: Path,
    source: SceneSource,
    count: int,
    *,
    workers: int = 1,
    engine: Engine = "local",
    verify: bool = False,
    scenes_per_shard: int = SCENES_PER_SHARD,
    on_progress: Callable[[RenderProgress], None] = lambda _: None,
) -> RenderProgress:
    """Render scenes 0 .. count - 1 into shards; those that are there are kept.

    The shards and the manifest depend on `source`, `count` and `scenes_per_shard` alone: not on the engine,
    the number of workers, or how often the job was interrupted.

    Args:
        folder: made if it does not exist.
        source: of the scenes.
        count: a larger one than before extends the folder.
        workers: processes that render at the same time.
        engine: "local", or "ray" for the cluster that RAY_ADDRESS names.
        verify: compare the shards that are there with their checksums first.
        scenes_per_shard: of a full shard.
        on_progress: called at the start and after every scene.

    Returns:
        Where the job stands at the end.
    """
    if count < 1 or workers < 1:
        raise InputError("render", f"count {count}, workers {workers}", "both must be at least 1")
    start = time.perf_counter()
    wanted = Manifest(
        made_with=dict(source.made_with()),
        versions=package_versions(),
        scenes_per_shard=scenes_per_shard,
        count=count,
    )
    with collected() as own, ShardWriter(folder, wanted, verify=verify) as shards:
        missing = shards.missing()
        progress = RenderProgress(shards.count, len(missing), damaged=shards.damaged)
        on_progress(progress)
        if missing:
            chosen = RayEngine if engine == "ray" else WorkerPool
            with chosen(source, wanted.versions, folder, workers) as runner:
                for outcome in _few_failures(runner.run(missing)):
                    _account(progress, outcome, shards)
                    progress.seconds = time.perf_counter() - start
                    progress.start_seconds = progress.start_seconds or progress.seconds
                    on_progress(progress)
        shards.flush()
        progress.seconds = time.perf_counter() - start
        add_parts(progress.parts, own)
    return progress


def _account(progress: RenderProgress, outcome: SceneOutcome, shards: ShardWriter) -> None:
    progress.compiles += outcome.compiles
    add_parts(progress.parts, outcome.parts)
    if outcome.error is not None:
        progress.failures[outcome.scene] = outcome.error
        return
    progress.rendered += 1
    shards.add(outcome.scene)


def _few_failures(outcomes: Iterator[SceneOutcome]) -> Iterator[SceneOutcome]:
    """Pass outcomes on until too many in a row have failed; then raise, since the cause is not the scenes."""
    failures = 0
    for outcome in outcomes:
        failures = failures + 1 if outcome.error else 0
        yield outcome
        if failures >= FAILURES_IN_A_ROW:
            raise WorkerError(f"stopped after {failures} scenes failed in a row: {outcome.error}")
