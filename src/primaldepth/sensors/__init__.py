"""Sensor models: true depth in, samples out; named, versioned, batched, on any device, seeded."""

from primaldepth.sensors.base import Samples, Sensor
from primaldepth.sensors.lidar import Lidar
from primaldepth.sensors.middlebury import MiddleburyNoisy
from primaldepth.sensors.registry import sensor, sensor_class, sensor_names
from primaldepth.sensors.structured_light import StructuredLight
from primaldepth.sensors.tof import TimeOfFlight

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
