"""The methods that are compared on own frames, and the picture of a frame."""

from pathlib import Path

import numpy as np
import torch

from primaldepth.core.frame import Method
from primaldepth.evaluation.own_frames import OwnFrames
from primaldepth.evaluation.rows import predict
from primaldepth.io.picture_files import write_preview
from primaldepth.pictures.preview import (
    ERROR_COLORS,
    Bar,
    colorize,
    enlarge,
    error_map,
    panel,
    robust_error,
    robust_limits,
)
from primaldepth.pipeline.outputs import rgb_of

METHODS = ("bicubic", "ferstl13", "pdn-any-small", "pdn-any")


def draw_frame(protocol: OwnFrames, method: Method, scene: str, device: torch.device, picture: Path) -> None:
    """Write image, samples, result, the sensor's own map and the difference side by side.

    Args:
        protocol: of one's own frames.
        method: whose result is drawn.
        scene: name of the frame.
        device: that computes.
        picture: file to write.
    """
    case = protocol.load(None, scene, protocol.way.scales[0])
    depth = predict(method, case, device)[0].depth[0, 0].double().numpy()
    truth, known = case.truth[0, 0].double().numpy(), case.known[0, 0].numpy()
    low, valid = case.frame.depth[0, 0].double().numpy(), case.frame.valid[0, 0].numpy()
    limits, limit = robust_limits(truth, known), robust_error(depth, truth, known)
    height, width = truth.shape
    pictures = [
        (f"Image {width} x {height}", rgb_of(case.frame.guide)),
        (f"Samples {low.shape[1]} x {low.shape[0]}", enlarge(colorize(low, valid, limits), height, width)),
        (f"Result of {method.name}", colorize(depth, np.ones_like(known), limits)),
        ("The sensor's own map", colorize(truth, known, limits)),
        ("Difference", error_map(depth, truth, known, limit)),
    ]
    unit = protocol.unit
    bars = [Bar(f"Depth [{unit}]", limits), Bar(f"Difference [{unit}]", (-limit, limit), ERROR_COLORS)]
    write_preview(picture, panel(pictures, bars))
