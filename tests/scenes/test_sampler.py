"""Scenes from seeds: plain, reproducible, within what the renderer holds, and full of things."""

import subprocess
import sys

import numpy as np
import pytest

from primaldepth.core.errors import InputError
from primaldepth.scenes.description import Scene
from primaldepth.scenes.sampler import PRESETS, sample
from primaldepth.scenes.scene_arrays import FACES, VERTICES, pack
from primaldepth.scenes.textures import TextureSource


@pytest.mark.parametrize("preset", PRESETS)
def test_a_description_survives_json(preset: str) -> None:
    scene = sample(preset, 11)
    assert Scene.from_json(scene.to_json()) == scene


@pytest.mark.parametrize("preset", PRESETS)
def test_a_seed_is_a_scene(preset: str) -> None:
    assert sample(preset, 5) == sample(preset, 5)
    assert sample(preset, 5).items != sample(preset, 6).items
    assert sample(preset, 2**63 - 1).seed == 2**63 - 1


@pytest.mark.parametrize("preset", PRESETS)
def test_every_scene_fits_the_buffers(preset: str) -> None:
    source = TextureSource()
    for seed in range(25):
        packed = pack(sample(preset, seed), source)
        assert packed.vertices.shape == (VERTICES, 3)
        assert packed.faces.shape == (FACES, 3)
        assert packed.faces.max() < VERTICES
        for name, table in packed.tables().items():
            assert np.isfinite(table).all(), name
        used = packed.faces[packed.face_ids > 0]
        assert packed.vertices[used].max(axis=(0, 1))[2] > 0  # something is in front of the camera


def test_rich_scenes_are_crowded_and_varied() -> None:
    scenes = [sample("rich", seed) for seed in range(40)]
    assert np.median([len(scene.items) for scene in scenes]) >= 45
    assert len({item.shape for scene in scenes for item in scene.items}) >= 25
    assert len({texture.pattern for scene in scenes for texture in scene.textures}) >= 11
    shared = [len(scene.items) > len({item.material.texture for item in scene.items}) for scene in scenes]
    assert all(shared)  # some edges separate equal textures
    assert {len(scene.lamps) for scene in scenes} >= {1, 2, 3}


def test_the_paper_preset_has_cubes_spheres_and_planes_only() -> None:
    shapes = {item.shape for seed in range(10) for item in sample("paper", seed).items}
    assert shapes == {"box", "sphere", "plane"}


def test_the_tof_preset_has_two_cameras_side_by_side() -> None:
    scene = sample("tof", 4)
    guide, tof = scene.cameras()["guide"], scene.cameras()["tof"]
    assert (guide.height, guide.width, tof.height, tof.width) == (610, 810, 120, 160)
    motion = scene.guide_from_tof()
    assert 0.02 < np.linalg.norm(motion[:3, 3]) < 0.15
    np.testing.assert_allclose(motion[:3, :3] @ motion[:3, :3].T, np.eye(3), atol=1e-9)
    with pytest.raises(InputError, match="no time-of-flight camera"):
        sample("rich", 4).guide_from_tof()


def test_sampling_loads_no_renderer() -> None:
    program = (
        "import sys; from primaldepth.scenes import sample; sample('rich', 1); "
        "import primaldepth.scenes.renderer; print([m for m in ('mitsuba', 'drjit') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_preset_or_broken_description_says_so() -> None:
    with pytest.raises(InputError, match="known: paper, rich, tof"):
        sample("poor", 0)
    with pytest.raises(InputError, match="expected a number >= 0"):
        sample("rich", -1)
    with pytest.raises(InputError, match="scene description: 'items'"):
        Scene.from_json('{"preset": "rich", "seed": 1}')
    for text in ("[" * 10_000, '{"seed": NaN}', '{"seed": ' + "1" * 5000 + "}", '{"seed": 1, "seed": 2}'):
        with pytest.raises(InputError, match="scene description: not a JSON document"):
            Scene.from_json(text)


def test_a_scene_too_large_for_the_buffers_is_refused() -> None:
    scene = sample("paper", 0)
    ball = next(item for item in scene.items if item.shape == "sphere")
    crowded = scene.model_copy(update={"items": (ball,) * 17})
    with pytest.raises(InputError, match="17 spheres, at most 16"):
        pack(crowded, TextureSource())
