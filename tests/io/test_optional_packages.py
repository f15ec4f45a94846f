"""What is said where a package that a reader needs is missing, or a library of the system that it needs."""

from pathlib import Path

import pytest

from primaldepth.core.errors import MissingDependencyError
from primaldepth.io.files import optional


def test_a_package_that_is_not_installed_names_its_extra():
    with pytest.raises(MissingDependencyError, match=r"pip install 'primaldepth\[video\]'"):
        optional("primaldepth_no_such_package", "video", Path("film.mp4"))


def test_a_package_that_cannot_be_loaded_names_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_sdk.py").write_text("raise ImportError('libcamera.so.0: cannot open shared object')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingDependencyError, match=r"cannot be loaded: libcamera\.so\.0") as caught:
        optional("broken_sdk", "realsense", Path("realsense"))
    assert "pip install" not in str(caught.value)
