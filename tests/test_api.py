"""`primaldepth.upsample` on arrays, tensors and paths."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from primaldepth import PrimalDepthError, upsample
from primaldepth.api import load_inputs
from primaldepth.compute.device import pick_device
from primaldepth.core.errors import InputError
from primaldepth.core.frame import Prediction
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.conversions import radial_from_z
from primaldepth.io import DepthMap, read_depth, write_depth
from primaldepth.io.cameras import write_cameras
from primaldepth.measurement.residual import departure
from primaldepth.methods import create
from primaldepth.pipeline.load import load
from primaldepth.pipeline.outcome import compute
from primaldepth.pipeline.outputs import OUTPUTS
from primaldepth.pipeline.request import Item, Request
from primaldepth.sensors.noise import METRIC_SENSORS, SAMPLINGS_OF, SENSORS

# random samples and a few iterations are odd; what is warned of has tests of its own in tests/pipeline
pytestmark = pytest.mark.filterwarnings("ignore::primaldepth.DepthWarning")
FAST: dict[str, Any] = {"method": "nlh-l2", "options": {"iterations": 5, "coarse_iterations": 5}}
CAMERA = Intrinsics(30.0, 30.0, 16.0, 12.0, 32, 24)
RIG = Cameras(CAMERA, CAMERA.scaled_to(8, 6), translation=(0.05, 0.0, 0.0))


def depth_array() -> np.ndarray:
    """(6, 8) in metres, whole millimetres."""
    return np.random.default_rng(0).integers(1000, 1200, (6, 8)) / 1000.0


def guide_array() -> np.ndarray:
    """(24, 32, 3) uint8."""
    return np.random.default_rng(1).integers(0, 256, (24, 32, 3), dtype=np.uint8)


def reference() -> np.ndarray:
    return np.asarray(upsample(depth_array(), guide_array(), **FAST).depth)


DEPTHS: dict[str, Callable[[np.ndarray], Any]] = {
    "float64": lambda d: d,
    "float32": lambda d: d.astype(np.float32),
    "big-endian": lambda d: d.astype(">f4"),
    "long double": lambda d: d.astype(np.longdouble),
    "Fortran order": np.asfortranarray,
    "negative strides": lambda d: d[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda d: np.frombuffer(d.tobytes()).reshape(d.shape),
    "list": lambda d: d.tolist(),
    "tensor": torch.from_numpy,
    "float32 tensor": lambda d: torch.from_numpy(d).float(),
    "tensor with gradient": lambda d: torch.from_numpy(d).requires_grad_(),
    "transposed tensor": lambda d: torch.from_numpy(d.T.copy()).T,
    "(1, h, w)": lambda d: d[None],
    "(h, w, 1)": lambda d: d[..., None],
    "tensor (1, h, w)": lambda d: torch.from_numpy(d)[None],
    "masked (h, w, 1)": lambda d: np.ma.masked_array(d[..., None], mask=False),
}


def test_what_is_masked_is_a_hole() -> None:
    depth, masked = depth_array(), np.ma.masked_array(depth_array() + 0.0, mask=False)
    depth[:, :2], masked[:, :2] = 0.0, 30.0
    masked[:, :2] = np.ma.masked
    found, expected = (upsample(each, guide_array(), **FAST) for each in (masked, depth))
    assert torch.equal(found.depth, expected.depth)
    assert torch.equal(found.measured, expected.measured)
    with pytest.raises(InputError, match="guide: a masked array"):
        upsample(depth, np.ma.masked_less(guide_array(), 9), **FAST)


@pytest.mark.parametrize("make", DEPTHS.values(), ids=DEPTHS)
def test_every_form_of_depth_gives_the_same(make: Callable[[np.ndarray], Any]) -> None:
    result = upsample(make(depth_array()), guide_array(), **FAST)
    assert result.depth.shape == result.valid.shape == result.measured.shape == (24, 32)
    assert (result.depth.dtype, result.valid.dtype, result.measured.dtype) == (
        torch.float32,
        torch.bool,
        torch.bool,
    )
    assert not result.depth.requires_grad
    np.testing.assert_allclose(np.asarray(result.depth), reference(), rtol=1e-5)


GUIDES: dict[str, Callable[[np.ndarray], Any]] = {
    "uint8": lambda g: g,
    "uint16": lambda g: g.astype(np.uint16) * 257,
    "big-endian uint16": lambda g: (g.astype(np.uint16) * 257).astype(">u2"),
    "float32": lambda g: g.astype(np.float32) / 255,
    "float64": lambda g: g / 255,
    "alpha": lambda g: np.concatenate([g, g[..., :1]], axis=2),
    "float alpha": lambda g: np.concatenate([g, g[..., :1]], axis=2) / 255,
    "tensor": torch.from_numpy,
    "float tensor": lambda g: torch.from_numpy(g) / 255,
    "uint8 (B, C, H, W)": lambda g: torch.from_numpy(g).permute(2, 0, 1)[None],
    "float (B, C, H, W)": lambda g: (g / 255).transpose(2, 0, 1)[None],
    "Pillow": Image.fromarray,
}


@pytest.mark.parametrize("make", GUIDES.values(), ids=GUIDES)
def test_every_form_of_guide_gives_the_same(make: Callable[[np.ndarray], Any]) -> None:
    result = upsample(depth_array(), make(guide_array()), **FAST)
    np.testing.assert_allclose(np.asarray(result.depth), reference(), rtol=1e-5)


@pytest.mark.parametrize("grey", [(24, 32), (24, 32, 1), (1, 1, 24, 32)])
def test_grey_guides(grey: tuple[int, ...]) -> None:
    guide = guide_array()[..., 0].reshape(grey)
    result = upsample(depth_array(), guide, **FAST)
    same = upsample(depth_array(), guide_array()[..., 0], **FAST)
    assert torch.equal(result.depth, same.depth)


@pytest.mark.parametrize("as_tensor", [True, False])
def test_batches_keep_their_axes_and_equal_single_calls(as_tensor: bool) -> None:
    depth = np.stack([depth_array(), 2 * depth_array()[::-1]])[:, None]
    guide = np.stack([guide_array(), guide_array()[::-1]]).transpose(0, 3, 1, 2) / 255
    arguments = [torch.from_numpy(np.ascontiguousarray(a)) if as_tensor else a for a in (depth, guide)]
    result = upsample(*arguments, **FAST)
    assert result.depth.shape == result.valid.shape == result.measured.shape == (2, 1, 24, 32)
    for index in range(2):
        single = upsample(depth[index, 0], guide[index].transpose(1, 2, 0), **FAST)
        np.testing.assert_allclose(result.depth[index, 0], single.depth, rtol=1e-5)


def test_one_image_with_batch_axes_keeps_them() -> None:
    assert upsample(depth_array()[None, None], guide_array(), method="nearest").depth.shape == (1, 1, 24, 32)


@pytest.mark.parametrize("scale", [1.0, 1000.0, 0.01])
def test_arrays_keep_their_unit(scale: float) -> None:
    result = upsample(scale * depth_array(), guide_array(), **FAST)
    np.testing.assert_allclose(np.asarray(result.depth), scale * reference(), rtol=1e-4)


def test_integer_millimetres_stay_millimetres() -> None:
    depth = np.rint(1000 * depth_array()).astype(np.uint16)
    result = upsample(depth, guide_array(), unit="mm", method="nearest")
    np.testing.assert_array_equal(np.asarray(result.depth)[::4, ::4], depth)


def test_arguments_are_untouched() -> None:
    depth, guide = depth_array().astype(np.float32), guide_array().astype(np.float32) / 255
    depth[0, 0] = np.nan
    confidence, noise = np.full((6, 8), 0.5, np.float32), np.full((6, 8), 0.01, np.float32)
    arguments = [depth, guide, confidence, noise]
    for make in (np.copy, lambda a: torch.from_numpy(a.copy())):
        given = [make(value) for value in arguments]
        options = {"iterations": 3, "precision": "fp32"}
        upsample(given[0], given[1], confidence=given[2], noise=given[3], method="pdn-any", options=options)
        for before, after in zip(arguments, given, strict=True):
            np.testing.assert_array_equal(before, np.asarray(after))
        assert options == {"iterations": 3, "precision": "fp32"}


@pytest.mark.parametrize("hole", [0.0, np.nan, np.inf, -np.inf, -1.0])
def test_holes_are_filled_and_marked(hole: float) -> None:
    depth = np.full((6, 8), 1.5)
    depth[2:4, 3:5] = hole
    result = upsample(depth, guide_array(), **FAST)
    wanted = np.ones((24, 32), bool)
    wanted[8:16, 12:20] = False
    np.testing.assert_array_equal(np.asarray(result.measured), wanted)
    assert result.valid.all()
    np.testing.assert_allclose(np.asarray(result.depth), 1.5, rtol=1e-4)


def spiked() -> tuple[np.ndarray, np.ndarray]:
    depth = np.full((32, 40), 1.5)
    depth[2, 3] = 8.0
    return depth, np.zeros((64, 80))


@pytest.mark.parametrize(("unit", "noise"), [(None, "auto"), ("m", "lidar"), ("mm", "kinect-v1")])
def test_a_spike_is_a_hole_unless_it_is_kept(unit: Any, noise: str) -> None:
    depth, guide = spiked()
    depth *= 1000.0 if unit == "mm" else 1.0
    dropped, kept = (
        upsample(depth, guide, unit=unit, noise=noise, spikes=spikes, **FAST) for spikes in ("drop", "keep")
    )
    assert not dropped.measured[4:6, 6:8].any()
    assert float(dropped.depth.max()) == pytest.approx(depth[0, 0], rel=1e-4)
    assert kept.measured.all()
    assert float(kept.depth.max()) > 2.0 * depth[0, 0]


def test_the_noise_around_a_spike_is_that_without_it() -> None:
    inputs = load_inputs(*spiked(), noise="lidar")
    assert inputs.spikes == 1
    assert inputs.frame.sigma is not None
    np.testing.assert_allclose(inputs.frame.sigma[inputs.frame.valid], 0.015, rtol=1e-5)


def test_samples_of_no_confidence_prove_nothing() -> None:
    depth, guide = spiked()
    trust = np.zeros(depth.shape)
    trust[2, 3] = 1.0
    assert load_inputs(depth, guide, confidence=trust).spikes == 0


def test_samples_of_no_confidence_are_not_what_a_result_departs_from() -> None:
    depth, guide = np.full((8, 8), 2.0), np.full((32, 32), 0.5)
    depth[:4] = 5.0
    trust = np.ones_like(depth)
    trust[:4] = 0.0
    inputs = load_inputs(depth, guide, confidence=trust, noise=0.01)
    everywhere = torch.ones(1, 1, 32, 32, dtype=torch.bool)
    flat = Prediction(torch.full((1, 1, 32, 32), 2.0), everywhere, everywhere)
    assert departure(flat.depth, inputs.frame).rms == pytest.approx(0.0, abs=1e-6)


def test_a_sensor_that_takes_a_part_of_the_depth_needs_no_unit() -> None:
    sigma = load_inputs(1000 * depth_array(), guide_array(), noise="lidar").frame.sigma
    assert sigma is not None
    assert 9.0 < float(sigma.mean()) < 13.0


NOISES = (
    0.02,
    "0.02",
    np.float32(0.02),
    np.array(0.02),
    np.full((6, 8), 0.02),
    torch.full((1, 1, 6, 8), 0.02),
)


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: f"{type(noise).__name__}{np.shape(noise)}")
def test_noise_as_a_number_or_a_map(noise: Any) -> None:
    sigma = load_inputs(depth_array(), guide_array(), noise=noise).frame.sigma
    assert sigma is not None
    assert sigma.shape == (1, 1, 6, 8)
    np.testing.assert_allclose(sigma, 0.02, rtol=1e-6)


def test_noise_auto_and_of_a_sensor() -> None:
    auto = load_inputs(depth_array(), guide_array()).frame.sigma
    assert auto is not None
    assert 0.03 < float(auto.mean()) < 0.1  # uniform in [1, 1.2) has a standard deviation of 0.058
    sensor = load_inputs(np.full((6, 8), 100.0), guide_array(), noise="middlebury").frame.sigma
    np.testing.assert_allclose(sensor, 6.51, rtol=1e-5)


def test_a_metric_sensor_reads_arrays_in_their_unit() -> None:
    metres = load_inputs(depth_array(), guide_array(), noise="structured-light").frame.sigma
    found = load_inputs(1000 * depth_array(), guide_array(), unit="mm", noise="structured-light").frame.sigma
    assert metres is not None
    np.testing.assert_allclose(found, 1000 * metres, rtol=1e-4)


@pytest.mark.parametrize("noise", [20, "20", np.full((6, 8), 20.0)])
def test_noise_beside_a_file_is_in_the_file_s_unit(pair: tuple[Path, Path], noise: Any) -> None:
    np.testing.assert_allclose(load_inputs(*pair, noise=noise).frame.sigma, 0.02, rtol=1e-6)


def test_a_map_of_noise_serves_a_whole_batch() -> None:
    depth = np.stack([depth_array()] * 2)[:, None]
    guide = np.stack([guide_array()] * 2).transpose(0, 3, 1, 2)
    sigma = load_inputs(depth, guide, noise=np.full((6, 8), 0.1)).frame.sigma
    assert sigma is not None
    assert sigma.shape == (2, 1, 6, 8)


@pytest.mark.parametrize("dtype", [bool, np.float32, np.int64])
def test_confidence_of_one_is_no_confidence(dtype: type) -> None:
    result = upsample(depth_array(), guide_array(), confidence=np.ones((6, 8), dtype), **FAST)
    np.testing.assert_allclose(np.asarray(result.depth), reference(), rtol=1e-6)


@pytest.mark.parametrize("tensor", [False, True])
@pytest.mark.parametrize(("dtype", "top"), [(np.uint8, 2), (np.uint8, 255), (np.uint16, 65535)])
def test_integer_confidence_is_read_as_from_a_file(
    tmp_path: Path, dtype: type, top: int, tensor: bool
) -> None:
    levels = np.resize(np.array([0, top // 2, top], dtype), (6, 8))
    Image.fromarray(levels).save(tmp_path / "confidence.png")
    given = torch.from_numpy(levels) if tensor else levels
    found, wanted = (
        load_inputs(depth_array(), guide_array(), confidence=each).frame.confidence
        for each in (given, tmp_path / "confidence.png")
    )
    assert found is not None
    assert float(found.max()) == 1.0
    np.testing.assert_array_equal(found, wanted)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A depth file in millimetres and a guide file."""
    write_depth(tmp_path / "depth.png", DepthMap.from_array(depth_array(), unit="mm"))
    Image.fromarray(guide_array()).save(tmp_path / "guide.png")
    return tmp_path / "depth.png", tmp_path / "guide.png"


