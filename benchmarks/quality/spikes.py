"""What false samples do to the frames of real depth cameras: dropped, as by default, and kept.

python -m benchmarks.quality.spikes --data DATA [--method pdn-any]

Of each frame a share of the samples is replaced, by 8 m or by anything between 0.3 and 8.3 m, wherever they
happen to lie. What counts is how much of the result is then more than 5 cm off the one without them.
"""

import json
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.quality.any_scale import data_and_method
from primaldepth.api import load_inputs
from primaldepth.core.frame import Method
from primaldepth.core.seeds import generator
from primaldepth.methods import create
from primaldepth.pipeline.load import Inputs
from primaldepth.pipeline.request import Spikes

FRAMES = {"arkit": "color.jpg", "rgbd_0": "color.png", "rgbd_2": "color.png"}
SHARES = (0.001, 0.01, 0.05)
FAR = 8.0  # metres
OFF = 0.05
CHOICES: tuple[Spikes, ...] = ("drop", "keep")


def spiked(depth: Tensor, valid: Tensor, share: float, far: bool) -> Tensor:
    """The depth in metres, (h, w), with false samples in it; holes stay."""
    draws = generator("spikes", str(share))
    hit = valid & (torch.rand(depth.shape, generator=draws) < share)
    value = torch.full_like(depth, FAR) if far else 0.3 + FAR * torch.rand(depth.shape, generator=draws)
    return torch.where(hit, value, torch.where(valid, depth, 0.0))


def moved(method: Method, folder: Path, guide: str) -> dict[str, object]:
    """How many spikes the frame itself has, and what false ones do."""
    own = load_inputs(folder / "depth_mm.png", folder / guide, unit="mm")
    clean = method(own.frame).depth
    found: dict[str, object] = {"own spikes": own.spikes}
    for share in SHARES:
        for far in (True, False):
            depth = spiked(own.frame.depth[0, 0], own.frame.valid[0, 0], share, far)
            name = f"{share:.1%} of the samples {'at 8 m' if far else 'anywhere'}"
            found[name] = {
                choice: _off(method, load_inputs(depth, folder / guide, spikes=choice), clean)
                for choice in CHOICES
            }
    return found


def _off(method: Method, inputs: Inputs, clean: Tensor) -> float:
    return round(float(((method(inputs.frame).depth - clean).abs() > OFF).float().mean()), 5)


def main() -> None:
    """Print the shares as JSON, a frame at a time."""
    arguments = data_and_method(__doc__).parse_args()
    method = create(arguments.method)
    for name, guide in FRAMES.items():
        found = moved(method, arguments.data / "real" / name, guide)
        print(json.dumps({name: found}, indent=1), flush=True)


if __name__ == "__main__":
    main()
