"""Names to sensors."""

from typing import Any

from primaldepth.core.errors import InputError
from primaldepth.data.sensors.base import Sensor
from primaldepth.data.sensors.gaussian import Gaussian, MetricGaussian
from primaldepth.data.sensors.lidar import Lidar
from primaldepth.data.sensors.middlebury import MiddleburyNoisy
from primaldepth.data.sensors.structured_light import StructuredLight
from primaldepth.data.sensors.tof import TimeOfFlight
from primaldepth.data.sensors.tof_beside import TofBeside

_SENSORS: dict[str, type[Sensor]] = {
    each.name: each
    for each in (
        MiddleburyNoisy,
        Gaussian,
        MetricGaussian,
        TimeOfFlight,
        TofBeside,
        StructuredLight,
        Lidar,
    )
}


def sensor_names() -> tuple[str, ...]:
    """Every sensor model there is."""
    return tuple(_SENSORS)


def sensor_class(name: str) -> type[Sensor]:
    """The class of the sensor `name`, for its `draw`."""
    if name not in _SENSORS:
        raise InputError(f"unknown sensor '{name}' (known: {', '.join(_SENSORS)})")
    return _SENSORS[name]


def sensor(name: str, **options: Any) -> Sensor:
    """The sensor `name`, with `options` in place of its defaults."""
    return sensor_class(name).parse(options, f"sensor '{name}'")