@pytest.mark.parametrize("kind", [Path, str])
def test_files_give_metres(pair: tuple[Path, Path], kind: type) -> None:
    result = upsample(kind(pair[0]), kind(pair[1]), **FAST)
    np.testing.assert_allclose(np.asarray(result.depth), reference(), rtol=1e-5)


def test_files_and_arrays_mix(pair: tuple[Path, Path]) -> None:
    for depth, guide in ((pair[0], guide_array()), (depth_array(), pair[1])):
        np.testing.assert_allclose(np.asarray(upsample(depth, guide, **FAST).depth), reference(), rtol=1e-5)


def test_a_disparity_file_needs_no_kind(pair: tuple[Path, Path], tmp_path: Path) -> None:
    Image.fromarray(np.full((6, 8), 90, np.uint8)).save(tmp_path / "disparity.png")
    for arguments in ({}, {"unit": "disparity"}, {"kind": "disparity"}):
        result = upsample(tmp_path / "disparity.png", pair[1], method="nearest", **arguments)
        assert float(result.depth.mean()) == 90.0


@pytest.mark.parametrize("given", ["file", Cameras(CAMERA), CAMERA], ids=["file", "cameras", "intrinsics"])
def test_radial_depth_becomes_z(tmp_path: Path, given: Any) -> None:
    z = np.full((6, 8), 2.0)
    radial = radial_from_z(z, z > 0, CAMERA.scaled_to(8, 6))
    write_cameras(tmp_path / "cameras.json", Cameras(CAMERA))
    cameras = tmp_path / "cameras.json" if given == "file" else given
    result = upsample(radial, guide_array(), kind="radial", cameras=cameras, method="bilinear")
    np.testing.assert_allclose(np.asarray(result.depth), 2.0, rtol=1e-5)


