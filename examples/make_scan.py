"""Write a phone scan of a simulated room, in the layout of StrayScanner: `python make_scan.py FOLDER`.

For those who have no phone with a LiDAR at hand: 24 frames of a camera that goes through the room, depth of
64x48 with noise, images of 256x192, the camera's matrix and its poses. It needs nothing but primaldepth.
"""

import math
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.motion import quaternion
from primaldepth.geometry.poses import Y_UP, Pose
from primaldepth.io import DepthMap, write_depth
from primaldepth.live.simulated import seen_from

WIDTH, HEIGHT, SCALE, NOISE = 256, 192, 4, 0.003  # noise: metres at a distance of 1 m, grows with its square


def pose(part: float) -> Pose:
    """Return where the camera stands after this part of its way, 0 to 1: half around the box and the ball."""
    angle = math.radians(110) * (part - 0.5)
    place = np.array([1.7 * math.sin(angle), -0.35, 2.5 - 2.6 * math.cos(angle)])
    forward = np.array([-0.1, 0.5, 2.6]) - place
    forward /= np.linalg.norm(forward)
    right = np.cross([0.0, 1.0, 0.0], forward)
    right /= np.linalg.norm(right)
    return Pose.of(np.stack([right, np.cross(forward, right), forward], axis=1), place)


def write_scan(root: Path, count: int = 24) -> None:
    """Write `count` frames."""
    camera = Intrinsics.guess(WIDTH, HEIGHT, 65.0)
    for name in ("depth", "rgb"):
        (root / name).mkdir(parents=True, exist_ok=True)
    lines = ["timestamp, frame, x, y, z, qx, qy, qz, qw"]
    for index in range(count):
        stands, noise = pose(index / max(count - 1, 1)), np.random.default_rng(index)
        z = seen_from(camera.scaled_to(WIDTH // SCALE, HEIGHT // SCALE), stands).depth
        z += NOISE * z**2 * noise.standard_normal(z.shape)
        write_depth(root / "depth" / f"{index:06d}.png", DepthMap.from_array(z, unit="mm"))
        image = np.rint(255 * seen_from(camera, stands).image.clip(0.0, 1.0)).astype(np.uint8)
        Image.fromarray(image).save(root / "rgb" / f"{index:06d}.jpg", quality=95)
        # its world has y up, its cameras have y down
        numbers = [*(Y_UP @ stands.translation), *quaternion(Y_UP @ stands.rotation)]
        lines.append(f"{index / 10:.3f}, {index:06d}, {', '.join(f'{number:.9f}' for number in numbers)}")
    (root / "odometry.csv").write_text("\n".join(lines) + "\n")
    K = [[camera.fx, 0, camera.cx - 0.5], [0, camera.fy, camera.cy - 0.5], [0, 0, 1]]
    np.savetxt(root / "camera_matrix.csv", K, delimiter=", ", fmt="%.6f")


if __name__ == "__main__":
    write_scan(Path(sys.argv[1] if len(sys.argv) > 1 else "scan"))
