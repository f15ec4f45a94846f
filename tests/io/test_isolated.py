"""The process of a decoder ends with the one that asked, or by itself."""

import os
import signal
import subprocess
import sys
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from processes import lives
from waiting import wait_until

CALLER = """
import signal, sys
from pathlib import Path
from primaldepth.io.formats.base import Source
from primaldepth.io.formats.isolated import read_array

for name in (signal.SIGINT, signal.SIGTERM):
    signal.signal(name, signal.SIG_IGN)
read_array(Source(Path(sys.argv[1]), b""), "tiff", "depth")
"""
BUSY = """
from primaldepth.io.formats.isolated_program import _limit

_limit(2**40, 1)
while True:
    pass
"""
SECONDS = 60

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")


def _children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _held_open(pipe):
    """Our end of a pipe, once someone reads from it."""
    ends = []

    def is_read():
        with suppress(OSError):  # no one does
            ends.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        return ends

    wait_until(is_read)
    return os.fdopen(ends[0], "wb")


@pytest.mark.parametrize("at_work", [True, False], ids=["at work", "just started"])
def test_a_decoder_does_not_outlive_its_caller(tmp_path, at_work):
    """It waits for a pipe that no one writes to; its caller, who ignores signals, is killed."""
    pipe = tmp_path / "a.tiff"
    os.mkfifo(pipe)
    caller = subprocess.Popen([sys.executable, "-c", CALLER, str(pipe)])
    wait_until(lambda: _children(caller.pid))
    (decoder,) = _children(caller.pid)
    with _held_open(pipe) if at_work else nullcontext():
        caller.kill()
        caller.wait()
        try:
            wait_until(lambda: not lives(decoder))
        finally:
            if lives(decoder):
                os.kill(decoder, signal.SIGKILL)


def test_a_decoder_has_a_limit_on_its_own_time():
    done = subprocess.run([sys.executable, "-c", BUSY], timeout=SECONDS, check=False)
    assert done.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
