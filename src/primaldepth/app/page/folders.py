"""Where results lie until Gradio has copied what it shows."""

import shutil
import tempfile
import time
from pathlib import Path

_AGE_SECONDS = 300.0  # copying takes no second; this is for a machine in trouble


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
