"""What more noise than is estimated does to RGB-D frames, whose depth is smoothed and stepped.

    python -m benchmarks.quality.stepped_depth --data DATA [--method pdn-any]

Printed for 1 and 3 times the estimate: the median angle between the normals of the result and those of the
planes through flat windows of the samples; and, where square parts of the samples are cut out, the median
distance of the fill from what was measured there.
"""

import json
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import unfold

from benchmarks.quality.any_scale import data_and_method
from primaldepth.api import load_inputs
from primaldepth.core.frame import Frame, Method
from primaldepth.methods import create
from primaldepth.pipeline.load import Inputs

FRAMES = ("rgbd_0", "rgbd_2")
FACTORS = (1.0, 3.0)
WINDOW = 32  # pixels a side
FLAT = 0.01  # of the inverse depth: the RMS residual of a plane
PART, EVERY = 24, 96  # pixels: what is cut out, and how far apart


def measured(method: Method, inputs: Inputs, factor: float) -> dict[str, float]:
    """Angle in degrees and distance in millimetres of one frame."""
    frame = replace(inputs.frame, sigma=factor * inputs.frame.sigma)
    parts = cut_parts(frame.valid)
    holed = replace(frame, valid=frame.valid & ~parts)
    filled = (method(holed).depth - frame.depth).abs()[parts & frame.valid]
    return {
        "sigma, mm": round(1000 * float(frame.sigma[frame.valid].median()), 2),
        "angle, degrees": round(float(angles(frame, method(frame).depth, rays(inputs)).median()), 2),
        "fill, mm": round(1000 * float(filled.median()), 2),
    }


def rays(inputs: Inputs) -> Tensor:
    """(3, H, W): x / z, y / z and 1 of every pixel."""
    height, width = inputs.frame.high_size
    camera = inputs.cameras.guide.scaled_to(width, height)
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return torch.stack([(x - camera.cx) / camera.fx, (y - camera.cy) / camera.fy, torch.ones(height, width)])


def angles(frame: Frame, depth: Tensor, seen: Tensor) -> Tensor:
    """Degrees between the normals of the result and of the plane of each flat window, per pixel.

    A plane n X = d is n (x / z, y / z, 1) = d / z: its normal is the gradient of 1 / z in the first two, and
    what is left of 1 / z.
    """
    samples, estimates = (
        _windows(1 / each[0]) for each in (torch.where(frame.valid, frame.depth, torch.nan), depth)
    )
    directions = torch.stack([_windows(each[None]) for each in seen], dim=-1)  # (N, WINDOW, WINDOW, 3)
    whole = samples.isfinite().flatten(1).all(dim=1)
    samples, estimates, directions = samples[whole], estimates[whole], directions[whole]
    matrix, right = directions.flatten(1, 2), samples.flatten(1)[..., None]
    planes = torch.linalg.lstsq(matrix, right).solution  # (N, 3, 1)
    residual = (matrix @ planes - right).square().mean(dim=(1, 2)).sqrt() / right.mean(dim=(1, 2))
    flat = residual < FLAT
    found = _normals(estimates[flat], directions[flat])
    cosine = torch.cosine_similarity(found, planes[flat][:, None, None, :, 0], dim=-1)
    return cosine.clamp(-1, 1).acos().rad2deg()


def _windows(image: Tensor) -> Tensor:
    """(N, WINDOW, WINDOW) side by side, of (1, H, W)."""
    return unfold(image[None].double(), WINDOW, stride=WINDOW)[0].T.unflatten(1, (WINDOW, WINDOW))


def _normals(inverse: Tensor, seen: Tensor) -> Tensor:
    """(N, WINDOW - 2, WINDOW - 2, 3) from differences over two pixels."""
    across = (inverse[:, 1:-1, 2:] - inverse[:, 1:-1, :-2]) / (seen[:, 1:-1, 2:] - seen[:, 1:-1, :-2])[..., 0]
    down = (inverse[:, 2:, 1:-1] - inverse[:, :-2, 1:-1]) / (seen[:, 2:, 1:-1] - seen[:, :-2, 1:-1])[..., 1]
    x, y = seen[:, 1:-1, 1:-1, 0], seen[:, 1:-1, 1:-1, 1]
    return torch.stack([across, down, inverse[:, 1:-1, 1:-1] - across * x - down * y], dim=-1)


def cut_parts(valid: Tensor) -> Tensor:
    """(1, 1, H, W) True in squares on a grid."""
    rows, columns = (torch.arange(size) % EVERY < PART for size in valid.shape[2:])
    return (rows[:, None] & columns)[None, None]


def main() -> None:
    """Print one line of JSON per frame and factor."""
    arguments = data_and_method(__doc__).parse_args()
    method = create(arguments.method)
    for name in FRAMES:
        folder = arguments.data / "real" / name
        files = folder / "depth_mm.png", folder / "color.png"
        inputs = load_inputs(*files, unit="mm", cameras=folder / "intrinsics.txt")
        for factor in FACTORS:
            print(
                json.dumps({"frame": name, "noise": factor, **measured(method, inputs, factor)}), flush=True
            )


if __name__ == "__main__":
    main()
