"""Which files the page reads, and how much of the disk it takes."""

import os

import pytest

from primaldepth.app.page.abandoned_visitors import _MOST_KEPT, _MOST_LISTENING, _MOST_OPEN, Sessions
from primaldepth.app.page.readable_files import ReadableFiles
from primaldepth.app.page.visitor_folders import VisitorFolders
from primaldepth.app.problems import RefusedError


@pytest.fixture
def folder(tmp_path):
    """A folder for uploads with a file in it, beside one that is nobody's business."""
    uploads = tmp_path / "uploads"
    uploads.mkdir()
    (uploads / "depth.png").write_text("uploaded")
    (tmp_path / "secret.png").write_text("secret")
    (tmp_path / "uploads-of-others").mkdir()
    (tmp_path / "uploads-of-others" / "depth.png").write_text("secret")
    return uploads


def test_an_upload_is_copied(folder, tmp_path):
    ReadableFiles([folder]).copy(folder / "." / "depth.png", tmp_path / "copy", "depth")
    assert (tmp_path / "copy").read_text() == "uploaded"


def test_nothing_else_is(folder, tmp_path):
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "up").symlink_to(tmp_path)
    (folder / "loop").symlink_to(folder / "loop")
    os.mkfifo(folder / "pipe")
    wrong = (
        *(
            folder / "link.png",
            folder / "up" / "secret.png",
            folder / ".." / "secret.png",
            folder,
            "secret.png",
        ),
        *(tmp_path / "uploads-of-others" / "depth.png", folder / "pipe", "\0", "http://a.example/b.png"),
        *(folder / "loop", "/etc/passwd", f"file://{folder}/depth.png"),
    )
    for path in wrong:
        with pytest.raises(RefusedError, match="not uploaded"):
            ReadableFiles([folder]).copy(path, tmp_path / "copy", "depth")
        assert not (tmp_path / "copy").exists()


def test_small_files_count_as_what_they_take_on_the_disk(tmp_path):
    """A file of one byte takes a block, and its folder another."""
    folders = VisitorFolders(tmp_path / "page", most_bytes=100 * 4096)
    for index in range(200):
        folder = folders.gradio / f"{index:03}"
        folder.mkdir()
        (folder / "a").write_text("x")
        os.utime(folder, (1e10 + index,) * 2)
    folders.tidy()
    left = sorted(path.name for path in folders.gradio.iterdir())
    assert left == [f"{index:03}" for index in range(150, 200)]


def test_there_are_never_more_folders_than_can_be_tidied_quickly(tmp_path, monkeypatch):
    monkeypatch.setattr("primaldepth.app.page.visitor_folders._MOST_FOLDERS", 3)
    folders = VisitorFolders(tmp_path / "page", most_bytes=1e9)
    for index in range(5):
        (folders.gradio / str(index)).mkdir()
        os.utime(folders.gradio / str(index), (1e10 + index,) * 2)
    folders.tidy()
    assert sorted(path.name for path in folders.gradio.iterdir()) == ["2", "3", "4"]


class _Event:
    def __init__(self, session):
        self.session_hash = session


class _Queue:
    """What Gradio keeps of visitors."""

    def __init__(self, busy):
        self.event_ids_to_events = {name: _Event(name) for name in busy}
        self.pending_messages_per_session = {}
        self.pending_event_ids_session = {}


def test_visitors_who_never_come_back_are_forgotten_but_not_those_who_wait():
    queue = _Queue(busy=["first"])
    sessions = Sessions(queue)
    with sessions.listening("second"):
        for name in ("first", "second", *(str(index) for index in range(3 * _MOST_KEPT))):
            queue.pending_messages_per_session[name] = queue.pending_event_ids_session[name] = name
            sessions.note(name)
    assert len(queue.pending_messages_per_session) == len(queue.pending_event_ids_session) == _MOST_KEPT
    assert {"first", "second", str(3 * _MOST_KEPT - 1)} <= set(queue.pending_messages_per_session)
    assert "first" in sessions
    assert "0" not in sessions


def test_so_many_may_wait_for_results_at_a_time_and_no_more():
    sessions, opened = Sessions(_Queue(busy=[])), []
    for _ in range(_MOST_LISTENING):
        opened.append(sessions.listening("a"))
        opened[-1].__enter__()
    with pytest.raises(RefusedError, match="as many as may"), sessions.listening("b"):
        pass
    with sessions.open_page("b", lambda: None):
        pass
    opened.pop().__exit__(None, None, None)
    with sessions.listening("b"):
        pass


def test_open_pages_take_no_place_from_others_unless_something_is_computed_for_them():
    queue = _Queue(busy=["0"])
    sessions, opened, ended = Sessions(queue), [], []
    for index in range(_MOST_OPEN + 2):
        opened.append(sessions.open_page(str(index), lambda index=index: ended.append(index)))
        opened[-1].__enter__()
    assert ended == [1, 2]  # the oldest, but for the one that is busy
    queue.event_ids_to_events = {str(index): _Event(str(index)) for index in range(_MOST_OPEN + 2)}
    with pytest.raises(RefusedError, match="as many as may"), sessions.open_page("new", lambda: None):
        pass
    for each in opened:
        each.__exit__(None, None, None)
    for index in range(_MOST_OPEN):
        sessions.open_page(str(index), lambda: ended.append("early")).__enter__()
    assert ended == [1, 2]
