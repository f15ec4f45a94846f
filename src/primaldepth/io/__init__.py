"""Bytes to arrays and back: depth files, guide images, confidence maps, written whole or not at all."""

from primaldepth.io.atomic import atomic_path, write_bytes
from primaldepth.io.depth_writing import output_unit, write_depth
from primaldepth.io.rasters import read_confidence, read_depth, read_guide
from primaldepth.io.units import DepthMap, Kind, Unit

__all__ = [
    "DepthMap",
    "Kind",
    "Unit",
    "atomic_path",
    "output_unit",
    "read_confidence",
    "read_depth",
    "read_guide",
    "write_bytes",
    "write_depth",
]
