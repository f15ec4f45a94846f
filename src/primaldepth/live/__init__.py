"""Cameras that run: sources of frames, and the page that shows results while they come."""
