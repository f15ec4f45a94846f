"""Let a process end as soon as the one that started it is gone, even if that one was killed."""

import multiprocessing
import os
import signal
import sys
import threading
from multiprocessing.process import BaseProcess

_PR_SET_PDEATHSIG = 1  # of Linux' prctl


def end_with_parent() -> None:
    """End this process as soon as its parent has ended, whatever it is computing.

    On Linux the system kills it. Elsewhere a thread waits for the end of the parent, and has to wait until
    Python lets it run.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if not _killed_with_parent():
        threading.Thread(target=_wait_for, args=(parent,), daemon=True).start()
    elif os.getppid() != parent.pid:  # it had ended before the system was asked
        os._exit(1)


def _killed_with_parent() -> bool:
    """Ask the system to kill this process with its parent; return whether it can do that."""
    if sys.platform != "linux":
        return False
    import ctypes

    return bool(ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL)) == 0)


def _wait_for(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
