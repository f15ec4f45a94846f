"""`primaldepth fuse`: a recording with poses becomes a mesh, a cloud, or a folder for another program."""

from pathlib import Path

import typer

from primaldepth.cli.options import declared, early_cameras
from primaldepth.cli.output import note, progress_bar, show_json
from primaldepth.core.errors import InputError
from primaldepth.io.sequences import read_recording
from primaldepth.pipeline.scans import FILES, VOXEL, Scan
from primaldepth.pipeline.scans import fuse as fuse_scan


def fuse(
    recording: Path = typer.Argument(
        metavar="RECORDING", help="Folder of a phone scan, TUM RGB-D or 7-Scenes, with poses."
    ),
    depths: Path | None = typer.Argument(
        None, metavar="[DEPTHS]", help="Folder that upsample wrote; without it, the depth maps as recorded."
    ),
    mesh: Path | None = typer.Option(None, "--mesh", metavar="GLB|PLY", help=FILES["mesh"].help),
    cloud: Path | None = typer.Option(None, "--cloud", metavar="PLY|GLB", help=FILES["cloud"].help),
    turntable: Path | None = typer.Option(
        None, "--turntable", metavar="GIF|WEBP", help=FILES["turntable"].help
    ),
    nerfstudio: Path | None = typer.Option(
        None,
        "--nerfstudio",
        metavar="DIR",
        help="Folder with transforms.json, images, depth maps, points.",
    ),
    colmap: Path | None = typer.Option(
        None, "--colmap", metavar="DIR", help="Folder with a text model of COLMAP, images and depth maps."
    ),
    sigma: Path | None = typer.Option(
        None, "--sigma", metavar="DIR", help="Folder of upsample --sigma: what may be far off counts less."
    ),
    cameras: Path | None = declared("cameras"),
    voxel: float = typer.Option(
        VOXEL, "--voxel", metavar="METRES", help="Size of the cells in which depth is fused; no finer detail."
    ),
    max_depth: float | None = typer.Option(
        None, "--max-depth", metavar="METRES", help="Leave out what is farther."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print a JSON report."),
) -> None:
    """Fuse the frames of a recording with poses: one mesh or cloud, or a folder for nerfstudio or COLMAP."""
    named = {"mesh": mesh, "cloud": cloud, "turntable": turntable, "nerfstudio": nerfstudio, "colmap": colmap}
    outputs = {name: path for name, path in named.items() if path is not None}
    for folder in (depths, sigma):
        if folder is not None and not folder.is_dir():
            raise InputError(folder, "is no folder", "give the folder that upsample wrote")
    scan = Scan(read_recording(recording), depths, sigma, early_cameras(cameras), max_depth)
    for text in (f"{scan.recording.layout}, {len(scan.recording)} shots", *scan.recording.notes):
        note(f"{recording}: {text}")
    with progress_bar("fuse", len(scan.recording)) as update:
        found = fuse_scan(scan, outputs, voxel, lambda done: update(None, done))
    left_out = f", {found.skipped} without pose or depth left out" if found.skipped else ""
    vertices, triangles = len(found.mesh.points.points), len(found.mesh.triangles)
    for path in outputs.values():
        note(f"{path}: {found.frames} frames{left_out}, {vertices} points, {triangles} triangles")
    if as_json:
        report = {"frames": found.frames, "skipped": found.skipped, "points": vertices}
        show_json(report | {"triangles": triangles} | {name: str(path) for name, path in outputs.items()})
