"""The local engine: worker processes that render scenes and write them, replaced when they die."""

import multiprocessing
import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from typing_extensions import Self

from primaldepth.compute.end_with_parent import end_with_parent
from primaldepth.compute.safe_imports import safe_imports
from primaldepth.core.errors import PrimalDepthError
from primaldepth.core.part_seconds import PartSeconds, collected, part
from primaldepth.data.single_scenes import part_path, write_part
from primaldepth.scenes.scene_source import Arrays, SceneRenderer, SceneSource, open_checked, render_scene

TRIES = 2
WORKER_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",  # there are as many workers as cores
    "OPENBLAS_NUM_THREADS": "1",
    # The C library otherwise gives large arrays back at once, and each scene fetches its memory page by page.
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),  # the most that is allowed
    "MALLOC_TRIM_THRESHOLD_": str(128 * 2**20),
}
"""Variables that a worker process starts with, unless the user has set them."""


class WorkerError(PrimalDepthError):
    """No worker process can render: each fails to start or dies at once."""


@dataclass(frozen=True, slots=True)
class SceneOutcome:
    """The end of one scene: rendered (`error` is None) or given up, after `compiles` kernel compilations."""

    scene: int
    error: str | None = None
    compiles: int = 0
    parts: PartSeconds = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CannotOpen:
    """The renderer cannot start, for a reason that another try will not change."""

    message: str


class Attempts:
    """The scenes still to render; a scene that failed is put back up to `TRIES` - 1 times."""

    def __init__(self, scenes: Iterable[int]) -> None:
        self.queue = deque(scenes)
        self._failures: Counter[int] = Counter()
        self._compiles = 0

    def settle(self, outcome: SceneOutcome) -> SceneOutcome | None:
        """Return the scene's final outcome, or None if it will be tried again; count its compilations."""
        self._compiles += outcome.compiles
        if outcome.error is not None:
            self._failures[outcome.scene] += 1
            if self._failures[outcome.scene] < TRIES:
                self.queue.append(outcome.scene)
                return None
        compiles, self._compiles = self._compiles, 0
        return replace(outcome, compiles=compiles)


def work(source: SceneSource, versions: Mapping[str, str], folder: Path, pipe: Connection) -> None:
    """Body of a worker process: scene numbers come in, outcomes go out, until the other end is gone."""
    end_with_parent()
    with suppress(EOFError, OSError):
        scene = pipe.recv()
        try:  # at the first scene: by then another worker has filled the kernel cache
            renderer = open_checked(source, versions)
        except Exception as error:  # whatever it is, it is the user who must see it
            pipe.send(CannotOpen(describe(error)))
            return
        while True:
            pipe.send(stored(*rendered(renderer, source.seed, scene), folder))
            scene = pipe.recv()


def rendered(renderer: SceneRenderer, seed: int, scene: int) -> tuple[SceneOutcome, Arrays]:
    """Render one scene and measure its parts.

    Args:
        renderer: of the scene's source.
        seed: of the job.
        scene: its number.

    Returns:
        The outcome, and the arrays; without any where rendering failed.
    """
    before, failure = renderer.compiles, None
    arrays: Arrays = {}
    with collected() as parts:
        try:
            arrays = render_scene(renderer, seed, scene)
        except Exception as error:  # one bad scene must not end the job
            failure = describe(error)
    return SceneOutcome(scene, failure, renderer.compiles - before, parts), arrays


def stored(outcome: SceneOutcome, arrays: Arrays, folder: Path) -> SceneOutcome:
    """Write the part of a scene, if it was rendered; return the outcome with the time of that.

    Args:
        outcome: of rendering.
        arrays: of the scene.
        folder: of the job.
    """
    if outcome.error is not None:
        return outcome
    try:
        with collected() as parts, part("write"):
            write_part(folder, outcome.scene, arrays)
    except Exception as error:  # a full disk, for one
        return replace(outcome, error=describe(error))
    return replace(outcome, parts={**outcome.parts, **parts})


def describe(error: BaseException) -> str:
    """Describe an error in one line; errors of this package need no name of their class."""
    text = " ".join(str(error).split())
    return text if isinstance(error, PrimalDepthError) else f"{type(error).__name__}: {text}"


