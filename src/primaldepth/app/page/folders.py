"""Where results lie as long as a visitor may look at them; Gradio copies what it shows."""

import shutil
import tempfile
import time
from pathlib import Path

_AGE_SECONDS = 1800.0  # as long as a visitor may take to look at the 3-D view


class Folders:
    """A folder for each result; old ones are removed when a new one is made, all of them at the end."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="primaldepth-page-"))

    def new(self) -> Path:
        """An empty folder."""
        now = time.time()
        for old in self.root.glob("result-*"):
            if now - old.stat().st_mtime > _AGE_SECONDS:
                shutil.rmtree(old, ignore_errors=True)
        return Path(tempfile.mkdtemp(prefix="result-", dir=self.root))

    def remove(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.root, ignore_errors=True)
