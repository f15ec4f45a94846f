"""The tour lists what a trace of one frame shows."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).parents[2]


def test_the_tour_lists_the_stops_of_a_trace(tmp_path):
    noisy = np.random.default_rng(0).normal(1500.0, 20.0, (3, 24, 32)).astype(np.uint16)
    for folder, arrays in (("depths", noisy), ("images", np.zeros((3, 48, 64), np.uint8))):
        (tmp_path / folder).mkdir()
        for index, array in enumerate(arrays):
            Image.fromarray(array).save(tmp_path / folder / f"{index}.png")
    script = ROOT / "scripts" / "trace_frame.py"
    options = ("depths", "images", "-o", "out", "--preview", "previews", "--method", "bilinear")
    done = subprocess.run(
        [sys.executable, script, *options], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    stops = re.findall(r"^  (.*)$", re.split(r"^\d+ helpers:", done.stdout, flags=re.M)[0], re.M)
    found = [
        "methods/" if stop.startswith("methods/") and stop.endswith("__call__") else stop for stop in stops
    ]
    text = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    assert found == re.findall(r"^\| \d+ \| `([^`]+)`", text, flags=re.M)
    assert len(found) <= 16
