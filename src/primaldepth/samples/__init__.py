"""Shipped scenes: the sample of `scripts/make_sample.py`, and the examples of `scripts/make_examples.py`."""

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


@dataclass(frozen=True, slots=True)
class Example:
    """A scene to try: what it shows, and its files (depth in millimetres, a guide, the guide's camera)."""

    title: str
    depth: Path
    guide: Path
    cameras: Path


def sample_files() -> SampleFiles:
    """Return the paths of the shipped sample scene.

    Example:
        >>> import primaldepth
        >>> from primaldepth.samples import sample_files
        >>> files = sample_files()
        >>> primaldepth.upsample(files.depth, files.guide, method="bicubic").depth.shape
        torch.Size([480, 640])
    """
    folder = _folder()
    return SampleFiles(*(folder / name for name in ("depth.png", "guide.png", "truth.png", "cameras.json")))


def example_scenes() -> tuple[Example, ...]:
    """Return every shipped scene, the sample first."""
    sample, folder = sample_files(), _folder()
    rendered = {"vase": "Vase, 64x64 to 512x512", "ball": "Ball, 128x128 to 512x512"}
    return (
        Example("Still life, 80x60 to 640x480", sample.depth, sample.guide, sample.cameras),
        *(
            Example(title, *(folder / name / file for file in ("depth.png", "guide.jpg", "cameras.json")))
            for name, title in rendered.items()
        ),
    )


def _folder() -> Path:
    return Path(str(files(__name__)))
