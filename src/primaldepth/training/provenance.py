"""The commit of the code that weights come from, for their card."""

import os
import subprocess
from pathlib import Path


def commit() -> str:
    """Commit of the code, from PRIMALDEPTH_COMMIT or git, with -dirty if it was changed; else empty."""
    if named := os.environ.get("PRIMALDEPTH_COMMIT"):
        return named
    try:
        _git("ls-files", "--error-unmatch", Path(__file__).name)  # not that of a project we are installed in
        return _git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)  # noqa: S603
    return found.stdout.strip()
