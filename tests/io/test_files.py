"""Files that a user names: pipes, devices and giants are refused before they are read."""

import os

import pytest

from primaldepth.core.errors import FileFormatError, InputError, MissingFileError
from primaldepth.io.files import json_lines, open_file, read_file, read_json, read_text


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_what_is_read(tmp_path):
    path = tmp_path / "a:b?c.txt"
    path.write_bytes(b"\xef\xbb\xbfabc")
    assert read_file(path, 6) == b"\xef\xbb\xbfabc"
    assert read_text(str(path)) == "abc"
    (tmp_path / "link").symlink_to(path)
    assert read_text(tmp_path / "link") == "abc"


def test_pipes_are_refused_without_waiting(pipe):
    with pytest.raises(InputError, match="pipe: is not a regular file"):
        read_file(pipe, 10)


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_devices_are_refused(name):
    if not os.path.exists(name):
        pytest.skip(f"no {name}")
    with pytest.raises(InputError, match="is not a regular file"):
        open_file(name)


def test_a_pipe_that_takes_the_name_after_the_look_is_refused(tmp_path, pipe, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"x")
    regular = os.stat(path)
    monkeypatch.setattr("primaldepth.io.files.os.stat", lambda path: regular)
    with pytest.raises(InputError, match="is not a regular file"):
        open_file(pipe)


def test_giants_are_refused_by_their_size(tmp_path):
    path = tmp_path / "giant"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(FileFormatError, match="giant: has 1099511627776 bytes, more than the limit of 1000"):
        read_file(path, 1000)


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs /proc")
def test_files_of_unknown_size_are_read_up_to_the_limit():
    assert os.stat("/proc/self/maps").st_size == 0
    with pytest.raises(FileFormatError, match="has 101 bytes, more than the limit of 100"):
        read_file("/proc/self/maps", 100)


def test_what_is_not_there(tmp_path):
    with pytest.raises(MissingFileError, match="none: no such file"):
        open_file(tmp_path / "none")
    with pytest.raises(InputError, match="is a directory"):
        open_file(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        open_file("a\0b")
    with pytest.raises(InputError, match="cannot be read"):
        open_file(tmp_path / ("x" * 300))


def test_text_that_is_none(tmp_path):
    (tmp_path / "a").write_bytes(b"abc\xff")
    with pytest.raises(FileFormatError, match=r"a: not a readable text file .byte 3 is not UTF-8"):
        read_text(tmp_path / "a")


def test_documents_name_their_file(tmp_path):
    (tmp_path / "a.json").write_text("[" * 2000)
    with pytest.raises(FileFormatError, match=r"a\.json: not a list of things"):
        read_json(tmp_path / "a.json", what="list of things")


def test_lines_that_are_no_objects_are_marked(tmp_path):
    (tmp_path / "log").write_bytes(b'{"a": 1}\n\n[2]\n' + b"[" * 5000 + b'\n{"b": "\xff"}\n{"c": 3}\n{"d": ')
    assert list(json_lines(tmp_path / "log")) == [{"a": 1}, None, None, None, {"c": 3}, None]
