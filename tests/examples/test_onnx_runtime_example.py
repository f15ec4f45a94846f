"""examples/onnx_runtime.py computes what the library computes, without torch."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import primaldepth
from primaldepth.export import export_onnx
from primaldepth.networks import DepthNet, ModelCard, NetworkSettings, save_model

pytest.importorskip("onnxscript", reason="needs the extra 'export'")
pytest.importorskip("onnxruntime", reason="needs the extra 'export'")

EXAMPLE = Path(__file__).parents[2] / "examples" / "onnx_runtime.py"
WITHOUT_TORCH = """
import runpy, sys

class Blocker:
    def find_spec(self, name, *_):
        if name.split(".")[0] in ("torch", "primaldepth"):
            raise ImportError(f"{name} must not be imported")

sys.meta_path.insert(0, Blocker())
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


NETS = {
    "one scale": NetworkSettings(layers=2, maps=3, window=5, iterations=2),
    "every scale": NetworkSettings(backbone="unet", widths=(8, 8), blocks=(1, 1), window=3, iterations=2),
    "samples": NetworkSettings(
        backbone="unet", widths=(8, 8), blocks=(1, 1), window=3, iterations=2, samples=True
    ),
}


@pytest.fixture(scope="module", params=NETS.values(), ids=NETS.keys())
def folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A network with random weights, its ONNX file, and a pair of images with holes in the depth."""
    root = tmp_path_factory.mktemp("example")
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        net = DepthNet(request.param)
        for parameter in net.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    card = ModelCard(
        name="fcn-pdn-s", scale=4, settings=net.settings, created=datetime(2024, 5, 1, tzinfo=UTC), config={}
    )
    save_model(root / "net.safetensors", net, card)
    export_onnx(net, root / "net.onnx")
    rng = np.random.default_rng(0)
    depth = rng.integers(20_000, 60_000, (13, 17), np.uint16)
    depth[4:8, 3:7] = 0  # not deeper than a network fills by itself
    Image.fromarray(depth).save(root / "depth.png")
    Image.fromarray(rng.integers(0, 256, (50, 70, 3), np.uint8)).save(root / "image.png")
    return root


def run(folder: Path, *program: str) -> None:
    files = [str(folder / name) for name in ("net.onnx", "depth.png", "image.png", "out.png")]
    command = [sys.executable, *program, *files, "--noise", "300"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.filterwarnings("ignore::primaldepth.DepthWarning")  # networks without training
def test_it_equals_the_library_and_imports_no_torch(folder: Path) -> None:
    run(folder, "-c", WITHOUT_TORCH, str(EXAMPLE))
    found = np.asarray(Image.open(folder / "out.png")).astype(np.float64)
    depth = np.asarray(Image.open(folder / "depth.png"))
    expected = primaldepth.upsample(
        depth.astype(np.float32),
        np.asarray(Image.open(folder / "image.png")),
        method=str(folder / "net.safetensors"),
        noise=300.0,
        keep_samples=0.0,
        device="cpu",
        options={"precision": "fp32"},
    )
    span = float(depth[depth > 0].max() - depth[depth > 0].min())
    wanted = np.clip(np.asarray(expected.depth), 0, 65535)
    assert np.abs(found - wanted).max() < 1e-4 * span
    assert wanted.std() > 0.01 * span


def test_the_blocker_blocks() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH.replace("runpy.run_path", "import torch #")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "torch must not be imported" in done.stderr
