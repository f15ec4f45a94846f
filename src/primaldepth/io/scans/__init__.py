"""Folders in which other programs read a scan: images, depth maps, cameras and poses."""

from primaldepth.io.scans.base import ScanFrame
from primaldepth.io.scans.colmap import ColmapFolder
from primaldepth.io.scans.nerfstudio import NerfstudioFolder

__all__ = ["ColmapFolder", "NerfstudioFolder", "ScanFrame"]
