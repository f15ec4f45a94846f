"""Files made by other programs are read as they read them, and written so that they read the same."""

import imageio.v3 as imageio
import numpy as np
import pytest
import scipy.io
import tifffile
from PIL import Image

from primaldepth.io import DepthMap, read_depth, write_depth
from primaldepth.io.formats.orientation import upright

RNG = np.random.default_rng(7)
U16 = RNG.integers(0, 65536, (9, 14)).astype(np.uint16)
F32 = RNG.random((9, 14)).astype(np.float32) + np.float32(0.1)
F32[2, 3] = np.nan
F32[4, 5] = np.inf
F32[0, 0] = -1


def expect(path, stored, scale, **options):
    """The map in `path` is `stored / scale`, invalid where it cannot be a depth."""
    depth = read_depth(path, **options)
    stored = stored.astype(np.float64)
    valid = np.isfinite(stored) & (stored > 0)
    np.testing.assert_array_equal(depth.valid, valid)
    np.testing.assert_array_equal(depth.values, np.where(valid, stored, 0) / scale)
    return depth


def custom_scale(stored):
    """Of numbers without a unit: metres, disparities of 8 bits, millimetres."""
    return 1 if stored.dtype.kind == "f" or stored.dtype.itemsize == 1 else 1000


@pytest.mark.parametrize("writer", ["pillow", "imageio"])
def test_png_of_16_bits(tmp_path, writer):
    path = tmp_path / "a.png"
    Image.fromarray(U16).save(path) if writer == "pillow" else imageio.imwrite(path, U16)
    depth = expect(path, U16, 1000)
    assert (depth.unit, depth.kind) == ("mm", "z")
    expect(path, U16, 5000, unit="5000")
    expect(path, U16, 256, unit="256", kind="disparity")
    write_depth(tmp_path / "b.png", depth)
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "b.png")), U16)


def test_png_of_8_bits_is_disparity(tmp_path):
    eight = (U16 >> 8).astype(np.uint8)
    Image.fromarray(eight).save(tmp_path / "a.png")
    depth = expect(tmp_path / "a.png", eight, 1)
    assert (depth.unit, depth.kind) == ("disparity", "disparity")
    write_depth(tmp_path / "b.png", depth)
    image = Image.open(tmp_path / "b.png")
    assert image.mode == "L"
    np.testing.assert_array_equal(np.asarray(image), eight)
    expect(tmp_path / "a.png", eight, 1000, unit="mm")


LOSSLESS = [(name, kind) for name in ("NO", "RLE", "ZIPS", "ZIP", "PIZ") for kind in ("f4", "f2", "u4")]
LOSSY = [("PXR24", "f4"), ("B44", "f4"), ("DWAA", "f4")]
NEWER = [("HTJ2K256", "f2"), ("HTJ2K32", "f2"), ("ZSTD", "f4")]  # not in every OpenEXR that is supported


@pytest.mark.parametrize(("name", "kind"), LOSSLESS + LOSSY + NEWER)
def test_exr_in_every_compression(tmp_path, name, kind):
    import OpenEXR

    if not hasattr(OpenEXR, f"{name}_COMPRESSION"):
        pytest.skip(f"this OpenEXR has no {name}")
    plane = (U16[:, :12] if kind == "u4" else np.abs(F32[5:, :])).astype(kind)
    plane = np.ascontiguousarray(np.tile(plane, (5, 1)))  # more rows than one chunk
    header = {"compression": getattr(OpenEXR, f"{name}_COMPRESSION"), "type": OpenEXR.scanlineimage}
    path = str(tmp_path / "a.exr")
    OpenEXR.File(header, {"Z": plane, "A": plane, "id": plane.astype("u4")}).write(path)
    if (name, kind) in LOSSLESS + NEWER:
        expect(path, plane, 1000 if kind == "u4" else 1)
    else:
        np.testing.assert_allclose(read_depth(path).values, plane, rtol=1e-2)


def test_exr_in_tiles(tmp_path):
    import OpenEXR

    header = {"type": OpenEXR.tiledimage, "tiles": OpenEXR.TileDescription()}
    OpenEXR.File(header, {"Y": F32}).write(str(tmp_path / "a.exr"))
    expect(tmp_path / "a.exr", F32, 1)


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["Z", "Y", "A"], "Z"),
        (["depth", "Y"], "depth"),
        (["R", "G", "B", "View.Depth.V"], "View.Depth.V"),
        (["Y", "A"], "Y"),
        (["anything"], "anything"),
    ],
)
def test_exr_channel(tmp_path, names, wanted):
    import OpenEXR

    planes = {name: np.full((2, 3), 5.0 + (name == wanted), "f4") for name in names}
    OpenEXR.File({"type": OpenEXR.scanlineimage}, planes).write(str(tmp_path / "a.exr"))
    assert read_depth(tmp_path / "a.exr").values[0, 0] == 6.0


def test_our_exr_is_read_by_openexr(tmp_path):
    import OpenEXR

    values = np.tile(np.abs(np.nan_to_num(F32, posinf=3)), (4, 1))
    write_depth(tmp_path / "a.exr", DepthMap.from_array(values, unit="m"))
    channel = OpenEXR.File(str(tmp_path / "a.exr"), separate_channels=True).channels()["Z"]
    np.testing.assert_array_equal(channel.pixels, values)