def test_result_is_on_the_cpu_for_arrays_and_beside_a_tensor() -> None:
    for depth in (depth_array(), torch.from_numpy(depth_array())):
        assert upsample(depth, guide_array(), method="nearest").depth.device.type == "cpu"


def test_a_device_of_torch() -> None:
    given = upsample(depth_array(), guide_array(), device=torch.device("cpu"), **FAST)
    named = upsample(depth_array(), guide_array(), device="cpu", **FAST)
    np.testing.assert_array_equal(given.depth, named.depth)


def test_a_gpu_that_is_not_the_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    for index in (None, 0):
        assert pick_device(torch.device("cuda", index)) == torch.device("cuda", index)
    with pytest.raises(InputError, match=r"device: cuda:1 is not .* call torch.cuda.set_device\(1\)"):
        pick_device(torch.device("cuda:1"))


@pytest.mark.gpu
def test_result_of_a_gpu_run_converts_with_numpy() -> None:
    options = {**FAST, "device": "cuda"}
    on_gpu = upsample(depth_array(), guide_array(), **options)
    np.testing.assert_allclose(np.asarray(on_gpu.depth), reference(), rtol=1e-3)
    beside = upsample(torch.from_numpy(depth_array()).cuda(), guide_array(), **options)
    assert beside.depth.is_cuda