@contextmanager
def worker_environment() -> Iterator[None]:
    """Let processes that are started in this block have the variables of `WORKER_ENVIRONMENT`."""
    missing = {name: value for name, value in WORKER_ENVIRONMENT.items() if name not in os.environ}
    os.environ.update(missing)
    try:
        yield
    finally:
        for name in missing:
            del os.environ[name]


class _RenderProcess:
    """A worker process, the pipe to it and the scene it is working on."""

    def __init__(self, source: SceneSource, versions: Mapping[str, str], folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self.scene: int | None = None
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(
            target=work, args=(source, versions, folder, theirs), daemon=True
        )
        # Ctrl-C reaches the whole group; only the main process acts on it. A blocked signal stays blocked
        # in the child from its first instruction on, a handler would come too late. The tracker that the
        # first start would bring along unblocks it again, so it must be there before.
        with safe_imports():
            resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with worker_environment(), safe_imports():
                self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()

    def give(self, scene: int) -> None:
        self.scene = scene
        with suppress(OSError):  # it died while idle; reading from the pipe will say so
            self.pipe.send(scene)

    def end(self) -> str:
        """Stop the process if it runs; return in words how it ended."""
        self.process.terminate()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        code = self.process.exitcode or 0
        self.process.close()
        self.pipe.close()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


class WorkerPool:
    """A context manager whose `run` yields one outcome per scene, in the order they are finished.

    Args:
        source: of the scenes.
        versions: of the packages; a worker that has others refuses.
        folder: where workers write their parts.
        workers: number of processes.
    """

    def __init__(self, source: SceneSource, versions: Mapping[str, str], folder: Path, workers: int) -> None:
        self._start: Callable[[], _RenderProcess] = lambda: _RenderProcess(source, versions, folder)
        self._folder, self._size = folder, workers
        self._workers: list[_RenderProcess] = []
        self._warm = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()

    def run(self, scenes: Iterable[int]) -> Iterator[SceneOutcome]:
        """Render every scene, and yield how each ended; one that fails or kills its worker gets a second try.

        Args:
            scenes: their numbers.

        Raises:
            WorkerError: no worker can render.
        """
        attempts = Attempts(scenes)
        for _ in range(min(self._size, len(attempts.queue))):
            self._workers.append(self._start())
        self._hand_out(attempts)
        while any(worker.scene is not None for worker in self._workers):
            for pipe in wait([worker.pipe for worker in self._workers]):
                worker = next(each for each in self._workers if each.pipe is pipe)
                outcome = self._receive(worker)
                reported = outcome and attempts.settle(outcome)
                self._hand_out(attempts)
                if reported:
                    self._check_start(reported)
                    yield reported

    def _hand_out(self, attempts: Attempts) -> None:
        """Give a scene to every idle worker; at first to one alone, which compiles the kernels for all."""
        for worker in self._workers if self._warm else self._workers[:1]:
            if worker.scene is None and attempts.queue:
                worker.give(attempts.queue.popleft())

    def _receive(self, worker: _RenderProcess) -> SceneOutcome | None:
        try:
            message = worker.pipe.recv()
        except (EOFError, OSError):
            return self._replace(worker)
        if isinstance(message, CannotOpen):
            raise WorkerError(message.message)
        worker.scene, self._warm = None, True
        outcome: SceneOutcome = message
        return outcome

    def _replace(self, worker: _RenderProcess) -> SceneOutcome | None:
        """Start a new worker in place of one that died, and put its scene back."""
        scene, how = worker.scene, worker.end()
        self._workers[self._workers.index(worker)] = self._start()
        if scene is None:
            return None
        if part_path(self._folder, scene).exists():  # it was killed after the scene was safe
            return SceneOutcome(scene)
        return SceneOutcome(scene, f"the worker died ({how})")

    def _check_start(self, outcome: SceneOutcome) -> None:
        if outcome.error is not None and not self._warm:
            raise WorkerError(f"the renderer does not start: {outcome.error}, {TRIES} times in a row")
