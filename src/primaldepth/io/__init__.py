"""Bytes to arrays and back: depth files, guide images, confidence maps, written whole or not at all."""

from primaldepth.io.atomic import atomic_path, write_bytes
from primaldepth.io.confidence import read_confidence
from primaldepth.io.depth import DepthMap, output_unit, read_depth, write_depth
from primaldepth.io.guide import read_guide
from primaldepth.io.units import Kind, Unit

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
