"""Where the pictures on the surfaces come from: a folder of images, and the built-in patterns."""

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.io.picture_files import PictureFormat, open_picture
from primaldepth.io.rasters import read_image_file
from primaldepth.scenes.description import Colour, Texture
from primaldepth.scenes.patterns import PATTERNS

RGB = NDArray[np.uint8]

TILE = 256
"""Side of a texture in pixels."""

VARIANTS = 64
"""How many pictures of each pattern exist; colour, turn and repetition make many more of them."""

IMAGE_FORMATS: tuple[PictureFormat, ...] = ("PNG", "JPEG", "WEBP", "BMP", "TIFF")
IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")
_RAMP = np.linspace(0, 1, 256)[:, None]
_KEPT = 1500  # decoded pictures a process keeps: 200 kB each


class TextureSource:
    """Tiles of (TILE, TILE, 3) sRGB, each a pure function of its `Texture` and of the folder's images.

    Args:
        folder: images at any depth below it; without one, "image" textures become built-in patterns.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = None if folder is None else Path(folder)
        self.files = [] if self.folder is None else _images_below(self.folder)
        self._picture = lru_cache(maxsize=_KEPT)(self._read)

    def fingerprint(self) -> str:
        """Return a short hash of the images' names and sizes, by which a manifest tells folders apart."""
        return "built-in" if self.folder is None else fingerprint(self.folder, self.files)

    def tile(self, texture: Texture) -> RGB:
        """Return the texture coloured, turned and repeated, (TILE, TILE, 3)."""
        if texture.pattern == "plain":
            return np.broadcast_to(_bytes(texture.light), (TILE, TILE, 3))
        picture = _repeated(self._picture(*self._resolve(texture)), texture.repeat)
        dark = texture.dark if picture.ndim == 3 or texture.pattern != "image" else _own_dark(texture.seed)
        return coloured(np.rot90(picture, texture.turn), dark, texture.light)

    def _read(self, name: str, index: int) -> RGB:
        """Return a picture before it is coloured, (TILE, TILE) or (TILE, TILE, 3)."""
        return decoded_picture(self.files[index]) if name == "image" else _drawn(name, index)

    def _resolve(self, texture: Texture) -> tuple[str, int]:
        if texture.pattern == "image" and self.files:
            return "image", texture.seed % len(self.files)
        if texture.pattern == "image":
            names = sorted(PATTERNS)
            return names[texture.seed % len(names)], texture.seed // len(names) % VARIANTS
        if texture.pattern not in PATTERNS:
            known = ", ".join(["plain", "image", *PATTERNS])
            raise InputError("scene", f"texture pattern '{texture.pattern}' is unknown", f"known: {known}")
        return texture.pattern, texture.seed % VARIANTS


def fingerprint(folder: Path, files: Iterable[Path]) -> str:
    """Return a short hash of the names and sizes of files below a folder."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(folder).as_posix()}:{file.stat().st_size}\n".encode())
    return digest.hexdigest()[:16]


def coloured(picture: RGB, dark: Colour, light: Colour) -> RGB:
    """Return a picture coloured by a table of 256 entries: dark + (light - dark) picture, per channel.

    Args:
        picture: (H, W) or (H, W, 3).
        dark: sRGB in [0, 1].
        light: sRGB in [0, 1].
    """
    table = _bytes(np.asarray(dark) + (np.asarray(light) - np.asarray(dark)) * _RAMP)
    image = Image.fromarray(np.ascontiguousarray(picture))
    if picture.ndim == 2:
        image.putpalette(table.tobytes())
        return np.asarray(image.convert("RGB"))
    return np.asarray(image.point(table.T.ravel().tolist()))


def _own_dark(seed: int) -> Colour:
    """Return a second colour for a grey pattern used in place of an image."""
    rng = np.random.default_rng(seed)
    red, green, blue = (rng.uniform(0, 0.8) * rng.uniform(0.4, 1, 3)).tolist()
    return red, green, blue


def _repeated(picture: RGB, repeat: int) -> RGB:
    """Return the picture repeated `repeat` times each way in the same number of pixels."""
    if repeat == 1:
        return picture
    side = -(-TILE // repeat)
    small = np.asarray(Image.fromarray(picture).resize((side, side), Image.Resampling.BOX))
    copies = (repeat, repeat, 1) if picture.ndim == 3 else (repeat, repeat)
    return np.tile(small, copies)[:TILE, :TILE]


def _drawn(name: str, index: int) -> RGB:
    seed = int.from_bytes(hashlib.sha256(f"{name}/{index}".encode()).digest()[:8], "big")
    grey = PATTERNS[name](np.random.default_rng(seed), TILE)
    return _bytes(grey)


def decoded_picture(file: Path) -> RGB:
    """Return the middle square of an image file."""
    try:
        image = open_picture(read_image_file(file), file, formats=IMAGE_FORMATS, at_least=(TILE, TILE))
        picture = image.convert("RGB")
    except InputError as error:
        raise FileFormatError(f"{error}, or remove it from the texture folder") from error
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    square = (left, top, left + side, top + side)
    return np.asarray(picture.resize((TILE, TILE), Image.Resampling.BILINEAR, box=square))


def _images_below(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputError(folder, "is not a folder", "--textures names a folder of images")
    found = sorted(
        (file for file in folder.rglob("*") if file.suffix.lower() in IMAGE_SUFFIXES),
        key=lambda file: file.relative_to(folder).as_posix(),
    )
    if not found:
        raise InputError(folder, f"no image found below it ({', '.join(IMAGE_SUFFIXES)})")
    return found


def _bytes(values: object) -> RGB:
    return np.asarray(np.clip(np.round(np.asarray(values) * 255), 0, 255), np.uint8)
