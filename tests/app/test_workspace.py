"""What a service leaves behind that is killed: no process, and no upload once another one starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from primaldepth.app.workspace import Workspace, remove_left_over
from processes import lives
from waiting import wait_until

HERE = Path(__file__).parent


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The folder for temporary files, of this process alone."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def started(program, *arguments, place):
    """A program in a process of its own, and the words of the first line it prints."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([*sys.path, str(HERE), str(HERE.parent)]),
        "TMPDIR": str(place),
    }
    command = [sys.executable, *program, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    return process, process.stdout.readline().split()


def kill(process):
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_killed_service_leaves_no_worker_and_the_next_removes_its_uploads(place, tmp_path_factory):
    held = tmp_path_factory.mktemp("held")
    process, (worker, root) = started([str(HERE / "held_service.py")], str(held), place=place)
    assert lives(int(worker))
    kill(process)
    wait_until(lambda: not lives(int(worker)), seconds=20)
    assert (Path(root) / "depth").exists()
    Workspace().remove()
    assert list(place.iterdir()) == []


PROGRAM = """
import time
from primaldepth.app.workspace import Workspace
workspace = Workspace()
print(workspace.root, flush=True)
time.sleep(600)
"""


def test_the_folder_of_a_service_that_lives_is_left_alone(place):
    process, (root,) = started(["-c", PROGRAM], place=place)
    try:
        workspace = Workspace()
        assert Path(root).is_dir()
        workspace.remove()
    finally:
        kill(process)
    remove_left_over(place)
    assert list(place.iterdir()) == []


def test_only_folders_of_this_user_s_services_are_removed(place, monkeypatch):
    other = place / "primaldepth-else"
    target = place / "keep"
    for folder in (other, target):
        folder.mkdir()
    (place / "primaldepth-service-link").symlink_to(target)
    (place / "primaldepth-service-file").touch()
    remove_left_over(place)
    assert len(list(place.iterdir())) == 4
    foreign = place / "primaldepth-service-foreign"
    foreign.mkdir()
    monkeypatch.setattr("os.geteuid", lambda: foreign.stat().st_uid + 1)
    remove_left_over(place)
    assert foreign.is_dir()


def test_a_workspace_can_be_read_by_its_user_alone_and_is_removed(place):
    workspace = Workspace()
    assert workspace.root.stat().st_mode & 0o777 == 0o700
    with workspace.new_folder() as name:
        (Path(name) / "depth").touch()
    assert not Path(name).exists()
    workspace.remove()
    assert list(place.iterdir()) == []
