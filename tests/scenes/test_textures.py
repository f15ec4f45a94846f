"""Textures: from a folder or from nothing, always the same, never a surprise."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.scenes.description import Texture
from primaldepth.scenes.patterns import PATTERNS
from primaldepth.scenes.textures import TILE, TextureSource


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two pictures, one of them in a folder of its own."""
    (tmp_path / "deep").mkdir()
    Image.new("RGB", (40, 60), (200, 100, 50)).save(tmp_path / "a.png")
    Image.new("L", (300, 90), 128).save(tmp_path / "deep" / "b.jpg")
    (tmp_path / "notes.txt").write_text("no picture")
    return tmp_path


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_is_a_pure_function_of_its_seed(pattern: str) -> None:
    tiles = [TextureSource().tile(Texture(pattern=pattern, seed=seed)) for seed in (4, 4, 5)]
    assert tiles[0].shape == (TILE, TILE, 3)
    np.testing.assert_array_equal(tiles[0], tiles[1])
    assert (tiles[0] != tiles[2]).any()
    assert np.ptp(tiles[0].astype(int)) > 60


def test_colours_run_from_dark_to_light() -> None:
    texture = Texture(pattern="gradient", seed=1, dark=(0.0, 0.2, 0.4), light=(1.0, 0.6, 0.4))
    tile = TextureSource().tile(texture)
    np.testing.assert_allclose(tile.min((0, 1)), [0, 51, 102], atol=1)
    np.testing.assert_allclose(tile.max((0, 1)), [255, 153, 102], atol=1)
    plain = TextureSource().tile(Texture(pattern="plain", light=(0.2, 0.4, 0.6)))
    np.testing.assert_array_equal(plain[7, 9], [51, 102, 153])


def test_a_repeated_texture_repeats() -> None:
    tile = TextureSource().tile(Texture(pattern="noise", seed=2, repeat=4))
    np.testing.assert_array_equal(tile[:64], tile[64:128])
    np.testing.assert_array_equal(tile[:, :64], tile[:, 192:])


def test_images_come_from_the_folder_by_number(folder: Path) -> None:
    source = TextureSource(folder)
    first, second = (source.tile(Texture(pattern="image", seed=seed)) for seed in (0, 3))
    np.testing.assert_array_equal(first[0, 0], [200, 100, 50])
    assert np.abs(second.astype(int) - 128).max() <= 2
    assert TextureSource(folder).fingerprint() == source.fingerprint() != TextureSource().fingerprint()


def test_without_a_folder_an_image_becomes_a_pattern() -> None:
    tile = TextureSource().tile(Texture(pattern="image", seed=12345))
    assert tile.shape == (TILE, TILE, 3)
    assert np.ptp(tile.astype(int)) > 60


def test_what_cannot_be_used_is_named(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        TextureSource(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no image found"):
        TextureSource(tmp_path / "empty")
    with pytest.raises(InputError, match="'plaid' is unknown"):
        TextureSource().tile(Texture(pattern="plaid"))
    (folder / "a.png").write_bytes(b"not a picture")
    with pytest.raises(FileFormatError, match=r"a\.png: .*or remove it from the texture folder"):
        TextureSource(folder).tile(Texture(pattern="image", seed=0))
