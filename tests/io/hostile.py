"""Read every file of a folder in a process that may grow by 300 MiB, and print what came of each.

Run as a program, `hostile.py FOLDER`: a name that begins with guide is read as one, all others as depth.
"""

import json
import os
import resource
import sys
from pathlib import Path

import PIL.JpegImagePlugin
import PIL.PngImagePlugin  # noqa: F401 - so that they are not part of the growth
import tifffile  # noqa: F401

from primaldepth.core.errors import PrimalDepthError
from primaldepth.io.rasters import read_raster

GROWTH = 300 * 2**20


def outcome(path):
    """The error's message, or the shape of what was read."""
    try:
        return str(read_raster(path, "guide" if path.name.startswith("guide") else "depth").pixels.shape)
    except PrimalDepthError as error:
        return str(error)
    except Exception as error:
        return f"foreign error: {error!r}"


def main(folder):
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + GROWTH, used + GROWTH))
    print(json.dumps({path.name: outcome(path) for path in sorted(Path(folder).iterdir())}))


if __name__ == "__main__":
    main(sys.argv[1])
