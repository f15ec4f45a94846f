"""Sensors and their noise, named; degradations and datasets."""
