"""What is rendered is what geometry says; bytes depend on scene and variant alone."""

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from plain_scenes import plane, scene_of

from primaldepth.core.errors import InputError
from primaldepth.scenes.description import Exposure, Lamp, Material, SceneObject
from primaldepth.scenes.renderer import Renderer
from primaldepth.scenes.sampler import sample
from primaldepth.scenes.scene_builder import turn

TOLERANCE_M = 1e-4


def test_a_tilted_plane_has_the_depth_of_its_formula(cpu_variant: str) -> None:
    turned = turn(1, 0.5) @ turn(0, -0.3)
    scene = scene_of(plane(turned, 2.0))
    depth = Renderer(preset="paper", size=65, samples=1, variant=cpu_variant).render(scene)["depth"]
    normal = turned[:, 2] * [1, -1, 1]  # y points down in the camera
    rays = scene.cameras(65)["guide"].rays()
    expected = 2.0 * normal[2] / (rays @ normal)
    np.testing.assert_allclose(depth, expected, atol=TOLERANCE_M)


def test_a_sphere_has_the_depth_of_its_formula(cpu_variant: str) -> None:
    centre, radius = np.array([0.2, 0.1, 1.7]), 0.45
    ball = SceneObject(shape="sphere", size=(2 * radius,) * 3, position=(0.2, -0.1, 1.7))
    scene = scene_of(ball)
    arrays = Renderer(preset="paper", size=96, samples=1, variant=cpu_variant).render(scene)
    rays = scene.cameras(96)["guide"].rays()
    a, b, c = (rays**2).sum(-1), rays @ centre, centre @ centre - radius**2
    root = b**2 - a * c
    hit = root > 0
    expected = np.where(hit, (b - np.sqrt(np.maximum(root, 0))) / a, 0)
    np.testing.assert_array_equal(arrays["valid"], hit)
    np.testing.assert_allclose(arrays["depth"], expected, atol=TOLERANCE_M)
    outward = (rays * expected[..., None] - centre) / radius
    np.testing.assert_allclose(arrays["normals"][hit], outward[hit], atol=2e-3)


def test_nothing_hit_is_zero_and_not_valid(llvm: str) -> None:
    ball = SceneObject(shape="sphere", size=(0.2, 0.2, 0.2), position=(0.0, 0.0, 2.0))
    arrays = Renderer(preset="paper", size=33, samples=1, variant=llvm).render(scene_of(ball))
    assert not arrays["valid"][0, 0]
    assert arrays["depth"][0, 0] == arrays["ids"][0, 0] == arrays["image"][0, 0].max() == 0
    assert arrays["ids"][16, 16] == 1


