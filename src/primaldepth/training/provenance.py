"""Where weights come from: the code's commit and the scenes, in words for the card."""

import os
import subprocess
from pathlib import Path

from primaldepth.data.shards import Shards


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


def describe(shards: Shards) -> str:
    """The scenes, in a line."""
    made = ", ".join(f"{key} {value}" for key, value in sorted(shards.manifest.made_with.items()))
    return f"{len(shards)} rendered scenes: {made}"
