"""Where weights come from: the code's commit and the scenes, in words for the card."""

import os
import subprocess
from pathlib import Path

from primaldepth.data.shards import Shards


def commit() -> str:
    """Commit of the code, from PRIMALDEPTH_COMMIT or git; empty where neither knows."""
    if named := os.environ.get("PRIMALDEPTH_COMMIT"):
        return named
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()


def describe(shards: Shards) -> str:
    """The scenes, in a line."""
    made = ", ".join(f"{key} {value}" for key, value in sorted(shards.manifest.made_with.items()))
    return f"{len(shards)} rendered scenes: {made}"
