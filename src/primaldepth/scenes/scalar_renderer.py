"""The fallback where neither CUDA nor LLVM works: Mitsuba's own path tracer, a new scene for every image.

Slow, but it needs nothing beside Mitsuba, and it shares no shading code with `shading`: the two agree, which
tests both. Light that is reflected twice is traced here, where `shading` takes a constant share for it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.part_seconds import part
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.scenes.image_formation import linear_table
from primaldepth.scenes.rays import Arrays, Matrix, PlacedCamera, maps, pixel_rays
from primaldepth.scenes.scene_arrays import ATLAS_TILES, SceneArrays
from primaldepth.scenes.textures import TILE

SKY = (32, 64)
BOUNCES = 3


class ScalarStage:
    """A renderer that traces one ray at a time, for machines without CUDA and LLVM.

    Args:
        mi: Mitsuba with the scalar variant set.
    """

    def __init__(self, mi: Any) -> None:
        self.mi = mi
        self.table = linear_table()
        self.packed: SceneArrays | None = None
        self.objects: Any = None
        self.scene: Any = None

    def load(self, packed: SceneArrays) -> None:
        """Build the scene twice: the objects alone, to measure, and with lights, to look at."""
        self.mi.set_variant("scalar_rgb")
        self.packed = packed
        self.objects = self.mi.load_dict({"type": "scene", **self._objects(packed)})
        lights: dict[str, Any] = {"sky": {"type": "envmap", "bitmap": self.mi.Bitmap(sky(packed.ambient))}}
        for index, (*middle, radius, red, green, blue, chance) in enumerate(packed.lamps.tolist()):
            if chance > 0:
                glow = {"type": "area", "radiance": {"type": "rgb", "value": [red, green, blue]}}
                ball = {"type": "sphere", "center": middle, "radius": radius}
                lights[f"lamp{index}"] = {**ball, "emitter": glow}
        tracer = {"type": "path", "max_depth": BOUNCES, "hide_emitters": True}
        self.scene = self.mi.load_dict(
            {"type": "scene", "integrator": tracer, **lights, **self._objects(packed)}
        )

    def trace(
        self, views: Sequence[PlacedCamera], samples: int, seed: int
    ) -> tuple[NDArray[np.float32], list[Arrays]]:
        """Render the image of the first view and the maps of all; see `VectorStage.trace`."""
        with part("render"):
            light = self._radiance(views[0].camera, samples, seed)
            return light, [self._cast(view.camera, view.to_guide) for view in views]

    def _radiance(self, camera: Intrinsics, samples: int, seed: int) -> NDArray[np.float32]:
        """Return mean radiance over each pixel's area, (H, W, 3)."""
        sensor = self.mi.load_dict(_sensor(self.mi, camera, samples))
        image = self.mi.render(self.scene, sensor=sensor, spp=samples, seed=seed)
        return np.array(image, dtype=np.float32)[..., :3]

    def _cast(self, camera: Intrinsics, to_guide: Matrix) -> Arrays:
        """Cast one ray through each pixel's centre; return z and normals in the camera's own axes."""
        mi, directions = self.mi, pixel_rays(camera, to_guide)
        start, count = mi.Point3f(*to_guide[:3, 3].tolist()), directions.shape[1]
        t, normal, albedo = np.zeros(count), np.zeros((3, count)), np.zeros(count)
        number = np.zeros(count, np.uint32)
        for k, direction in enumerate(directions.T.tolist()):
            si = self.objects.ray_intersect(mi.Ray3f(start, mi.Vector3f(*direction)))
            if si.is_valid():
                t[k], normal[:, k], number[k] = si.t, np.asarray(si.sh_frame.n), self._number(si)
                albedo[k] = np.asarray(si.bsdf().eval_diffuse_reflectance(si)).mean()
        away = (normal * directions).sum(0) > 0
        shape = (camera.height, camera.width)
        return maps(t, np.where(away, -normal, normal), albedo, number, directions, to_guide, shape)

    def new_compiles(self) -> int:
        """Return 0: this renderer compiles nothing."""
        return 0

    def _number(self, si: Any) -> int:
        packed, name = self.packed, si.shape.id()
        if packed is None:
            return 0
        ids = packed.face_ids if name == "mesh" else packed.sphere_ids
        return int(ids[si.prim_index if name == "mesh" else int(name.removeprefix("sphere"))])

    def _objects(self, packed: SceneArrays) -> dict[str, Any]:
        objects: dict[str, Any] = {}
        if packed.face_ids.any():
            objects["mesh"] = self._mesh(packed)
        for index, number in enumerate(packed.sphere_ids):
            if number > 0:
                objects[f"sphere{index}"] = self._sphere(packed, index)
        return objects

    def _mesh(self, packed: SceneArrays) -> Any:
        mi, used = self.mi, int((packed.face_ids > 0).sum())
        faces = packed.faces[:used]
        count = int(faces.max()) + 1
        owner = np.zeros(count, np.uint32)
        owner[faces] = packed.face_ids[:used, None]
        column, row, roughness, metallic = packed.surfaces[owner].T
        corner = np.stack([column, row], -1) * TILE
        uv = (corner + 0.5 + packed.uv[:count] * (TILE - 1)) / (ATLAS_TILES * TILE)
        properties = mi.Properties()
        looks = (_attribute(f"vertex_{name}") for name in ("roughness", "metallic"))
        properties["mesh_bsdf"] = mi.load_dict(_surface(mi, self.table[packed.atlas], *looks))
        mesh = mi.Mesh(
            "mesh", count, used, props=properties, has_vertex_normals=True, has_vertex_texcoords=True
        )
        mesh.set_id("mesh")
        mesh.add_attribute("vertex_roughness", 1, roughness)
        mesh.add_attribute("vertex_metallic", 1, metallic)
        buffers = mi.traverse(mesh)
        buffers["vertex_positions"] = packed.vertices[:count].ravel()
        buffers["vertex_normals"] = packed.normals[:count].ravel()
        buffers["vertex_texcoords"] = uv.astype(np.float32).ravel()
        buffers["faces"] = faces.ravel()
        buffers.update()
        return mesh

    def _sphere(self, packed: SceneArrays, index: int) -> dict[str, Any]:
        matrix = np.eye(4)
        x, y, z = packed.spheres[index, :3, :3]
        # Mitsuba's pole is z and its longitude starts at x; ours is y and starts at -x
        matrix[:3, :3] = np.stack([-x, -z, y], axis=1) * packed.spheres[index, 3, 3]
        matrix[:3, 3] = packed.spheres[index, 3, :3]
        column, row, roughness, metallic = packed.surfaces[packed.sphere_ids[index]].tolist()
        top, left = int(row) * TILE, int(column) * TILE
        tile = self.table[packed.atlas[top : top + TILE, left : left + TILE]]
        return {
            "type": "sphere",
            "id": f"sphere{index}",
            "to_world": self.mi.ScalarTransform4f(matrix),
            "bsdf": _surface(self.mi, tile, roughness, metallic),
        }


