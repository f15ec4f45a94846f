"""Cameras and what follows from them: rays, z / radial / disparity, point clouds."""
