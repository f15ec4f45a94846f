"""How much memory one large frame takes, from reading its files to writing the result."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

WIDTH, HEIGHT, STEP = 4000, 3000, 8

# The large pair is measured against a tiny one, which loads every module and kernel. VmHWM is the peak of
# this program alone, while ru_maxrss would begin at that of the process which started it.
PROGRAM = """
from pathlib import Path
from primaldepth.cli.main import app

def bytes_at_peak():
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    return 1024 * int(line.split()[1])

def upsample(size):
    files = [f"{size}-depth.png", f"{size}-guide.png", "--out", f"{size}-out.png"]
    app(["upsample", *files, "--method", "bilinear", "--device", "cpu"], standalone_mode=False)

upsample("small")
before = bytes_at_peak()
upsample("large")
print(bytes_at_peak() - before)
"""


def _write_pair(folder: Path, name: str, height: int, width: int) -> None:
    rows, columns = np.mgrid[:height, :width]
    guide = np.stack([rows % 256, columns % 256, (rows + columns) % 256], axis=-1).astype(np.uint8)
    Image.fromarray(guide).save(folder / f"{name}-guide.png", compress_level=1)
    depth = (1000 + rows + columns)[::STEP, ::STEP].astype(np.uint16)
    Image.fromarray(depth).save(folder / f"{name}-depth.png")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_a_frame_takes_little_more_than_its_guide_and_its_result(tmp_path: Path) -> None:
    """Per pixel: 12 bytes of guide, 4 of depth, 3 of masks, 2 of stored numbers, 2 of the matrices of a
    reduction; a mask as floating point numbers, or the result in float64, would break the bound."""
    _write_pair(tmp_path, "small", 4 * STEP, 4 * STEP)
    _write_pair(tmp_path, "large", HEIGHT, WIDTH)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=100
    )
    assert int(done.stdout) / (WIDTH * HEIGHT) < 32
