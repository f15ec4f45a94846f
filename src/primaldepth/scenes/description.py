"""What a scene is, as plain numbers: sampled from a seed, stored as JSON, rendered by anything.

Lengths are metres. A scene lives in room coordinates: x right, y up, z away from the viewer. The guide
camera looks along z of its own frame, x right and y down, as `geometry.cameras` has it.
"""

import json
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError
from typing_extensions import Self

from primaldepth.core.documents import RECORDED, parse_json
from primaldepth.core.errors import InputError
from primaldepth.core.settings import Settings
from primaldepth.geometry.cameras import Intrinsics

Vector = tuple[float, float, float]
Rotation = tuple[Vector, Vector, Vector]
Colour = tuple[float, float, float]
Matrix = NDArray[np.float64]

IDENTITY: Rotation = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


class Texture(Settings):
    """The picture on a surface: a pattern in colours between `dark` and `light`, or an image tinted by them.

    Args:
        pattern: a name of `patterns.PATTERNS`, "image" for one of the texture source's, or "plain".
        seed: which image or which variant of the pattern.
        dark: sRGB in [0, 1], the colour of the pattern's zeros.
        light: sRGB in [0, 1], the colour of its ones.
        repeat: how many times it is repeated across the tile.
        turn: quarter turns.
    """

    pattern: str = "plain"
    seed: int = 0
    dark: Colour = (0.0, 0.0, 0.0)
    light: Colour = (1.0, 1.0, 1.0)
    repeat: int = Field(1, ge=1, le=16)
    turn: int = Field(0, ge=0, le=3)


class Material(Settings):
    """What a surface is made of.

    Args:
        texture: index into `Scene.textures`.
        roughness: 1 is dull, 0.1 glossy.
        metallic: 0 is a dielectric, 1 a metal.
    """

    texture: int = 0
    roughness: float = Field(1.0, ge=0.05, le=1.0)
    metallic: float = Field(0.0, ge=0.0, le=1.0)


class SceneObject(Settings):
    """One object: a shape that fills a box of `size`, turned by `rotation`, its middle put at `position`.

    Args:
        shape: "sphere" (exact) or a name of `shapes.SHAPES`.
        options: the shape's own numbers.
        size: extent along the shape's axes before it is turned.
        rotation: (3, 3) from the shape's axes to the room's.
        position: of the middle of the box, in the room.
        material: its surface.
    """

    shape: str
    options: dict[str, float] = Field(default_factory=dict)
    size: Vector
    rotation: Rotation = IDENTITY
    position: Vector
    material: Material = Material()


class Lamp(Settings):
    """A glowing ball that is not seen itself: small and near a bulb, far and large a window or the sun.

    Args:
        position: of its middle, in the room.
        radius: metres; shadows are the softer the larger it is.
        power: linear RGB irradiance it causes at 1 m, so that its size does not change its brightness.
    """

    position: Vector
    radius: float = Field(gt=0)
    power: Colour


class Camera(Settings):
    """A pinhole camera and its place in the room.

    Args:
        width: columns; 0 leaves the size to the renderer (square images).
        height: rows; 0 as above.
        fov_degrees: horizontal field of view.
        rotation: (3, 3) from camera axes (x right, y down, z forward) to the room's.
        position: of the centre, in the room.
        centre_shift: (x, y) of the principal point from the image's middle, in image widths.
    """

    width: int = Field(0, ge=0)
    height: int = Field(0, ge=0)
    fov_degrees: float = Field(gt=5, lt=150)
    rotation: Rotation
    position: Vector
    centre_shift: tuple[float, float] = (0.0, 0.0)

    def intrinsics(self, size: int) -> Intrinsics:
        """Return the pinhole of this camera; `size` is the side of the image if the camera has none."""
        width, height = self.width or size, self.height or size
        plain = Intrinsics.guess(width, height, self.fov_degrees)
        return Intrinsics(
            plain.fx,
            plain.fy,
            plain.cx + self.centre_shift[0] * width,
            plain.cy + self.centre_shift[1] * width,
            width,
            height,
        )


class Exposure(Settings):
    """How radiance becomes the bytes of an image.

    Args:
        level: linear value the mean of the picture is exposed to.
        softness: standard deviation of the lens' blur, in pixels.
        noise: standard deviation of shot noise at linear 1, of the sensor.
        grey: True for an intensity image (three equal channels).
    """

    level: float = Field(0.25, gt=0, le=1)
    softness: float = Field(0.0, ge=0, le=2)
    noise: float = Field(0.0, ge=0, le=0.2)
    grey: bool = False


class Scene(Settings):
    """Everything the renderer needs; equal descriptions give equal bytes.

    Args:
        preset: the name it was sampled by.
        seed: the number it was sampled from; also seeds the renderer's random numbers.
        items: objects; the id of `items[i]` is i + 1, and 0 is nothing.
        textures: shared by the items.
        ambient: linear RGB of the light from straight below and straight above.
        lamps: lights; there is at least one.
        guide: the camera of the image.
        tof: the time-of-flight camera beside it.
        exposure: of the guide's image.
    """

    version: Literal[1] = 1
    preset: str
    seed: Annotated[int, Field(ge=0)]
    items: tuple[SceneObject, ...]
    textures: tuple[Texture, ...]
    ambient: tuple[Colour, Colour]
    lamps: tuple[Lamp, ...] = Field(min_length=1)
    guide: Camera
    tof: Camera | None = None
    exposure: Exposure = Exposure()

    def to_json(self) -> str:
        """Return the description as one line of JSON; numbers survive exactly."""
        return json.dumps(self.model_dump(mode="json"), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a description that `to_json` wrote."""
        values = parse_json(text, "scene description", limits=RECORDED)
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise InputError("scene description", f"'{where}': {first['msg']}") from error

    def cameras(self, size: int = 512) -> dict[str, Intrinsics]:
        """Return the pinholes by name: "guide" and, if there is one, "tof"; `size` for square images."""
        found = {"guide": self.guide.intrinsics(size)}
        if self.tof is not None:
            found["tof"] = self.tof.intrinsics(size)
        return found

    def guide_from_tof(self) -> Matrix:
        """Return the (4, 4) matrix of X_guide = R X_tof + t; an error if there is no second camera."""
        if self.tof is None:
            raise InputError(f"scene {self.preset}/{self.seed}", "has no time-of-flight camera")
        return np.linalg.inv(pose(self.guide)) @ pose(self.tof)


def pose(camera: Camera) -> Matrix:
    """Return the (4, 4) matrix of X_room = R X_camera + t."""
    matrix = np.eye(4)
    matrix[:3, :3] = camera.rotation
    matrix[:3, 3] = camera.position
    return matrix
