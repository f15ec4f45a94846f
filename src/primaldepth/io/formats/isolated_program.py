"""Program run by `isolated`: MEMORY SECONDS PARENT DECODER PATH (list | read NAME...).

The answer goes to standard output. It stands alone (numpy and one decoder) so that it starts fast.
"""

import importlib
import io
import json
import os
import signal
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MISSING = 3
_MAX_PIXELS = 2**28
_PR_SET_PDEATHSIG = 1  # of Linux' prctl


def _limit(memory: int, seconds: int) -> None:
    try:
        import resource
    except ImportError:  # not on this platform: the caller's limit on time remains
        return
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    most = seconds if hard == resource.RLIM_INFINITY else min(seconds, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))


def _end_with(parent: int) -> None:
    """Die with the caller; where the system cannot do that, heed the signals that the caller may ignore."""
    if sys.platform == "linux":
        import ctypes

        if ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL)) == 0:
            if os.getppid() != parent:  # it was gone before
                sys.exit(1)
            return
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_DFL)


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        sys.exit(_MISSING)


def _exr(path: str, names: list[str]) -> NDArray[Any]:
    package = _import("OpenEXR")
    channels = package.File(path, separate_channels=True).channels()
    return np.stack([channels[name].pixels for name in names])


def _tiff(path: str, role: str) -> NDArray[Any]:
    _import("PIL.TiffImagePlugin")
    from PIL import Image, ImageOps

    Image.MAX_IMAGE_PIXELS = None  # the size was checked before
    image: Image.Image = Image.open(path, formats=["TIFF"])
    if image.mode not in ("L", "LA", "RGB", "RGBA", "P", "CMYK", "YCbCr", "I;16", "I;16B", "F"):
        raise ValueError(f"mode {image.mode}; export it without compression")
    if image.mode in ("LA", "RGBA", "P", "CMYK", "YCbCr"):
        image = image.convert("L" if image.mode == "LA" and role == "guide" else "RGB")
    pixels = np.asarray(ImageOps.exif_transpose(image) if role == "guide" else image)
    return pixels[np.newaxis]


def _variables(file: Any) -> list[dict[str, Any]]:
    found = []
    for name in file:
        each = file[name]
        shape = list(reversed(getattr(each, "shape", ())))  # MATLAB counts the other way round
        plain = hasattr(each, "dtype") and each.dtype.kind in "iuf" and "MATLAB_sparse" not in each.attrs
        plain = plain and each.attrs.get("MATLAB_class", b"double") not in (b"char", b"logical")
        found.append({"name": str(name), "shape": shape, "numeric": bool(plain)})
    return found


def _hdf5(path: str, action: str, names: list[str]) -> NDArray[Any] | list[dict[str, Any]]:
    package = _import("h5py")
    with package.File(path, "r") as file:
        if action == "list":
            return _variables(file)
        dataset = file[names[0]]
        if dataset.size > _MAX_PIXELS:
            raise ValueError(f"claims {dataset.size} values")
        return np.asarray(dataset[()]).T[np.newaxis]


def _decode(decoder: str, path: str, action: str, names: list[str]) -> NDArray[Any] | list[dict[str, Any]]:
    if decoder == "exr":
        return _exr(path, names)
    if decoder == "tiff":
        return _tiff(path, names[0])
    return _hdf5(path, action, names)


def main(arguments: list[str]) -> None:
    """Decode what was asked, or leave with one line on standard error."""
    memory, seconds, parent, decoder, path, action, *names = arguments
    _end_with(int(parent))
    _limit(int(memory), int(seconds))
    answer = _decode(decoder, path, action, names)
    if isinstance(answer, list):
        sys.stdout.write(json.dumps(answer))
        return
    stream = io.BytesIO()
    np.save(stream, answer, allow_pickle=False)
    sys.stdout.buffer.write(stream.getbuffer())


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Exception as error:
        sys.stderr.write(" ".join(str(error).split()) or type(error).__name__)
        sys.exit(1)
