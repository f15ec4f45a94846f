"""Where the scenes of a job come from: settings that fix every byte, and the renderer a worker opens."""

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from primaldepth.core.errors import InputError
from primaldepth.core.part_seconds import part
from primaldepth.core.seeds import derive_seed
from primaldepth.core.settings import Settings
from primaldepth.scenes.description import Scene
from primaldepth.scenes.mitsuba_variants import choose
from primaldepth.scenes.sampler import PRESETS, sample
from primaldepth.scenes.scanned_objects import ScannedObjects
from primaldepth.scenes.textures import TextureSource
from primaldepth.version import installed_version

Arrays = dict[str, NDArray[Any]]
_PACKAGES = ("primaldepth", "mitsuba", "drjit", "numpy")


class SceneSource(Hashable, Protocol):
    """A recipe of scenes, small enough to be sent to a worker anywhere; equal ones open equal renderers."""

    @property
    def seed(self) -> int:
        """Seed of the whole job."""
        ...

    def made_with(self) -> Mapping[str, str | int | None]:
        """Return every setting that the bytes depend on."""
        ...

    def open(self) -> "SceneRenderer":
        """Open a renderer in this process."""
        ...


def scene_seed(seed: int, scene: int) -> int:
    """Return the seed of scene number `scene` of a job; it depends on the two numbers and nothing else."""
    return derive_seed("scene", seed, scene)


def render_scene(renderer: "SceneRenderer", seed: int, scene: int) -> Arrays:
    """Render one scene and return its arrays with the seed it was rendered from.

    Args:
        renderer: opened by the job's source.
        seed: of the job.
        scene: its number.
    """
    own = scene_seed(seed, scene)
    return {**renderer.render(own), "seed": np.asarray(own, np.int64)}


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that the rendered bytes depend on."""
    return {name: installed_version(name) for name in _PACKAGES}


def open_checked(source: SceneSource, versions: Mapping[str, str]) -> "SceneRenderer":
    """Open a renderer, on this or another machine, if it makes the bytes the job was started with.

    Args:
        source: of the scenes.
        versions: of the packages when the job was started.

    Raises:
        InputError: other versions are installed here.
    """
    here = package_versions()
    if different := [name for name in versions if here.get(name) != versions[name]]:
        texts = [f"{name} {here.get(name)} here, {versions[name]} in the job" for name in different]
        raise InputError(
            "this worker would render other scenes", f"{', '.join(texts)}", "install the same versions"
        )
    return source.open()


class RenderSettings(Settings):
    """What to render; `resolved` fills in what depends on the machine.

    Args:
        preset: a name of `sampler.PRESETS`.
        size: side of the square images in pixels; the preset `tof` has its own sizes.
        samples: rays per pixel of the image.
        seed: of the whole job.
        variant: "cuda", "llvm" or "scalar"; "auto" until it is resolved.
        textures: folder of images; the built-in patterns if None.
        images: fingerprint of that folder's images.
        meshes: folder of OBJ files, of which some stand among the generated shapes; none if None.
        scans: fingerprint of that folder's meshes.
    """

    preset: str = "rich"
    size: Annotated[int, Field(ge=16, le=8192)] = 512
    samples: Annotated[int, Field(ge=1, le=65536)] = 32
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    variant: str = "auto"
    textures: Path | None = None
    images: str = "built-in"
    meshes: Path | None = None
    scans: str = "none"

    @field_validator("preset")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in PRESETS:
            raise ValueError(f"choose one of {', '.join(PRESETS)}")
        return name

    def resolved(self) -> "RenderSettings":
        """Return the settings with the variant that works here and fingerprints of textures and meshes.

        Raises:
            InputError: the meshes are not those whose fingerprint is given.
        """
        images = TextureSource(self.textures).fingerprint()
        scans = "none" if self.meshes is None else ScannedObjects(self.meshes).fingerprint()
        if self.scans not in ("none", scans):
            raise InputError(
                str(self.meshes or "meshes"),
                f"holds other objects: their fingerprint is {scans}, and {self.scans} is asked for",
                "name the folder with those objects by --meshes, or scenes.0.meshes of a recipe",
            )
        return self.model_copy(update={"variant": choose(self.variant), "images": images, "scans": scans})

    def made_with(self) -> dict[str, str | int | None]:
        """Return all settings but the folders of textures and meshes; meshes only where there are some."""
        places = {"textures", "images", "meshes", "scans"}
        values: dict[str, str | int | None] = self.model_dump(exclude=places)
        scans = {} if self.scans == "none" else {"meshes": self.scans}
        return {**values, "textures": self.images, **scans}

    def open(self) -> "SceneRenderer":
        """Open a renderer in this process; the textures must be those the job was started with."""
        return SceneRenderer(self)


class SceneRenderer:
    """The renderer that one worker holds: it samples the scene of a seed, renders it and adds its cameras.

    Args:
        settings: resolved ones.

    Raises:
        InputError: the folders of textures and meshes hold other files than when they were resolved.
    """

    def __init__(self, settings: RenderSettings) -> None:
        from primaldepth.scenes.renderer import Renderer

        textures = TextureSource(settings.textures)
        if textures.fingerprint() != settings.images:
            raise InputError(settings.textures, "not the images that the job was started with")
        scans = None if settings.meshes is None else ScannedObjects(settings.meshes)
        if scans is not None and scans.fingerprint() != settings.scans:
            raise InputError(settings.meshes, "not the meshes that the job was started with")
        self._settings, self._scans = settings, scans is not None
        self._renderer = Renderer(
            preset=settings.preset,
            size=settings.size,
            samples=settings.samples,
            variant=settings.variant,
            textures=textures,
            scans=scans,
        )

    @property
    def compiles(self) -> int:
        """Number of kernel compilations so far."""
        return self._renderer.compiles

    def render(self, seed: int) -> Arrays:
        """Render one scene; the same seed gives the same arrays everywhere."""
        with part("sample"):
            scene = sample(self._settings.preset, seed, scans=self._scans)
        return {**self._renderer.render(scene), **camera_arrays(scene, self._settings.size)}


def camera_arrays(scene: Scene, size: int) -> Arrays:
    """Return fx, fy, cx, cy of each camera and, if there are two, the matrix of X_guide = R X_tof + t."""
    arrays: Arrays = {
        f"{name}_camera": np.array([camera.fx, camera.fy, camera.cx, camera.cy])
        for name, camera in scene.cameras(size).items()
    }
    return arrays if scene.tof is None else {**arrays, "guide_from_tof": scene.guide_from_tof()}