def test_progress_is_called() -> None:
    seen: list[int] = []
    upsample(depth_array(), guide_array(), progress=lambda state: seen.append(state.iteration), **FAST)
    assert seen[-1] == 5


def test_prediction_is_written_as_a_depth_map(pair: tuple[Path, Path], tmp_path: Path) -> None:
    request = Request("bilinear")
    outcome = compute(load(Item(*pair), request), request, create("bilinear"))
    OUTPUTS["out"].write(tmp_path / "out.png", outcome)
    assert read_depth(tmp_path / "out.png").unit == "mm"


def call(*arguments: Any, **options: Any) -> Callable[[], Any]:
    return lambda: upsample(*arguments, **{"method": "bilinear", **options})


D, G = depth_array(), guide_array()
RIG = Cameras(Intrinsics(30.0, 30.0, 16.0, 12.0, 32, 24), Intrinsics(8.0, 8.0, 4.0, 3.0, 8, 6))
ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "depth (h, w, 2)": (call(np.stack([D, D], axis=2), G), r"depth: .*\(6, 8, 2\)"),
    "depth (2, h, w)": (call(np.stack([D, D]), G), r"depth: .*\(2, 6, 8\)"),
    "depth (1, n, 1)": (call(D[:1, :, None], G), r"depth: .*\(1, 8, 1\)"),
    "depth (B, 2, h, w)": (call(np.stack([D, D])[None], G), "depth: shape"),
    "depth empty": (call(D[:0], G), r"depth: .*\(0, 8\).* with at least one pixel"),
    "depth all invalid": (call(0 * D, G), "no valid pixel"),
    "depth of text": (call(np.full((6, 8), "x"), G), "depth: array of"),
    "depth complex": (call(D + 1j, G), "depth: array of complex128"),
    "depth complex tensor": (call(torch.from_numpy(D + 1j), G), "depth: torch.complex128"),
    "depth missing": (call("nowhere.png", G), "nowhere.png: no such file"),
    "guide (C, H, W)": (call(D, G.transpose(2, 0, 1)), r"guide: shape \(3, 24, 32\), expected \(H, W\)"),
    "guide (H, W, 2)": (call(D, G[..., :2]), "guide: shape"),
    "guide smaller": (call(D, G[:4, :4]), "4x4 is smaller than the depth's 8x6"),
    "guide above 1": (call(D, G.astype(np.float32)), r"expected \[0, 1\], uint8 or uint16"),
    "guide below 0": (call(D, G / 255 - 0.5), r"expected \[0, 1\]"),
    "guide NaN": (call(D, np.full((24, 32), np.nan)), "NaN or infinite"),
    "guide infinite": (call(D, np.full((24, 32), np.inf)), "NaN or infinite"),
    "guide empty": (call(D, G[:0]), r"guide: shape \(0, 32, 3\), expected \(H, W\).* at least one pixel"),
    "guide of one axis": (call(D, G[0, :, 0]), r"guide: shape \(32,\), expected \(H, W\)"),
    "guide of another batch": (call(np.stack([D, D])[:, None], G), r"expected \(2, 1 or 3, H, W\)"),
    "confidence shape": (call(D, G, confidence=np.ones((5, 8))), "confidence: shape"),
    "confidence range": (call(D, G, confidence=2 * np.ones((6, 8))), "confidence: outside"),
    "confidence 0": (call(D, G, confidence=np.zeros((6, 8))), "confidence: 0 at every sample"),
    "confidence empty": (call(D, G, confidence=np.ones((0, 8), np.uint8)), r"confidence: .*\(0, 8\)"),
    "confidence NaN": (call(D, G, confidence=np.full((6, 8), np.nan)), "confidence: outside"),
    "noise name": (call(D, G, noise="kinekt"), "neither a number nor one of auto"),
    "noise None": (call(D, G, noise=None), "neither a number nor one of auto"),
    "noise negative": (call(D, G, noise=-1), "-1.0 is not a standard deviation"),
    "noise NaN": (call(D, G, noise=float("nan")), "not a standard deviation"),
    "noise huge": (call(D, G, noise=10**400), "not a standard deviation"),
    "noise map shape": (call(D, G, noise=np.ones((8, 6))), "noise: shape"),
    "metric sensor of disparities": (call(D, G, unit="disparity", noise="lidar"), "'lidar' describes metres"),
    "sensor of disparities in mm": (call(D, G, unit="mm", noise="middlebury"), "describes disparities"),
    "camera of another shape": (
        call(D, G[:18], cameras=Cameras(CAMERA)),
        "guide's camera has 32x24 pixels, but the guide has 32x18",
    ),
    "cameras as a matrix": (call(D, G, cameras=np.eye(3)), "cameras: found a ndarray, expected Cameras, the"),
    "cameras as keys": (call(D, G, cameras={"guide": {}}), "cameras: found a dict"),
    "confidence turned, two cameras": (
        call(D, G, confidence=np.ones((8, 6)), cameras=RIG),
        r"confidence: shape \(1, 1, 8, 6\), but the depth has",
    ),
    "sensor for millimetres": (call(1000 * D, G, noise="kinect-v2"), "say its unit, e.g. unit='mm'"),
    "two cameras": (call(1000 * D, G, cameras=RIG), "cameras: a depth camera of its own takes the depth"),
    "sensor for z": (call(1000 * D, G, noise="tof", kind="z"), "say its unit, e.g. unit='mm'"),
    "noise map negative": (call(D, G, noise=-np.ones((6, 8))), "sigma: negative"),
    "unit": (call(D, G, unit="cm"), "unit 'cm' is not known"),
    "kind": (call(D, G, kind="ray"), "kind 'ray' is not known"),
    "unit against kind": (call(D, G, unit="mm", kind="disparity"), "contradicts"),
    "radial without cameras": (call(D, G, kind="radial"), "cameras"),
    "device": (call(D, G, device="tpu"), "not one of auto, cpu, cuda"),
    "device of torch": (call(D, G, device=torch.device("meta")), "'meta' is not one of auto, cpu, cuda"),
    "method": (call(D, G, method="bilinera"), "did you mean 'bilinear'"),
    "options of none": (call(D, G, options={"lam": 1}), "no options"),
    "unknown option": (call(D, G, method="nlh-l2", options={"lamb": 1}), "did you mean 'lam'"),
    "bad option": (call(D, G, method="nlh-l2", options={"lam": "much"}), "'lam'"),
}


