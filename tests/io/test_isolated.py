"""The process of a decoder ends with the one that asked, or by itself."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

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
SECONDS = 30

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")


def _children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _in_time(condition):
    end = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@pytest.mark.parametrize("at_work", [True, False], ids=["at work", "just started"])
def test_a_decoder_does_not_outlive_its_caller(tmp_path, at_work):
    """It waits for a pipe that no one writes to; its caller, who ignores signals, is killed."""
    pipe = tmp_path / "a.tiff"
    os.mkfifo(pipe)
    caller = subprocess.Popen([sys.executable, "-c", CALLER, str(pipe)])
    assert _in_time(lambda: _children(caller.pid))
    (decoder,) = _children(caller.pid)
    time.sleep(2.0 if at_work else 0.0)
    caller.kill()
    caller.wait()
    try:
        assert _in_time(lambda: not _lives(decoder))
    finally:
        if _lives(decoder):
            os.kill(decoder, signal.SIGKILL)


def test_a_decoder_has_a_limit_on_its_own_time():
    done = subprocess.run([sys.executable, "-c", BUSY], timeout=SECONDS, check=False)
    assert done.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
