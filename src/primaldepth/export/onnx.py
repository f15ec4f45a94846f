"""ONNX: one file that serves every image size, and the check that it computes what torch computes.

Inputs `depth`, `sigma`, `trust`, `guide` and output `result`, all (1, 1, height, width) float32 in
the network's units: depth centred and scaled as by `Scaling`. A network for every scale reads a guide of
three channels and `ratio`, (1, 1, 1, 1), log2 of the guide's size over that of the samples, and also
gives `uncertainty`. A network with the sample term also reads the sampling operator as two matrices, `rows`
(samples_height, height) and `columns` (samples_width, width), the `samples` themselves, `sample_sigma` and
`sample_trust`, all (1, 1, samples_height, samples_width). (ONNX gives every value one name, so outputs cannot
be called as inputs are.)
"""

import copy
import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from primaldepth.core.errors import FileFormatError, InputError, MissingDependencyError, PrimalDepthError
from primaldepth.core.seeds import generator
from primaldepth.export.traceable import TraceableNet
from primaldepth.io.atomic import write_bytes
from primaldepth.networks import DepthNet
from primaldepth.networks.inputs import SAMPLE_NAMES, NetworkInput, SensorSamples
from primaldepth.operators.pairwise import use_backend
from primaldepth.operators.sampling import Resample
from primaldepth.version import __version__

RATIO, MATRICES = "ratio", ("rows", "columns")
RESULT, UNCERTAINTY = "result", "uncertainty"
OLDEST_OPSET = 18
_DEPTH_RANGE = 2.0  # of the random depth, which is uniform in [-1, 1]


@dataclass(frozen=True, slots=True)
class Parity:
    """Largest difference between onnxruntime and torch at one (height, width), over the depth range."""

    size: tuple[int, int]
    error: float


def export_onnx(net: DepthNet, path: str | os.PathLike[str], opset: int = OLDEST_OPSET) -> None:
    """Write `net` as one self-contained ONNX file with free height and width; batch and channels are 1.

    The coefficients of the primal-dual part become numbers of the graph. Networks on any device are
    exported from a float32 copy on the CPU.

    Args:
        net: the network, of any device.
        path: of the file to write.
        opset: version of the ONNX operators.

    Raises:
        MissingDependencyError: if the extra `export` is not installed.
    """
    _require("onnx", "onnxscript")
    import onnx

    if not OLDEST_OPSET <= opset <= onnx.defs.onnx_opset_version():
        newest = onnx.defs.onnx_opset_version()
        raise InputError(f"opset {opset} is not supported; use {OLDEST_OPSET} to {newest}")
    traceable = TraceableNet(copy.deepcopy(net).cpu().float()).eval()
    given = named_inputs(net, random_input(net, (40, 56)))
    with torch.no_grad(), _quiet():
        program = torch.onnx.export(
            traceable,
            tuple(given.values()),
            input_names=tuple(given),
            output_names=(RESULT, UNCERTAINTY)[: 2 if net.is_for_any_scale else 1],
            dynamic_shapes=_free_sizes(given),
            opset_version=opset,
            dynamo=True,
            verbose=False,
        )
    if program is None:
        raise PrimalDepthError(path, "torch returned no ONNX program")
    model = program.model_proto
    _describe(model, net)
    onnx.checker.check_model(model)
    write_bytes(path, model.SerializeToString(deterministic=True))


def check_parity(
    net: DepthNet, path: str | os.PathLike[str], sizes: Sequence[tuple[int, int]], tolerance: float = 1e-4
) -> tuple[Parity, ...]:
    """Compare the file with `net` on random input of each (height, width); more than `tolerance` is an error.

    Args:
        net: the network that was exported.
        path: of the ONNX file.
        sizes: (height, width) of each random input.
        tolerance: allowed difference, as a part of the range of the depth.

    Returns:
        The difference found at each size.

    Raises:
        PrimalDepthError: if a difference is larger than `tolerance`.
    """
    session = _session(Path(path), tuple(named_inputs(net, random_input(net, (8, 8)))))
    found = tuple(Parity(size, _difference(net, session, size)) for size in sizes)
    for parity in found:
        if not parity.error <= tolerance:
            height, width = parity.size
            raise PrimalDepthError(
                path,
                f"differs from the network by {parity.error:.2g} of the depth range at "
                f"{width}x{height}, allowed is {tolerance:.2g}",
                "export it again from these weights",
            )
    return found


