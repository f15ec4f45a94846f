"""The formats this package reads and writes. A new one is one file and one line in `CODECS`."""

from primaldepth.io.formats import exr, jpeg, mat, numpy_files, pfm, png, pnm, tiff
from primaldepth.io.formats.base import Codec

CODECS: tuple[Codec, ...] = (
    png.CODEC,
    exr.CODEC,
    pfm.CODEC,
    pnm.CODEC,
    numpy_files.NPY,
    numpy_files.NPZ,
    tiff.CODEC,
    mat.CODEC,
    jpeg.CODEC,
)