@pytest.mark.parametrize("order", ["<", ">"])
def test_pfm_in_both_byte_orders(tmp_path, order):
    head = f"Pf\n14 9\n{'-' if order == '<' else ''}1.0\n".encode()
    (tmp_path / "a.pfm").write_bytes(head + F32[::-1].astype(order + "f4").tobytes())
    expect(tmp_path / "a.pfm", F32, 1)
    depth = expect(tmp_path / "a.pfm", F32, 1, kind="disparity")
    assert depth.unit == "disparity"


@pytest.mark.parametrize(
    "kind", ["<f4", ">f4", "<f8", "f2", "u1", "<u2", ">u2", "i4", "u4", "i8", "u8", "i2", "i1"]
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_of_every_real_type(tmp_path, kind, order):
    array = np.asarray(F32 if "f" in kind else U16 % 100, order=order).astype(kind)
    np.save(tmp_path / "a.npy", array)
    expect(tmp_path / "a.npy", array, custom_scale(array))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(9, 14, 1), (1, 9, 14), (1, 1, 9, 14), (1, 9, 14, 1)])
def test_npy_with_one_channel(tmp_path, shape, order):
    np.save(tmp_path / "a.npy", np.asarray(F32.reshape(shape), order=order))
    expect(tmp_path / "a.npy", F32, 1)


def test_npz_with_and_without_a_mask(tmp_path):
    mask = RNG.random(F32.shape) < 0.5
    np.savez(tmp_path / "a.npz", depth=np.abs(F32), valid=mask, other=np.arange(3))
    depth = read_depth(tmp_path / "a.npz")
    np.testing.assert_array_equal(depth.valid, mask & np.isfinite(F32))
    np.savez_compressed(tmp_path / "b.npz", F32)
    expect(tmp_path / "b.npz", F32, 1)


TIFF_OPTIONS = ({}, {"tile": (16, 16)}, {"bigtiff": True}, {"byteorder": ">"}, {"rowsperstrip": 2})
TIFF_ARRAYS = (U16, F32, F32.astype("f8"), U16.astype("u4"), U16.astype("i4"))
TIFFS = [(array, options) for array in TIFF_ARRAYS for options in TIFF_OPTIONS]


@pytest.mark.parametrize(("array", "options"), [*TIFFS, (U16, {"compression": "zlib", "predictor": True})])
def test_tiff(tmp_path, array, options):
    tifffile.imwrite(tmp_path / "a.tif", array, **options)
    depth = expect(tmp_path / "a.tif", array, custom_scale(array))
    write_depth(tmp_path / "b.tif", depth)
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "b.tif")[depth.valid], array[depth.valid])


@pytest.mark.parametrize("compression", ["tiff_lzw", "packbits", "tiff_adobe_deflate", None])
@pytest.mark.parametrize("array", [U16, F32])
def test_tiff_by_pillow(tmp_path, array, compression):
    Image.fromarray(array).save(tmp_path / "a.tif", compression=compression)
    expect(tmp_path / "a.tif", array, custom_scale(array))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["f8", "f4", "u1", "u2", "i2", "u4", "i8"])
def test_mat(tmp_path, kind, packed):
    array = (F32 if "f" in kind else U16 % 200).astype(kind)
    scipy.io.savemat(tmp_path / "a.mat", {"depth": array, "fx": 525.0, "note": "x"}, do_compression=packed)
    depth = expect(tmp_path / "a.mat", array, custom_scale(array))
    write_depth(tmp_path / "b.mat", depth)
    np.testing.assert_array_equal(
        scipy.io.loadmat(tmp_path / "b.mat")["depth"][depth.valid], array[depth.valid]
    )


def test_mat_whose_doubles_are_stored_as_bytes(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"anything": U16.astype("f8")})
    expect(tmp_path / "a.mat", U16, 1)


def test_mat_with_one_variable_that_sounds_right(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"dispLeft": np.abs(F32), "K": np.eye(3)})
    expect(tmp_path / "a.mat", np.abs(F32), 1, unit="disparity")


def test_mat_of_version_7_3(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.mat", "w") as file:
        file["depth"] = F32.T  # MATLAB's order
        file["K"] = np.eye(3)
    expect(tmp_path / "a.mat", F32, 1)


@pytest.mark.parametrize("extension", [".png", ".tif", ".npy", ".txt"])
def test_content_counts_not_the_extension(tmp_path, extension):
    write_depth(tmp_path / "a.pfm", DepthMap.from_array([[1.5, 0.0]]))
    (tmp_path / "a.pfm").rename(tmp_path / f"b{extension}")
    assert read_depth(tmp_path / f"b{extension}").values[0, 0] == 1.5


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(("extension", "compression"), [(".png", None), (".tif", None), (".tif", "tiff_lzw")])
def test_orientation_is_applied_whatever_the_container(tmp_path, orientation, extension, compression):
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"compression": compression} if compression else {}
    Image.fromarray(U16).save(tmp_path / f"a{extension}", exif=exif, **options)
    turned = upright(U16, orientation)
    expect(tmp_path / f"a{extension}", turned, 1000, unit="mm")
