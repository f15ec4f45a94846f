"""A file is written whole or not at all."""

import errno
import os
import pathlib
import signal
import stat
import subprocess
import sys

import pytest

from primaldepth.core.errors import InputError
from primaldepth.io import atomic_path, write_bytes


def test_writes_and_makes_the_folder(tmp_path):
    write_bytes(tmp_path / "new" / "deep" / "a.bin", b"content")
    assert (tmp_path / "new" / "deep" / "a.bin").read_bytes() == b"content"
    assert os.listdir(tmp_path / "new" / "deep") == ["a.bin"]


def test_a_failing_writer_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"old")

    def fail():
        with atomic_path(tmp_path / "a.bin") as temporary:
            temporary.write_bytes(b"half")
            raise RuntimeError("midway")

    with pytest.raises(RuntimeError, match="midway"):
        fail()
    assert (tmp_path / "a.bin").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_a_writer_that_writes_nothing_is_an_error(tmp_path):
    with pytest.raises(InputError, match="cannot be written"), atomic_path(tmp_path / "a.bin"):
        pass
    assert os.listdir(tmp_path) == []


def test_a_process_killed_midway_leaves_the_old_file(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"old")
    code = (
        "import sys, time\nfrom primaldepth.io import atomic_path\n"
        "with atomic_path(sys.argv[1]) as temporary:\n"
        "    temporary.write_bytes(b'half'); print('ready', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, tmp_path / "a.bin"], stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGKILL)
    assert (tmp_path / "a.bin").read_bytes() == b"old"
    write_bytes(tmp_path / "a.bin", b"new")  # what the killed process left is not in the way
    assert (tmp_path / "a.bin").read_bytes() == b"new"


def test_the_temporary_name_keeps_the_extension_and_is_unique(tmp_path):
    with atomic_path(tmp_path / "a.png") as first, atomic_path(tmp_path / "a.png") as second:
        assert first.suffix == second.suffix == ".png"
        assert first != second
        assert first.parent == tmp_path
        first.write_bytes(b"1")
        second.write_bytes(b"2")
    assert (tmp_path / "a.png").read_bytes() == b"1"
    assert os.listdir(tmp_path) == ["a.png"]


@pytest.mark.parametrize("stem", ["深" * 80, "é" * 120, "x" * 250])
def test_names_as_long_as_the_file_system_takes(tmp_path, stem):
    write_bytes(tmp_path / f"{stem}.png", b"1")
    assert os.listdir(tmp_path) == [f"{stem}.png"]


def test_rights_and_links_are_kept(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"old")
    (tmp_path / "a.bin").chmod(0o640)
    (tmp_path / "link.bin").symlink_to("a.bin")
    write_bytes(tmp_path / "link.bin", b"new")
    assert (tmp_path / "link.bin").is_symlink()
    assert (tmp_path / "a.bin").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "a.bin").stat().st_mode) == 0o640


def test_targets_that_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match="is a directory; give the name of a file"):
        write_bytes(tmp_path, b"x")
    with pytest.raises(InputError, match="not a regular file"):
        write_bytes("/dev/null", b"x")
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(InputError, match="cannot be written"):
        write_bytes(tmp_path / "file" / "a.bin", b"x")
    with pytest.raises(InputError, match="cannot be written"):
        write_bytes(tmp_path / ("a" * 300), b"x")
    assert os.listdir(tmp_path) == ["file"]


def test_unwritable_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # a superuser may write anywhere
    with pytest.raises(InputError, match="not writable; choose another"):
        write_bytes(tmp_path / "a.bin", b"x")


def test_a_full_disk(tmp_path, monkeypatch):
    def full(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pathlib.Path, "write_bytes", full)
    with pytest.raises(InputError, match=r"a\.bin: cannot be written \(No space left.*free space"):
        write_bytes(tmp_path / "a.bin", b"x")
    assert os.listdir(tmp_path) == []
