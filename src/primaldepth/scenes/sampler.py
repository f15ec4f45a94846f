"""Seeds to scenes: a plain description, made by numpy's random numbers alone; no renderer is needed."""

from collections.abc import Callable

import numpy as np

from primaldepth.core.errors import InputError
from primaldepth.scenes import layouts
from primaldepth.scenes.description import Camera, Exposure, Scene
from primaldepth.scenes.scanned_objects import with_scans
from primaldepth.scenes.scene_arrays import TEXTURES
from primaldepth.scenes.scene_builder import SceneBuilder, rotation_of, turn, vector

Layout = Callable[[SceneBuilder], Camera]

RICH: tuple[tuple[Layout, float], ...] = (
    (layouts.still_life, 0.5),
    (layouts.room, 0.15),
    (layouts.shelf, 0.12),
    (layouts.clutter, 0.23),
)
PRESETS: dict[str, tuple[tuple[Layout, float], ...]] = {
    "paper": ((layouts.paper, 1.0),),
    "rich": RICH,
    "tof": RICH,
}
"""For each preset its layouts, and how often each is used."""

TOF_SIZE, GUIDE_SIZE = (160, 120), (810, 610)


def sample(preset: str, seed: int, *, scans: bool = False) -> Scene:
    """Return the scene of a preset and a seed; the same arguments always give the same scene.

    Args:
        preset: "paper", "rich" or "tof".
        seed: 0 or larger.
        scans: whether objects from files stand for some of its shapes; all else stays as it is without.

    Raises:
        InputError: if there is no such preset, or the seed is negative.

    Example:
        >>> from primaldepth.scenes import Scene, sample
        >>> scene = sample("paper", seed=7)
        >>> scene == sample("paper", seed=7) == Scene.from_json(scene.to_json())
        True
    """
    if preset not in PRESETS:
        raise InputError(f"preset '{preset}' is unknown; known: {', '.join(PRESETS)}")
    if seed < 0:
        raise InputError(f"scene seed {seed}", "expected a number >= 0")
    rng = np.random.default_rng([seed, *preset.encode()])
    plain = preset == "paper"
    builder = SceneBuilder(rng, glossy=0.0 if plain else 0.35)
    camera = _layout(rng, preset)(builder)
    if scans:
        own = np.random.default_rng([seed, *preset.encode(), 1])
        builder.items, builder.textures = with_scans(builder.items, builder.textures, own, TEXTURES)
    away = max(item.position[2] for item in builder.items)
    scene = Scene(
        preset=preset,
        seed=seed,
        lamps=layouts.lamps(builder, camera, away)[: 1 if plain else None],
        ambient=_ambient(builder),
        guide=camera,
        exposure=_exposure(builder, grey=preset == "tof"),
        items=tuple(builder.items),
        textures=tuple(builder.textures),
    )
    return _with_tof(builder, scene) if preset == "tof" else scene


def _layout(rng: np.random.Generator, preset: str) -> Layout:
    choices = PRESETS[preset]
    return choices[int(rng.choice(len(choices), p=[weight for _, weight in choices]))][0]


def _ambient(b: SceneBuilder) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Draw light from all around: from almost none to an overcast sky, cooler or warmer above than below."""
    strength = b.about(0.2, 0.6)
    above = strength * b.rng.uniform(0.85, 1.15, 3)
    return vector(above * b.between(0.3, 0.9)), vector(above)


def _exposure(b: SceneBuilder, grey: bool) -> Exposure:
    """Draw an exposure: mostly a clean picture; one in eight is dark and noisy."""
    dark = b.chance(0.12)
    return Exposure(
        level=b.between(0.02, 0.08) if dark else b.between(0.12, 0.28),
        softness=b.between(0.0, 0.9),
        noise=b.between(0.02, 0.06) if dark else b.between(0.0, 0.02),
        grey=grey,
    )


def _with_tof(b: SceneBuilder, scene: Scene) -> Scene:
    """Give the scene a second camera beside the guide's that looks almost the same way."""
    guide = scene.guide.model_copy(update={"width": GUIDE_SIZE[0], "height": GUIDE_SIZE[1]})
    axes = np.asarray(guide.rotation)
    baseline = axes @ [
        b.between(0.03, 0.1) * float(b.rng.choice([-1, 1])),
        b.between(-0.02, 0.02),
        b.between(-0.02, 0.02),
    ]
    tilt = turn(0, b.between(-0.02, 0.02)) @ turn(1, b.between(-0.03, 0.03)) @ turn(2, b.between(-0.01, 0.01))
    tof = Camera(
        width=TOF_SIZE[0],
        height=TOF_SIZE[1],
        fov_degrees=min(guide.fov_degrees * b.between(0.98, 1.15), 80.0),
        rotation=rotation_of(axes @ tilt),
        position=vector(np.asarray(guide.position) + baseline),
        centre_shift=(b.between(-0.02, 0.02), b.between(-0.02, 0.02)),
    )
    return scene.model_copy(update={"guide": guide, "tof": tof})
