"""`primaldepth doctor`: what this machine has, and what is missing for what."""

import os
import platform
import sys

import torch
import typer

from primaldepth.cli.output import note, show
from primaldepth.networks.precision import bfloat16_instructions
from primaldepth.operators.pairwise import available_backends
from primaldepth.scenes.mitsuba_variants import LLVM_HINT, find_llvm
from primaldepth.version import __version__, installed_version

_OPTIONAL = {
    "numba": "the fast updates of variational models on the CPU (pip install 'primaldepth[fast]')",
    "triton": "the fast pairwise iterations on a GPU (comes with torch for CUDA)",
    "mitsuba": "rendering scenes (pip install 'primaldepth[render]')",
    "lightning-fabric": "training (pip install 'primaldepth[train]')",
    "ray": "rendering and batches on several machines (pip install 'primaldepth[cluster]')",
    "gradio": "the web page of `primaldepth serve` (pip install 'primaldepth[app]')",
    "h5py": "reading MATLAB v7.3 files (pip install 'primaldepth[mat]')",
    "matplotlib": "`primaldepth report` (pip install 'primaldepth[report]')",
    "onnx": "`primaldepth export` (pip install 'primaldepth[export]')",
    "rosbags": "reading ROS bags (pip install 'primaldepth[bags]')",
    "av": "reading videos (pip install 'primaldepth[video]')",
    "PyYAML": "reading camera files of ROS (pip install 'primaldepth[ros]')",
}


def _cuda() -> str:
    if not torch.cuda.is_available():
        return "none (the CPU is used)"
    properties = torch.cuda.get_device_properties(0)
    return f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB"


def _precision() -> str:
    found = bfloat16_instructions()
    return (
        f"bf16 on the CPU, which has {', '.join(found)}"
        if found
        else "fp32, the CPU has no bf16 instructions"
    )


def doctor() -> None:
    """Say what is installed and what each missing piece would be for."""
    lines = {
        "primaldepth": __version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "system": platform.platform(),
        "torch": f"{torch.__version__}, {torch.get_num_threads()} threads",
        "CUDA device": _cuda(),
        "precision auto": _precision(),
        "pairwise backends": ", ".join(available_backends()),
    }
    llvm = find_llvm()
    lines["LLVM for rendering"] = str(llvm) if llvm else f"none; {LLVM_HINT}"
    lines |= {name: installed_version(name, "missing") for name in ("numpy", "pillow", "OpenEXR", "tifffile")}
    lines["data"] = os.environ.get("PRIMALDEPTH_DATA", "PRIMALDEPTH_DATA is not set; use --data")
    for name, value in lines.items():
        show(f"{name:<18} {value}")
    for name, use in _OPTIONAL.items():
        state = installed_version(name, "missing")
        show(f"{name:<18} {f'missing: needed for {use}' if state == 'missing' else state}")
    broken = [
        name
        for name in ("numpy", "pillow", "OpenEXR", "tifffile")
        if installed_version(name, "missing") == "missing"
    ]
    if broken:
        note("")
        note(f"not usable: {', '.join(broken)} missing; reinstall primaldepth")
        raise typer.Exit(1)
