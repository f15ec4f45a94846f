"""Find a sensor model by name: those of this package, and those that other installed packages add."""

from typing import Any

from primaldepth.core.errors import unknown_name
from primaldepth.core.extensions import Extensions
from primaldepth.sensors.base import Sensor
from primaldepth.sensors.gaussian import Gaussian, MetricGaussian, PointGaussian
from primaldepth.sensors.lidar import Lidar, SmoothLidar
from primaldepth.sensors.middlebury import MiddleburyNoisy
from primaldepth.sensors.structured_light import StructuredLight
from primaldepth.sensors.tof import TimeOfFlight
from primaldepth.sensors.tof_beside import TofBeside
from primaldepth.sensors.triangulation import Stereo, StructuredLightRegistered

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
        PointGaussian,
        StructuredLightRegistered,
        Stereo,
        SmoothLidar,
    )
}


def _checked(name: str, loaded: object) -> type[Sensor]:
    if not (isinstance(loaded, type) and issubclass(loaded, Sensor)):
        raise TypeError(f"expected a subclass of primaldepth.sensors.Sensor, found {loaded!r}")
    if loaded.name != name:
        raise TypeError(f"the entry point is named '{name}', the sensor '{loaded.name}'")
    return loaded


_EXTENSIONS = Extensions("primaldepth.sensors", "sensor", _checked)


def sensor_names() -> tuple[str, ...]:
    """Return the names of all sensor models: those of this package first, then those of others.

    Warns:
        ExtensionWarning: an installed package offers a sensor that cannot be loaded.

    Raises:
        InputError: two packages offer sensors of the same name.

    Example:
        >>> from primaldepth.sensors import sensor_names
        >>> "lidar-v1" in sensor_names()
        True
    """
    return (*_SENSORS, *_EXTENSIONS.load_all(_SENSORS))


def sensor_class(name: str) -> type[Sensor]:
    """Return the class of the sensor `name`, whose `draw` makes sensors with random parameters.

    Args:
        name: of `sensor_names`.

    Raises:
        InputError: the name is unknown, or its package cannot be loaded.
    """
    found = _EXTENSIONS.find(name, _SENSORS) or _SENSORS.get(name)
    if found is None:
        raise unknown_name("sensor", name, sensor_names())
    return found


def sensor(name: str, **options: Any) -> Sensor:
    """Make the sensor `name`, with `options` in place of its defaults.

    Args:
        name: of `sensor_names`.
        options: fields of its class, such as `scale`.

    Returns:
        A function from true depth to samples.

    Raises:
        InputError: the name or an option is unknown, or a value is wrong.

    Example:
        >>> import torch
        >>> from primaldepth.sensors import sensor
        >>> camera = sensor("tof-v1", scale=4)
        >>> truth = torch.full((1, 1, 32, 32), 2.0)
        >>> samples = camera(truth, generator=torch.Generator().manual_seed(0))
        >>> samples.depth.shape
        torch.Size([1, 1, 8, 8])
    """
    return sensor_class(name).parse(options, f"sensor '{name}'")
