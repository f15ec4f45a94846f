"""Scenes simple enough to have a formula."""

from primaldepth.scenes.description import Camera, Exposure, Lamp, Material, Scene, SceneObject, Texture
from primaldepth.scenes.scene_builder import rotation_of

FACING = ((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0))
"""A camera at the origin that looks along z: its y axis is the room's, upside down."""

BRIGHT = Texture(pattern="plain", light=(1.0, 1.0, 1.0))
GREY = Texture(pattern="plain", light=(0.5, 0.5, 0.5))


def scene_of(*items: SceneObject, **changes: object) -> Scene:
    """The items in even light, seen from the origin with a field of view of 50 degrees."""
    values = {
        "preset": "paper",
        "seed": 3,
        "items": items,
        "textures": (BRIGHT, GREY),
        "ambient": ((0.6, 0.6, 0.6), (0.6, 0.6, 0.6)),
        "lamps": (Lamp(position=(0.0, 0.0, 0.0), radius=0.05, power=(1.0, 1.0, 1.0)),),
        "guide": Camera(fov_degrees=50.0, rotation=FACING, position=(0.0, 0.0, 0.0)),
        "exposure": Exposure(level=0.3),
    }
    return Scene(**(values | changes))


def plane(rotation: object, distance: float, texture: int = 0) -> SceneObject:
    """A wide plane whose middle lies straight ahead."""
    return SceneObject(
        shape="plane",
        size=(40.0, 40.0, 0.0),
        rotation=rotation_of(rotation),
        position=(0.0, 0.0, distance),
        material=Material(texture=texture),
    )
