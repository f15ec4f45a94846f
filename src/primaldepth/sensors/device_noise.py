"""Standard deviations of depth cameras people own, as functions of depth; all in metres.

What a maker or a paper states for a surface that faces the camera, indoors. Dark, shiny or slanted
surfaces are worse; `approximate` marks what was not checked against its source, or has none with a formula.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from primaldepth.core.frame import Sampling


@dataclass(frozen=True, slots=True)
class DeviceNoise:
    """Noise of one depth camera.

    Args:
        sigma: standard deviation of z, both in metres.
        formula: the same in words.
        source: who measured or states it.
        approximate: not checked against the source, a fit by eye to its figures, or a round number.
        sampling: "average" for cameras that mix the light of all surfaces a pixel covers, "point" for those
            that find one surface.
    """

    sigma: Callable[[Tensor], Tensor]
    formula: str
    source: str
    approximate: bool = False
    sampling: Sampling = "point"


def kinect_v1(z: Tensor) -> Tensor:
    """Return 1.2 mm + 1.9 mm (z - 0.4)^2: 1.9 mm in 1 m, 14 mm in 3 m."""
    return 0.0012 + 0.0019 * (z - 0.4).square()


def kinect_v2(z: Tensor) -> Tensor:
    """Return (1.5 - 0.5 z + 0.3 z^2) mm: 1.3 mm in 1 m, 2.7 mm in 3 m."""
    return 0.001 * (1.5 - 0.5 * z + 0.3 * z.square())


def azure_kinect(z: Tensor) -> Tensor:
    """Return 0.5 mm + 0.15 mm z^2: 0.7 mm in 1 m, 1.9 mm in 3 m."""
    return 0.0005 + 0.00015 * z.square()


def realsense_l515(z: Tensor) -> Tensor:
    """Return 2.5 mm in 1 m and 15.5 mm in 9 m, linear between."""
    return 0.0025 + (0.0155 - 0.0025) / 8.0 * (z - 1.0)


def one_percent(z: Tensor) -> Tensor:
    """Return z / 100."""
    return 0.01 * z


def stereo(baseline: float, width: int, view_degrees: float) -> Callable[[Tensor], Tensor]:
    """Return the function z^2 / (b f) 0.08 px with f = (width / 2) / tan(view / 2): matching to 0.08 px."""
    focal = width / 2 / math.tan(math.radians(view_degrees) / 2)
    scale = 0.08 / (baseline * focal)
    return lambda z: scale * z.square()


_INTEL_STEREO = "Intel, guide to tuning D400 cameras: RMS error = z^2 subpixel / (f b), subpixel 0.08"
DEVICES: dict[str, DeviceNoise] = {
    "kinect-v1": DeviceNoise(
        kinect_v1,
        "1.2 mm + 1.9 mm (z - 0.4)^2",
        "Nguyen, Izadi, Lovell: Modeling Kinect sensor noise, 3DIMPVT 2012",
    ),
    "kinect-v2": DeviceNoise(
        kinect_v2,
        "(1.5 - 0.5 z + 0.3 z^2) mm",
        "Fankhauser et al.: Kinect v2 for mobile robot navigation, ICAR 2015, surface facing the camera",
        approximate=True,
        sampling="average",
    ),
    "azure-kinect": DeviceNoise(
        azure_kinect,
        "0.5 mm + 0.15 mm z^2",
        "below 2 mm within 3 m, after Tölgyessy et al., Sensors 21(2), 2021; Microsoft promises 17 mm",
        approximate=True,
        sampling="average",
    ),
    "realsense-d415": DeviceNoise(
        stereo(0.055, 1280, 65.0), "1.4 mm z^2", f"{_INTEL_STEREO}; 55 mm, 65 degrees, 1280 px", True
    ),
    "realsense-d435": DeviceNoise(
        stereo(0.050, 848, 87.0), "3.6 mm z^2", f"{_INTEL_STEREO}; 50 mm, 87 degrees, 848 px", True
    ),
    "realsense-d455": DeviceNoise(
        stereo(0.095, 848, 87.0), "1.9 mm z^2", f"{_INTEL_STEREO}; 95 mm, 87 degrees, 848 px", True
    ),
    "realsense-l515": DeviceNoise(
        realsense_l515, "0.9 mm + 1.6 mm z", "Intel, L515 data sheet: 2.5 mm in 1 m, 15.5 mm in 9 m", True
    ),
    "ipad-lidar": DeviceNoise(
        one_percent, "z / 100", "about 1 cm within a few metres; smoothed by the device", True
    ),
    "pmd-pico": DeviceNoise(
        one_percent, "z / 100", "pmd, CamBoard pico flexx: 1 % of the distance at 5 Hz", True, "average"
    ),
}
