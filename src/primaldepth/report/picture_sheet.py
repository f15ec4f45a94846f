"""Pictures of results: depth and signed error, all errors on one scale."""

import base64
import io
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from primaldepth.evaluation.protocol import Case
from primaldepth.evaluation.rows import predict
from primaldepth.pictures.preview import (
    DEPTH_COLORS,
    ERROR_COLORS,
    INVALID,
    ColorLimits,
    Colors,
    Mask,
    colorize,
    enlarge,
    robust_limits,
)
from primaldepth.pipeline.outputs import rgb_of
from primaldepth.report.blocks import Picture
from primaldepth.report.cached_runs import KeptOfTask

Map = NDArray[np.floating[Any]]
_STEPS = 65535


class Predicted(KeptOfTask):
    """A prediction as plain data: 16 bit between its extremes, which is finer than any picture of it."""

    kept = ("kept", "prediction, 16 bit")

    def __call__(self) -> dict[str, Any]:
        """Run the method."""
        task = self.task
        found, _ = predict(task.method, task.protocol.load(task.root, task.scene, task.scale), task.device)
        values = found.depth[0, 0].double().numpy()
        low, high = float(values.min()), float(values.max())
        steps = np.rint((values - low) / (high - low or 1.0) * _STEPS).astype("<u2")
        packed = base64.b64encode(zlib.compress(steps.tobytes())).decode()
        return {"low": low, "high": high, "shape": list(steps.shape), "data": packed}


def unpacked(result: dict[str, Any]) -> Map:
    """Return the map (H, W) that `Predicted` packed."""
    steps = np.frombuffer(zlib.decompress(base64.b64decode(result["data"])), "<u2").reshape(result["shape"])
    depth: Map = result["low"] + (result["high"] - result["low"]) / _STEPS * steps.astype(np.float64)
    return depth


@dataclass(frozen=True, slots=True)
class Sheet:
    """Pictures of one case, `width` pixels wide, with colours that mean the same in all of them.

    Args:
        error: that gets the full colour, in the case's unit.
    """

    case: Case
    error: float
    width: int = 459

    @property
    def limits(self) -> ColorLimits:
        """ColorLimits of the depth colours: those of the true depth."""
        return robust_limits(*self._truth())

    def guide(self) -> Picture:
        """Draw the sharp image."""
        image = Image.fromarray(rgb_of(self.case.frame.guide))
        buffer = io.BytesIO()
        image.resize(self._size(), Image.Resampling.BOX).save(buffer, "JPEG", quality=85)
        return self._picture("guide", "jpg", buffer.getvalue(), "guide")

    def truth(self) -> Picture:
        """Draw the true depth."""
        return self._colored("truth", *self._truth(), self.limits, DEPTH_COLORS, "ground truth")

    def samples(self) -> Picture:
        """Draw the samples that the methods are given."""
        frame = self.case.frame
        depth, valid = frame.depth[0, 0].double().numpy(), frame.valid[0, 0].numpy()
        label = f"input, {depth.shape[1]} x {depth.shape[0]}"
        return self._colored("input", depth, valid, self.limits, DEPTH_COLORS, label)

    def result(self, name: str, depth: Map) -> Picture:
        """Draw a method's depth."""
        return self._colored(name, depth, np.isfinite(depth), self.limits, DEPTH_COLORS, name)

    def error_of(self, name: str, depth: Map, rmse: float) -> Picture:
        """Draw a method's signed error."""
        truth, known = self._truth()
        limits = (-self.error, self.error)
        label = f"{name}: error, RMSE {rmse:.2f}"
        return self._colored(f"{name}-error", depth - truth, known, limits, ERROR_COLORS, label)

    def _truth(self) -> tuple[Map, Mask]:
        return self.case.truth[0, 0].double().numpy(), self.case.known[0, 0].numpy()

    def _size(self) -> tuple[int, int]:
        height, width = self.case.frame.high_size
        return self.width, round(self.width * height / width)

    def _colored(
        self, what: str, values: Map, valid: Mask, limits: ColorLimits, colors: Colors, label: str
    ) -> Picture:
        return self._picture(what, "png", indexed_png(values, valid, limits, colors, self._size()), label)

    def _picture(self, what: str, suffix: Any, data: bytes, label: str) -> Picture:
        name = f"{self.case.scene}-x{self.case.scale}-{what}".replace("+", "-")
        return Picture(name, suffix, data, f"{self.case.scene.title()}, {label}", label)


def indexed_png(
    values: Map, valid: Mask, limits: ColorLimits, colors: Colors, size: tuple[int, int]
) -> bytes:
    """Encode a PNG of (width, height): 255 colours and one for invalid pixels; pixels are picked."""
    place = np.clip((np.where(valid, values, limits[0]) - limits[0]) / (limits[1] - limits[0]), 0.0, 1.0)
    index = np.where(valid, np.rint(254 * place), 255).astype(np.uint8)
    ramp = np.linspace(*limits, 255)[None]
    table = colorize(ramp, np.ones(ramp.shape, bool), limits, colors)[0]
    image = Image.fromarray(enlarge(index[..., None], size[1], size[0])[..., 0])
    image.putpalette([*table.flatten().tolist(), INVALID, INVALID, INVALID])
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
