"""Versions of this package and of others, as they are installed."""

from importlib.metadata import PackageNotFoundError, version


def installed_version(name: str, missing: str = "none") -> str:
    """Return the version of an installed package, or `missing`."""
    try:
        return version(name)
    except PackageNotFoundError:
        return missing


__version__ = installed_version("primaldepth", "0+unknown")  # which a source tree without an install has
