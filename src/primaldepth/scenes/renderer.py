"""Scenes to arrays with Mitsuba: one Mitsuba scene per process, whose buffers each new scene overwrites.

Shapes, textures and lamps of all scenes have the same number and size (see `scene_arrays`), and every value
is data rather than a constant in a kernel; so all kernels are compiled with the first scene and used for
every other. Mitsuba's world is the guide camera's frame: x right, y down, z forward, the camera at
the origin.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primaldepth.core.errors import InputError, MissingDependencyError, PrimalDepthError
from primaldepth.core.part_seconds import Seconds, part, spend
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.scenes import mitsuba_variants, shading
from primaldepth.scenes.description import Scene
from primaldepth.scenes.image_formation import develop, linear_table
from primaldepth.scenes.rays import Arrays, PlacedCamera, maps, pixel_rays
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
        with part("build"):
            packed = pack(scene, self.source, self.scans)
        with part("load"):
            self._stage.load(packed)
        cameras = scene.cameras(self.size)
        seed = int(np.random.SeedSequence(scene.seed).generate_state(1)[0])
        views = [PlacedCamera(cameras["guide"], np.eye(4))]
        if scene.tof is not None:
            views.append(PlacedCamera(cameras["tof"], scene.guide_from_tof()))
        radiance, hits = self._stage.trace(views, self.samples, seed)
        with part("develop"):
            arrays = {"image": develop(radiance, scene.exposure, scene.seed)}
        arrays |= {name: hits[0][name] for name in ("depth", "normals", "ids", "valid")}
        for seen in hits[1:]:
            arrays |= {f"tof_{name}": seen[name] for name in ("distance", "amplitude", "valid")}
        self.compiles += self._stage.new_compiles()
        return arrays


class VectorStage:
    """The one Mitsuba scene of a process that works on arrays of rays: cuda and llvm."""

    def __init__(self, variant: str) -> None:
        self.mi, self.dr = load_mitsuba(variant)
        self.variant, self.name = variant, mitsuba_variants.VARIANTS[variant]
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
            name: (mi.UInt32 if values.dtype == np.uint32 else mi.Float)(self._sent(values))
            for name, values in packed.tables().items()
        }
        p["mesh.faces"], p["mesh.vertex_positions"] = arrays["faces"], arrays["vertices"]
        p.update()
        self.data = shading.Data(scene=self.scene, atlas=self._texture(packed.atlas), **arrays)

    def trace(
        self, views: Sequence[PlacedCamera], samples: int, seed: int
    ) -> tuple[NDArray[np.float32], list[Arrays]]:
        """Render the image of the first view and the maps of all; the device works on both without a pause.

        Args:
            views: the guide camera's first.
            samples: random paths per pixel of the image.
            seed: of the paths.

        Returns:
            Mean radiance over each pixel's area, (H, W, 3), and for each view the maps of what one ray
            through each pixel's centre hits, in the camera's own axes.
        """
        with part("render"):
            directions = [pixel_rays(view.camera, view.to_guide) for view in views]
            passes = self._passes(views[0].camera, samples, seed)
            hits = [self._hits(view, rays) for view, rays in zip(views, directions, strict=True)]
            self.dr.sync_thread()
        with part("read"):
            light = mean_of([(count, _read(means)) for count, means in passes])
            seen = [_read(values) for values in hits]
        with part("maps"):
            found = [
                maps(t, np.stack(normal), albedo, number, rays, view.to_guide, view.shape)
                for view, rays, (t, *normal, albedo, number) in zip(views, directions, seen, strict=True)
            ]
        return light.reshape(*views[0].shape, 3), found

    def _passes(self, camera: Intrinsics, samples: int, seed: int) -> list[tuple[int, list[Any]]]:
        """Queue as many passes as the samples need; return the samples and the three channels of each."""
        per_pass = max(1, min(samples, LANES // (camera.width * camera.height)))
        passes: list[tuple[int, list[Any]]] = []
        for done in range(0, samples, per_pass):
            if passes:
                self.dr.sync_thread()  # the samples of one pass fill enough memory
            now = min(per_pass, samples - done)
            passes.append((now, self._pass(camera, now, (seed + done) % 2**32)))
        return passes

    def _hits(self, view: PlacedCamera, directions: NDArray[np.float32]) -> list[Any]:
        """Queue the first hits of rays: length, three axes of the normal, albedo, number of the object."""
        mi, dr = self.mi, self.dr
        with dr.suspend_grad():
            start = mi.Point3f(*(dr.opaque(mi.Float, float(value)) for value in view.to_guide[:3, 3]))
            ray = mi.Ray3f(start, mi.Vector3f(*(mi.Float(self._sent(axis)) for axis in directions)))
            hit = shading.first_hit(mi, dr, self.data, ray)
            values = [dr.select(hit.number > 0, hit.t, 0), *hit.normal, dr.mean(hit.albedo), hit.number]
            dr.eval(values)
        return values

    def _sent(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return an array as Dr.Jit should get it: flat, and on the CPU at a multiple of 64 bytes."""
        return values.ravel() if self.variant == "cuda" else aligned(values).ravel()

    def new_compiles(self) -> int:
        """Return the number of kernels compiled since the last call, without those read from disk.

        The time of all kernels on the device becomes the part "device"; it lies within "load" and "render".
        """
        history = self.dr.kernel_history()
        spend("device", Seconds(clock=1e-3 * sum(kernel["execution_time"] for kernel in history)))
        compiled = (kernel for kernel in history if kernel["type"] == self.dr.KernelType.JIT)
        return sum(1 for kernel in compiled if not kernel["cache_hit"])

    def _pass(self, camera: Intrinsics, samples: int, seed: int) -> list[Any]:
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
        return means

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


def mean_of(passes: Sequence[tuple[int, Sequence[NDArray[np.float32]]]]) -> NDArray[np.float32]:
    """Return the mean of passes, (N, 3): sum of count * mean over the sum of the counts.

    Args:
        passes: for each its number of samples, and its three channels (N,).
    """
    samples = sum(count for count, _ in passes)
    sums = [count * np.stack(channels, -1) for count, channels in passes]
    if len(sums) == 1:
        sums[0] /= samples
        return sums[0]
    return np.asarray(sum(each.astype(np.float64) for each in sums) / samples, np.float32)


def _read(values: Sequence[Any]) -> list[NDArray[Any]]:
    return [np.asarray(value) for value in values]


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
    if variant == "cuda":
        mitsuba_variants.sleep_while_waiting()
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
    light, (seen,) = works.trace([PlacedCamera(scene.cameras(9)["guide"], np.eye(4))], 4, 1)
    depth = seen["depth"]
    if abs(depth[4, 4] - 2) > 1e-4 or depth[0, 0] != 0 or not light[4, 4].min() > 0:
        raise PrimalDepthError(f"variant {variant}", f"a ball at 2 m was seen at {depth[4, 4]} m")
