"""Ray clusters: join or start one, keep it busy with tasks, leave it clean."""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stdout
from typing import Any, TypeVar

from typing_extensions import Self

from primaldepth.core.errors import MissingDependencyError, PrimalDepthError

LOST_WORKERS = 5  # times Ray runs one task again because its worker or node is gone

Input = TypeVar("Input")


class RayCluster:
    """A Ray cluster for the tasks that are run in its `with` block.

    It joins the cluster that RAY_ADDRESS names, or one that was started on this machine; without either it
    starts one here and stops it at the end.
    """

    def __init__(self) -> None:
        self._pending: dict[Any, Any] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._ray = _import_ray()
        self._stack.enter_context(redirect_stdout(sys.stderr))  # Ray reports lost nodes on standard output
        if not self._ray.is_initialized():
            self._start()
        self._stack.callback(self._cancel)
        return self

    def _start(self) -> None:
        try:
            self._ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        except Exception as error:  # Ray raises what its parts raise
            self._stack.close()
            where = os.environ.get("RAY_ADDRESS", "this machine")
            text = " ".join(str(error).split())
            found = f"no Ray cluster at {where} ({text})"
            raise PrimalDepthError("", found, "start it, or unset RAY_ADDRESS") from error
        self._stack.callback(self._ray.shutdown)

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def resource(self, name: str) -> float:
        """Return how much of "CPU" or "GPU" all nodes have together."""
        return float(self._ray.cluster_resources().get(name, 0))

    def run(
        self,
        body: Callable[..., Any],
        queue: deque[Input],
        arguments: Callable[[Input], tuple[Any, ...]],
        *,
        at_once: int,
        gpus: float = 0.0,
    ) -> Iterator[tuple[Input, Any]]:
        """Yield each item with what body(*arguments(item)) returned, in the order in which tasks end.

        A task whose worker or node is lost is run again. Where arguments cannot be made, or a task fails for
        good, the error comes in place of a value. What is put into the queue meanwhile is run too.

        Args:
            arguments: called when the task is about to start.
            at_once: tasks that are handed out at the same time.
            gpus: of each task; may be a fraction.
        """
        task = self._ray.remote(body).options(
            num_cpus=1, num_gpus=gpus, max_retries=LOST_WORKERS, scheduling_strategy="SPREAD"
        )
        while queue or self._pending:
            while queue and len(self._pending) < at_once:
                item = queue.popleft()
                try:
                    self._pending[task.remote(*arguments(item))] = item
                except (PrimalDepthError, OSError) as error:
                    yield item, error
            if self._pending:
                ready, _ = self._ray.wait(list(self._pending), num_returns=1)
                item = self._pending.pop(ready[0])
                yield item, self._value(ready[0])

    def _value(self, reference: Any) -> Any:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            return error

    def _cancel(self) -> None:
        for reference in self._pending:
            self._ray.cancel(reference, force=True)


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingDependencyError(
            "--engine ray needs the package ray", "pip install 'primaldepth[cluster]'"
        ) from error
    return ray
