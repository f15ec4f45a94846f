"""The shipped sample scene: made by `scripts/make_sample.py`, described in `sample.json`."""

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SampleFiles:
    """Where the files of the sample lie.

    Args:
        depth: 80x60 noisy z, 16-bit PNG in millimetres, 0 = no measurement.
        guide: 640x480 RGB, 8-bit PNG.
        truth: 640x480 true z, 16-bit PNG in millimetres.
        cameras: the guide's camera, as `geometry.cameras.read_cameras` reads it.
    """

    depth: Path
    guide: Path
    truth: Path
    cameras: Path


def sample_files() -> SampleFiles:
    """Paths of the shipped sample scene."""
    folder = Path(str(files(__name__)))
    return SampleFiles(*(folder / name for name in ("depth.png", "guide.png", "truth.png", "cameras.json")))
