"""Cameras and what follows from them: rays, depth kinds, registration, clouds and meshes; no files."""
