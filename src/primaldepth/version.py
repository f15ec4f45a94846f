"""The version, from the installed package."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("primaldepth")
except PackageNotFoundError:  # a source tree on the path without an install
    __version__ = "0+unknown"
