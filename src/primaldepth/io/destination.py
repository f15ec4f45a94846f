"""Can a result be written there? Asked before the work, so that no long run ends in vain."""

import os
from collections.abc import Sequence
from pathlib import Path

from primaldepth.core.errors import InputError


def check_extension(option: str, path: Path, suffixes: Sequence[str]) -> None:
    """Raise unless the extension is one that `option` can be written as."""
    if path.is_dir():
        raise InputError(f"{option} {path}", "is a directory", "give the name of a file to write")
    if path.suffix.lower() not in suffixes:
        found = f"extension '{path.suffix}' cannot be written" if path.suffix else "no extension"
        raise InputError(f"{option} {path}", f"{found}", f"use {' or '.join(suffixes)}")


def check_place(option: str, path: Path) -> None:
    """Raise unless `path` can be made or replaced; nothing is touched."""
    if path.exists() and not path.is_file():
        what = "is a directory" if path.is_dir() else "is not a regular file"
        raise InputError(f"{option} {path}", f"{what}", "give the name of a file to write")
    folder = _nearest_existing(path.absolute().parent)
    if not folder.is_dir():
        raise InputError(f"{option} {path}", f"{folder} is a file, not a folder", "choose another place")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{option} {path}", f"the folder {folder} is not writable", "choose another place")


def _nearest_existing(folder: Path) -> Path:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder
