"""Randomly damaged files, thousands of each format, read in a process that may not crash, hang or grow."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("damage.py")
FAST = (
    "png",
    "exr",
    "pfm",
    "npy",
    "npz",
    "tiff",
    "mat",
    "guide-png",
    "guide-jpeg",
    "guide-tiff",
    "guide-exr",
)
SLOW = ("exr-apart", "tiff-apart", "mat73")  # each file takes a process of its own


@pytest.mark.parametrize(("name", "count"), [(name, 2000) for name in FAST] + [(name, 25) for name in SLOW])
def test_damaged(name, count):
    if name == "mat73":
        pytest.importorskip("h5py")
    command = [sys.executable, str(PROGRAM), name, str(count), "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout)
    assert result["failures"] == []
    assert result["noise"] == ""
    assert result["growth_mib"] < 300
    assert result["children_mib"] < 600
    assert result["read"] + result["refused"] == count
