"""A recording with poses as one scene: its frames, with the depth that `upsample` made of them, are fused."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from primaldepth.core.errors import InputError, MissingFileError, Worded
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.clouds import Mesh
from primaldepth.geometry.tsdf import Volume
from primaldepth.geometry.views import PosedView
from primaldepth.io import DepthMap, output_unit, read_depth
from primaldepth.io.atomic import check_extension, check_place
from primaldepth.io.mesh import write_mesh
from primaldepth.io.pointcloud import write_cloud
from primaldepth.io.scans import ColmapFolder, NerfstudioFolder, ScanFrame
from primaldepth.io.scans.base import rgb
from primaldepth.io.sequences import Content, Recording, Shot
from primaldepth.pipeline.load import GIVE_CAMERAS, known_cameras
from primaldepth.pipeline.outputs import OUTPUTS

VOXEL = 0.01  # metres
POSES = (
    "Polycam, 3D Scanner App, Record3D, odometry.csv of StrayScanner, groundtruth.txt of TUM RGB-D, and "
    "frame-000000.pose.txt of 7-Scenes"
)


class ScanFile(NamedTuple):
    """A file that can be written of a fused scan: formats, writer, help for the command line."""

    suffixes: tuple[str, ...]
    write: Callable[[Path, Mesh], None]
    help: str


def _write_cloud(path: Path, mesh: Mesh) -> None:
    write_cloud(path, mesh.points)


def _write_turntable(path: Path, mesh: Mesh) -> None:
    from primaldepth.io.picture_files import write_film
    from primaldepth.pictures.point_pictures import turntable

    write_film(path, turntable(mesh.points.points, mesh.points.colors))


FILES: dict[str, ScanFile] = {
    "mesh": ScanFile((".glb", ".ply"), write_mesh, "Triangle mesh of the whole scan."),
    "cloud": ScanFile((".ply", ".glb"), _write_cloud, "Point cloud of the whole scan."),
    "turntable": ScanFile((".gif", ".webp"), _write_turntable, "Film of the cloud, turning once."),
}
Folder = NerfstudioFolder | ColmapFolder
FOLDERS: dict[str, type[Folder]] = {"nerfstudio": NerfstudioFolder, "colmap": ColmapFolder}


@dataclass(frozen=True, slots=True)
class Scan:
    """A recording whose frames have poses.

    Args:
        recording: of the images, cameras and poses.
        depths: folder of the results of `upsample`; None for the depth maps of the recording itself.
        sigma: folder of what `upsample --sigma` wrote, or None.
        cameras: in place of those of the recording, or their file.
        max_depth: metres; what is farther counts as unknown. None for no limit.
    """

    recording: Recording
    depths: Path | None = None
    sigma: Path | None = None
    cameras: Cameras | Path | None = None
    max_depth: float | None = None

    def frames(self) -> Iterator[ScanFrame | None]:
        """Return an iterator over all frames, with None for those without a pose or without depth.

        Raises:
            InputError: if a file cannot be used, or no camera is known.
        """
        return map(self._frame, self.recording)

    def _frame(self, shot: Shot) -> ScanFrame | None:
        content = shot.read()
        found = self._depth(shot, content)
        if found is None or content.pose is None:
            return None
        image, (height, width) = rgb(content.guide), found.values.shape
        camera = self._camera(content, image.shape[:2]).scaled_to(width, height)
        rows, columns = (np.arange(n) * m // n for n, m in zip((height, width), image.shape, strict=False))
        near = found.values <= (np.inf if self.max_depth is None else self.max_depth)
        sigma = None if self.sigma is None else self._sigma(self.sigma, shot)
        colors = np.ascontiguousarray(image[rows[:, None], columns])
        view = PosedView(found.values, found.valid & near, camera, content.pose, colors, sigma)
        return ScanFrame(shot.name, content.guide, view) if view.valid.any() else None

    def _depth(self, shot: Shot, content: Content) -> DepthMap | None:
        """Return what `upsample` made of a shot, or what the sensor measured; None if there is none."""
        unit = self.recording.unit
        if self.depths is not None:
            path = _existing(self.depths, shot.name, OUTPUTS["out"].suffixes)
            return None if path is None else read_depth(path, unit=output_unit(path, unit or "m"))
        if content.cameras is not None and content.cameras.depth is not None:
            found = "depth and images come from two cameras"
            raise InputError(self.recording.root, found, "run upsample, and give the folder of its results")
        if isinstance(content.depth, Path):
            return read_depth(content.depth, unit=unit)
        return DepthMap.from_array(content.depth)

    def _sigma(self, folder: Path, shot: Shot) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
        path = _existing(folder, shot.name, OUTPUTS["sigma"].suffixes)
        if path is None:
            raise MissingFileError(folder / shot.name, "no map of sigma", "write them by upsample --sigma")
        found = read_depth(path, unit="m")
        return np.where(found.valid, found.values, np.inf)

    def _camera(self, content: Content, size: tuple[int, int]) -> Intrinsics:
        cameras = known_cameras(self.cameras, size, size) or content.cameras
        if cameras is None:
            raise InputError(self.recording.root, "does not say its camera", GIVE_CAMERAS)
        return cameras.guide.scaled_to(size[1], size[0])


@dataclass(frozen=True, slots=True)
class Fused:
    """Result of `fuse`: the mesh, and how many frames it was made of.

    Args:
        mesh: of all frames, in the world's frame, metres.
        frames: that were fused.
        skipped: that have no pose or no depth.
    """

    mesh: Mesh
    frames: int
    skipped: int


def fuse(
    scan: Scan,
    outputs: Mapping[str, Path],
    voxel: float = VOXEL,
    progress: Callable[[int], None] = lambda done: None,
) -> Fused:
    """Fuse all frames of a scan to one surface and write what is asked for.

    Args:
        scan: the recording and its depth.
        outputs: a file for each of mesh, cloud and turntable, a folder for each of nerfstudio and colmap.
        voxel: metres; the surface has no finer detail.
        progress: called with the number of frames that are done.

    Raises:
        InputError: if no frame has a pose and depth, or something cannot be read or written.
    """
    _check_outputs(outputs)
    volume, count = Volume(voxel), 0
    folders = [FOLDERS[name](path) for name, path in outputs.items() if name in FOLDERS]
    for done, frame in enumerate(scan.frames(), 1):
        if frame is not None:
            count += 1
            volume.add(frame.view)
            for folder in folders:
                folder.add(frame)
        progress(done)
    if not count:
        raise _nothing(scan)
    mesh = volume.mesh()
    for folder in folders:
        folder.finish(mesh.points)
    for name, path in outputs.items():
        if name in FILES:
            FILES[name].write(path, mesh)
    return Fused(mesh, count, len(scan.recording) - count)


def _nothing(scan: Scan) -> InputError:
    """Return the error that says why no frame can be used: no pose, or no depth."""
    root, layout = scan.recording.root, scan.recording.layout
    if any(shot.read().pose is not None for shot in scan.recording):
        return InputError(scan.depths or root, f"no depth for any shot of {root}", "run upsample first")
    return InputError(root, f"no poses in this recording ({layout})", f"they are read from {POSES}")


def _check_outputs(outputs: Mapping[str, Path]) -> None:
    """Raise if nothing is asked for, or a file or folder cannot be written."""
    if not outputs:
        asked = " or ".join(f"--{name}" for name in (*FILES, *FOLDERS))
        raise InputError(Worded("fuse", "outputs"), "nothing is asked for", f"give {asked}")
    for name, path in outputs.items():
        if name in FILES:
            check_extension(f"--{name}", path, FILES[name].suffixes)
        elif path.is_file():
            raise InputError(f"--{name} {path}", "is a file", "give the name of a folder")
        check_place(f"--{name}", path if name in FILES else path / "images.txt")


def _existing(folder: Path, name: str, suffixes: Sequence[str]) -> Path | None:
    """Return the file of this name in a folder, whatever its format."""
    return next((path for suffix in suffixes if (path := folder / f"{name}{suffix}").is_file()), None)
