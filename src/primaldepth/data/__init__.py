"""Rendered scenes on disk, and patches of them."""