def named_inputs(net: DepthNet, maps: NetworkInput) -> dict[str, Tensor]:
    """Return what the exported network reads, by name and in order.

    Example:
        >>> from primaldepth.export.onnx import named_inputs, random_input
        >>> from primaldepth.networks import DepthNet, NetworkSettings
        >>> net = DepthNet(NetworkSettings(layers=2, maps=4, iterations=0))
        >>> list(named_inputs(net, random_input(net, (16, 24))))
        ['depth', 'sigma', 'trust', 'guide']
    """
    read = maps if net.is_for_any_scale else maps._replace(ratio=None)
    found = read._replace(samples=None).named()
    if maps.samples is not None and net.settings.samples and isinstance(maps.samples.A, Resample):
        A = maps.samples.A
        found |= dict(zip(MATRICES, (A.rows.float(), A.columns.float()), strict=True)) | read.named()
    return found


def random_input(net: DepthNet, size: tuple[int, int]) -> NetworkInput:
    """Return random depth, sigma, trust, guide and samples of x4, with holes, for an image of that size."""
    random = generator("onnx", 0, *size)
    depth, sigma, trust = torch.rand((3, 1, 1, *size), generator=random)
    guide = torch.rand((1, net.settings.colours, *size), generator=random)
    A = Resample(size, (max(1, size[0] // 4), max(1, size[1] // 4)))
    d, noise, seen = torch.rand((3, 1, *A.out_shape), generator=random)
    samples = SensorSamples(A, 2.0 * d - 1.0, 0.1 * noise, (seen > 0.2).float())
    ratio = torch.full((1, 1, 1, 1), 2.0)
    return NetworkInput(2.0 * depth - 1.0, 0.1 * sigma, (trust > 0.2).float(), guide, ratio, samples)


def _free_sizes(given: dict[str, Tensor]) -> tuple[Any, ...]:
    """Return which sizes of the inputs are free, in the form `TraceableNet.forward` takes them."""
    names = ("height", "width", "samples_height", "samples_width")
    height, width, h, w = (torch.export.Dim(name, min=2) for name in names)
    image, sample = {2: height, 3: width}, {2: h, 3: w}
    free = {"rows": {0: h, 1: height}, "columns": {0: w, 1: width}, RATIO: {}}
    found = [free.get(name, sample if name in SAMPLE_NAMES else image) for name in given]
    return (tuple(found),)


def _difference(net: DepthNet, session: Any, size: tuple[int, int]) -> float:
    maps = random_input(net, size)
    feed = {name: image.numpy() for name, image in named_inputs(net, maps).items()}
    ours = copy.deepcopy(net).cpu().float().eval()
    with torch.no_grad(), use_backend("torch"):
        estimate = ours(*maps)
    expected = [estimate.depth, *([] if estimate.sigma is None else [estimate.sigma])]
    found = [torch.from_numpy(each) for each in session.run(None, feed)]
    return max(float((a - b).abs().max()) for a, b in zip(found, expected, strict=True)) / _DEPTH_RANGE


def _session(path: Path, expected: tuple[str, ...]) -> Any:
    _require("onnxruntime")
    import onnxruntime

    if not path.is_file():
        raise InputError(path, "no such file", "write it with export_onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors share no base class
        raise FileFormatError(path, "onnxruntime cannot read it", "export the network again") from error
    names = tuple(value.name for value in session.get_inputs())
    if names != expected:
        raise FileFormatError(path, f"inputs {', '.join(names)}, expected {', '.join(expected)}")
    return session


def _describe(model: Any, net: DepthNet) -> None:
    """Write producer and settings into the file, and remove paths of this machine that the exporter noted."""
    for part in (*model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output):
        part.doc_string = ""
        del part.metadata_props[:]
    del model.graph.metadata_props[:]
    del model.metadata_props[:]
    model.producer_name, model.producer_version = "primaldepth", __version__
    model.metadata_props.add(key="settings", value=net.settings.model_dump_json())


def _require(*packages: str) -> None:
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise MissingDependencyError(
            f"ONNX export needs {', '.join(missing)}; install with pip install 'primaldepth[export]'"
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide warnings and log lines of torch's exporter, which do not concern the user."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
