"""Other processes, seen from outside; needs /proc."""

from pathlib import Path


def lives(pid):
    """Whether it runs: one that has ended but whose parent has not asked how does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