@pytest.mark.parametrize(("make", "text"), ERRORS.values(), ids=ERRORS)
def test_errors_say_which_input(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        make()


def test_one_class_catches_every_error() -> None:
    assert issubclass(InputError, PrimalDepthError)
    with pytest.raises(PrimalDepthError):
        upsample(D, G, method="none")


def test_overshoot_below_zero_is_not_valid():
    depth = np.full((8, 8), 10.0)
    depth[:, 4:] = 0.5
    result = upsample(depth, np.zeros((64, 64)), method="bicubic", noise=0.01)
    values, valid = np.asarray(result.depth), np.asarray(result.valid)
    assert values.min() < 0
    assert np.array_equal(valid, values > 0)


def test_a_sensor_of_disparities_refuses_metric_files(tmp_path):
    path = tmp_path / "depth.npy"
    np.save(path, np.full((4, 4), 1.5, np.float32))
    with pytest.raises(PrimalDepthError, match="describes disparities"):
        upsample(path, np.zeros((8, 8)), method="bilinear", noise="middlebury")


def test_one_noise_map_serves_a_batch():
    depth, guide = torch.rand(2, 1, 4, 4) + 1, torch.rand(2, 1, 8, 8)
    result = upsample(depth, guide, method="bilinear", noise=torch.ones(1, 1, 4, 4))
    assert result.depth.shape == (2, 1, 8, 8)


def test_a_metric_sensor_refuses_files_of_disparities(tmp_path):
    path = tmp_path / "depth.npy"
    np.save(path, np.full((4, 4), 1.5, np.float32))
    with pytest.raises(PrimalDepthError, match="'lidar' describes metres"):
        upsample(path, np.zeros((8, 8)), unit="disparity", noise="lidar", method="bilinear")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, None),
        ({"noise": 0.01}, None),
        ({"noise": "lidar"}, "point"),
        ({"noise": "kinect-v2"}, "average"),
        ({"noise": "kinect-v2", "sampling": "point"}, "point"),
    ],
)
def test_the_sensor_says_how_it_samples_unless_one_says_it(asked, expected):
    depth = 1.0 + torch.rand((6, 8), generator=torch.Generator().manual_seed(0))
    assert load_inputs(depth, torch.rand(12, 16), unit="m", **asked).frame.sampling == expected


