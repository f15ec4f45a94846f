"""Program run by `isolated`: PARENT LIMITS DECODER (list | read NAME...), the file on standard input.

The answer goes to standard output. The program imports numpy and one decoder only, so that it starts fast.
"""

import importlib
import io
import json
import math
import os
import signal
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MISSING = 3
_PR_SET_PDEATHSIG = 1  # of Linux' prctl
_PACKAGES = {"exr": "OpenEXR", "hdf5": "h5py", "lzfse": "lzfse", "tiff": "PIL.TiffImagePlugin"}
_EXR_TYPES = {0: "u4", 1: "f2", 2: "f4"}
_TIFF_MODES = {"L": "L", "LA": "L", "RGB": "RGB", "RGBA": "RGB", "P": "RGB", "CMYK": "RGB", "YCbCr": "RGB"}
_TIFF_WIDE = ("I;16", "I;16B", "F")
_HDF5_FILTERS = frozenset((1, 2, 3, 4, 5, 6, 32000))  # those that are part of HDF5 and h5py
_SMALL_CHUNKS = 2**24  # bytes: chunks of such an array may be much larger than what lies in them
_MAX_WORD = 64  # bytes of the longest attribute that is read

Limits = dict[str, int]
Listing = list[dict[str, Any]]


def _confine(limits: Limits) -> None:
    """Keep this process from opening or writing files, and within the limits of memory and time."""
    try:
        import resource
    except ImportError:  # not on this platform: the caller's limit on time remains
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = math.ceil(used.ru_utime + used.ru_stime) + limits["seconds"]
    for name, most in (
        (resource.RLIMIT_NOFILE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, _address_space() + limits["memory"]),
    ):
        hard = resource.getrlimit(name)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(name, (least, least))


def _address_space() -> int:
    """Return the bytes that are mapped now; half a GiB where the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 2**29


def _end_with(parent: int) -> None:
    """End this process with its caller or, on systems without that, on signals that the caller may ignore."""
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


def _exr(package: Any, data: bytes, names: list[str]) -> NDArray[Any]:
    """Return the named channels of the first part; other channels are not decompressed."""
    file = package.InputFile(io.BytesIO(data))
    header = file.header()
    window, kinds = header["dataWindow"], header["channels"]
    shape = (window.max.y - window.min.y + 1, window.max.x - window.min.x + 1)
    planes = [np.frombuffer(file.channel(n), _EXR_TYPES[kinds[n].type.v]).reshape(shape) for n in names]
    return planes[0][np.newaxis] if len(planes) == 1 else np.stack(planes)


def _tiff(package: Any, data: bytes) -> NDArray[Any]:
    package.Image.MAX_IMAGE_PIXELS = None  # the size was checked before
    image = package.TiffImageFile(io.BytesIO(data))
    mode = _TIFF_MODES.get(image.mode)
    if mode is None and image.mode not in _TIFF_WIDE:
        raise ValueError(f"mode {image.mode}; export it without compression")
    image.load()
    return np.asarray(image if mode in (None, image.mode) else image.convert(mode))[np.newaxis]


def _hdf5(package: Any, data: bytes, limits: Limits, action: str, names: list[str]) -> NDArray[Any] | Listing:
    with package.File(io.BytesIO(data), "r") as file:
        if len(file) > limits["members"]:
            raise ValueError(f"{len(file)} variables, more than the limit of {limits['members']}")
        for name in file:
            if type(file.get(name, getlink=True)) is not package.HardLink:
                raise ValueError(f"'{name}' is a link to what lies elsewhere; save the map itself")
        if action == "list":
            return [_described(package, str(name), file[name]) for name in file]
        dataset = file[names[0]]
        _check_dataset(package, dataset, limits)
        return np.asarray(dataset[()]).T[np.newaxis]


def _described(package: Any, name: str, each: Any) -> dict[str, Any]:
    """Return name, shape as MATLAB counts (the other way round), and whether it is an array of numbers."""
    if not isinstance(each, package.Dataset):
        return {"name": name, "shape": [], "nbytes": 0, "numeric": False}
    plain = each.dtype.kind in "iuf" and "MATLAB_sparse" not in each.attrs
    plain = plain and _word(each, "MATLAB_class") not in (b"char", b"logical")
    shape = list(reversed(each.shape or ()))
    return {"name": name, "shape": shape, "nbytes": int(each.nbytes), "numeric": bool(plain)}


def _word(each: Any, name: str) -> bytes:
    """Return the text of a short attribute; empty if it is missing or of another kind."""
    if name not in each.attrs:
        return b""
    attribute = each.attrs.get_id(name)
    if attribute.shape != () or attribute.dtype.kind != "S" or attribute.dtype.itemsize > _MAX_WORD:
        return b""
    return bytes(each.attrs[name])


def _check_dataset(package: Any, dataset: Any, limits: Limits) -> None:
    """Raise unless the numbers lie in this file, in chunks that together are little more than the array."""
    plan = dataset.id.get_create_plist()
    if plan.get_external_count() or plan.get_layout() == package.h5d.VIRTUAL:
        raise ValueError("its numbers are stored in another file; save the map itself")
    filters = [plan.get_filter(index)[0] for index in range(plan.get_nfilters())]
    if len(set(filters)) < len(filters) or not _HDF5_FILTERS.issuperset(filters):
        raise ValueError(f"packed by the filters {filters}; save it with deflate or without compression")
    if dataset.nbytes > limits["decoded"]:
        raise ValueError(f"{dataset.nbytes} bytes, more than the {limits['decoded']} that were checked")
    if dataset.chunks is None:
        return
    count = math.prod(-(-side // chunk) for side, chunk in zip(dataset.shape, dataset.chunks, strict=True))
    if count > limits["parts"]:
        raise ValueError(f"{count} chunks, more than the limit of {limits['parts']}")
    stored = count * math.prod(dataset.chunks) * dataset.dtype.itemsize
    if stored > 4 * max(dataset.nbytes, _SMALL_CHUNKS):
        raise ValueError(f"{stored} bytes in chunks for {dataset.nbytes} of numbers")


def _decode(
    decoder: str, package: Any, data: bytes, limits: Limits, action: str, names: list[str]
) -> NDArray[Any] | Listing:
    if decoder == "exr":
        return _exr(package, data, names)
    if decoder == "tiff":
        return _tiff(package, data)
    if decoder == "lzfse":
        return np.frombuffer(package.decompress(data), np.uint8)[np.newaxis]
    return _hdf5(package, data, limits, action, names)


def _answer(found: NDArray[Any] | Listing) -> None:
    """Write a list as JSON, an array as a line of JSON and then its bytes."""
    if isinstance(found, list):
        sys.stdout.write(json.dumps(found))
        return
    head = {"dtype": found.dtype.str, "shape": found.shape}
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n")
    sys.stdout.buffer.write(np.ascontiguousarray(found).data.cast("B"))


def main(arguments: list[str]) -> None:
    """Decode what the arguments ask for, or exit with one line on standard error."""
    parent, text, decoder, action, *names = arguments
    _end_with(int(parent))
    limits: Limits = json.loads(text)
    package = _import(_PACKAGES[decoder])
    data = sys.stdin.buffer.read()
    _confine(limits)
    _answer(_decode(decoder, package, data, limits, action, names))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Exception as error:
        sys.stderr.write(" ".join(str(error).split()) or type(error).__name__)
        sys.exit(1)
