"""Metrics, frozen protocols, and the run that ties methods to numbers."""
