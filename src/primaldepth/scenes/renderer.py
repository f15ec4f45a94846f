"""Scenes to arrays with Mitsuba: one Mitsuba scene per process, whose buffers each new scene overwrites.

Shapes, textures and lamps of all scenes have the same number and size (see `packing`), and every value is
data rather than a constant in a kernel; so all kernels are compiled with the first scene and used for every
other. Mitsuba's world is the guide camera's frame: x right, y down, z forward, the camera at the origin.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import InputError, MissingDependencyError, PrimalDepthError
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.scenes import mitsuba_variants, shading
from primaldepth.scenes.description import Scene
from primaldepth.scenes.image_formation import develop, linear_table
from primaldepth.scenes.rays import Arrays, Matrix, maps, pixel_rays
from primaldepth.scenes.scalar_renderer import ScalarStage
from primaldepth.scenes.scanned_objects import ScannedObjects
from primaldepth.scenes.scene_arrays import FACES, PARKED, VERTICES, SceneArrays, pack
from primaldepth.scenes.textures import TextureSource

LANES = 1 << 24  # most samples in flight; more are rendered in passes


class Renderer:
    """Renders any number of scenes of a preset; equal scenes and variants give equal bytes, in any order.

    Args:
        preset: what will be rendered; "tof" scenes have their own image sizes.
        size: side of the square images of the other presets.
        samples: rays per pixel for the image; depth always takes one, through the pixel's centre.
        variant: "cuda", "llvm", "scalar", or "auto" for the first of them that works.
        textures: a source, a folder of images, or None for the built-in patterns.
        scans: objects from files, for scenes that were sampled with some.
    """

    def __init__(
        self,
        *,
        preset: str = "rich",
        size: int = 512,
        samples: int = 32,
        variant: str = "auto",
        textures: TextureSource | Path | None = None,
        scans: ScannedObjects | None = None,
    ) -> None:
        if size < 1 or samples < 1:
            raise InputError("renderer", f"size {size} and samples {samples} must be at least 1")
        self.preset, self.size, self.samples = preset, size, samples
        self.variant = mitsuba_variants.choose(variant)
        self.source = textures if isinstance(textures, TextureSource) else TextureSource(textures)
        self.scans = scans
        self.compiles = 0
        self._stage = stage(self.variant)
        self._compiled = False

    def render(self, scene: Scene) -> Arrays:
        """Render the arrays of one scene.

        image (H, W, 3) uint8 sRGB; depth (H, W) float32 z in metres at pixel centres, 0 where nothing is
        hit; normals (H, W, 3) float16 in camera axes; ids (H, W) uint16; valid (H, W) bool. With a
        time-of-flight camera also tof_distance (radial, metres), tof_amplitude and tof_valid.
        """
        if scene.preset != self.preset:
            raise InputError("renderer", f"made for preset '{self.preset}', got a scene of '{scene.preset}'")
        if self._compiled:
            return self._render(scene)
        with one_compiles():
            self._compiled = True
            return self._render(scene)

    def _render(self, scene: Scene) -> Arrays:
        self._stage.load(pack(scene, self.source, self.scans))
        cameras = scene.cameras(self.size)
        seed = int(np.random.SeedSequence(scene.seed).generate_state(1)[0])
        radiance = self._stage.radiance(cameras["guide"], self.samples, seed)
        arrays = {"image": develop(radiance, scene.exposure, scene.seed)}
        hits = self._stage.cast(cameras["guide"], np.eye(4))
        arrays |= {name: hits[name] for name in ("depth", "normals", "ids", "valid")}
        if scene.tof is not None:
            seen = self._stage.cast(cameras["tof"], scene.guide_from_tof())
            arrays |= {f"tof_{name}": seen[name] for name in ("distance", "amplitude", "valid")}
        self.compiles += self._stage.new_compiles()
        return arrays


class VectorStage:
    """The one Mitsuba scene of a process that works on arrays of rays: cuda and llvm."""

    def __init__(self, variant: str) -> None:
        self.mi, self.dr = load_mitsuba(variant)
        self.name = mitsuba_variants.VARIANTS[variant]
        self.dr.set_flag(self.dr.JitFlag.KernelHistory, True)
        self.table = self.mi.Float(linear_table())
        self.scene = self._empty_scene()
        self.parameters = self.mi.traverse(self.scene)
        self.data: Any = None  # shading.Data once a scene is loaded
        self._atlas: Any = None  # one texture for all scenes: a driver takes long to make one

    def load(self, packed: SceneArrays) -> None:
        """Overwrite all buffers with the packed scene."""
        mi, p = self.mi, self.parameters
        mi.set_variant(self.name)
        arrays = {
            name: (mi.UInt32 if values.dtype == np.uint32 else mi.Float)(aligned(values).ravel())
            for name, values in packed.tables().items()
        }
        p["mesh.faces"], p["mesh.vertex_positions"] = arrays["faces"], arrays["vertices"]
        p.update()
        self.data = shading.Data(scene=self.scene, atlas=self._texture(packed.atlas), **arrays)

    def radiance(self, camera: Intrinsics, samples: int, seed: int) -> NDArray[np.float32]:
        """Return mean radiance over each pixel's area, (H, W, 3), by `samples` random paths."""
        per_pass = max(1, min(samples, LANES // (camera.width * camera.height)))
        total = np.zeros((camera.height, camera.width, 3), np.float64)
        for done in range(0, samples, per_pass):
            now = min(per_pass, samples - done)
            total += now * self._pass(camera, now, (seed + done) % 2**32)
        return (total / samples).astype(np.float32)

    def cast(self, camera: Intrinsics, to_guide: Matrix) -> Arrays:
        """Cast one ray through each pixel's centre; return z and normals in the camera's own axes."""
        mi, dr = self.mi, self.dr
        directions = pixel_rays(camera, to_guide)
        with dr.suspend_grad():
            start = mi.Point3f(*(dr.opaque(mi.Float, float(value)) for value in to_guide[:3, 3]))
            ray = mi.Ray3f(start, mi.Vector3f(*(mi.Float(aligned(axis)) for axis in directions)))
            hit = shading.first_hit(mi, dr, self.data, ray)
            values = [dr.select(hit.number > 0, hit.t, 0), hit.normal, dr.mean(hit.albedo), hit.number]
            dr.eval(values)
        t, normal, albedo, number = (np.asarray(value) for value in values)
        return maps(t, normal, albedo, number, directions, to_guide, (camera.height, camera.width))

    def new_compiles(self) -> int:
        """Return the number of kernels compiled since the last call, without those read from disk."""
        history = self.dr.kernel_history([self.dr.KernelType.JIT])
        return sum(1 for kernel in history if not kernel["cache_hit"])

    def _pass(self, camera: Intrinsics, samples: int, seed: int) -> NDArray[np.float32]:
        mi, dr = self.mi, self.dr
        with dr.suspend_grad():
            index = dr.arange(mi.UInt32, camera.width * camera.height * samples)
            pixel = index // samples
            points = shading.spread_points(mi, dr, pixel, index % samples, dr.opaque(mi.UInt32, seed))
            fx, fy, cx, cy = (dr.opaque(mi.Float, v) for v in (camera.fx, camera.fy, camera.cx, camera.cy))
            x = (mi.Float(pixel % camera.width) + points[0] - cx) / fx
            y = (mi.Float(pixel // camera.width) + points[1] - cy) / fy
            ray = mi.Ray3f(mi.Point3f(0), dr.normalize(mi.Vector3f(x, y, 1)))
            light = shading.radiance(mi, dr, self.data, ray, points[2:])
            dr.eval(light)  # all channels by one kernel; each sum below would run it again
            means = [dr.block_sum(channel, samples) / samples for channel in (light.x, light.y, light.z)]
            dr.eval(means)
        image = np.stack([np.asarray(mean) for mean in means], -1)
        return image.reshape(camera.height, camera.width, 3)

    def _texture(self, image: NDArray[np.uint8]) -> Any:
        """Return sRGB bytes as linear floats, by a table on the device, so that only bytes are sent there."""
        mi, dr = self.mi, self.dr
        codes = mi.UInt32(mi.UInt8(image.ravel()))
        pixels = mi.TensorXf(dr.gather(mi.Float, self.table, codes), shape=image.shape)
        if self._atlas is None:
            self._atlas = mi.Texture2f(pixels)
        else:
            self._atlas.set_tensor(pixels)
        return self._atlas

    def _empty_scene(self) -> Any:
        mi = self.mi
        mesh = mi.Mesh("mesh", VERTICES, FACES)
        mesh.set_id("mesh")
        buffers = mi.traverse(mesh)
        buffers["vertex_positions"] = mi.Float(np.tile(np.array(PARKED, np.float32), VERTICES))
        buffers["faces"] = mi.UInt32(np.zeros(3 * FACES, np.uint32))
        buffers.update()
        return mi.load_dict({"type": "scene", "mesh": mesh})


@contextmanager
def one_compiles() -> Iterator[None]:
    """Let one of several processes that start together compile; the others then read its kernels.

    The first to come holds the lock; the others wait until it is free and go on all at once.
    """
    try:
        import fcntl
    except ImportError:  # Windows has no such locks: each process compiles
        yield
        return
    cache = Path.home() / ".drjit"  # where Dr.Jit keeps its kernels
    cache.mkdir(exist_ok=True)
    with (cache / "primaldepth.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            fcntl.flock(lock, fcntl.LOCK_SH)
            fcntl.flock(lock, fcntl.LOCK_UN)
        yield


def stage(variant: str) -> Any:
    """Return the object that renders with a variant."""
    if variant == "scalar":
        return ScalarStage(load_mitsuba(variant)[0])
    return VectorStage(variant)


def load_mitsuba(variant: str) -> tuple[Any, Any]:
    """Import Mitsuba and Dr.Jit with the variant set; an error says what to install if they are missing."""
    mitsuba_variants.prepare(variant)
    try:
        import drjit
        import mitsuba
    except ImportError as error:
        raise MissingDependencyError(
            f"rendering needs Mitsuba ({error}); install it with: pip install 'primaldepth[render]'"
        ) from error
    mitsuba.set_variant(mitsuba_variants.VARIANTS[variant])
    return mitsuba, drjit


def aligned(values: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of an array that starts at a multiple of 64 bytes.

    On the CPU Dr.Jit uses numpy's memory as it is, and compiles other code for memory that is not aligned.
    """
    memory = np.empty(values.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def self_test(variant: str) -> None:
    """Render a ball of radius 1 at z = 3 with `variant`; raises, or crashes, if that does not work."""
    from primaldepth.scenes.description import Camera, Lamp, SceneObject, Texture

    facing = ((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0))
    scene = Scene(
        preset="paper",
        seed=0,
        items=(SceneObject(shape="sphere", size=(2.0, 2.0, 2.0), position=(0.0, 0.0, 3.0)),),
        textures=(Texture(),),
        ambient=((1.0, 1.0, 1.0), (1.0, 1.0, 1.0)),
        lamps=(Lamp(position=(0.0, 0.0, 0.0), radius=0.1, power=(1.0, 1.0, 1.0)),),
        guide=Camera(fov_degrees=60.0, rotation=facing, position=(0.0, 0.0, 0.0)),
    )
    works = stage(variant)
    works.load(pack(scene, TextureSource()))
    depth = works.cast(scene.cameras(9)["guide"], np.eye(4))["depth"]
    light = works.radiance(scene.cameras(9)["guide"], 4, 1)
    if abs(depth[4, 4] - 2) > 1e-4 or depth[0, 0] != 0 or not light[4, 4].min() > 0:
        raise PrimalDepthError(f"variant {variant}", f"a ball at 2 m was seen at {depth[4, 4]} m")
