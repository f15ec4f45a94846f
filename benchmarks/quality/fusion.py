"""How far a fused surface is from the true one: a sphere, and the room of the simulated phone scan.

python -m benchmarks.quality.fusion [--frames 24] [--method pdn-any]

The sphere is seen without noise by 24 cameras all around. The room is scanned by `examples/make_scan.py`; its
frames are fused as they were recorded, upsampled, and upsampled with sigma as weight.
"""

import argparse
import json
import runpy
import tempfile
import warnings
from pathlib import Path

import numpy as np

import primaldepth
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.poses import Pose
from primaldepth.geometry.tsdf import Volume
from primaldepth.geometry.views import PosedView
from primaldepth.io.sequences import Recording, read_recording
from primaldepth.live.simulated import off_surface
from primaldepth.pipeline.scans import Scan, fuse

RADIUS, AWAY = 0.5, 2.0
MAKE_SCAN = Path(__file__).parents[2] / "examples" / "make_scan.py"


def sphere(voxel: float) -> dict[str, float]:
    """Mean radius of the fused sphere, and how far its vertices stray."""
    volume, camera = Volume(voxel), Intrinsics.guess(160, 120, 50.0)
    for height in (-0.9, 0.0, 0.9):
        for angle in np.arange(8) * np.pi / 4:
            volume.add(_sphere_view(camera, angle, height))
    off = 100 * (np.linalg.norm(volume.mesh().points.points, axis=1).astype(np.float64) / RADIUS - 1)
    return {"mean off [%]": round(float(off.mean()), 3), "most off [%]": round(float(np.abs(off).max()), 2)}


def _sphere_view(camera: Intrinsics, angle: float, height: float) -> PosedView:
    c, s = np.cos(height), np.sin(height)
    place = AWAY * np.array([c * np.sin(angle), s, -c * np.cos(angle)])
    forward, right = -place / AWAY, np.array([np.cos(angle), 0.0, np.sin(angle)])
    pose = Pose.of(np.stack([right, np.cross(forward, right), forward], axis=1), place)
    rays = camera.rays() @ np.transpose(pose.rotation)
    a, b, rest = (rays**2).sum(-1), rays @ place, place @ place - RADIUS**2
    root = np.sqrt(np.maximum(b * b - a * rest, 0.0))
    return PosedView((-b - root) / a, root > 0, camera, pose, np.zeros((*root.shape, 3), np.uint8))


def upsampled(recording: Recording, folder: Path, method: str) -> None:
    """Write depth and sigma of every shot."""
    for shot in recording:
        content = shot.read()
        outputs = {
            "out": folder / "fine" / f"{shot.name}.png",
            "sigma": folder / "sigma" / f"{shot.name}.npy",
        }
        primaldepth.upsample(
            content.depth, content.guide, unit=recording.unit, method=method, outputs=outputs, device="cpu"
        )


def room(scan: Scan, folder: Path, voxel: float) -> dict[str, float]:
    """How far the vertices are from the true surfaces, in millimetres."""
    off = 1000 * off_surface(fuse(scan, {"cloud": folder / "cloud.ply"}, voxel).mesh.points.points)
    found = {"mean": off.mean(), "median": np.median(off), "95 %": np.percentile(off, 95)}
    return {name: round(float(value), 1) for name, value in found.items()}


def main() -> None:
    """Print the distances as JSON, a line at a time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=24)
    parser.add_argument("--method", default="pdn-any")
    arguments = parser.parse_args()
    for voxel in (0.01, 0.02, 0.04):
        print(json.dumps({"sphere": sphere(voxel), "voxel": voxel}), flush=True)
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore", primaldepth.DepthWarning)
        folder = Path(name)
        runpy.run_path(str(MAKE_SCAN))["write_scan"](folder / "scan", arguments.frames)
        recording = read_recording(folder / "scan")
        upsampled(recording, folder, arguments.method)
        fine, sigma = folder / "fine", folder / "sigma"
        scans = {
            "as recorded": Scan(recording),
            "upsampled": Scan(recording, fine),
            "with sigma": Scan(recording, fine, sigma),
        }
        for voxel in (0.01, 0.02):
            for which, scan in scans.items():
                print(
                    json.dumps({"room": which, "voxel": voxel, "off [mm]": room(scan, folder, voxel)}),
                    flush=True,
                )


if __name__ == "__main__":
    main()
