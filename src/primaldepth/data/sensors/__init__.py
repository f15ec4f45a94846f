"""Sensor models: true depth in, samples out; named, versioned, batched, on any device, seeded."""

from primaldepth.data.sensors.base import Samples, Sensor
from primaldepth.data.sensors.lidar import Lidar
from primaldepth.data.sensors.middlebury import MiddleburyNoisy
from primaldepth.data.sensors.registry import sensor, sensor_class, sensor_names
from primaldepth.data.sensors.structured_light import StructuredLight
from primaldepth.data.sensors.tof import TimeOfFlight

__all__ = [
    "Lidar",
    "MiddleburyNoisy",
    "Samples",
    "Sensor",
    "StructuredLight",
    "TimeOfFlight",
    "sensor",
    "sensor_class",
    "sensor_names",
]