def test_edges_of_the_image_lie_on_edges_of_the_depth(cpu_variant: str) -> None:
    """The share of a pixel that a bright box covers says where its edge is, to a fraction of a pixel."""
    size, distance, half = 64, 1.5, 0.3
    box = SceneObject(shape="box", size=(2 * half, 2 * half, 0.1), position=(0.0, 0.0, distance + 0.05))
    scene = scene_of(box, plane(np.eye(3), 2.5, texture=1), exposure=Exposure(level=0.05))
    arrays = Renderer(preset="paper", size=size, samples=256, variant=cpu_variant).render(scene)
    focal = scene.cameras(size)["guide"].fx
    left = size / 2 - focal * half / distance  # the box's front begins here
    row = arrays["image"][size // 2, :, 1] / 255
    linear = np.where(row > 0.04045, ((row + 0.055) / 1.055) ** 2.4, row / 12.92)
    column = int(left)
    inside, outside = linear[column + 2], linear[column - 2]
    covered = (linear[column] - outside) / (inside - outside)
    assert abs(column + 1 - covered - left) < 0.1
    on_box = np.flatnonzero(arrays["ids"][size // 2] == 1)
    assert abs(on_box[0] - left) <= 0.5
    assert abs(on_box[-1] + 1 - (size - left)) <= 0.5


def test_two_independent_renderers_see_the_same_picture(llvm: str) -> None:
    """Our shading on arrays of rays against Mitsuba's path tracer: lamps, gloss, shadow, texture, sphere."""
    lamps = (
        Lamp(position=(-1.0, 1.0, 0.5), radius=0.2, power=(3.0, 2.0, 1.0)),
        Lamp(position=(2.0, 2.0, -1.0), radius=0.5, power=(2.0, 3.0, 6.0)),
    )
    base, glossy = sample("paper", 1), Material(texture=1, roughness=0.4)
    items = (
        plane(turn(1, 0.2), 3.0),
        SceneObject(shape="sphere", size=(0.8,) * 3, position=(-0.4, 0.0, 2.2), material=glossy),
        SceneObject(
            shape="torus", size=(0.7, 0.7, 0.2), position=(0.5, 0.1, 2.2), material=Material(texture=2)
        ),
    )
    scene = scene_of(*items, textures=base.textures[:3], lamps=lamps, ambient=((0.1,) * 3, (0.3, 0.2, 0.1)))
    ours, theirs = (
        Renderer(preset="paper", size=40, samples=400, variant=name).render(scene)["image"].astype(float)
        for name in (llvm, "scalar")
    )
    assert theirs.std() > 20
    # Light reflected twice is an estimate in ours, hence not exactly the same.
    assert np.abs(ours - theirs).mean() < 6
    assert np.abs(ours.mean((0, 1)) - theirs.mean((0, 1))).max() < 6


def test_equal_bytes_in_any_order_and_in_another_process(llvm: str) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); "
        f"import test_renderer as t; print(t.digest(t.small({llvm!r}), 7))"
    )
    first = small(llvm)
    digests = [digest(first, seed) for seed in (7, 8, 7)]
    assert digests[0] == digests[2] != digests[1]
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == digests[0]


def test_no_scene_compiles_what_the_first_did_not(llvm: str) -> None:
    renderer = small(llvm)
    renderer.render(sample("rich", 0))
    after_first = renderer.compiles
    for seed in range(1, 6):
        renderer.render(sample("rich", seed))
    assert renderer.compiles == after_first


def test_a_tof_scene_has_both_cameras(llvm: str) -> None:
    scene = sample("tof", 2)
    arrays = Renderer(preset="tof", samples=1, variant=llvm).render(scene)
    assert arrays["image"].shape == (610, 810, 3)
    assert arrays["depth"].shape == (610, 810)
    assert {arrays[f"tof_{name}"].shape for name in ("distance", "amplitude", "valid")} == {(120, 160)}
    assert np.ptp(arrays["image"].astype(int), axis=-1).max() == 0


def test_distance_is_radial_and_amplitude_falls_with_its_square(llvm: str) -> None:
    """A frontal plane at z = 2: r = 2 |ray|, amplitude = albedo cos / r^2 with cos = 2 / r."""
    scene = scene_of(plane(np.eye(3), 2.0))
    camera = scene.guide.model_copy(update={"width": 40, "height": 30, "position": (0.1, 0.0, 0.0)})
    arrays = Renderer(preset="paper", size=32, samples=1, variant=llvm).render(
        scene.model_copy(update={"tof": camera})
    )
    distance = 2 * np.linalg.norm(camera.intrinsics(1).rays(), axis=-1)
    np.testing.assert_allclose(arrays["tof_distance"], distance, atol=TOLERANCE_M)
    np.testing.assert_allclose(arrays["tof_amplitude"], 2 / distance**3, rtol=1e-3)


def test_more_samples_than_fit_at_once_are_rendered_in_passes(
    llvm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = scene_of(plane(np.eye(3), 2.0))
    whole = Renderer(preset="paper", size=16, samples=48, variant=llvm).render(scene)["image"]
    monkeypatch.setattr("primaldepth.scenes.renderer.LANES", 16 * 16 * 20)
    parts = Renderer(preset="paper", size=16, samples=48, variant=llvm).render(scene)["image"]
    assert np.abs(whole.astype(int) - parts).max() <= 6


def test_a_scene_of_another_preset_is_refused(llvm: str) -> None:
    with pytest.raises(InputError, match="made for preset 'rich'"):
        Renderer(preset="rich", size=16, samples=1, variant=llvm).render(sample("paper", 0))


def small(variant: str) -> Renderer:
    """A renderer of small rich scenes."""
    return Renderer(preset="rich", size=48, samples=4, variant=variant)


def digest(renderer: Renderer, seed: int) -> str:
    """A hash of all arrays of a scene."""
    arrays = renderer.render(sample("rich", seed))
    return hashlib.sha256(b"".join(arrays[name].tobytes() for name in sorted(arrays))).hexdigest()
