"""The process of a decoder can open no file, has limits of its own, and ends with the one that asked."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from primaldepth.core.errors import FileFormatError
from primaldepth.io.formats.base import Source, library_errors
from primaldepth.io.formats.isolated import read_array
from processes import lives
from waiting import wait_until

CALLER = """
import signal, sys
from pathlib import Path
from primaldepth.io.formats import isolated
from primaldepth.io.formats.base import Source

for name in (signal.SIGINT, signal.SIGTERM):
    signal.signal(name, signal.SIG_IGN)
isolated._PROGRAM = Path(sys.argv[1])
isolated.read_array(Source(Path("a.tiff"), b"bytes"), "tiff", 0)
"""
DECODER = """
import signal, sys
from primaldepth.io.formats import isolated_program as program

program._decode = lambda *request: {}
program.main(sys.argv[1:])
"""
CONFINED = """
import os, sys
from primaldepth.io.formats.isolated_program import _confine

_confine({{"memory": 2**26, "seconds": 1, "decoded": 0, "members": 1, "parts": 1}})
{}
"""
SECONDS = 60

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")


def _children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_confined(pid):
    found = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return any(line.split()[:4] == ["Max", "open", "files", "0"] for line in found)


@pytest.mark.parametrize("at_work", [True, False], ids=["at work", "just started"])
def test_a_decoder_does_not_outlive_its_caller(tmp_path, at_work):
    """It waits for ever; its caller, who ignores signals, is killed."""
    (tmp_path / "program.py").write_text(DECODER.format("signal.pause()"))
    caller = subprocess.Popen([sys.executable, "-c", CALLER, str(tmp_path / "program.py")])
    wait_until(lambda: _children(caller.pid))
    (decoder,) = _children(caller.pid)
    if at_work:
        wait_until(lambda: _is_confined(decoder))
    caller.kill()
    caller.wait()
    try:
        wait_until(lambda: not lives(decoder))
    finally:
        if lives(decoder):
            os.kill(decoder, signal.SIGKILL)


def _confined(code):
    command = [sys.executable, "-c", CONFINED.format(code)]
    return subprocess.run(command, timeout=SECONDS, capture_output=True, text=True, check=False)


def test_a_decoder_has_a_limit_on_its_own_time():
    assert _confined("while True: pass").returncode in (-signal.SIGXCPU, -signal.SIGKILL)


def test_a_decoder_has_a_limit_on_its_memory():
    assert _confined("print(len(bytes(2**25)))").stdout.strip() == str(2**25)
    assert "MemoryError" in _confined("bytes(2**27)").stderr


@pytest.mark.parametrize(
    "code",
    [
        "open('/etc/hostname')",
        "os.listdir('/')",
        "os.pipe()",
        "import socket; socket.socket()",
        "os.open('new', os.O_WRONLY | os.O_CREAT)",
    ],
)
def test_a_decoder_cannot_open_anything(code):
    done = _confined(code)
    assert done.returncode == 1
    assert "Too many open files" in done.stderr


def test_a_decoder_is_given_bytes_and_no_name(tmp_path, monkeypatch):
    """What it is asked and told is on its command line, its environment and its input."""
    program = "import json, os, sys; print(json.dumps({'dtype': '|u1', 'shape': [-1]}))\n"
    program += "print(json.dumps([sys.argv[1:], dict(os.environ), sys.stdin.read()]))"
    (tmp_path / "program.py").write_text(program)
    monkeypatch.setattr("primaldepth.io.formats.isolated._PROGRAM", tmp_path / "program.py")
    monkeypatch.setenv("HDF5_PLUGIN_PATH", str(tmp_path))
    monkeypatch.setenv("HDF5_EXT_PREFIX", str(tmp_path))
    found = read_array(Source(tmp_path / "secret.mat", b"the bytes"), "hdf5", 0, "depth")
    arguments, environment, given = json.loads(found.tobytes())
    assert given == "the bytes"
    assert "secret" not in json.dumps([arguments, environment])
    assert {name: value for name, value in environment.items() if name.startswith("HDF5")} == {
        "HDF5_PLUGIN_PRELOAD": "::"
    }


@pytest.mark.parametrize(
    "head", ["{}", "[]", '{"dtype": "|O8", "shape": [1]}', '{"dtype": "<f4", "shape": [9, 9]}']
)
def test_an_answer_that_makes_no_sense_is_an_error(tmp_path, monkeypatch, head):
    (tmp_path / "program.py").write_text(f"print({head!r}, end=chr(10) + 'abcdefgh')")
    monkeypatch.setattr("primaldepth.io.formats.isolated._PROGRAM", tmp_path / "program.py")
    source = Source(Path("a.exr"), b"")
    with pytest.raises(FileFormatError, match=r"a\.exr"), library_errors(source, "EXR"):
        read_array(source, "exr", 0, "Z")
