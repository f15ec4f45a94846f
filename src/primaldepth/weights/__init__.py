"""Trained weights: NAME-xSCALE.safetensors, each with its card NAME-xSCALE.json beside it."""
