"""One process at a time in a folder."""

import errno

import pytest

from primaldepth.core.errors import InputError
from primaldepth.io import locks


@pytest.mark.parametrize("name", ["", "some.lock"])
@pytest.mark.parametrize("instead", ["", ".lock"])
def test_a_folder_is_held_once_and_free_again_afterwards(tmp_path, monkeypatch, name, instead):
    """`instead` is the file that is locked on systems that open no folder."""
    monkeypatch.setattr(locks, "_IN_PLACE_OF_FOLDER", instead)
    folder = tmp_path / "new"
    for _ in range(2):
        with locks.held(folder, "writing to", name):
            refused = pytest.raises(
                InputError, match="another process is writing to this folder; wait for it"
            )
            with refused, locks.held(folder, "writing to", name):
                pytest.fail("held twice")
    assert [path.name for path in folder.iterdir()] == [each for each in (name or instead,) if each]


def test_nothing_is_held_where_a_file_system_knows_no_locks(tmp_path, monkeypatch):
    def refuse(descriptor, blocking):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr("filelock.lock_descriptor", refuse)
    with locks.held(tmp_path, "writing to"), locks.held(tmp_path, "writing to"):
        assert (tmp_path / ".lock").is_file()


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path):
    (tmp_path / ".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="cannot be written to"), locks.held(tmp_path, "writing to"):
        pytest.fail("held")
    assert not (tmp_path / "elsewhere").exists()