def test_an_unknown_way_of_sampling():
    with pytest.raises(InputError, match="sampling: 'mean' is not average or point"):
        load_inputs(torch.ones(6, 8), torch.rand(12, 16), sampling="mean")


def test_every_sensor_that_can_be_named_says_how_it_samples():
    assert set(SAMPLINGS_OF) == set(SENSORS | METRIC_SENSORS)


@pytest.mark.parametrize("number", [1e15, 1e20, 9.96921e36, float(np.finfo(np.float32).max), 1e300])
def test_numbers_that_stand_for_no_data_are_holes(tmp_path, number):
    """In arrays and in files: one of them would spoil the normalisation and the estimate of the noise."""
    depth = np.full((24, 32), 2.0) + 0.001 * np.random.default_rng(0).standard_normal((24, 32))
    missing, depth[5:11, 8:14] = depth.copy(), number
    missing[5:11, 8:14] = 0.0
    np.save(tmp_path / "depth.npy", depth)
    guide = np.full((48, 64, 3), 0.5)
    expected = upsample(missing, guide, method="bicubic", unit="m")
    for given in (depth, tmp_path / "depth.npy"):
        found = upsample(given, guide, method="bicubic", unit="m")
        np.testing.assert_allclose(np.asarray(found.depth), np.asarray(expected.depth), rtol=1e-6)
        assert bool((found.measured == expected.measured).all())


def test_a_depth_map_larger_than_the_guide_is_refused_before_any_work(monkeypatch):
    monkeypatch.setattr(
        "primaldepth.pipeline.load.find_spikes", lambda *given: pytest.fail("the samples were looked at")
    )
    with pytest.raises(InputError, match="guide: 8x6 is smaller than the depth's 16x12"):
        upsample(np.ones((12, 16)), np.ones((6, 8, 3)), method="nearest")


@pytest.mark.parametrize("mask", [np.ones((8, 8), bool), torch.ones(8, 8, dtype=torch.bool)])
def test_a_mask_is_no_depth(mask: np.ndarray | torch.Tensor) -> None:
    with pytest.raises(InputError, match="an array of bool, expected numbers"):
        upsample(mask, np.zeros((16, 16)), method="bilinear")