def sky(ambient: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return ambient light as Mitsuba's environment map, (32, 64, 3).

    d = (sin phi sin theta, cos theta, -cos phi sin theta); the first and the last row are the poles.
    """
    below, above, up = ambient.reshape(3, 3)
    theta = np.arange(SKY[0])[:, None] / (SKY[0] - 1) * np.pi
    phi = (np.arange(SKY[1]) + 0.5)[None] / SKY[1] * 2 * np.pi
    level = np.broadcast_to(np.cos(theta), SKY)
    direction = np.stack([np.sin(phi) * np.sin(theta), level, -np.cos(phi) * np.sin(theta)], -1)
    high = 0.5 + 0.5 * direction @ up
    return (below + (above - below) * high[..., None]).astype(np.float32)


def _attribute(name: str) -> dict[str, Any]:
    return {"type": "mesh_attribute", "name": name}


def _surface(mi: Any, image: NDArray[np.float32], roughness: object, metallic: object) -> dict[str, Any]:
    texture = {"type": "bitmap", "data": mi.TensorXf(image), "raw": True, "wrap_mode": "clamp"}
    looks = {"type": "principled", "base_color": texture, "roughness": roughness, "metallic": metallic}
    return {"type": "twosided", "bsdf": {**looks, "specular": 0.5}}


def _sensor(mi: Any, camera: Intrinsics, samples: int) -> dict[str, Any]:
    look = mi.ScalarTransform4f().look_at(origin=[0, 0, 0], target=[0, 0, 1], up=[0, -1, 0])
    return {
        "type": "perspective",
        "to_world": look,
        "fov": float(np.degrees(2 * np.arctan(camera.width / 2 / camera.fx))),
        "fov_axis": "x",
        "principal_point_offset_x": camera.cx / camera.width - 0.5,
        "principal_point_offset_y": camera.cy / camera.height - 0.5,
        "near_clip": 1e-3,
        "film": {
            "type": "hdrfilm", "width": camera.width, "height": camera.height,
            "rfilter": {"type": "box"}, "component_format": "float32",
        },
        "sampler": {"type": "independent", "sample_count": samples},
    }  # fmt: skip
