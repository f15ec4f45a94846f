"""Spread calls over processes; results come in the order of the calls."""

import multiprocessing
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from primaldepth.compute.end_with_parent import end_with_parent
from primaldepth.compute.safe_imports import safe_imports
from primaldepth.core.errors import PrimalDepthError

Result = TypeVar("Result")


def run_jobs(calls: Sequence[Callable[[], Result]], jobs: int) -> Iterator[Result]:
    """Yield the result of every call; run it in this process if there is one job or one call.

    Args:
        calls: picklable, without arguments.
        jobs: processes at most. They are started afresh, so nothing of this process' state leaks into them.
    """
    workers = min(jobs, len(calls))
    if workers < 2:
        yield from (call() for call in calls)
        return
    for call in calls:
        _check_can_be_sent(call)
    context = multiprocessing.get_context("spawn")
    with safe_imports():  # one process is started with the pool, the others with the first calls
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start)
    try:
        with safe_imports():
            results = pool.map(_call, calls)
        yield from results
    except BrokenProcessPool as error:
        raise PrimalDepthError(
            "a process died",
            f"for lack of memory (try fewer than {workers} jobs), or because the script that "
            'asked for jobs did not do so under `if __name__ == "__main__":`',
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _check_can_be_sent(call: Callable[[], object]) -> None:
    """Raise if a call cannot be pickled: the pool would wait for it for ever."""
    try:
        pickle.dumps(call)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        found = f"the work cannot be sent to other processes ({error})"
        raise PrimalDepthError("", found, "try --jobs 1") from error


def _call(call: Callable[[], Result]) -> Result:
    return call()


def _start() -> None:
    """Prepare a worker process: ignore Ctrl-C, and end with the main process even if that is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
