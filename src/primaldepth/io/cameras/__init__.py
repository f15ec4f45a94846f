"""Camera files: our own JSON, and the calibrations of RealSense, Azure Kinect and ROS."""

from primaldepth.io.cameras.camera_file import needs_sizes, read_cameras, read_matrix, write_cameras

__all__ = ["needs_sizes", "read_cameras", "read_matrix", "write_cameras"]
