"""Time and peak memory of the solver, model by model: the torch definition beside the default backend.

    python -m benchmarks.speed.solver --out benchmarks/results/solver-cpu.json

Each measurement runs in a process of its own, so that its peak memory is its own.
"""

import argparse
import datetime as dt
import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

import torch

from primaldepth.operators.pairwise import use_backend
from primaldepth.operators.sampling import Resample
from primaldepth.variational import MODELS, DataTerm, ModelParameters, build_energy, preconditioned
from primaldepth.variational.primal_dual import SolverWorkspace, State, primal_dual_step

SIZE, LOW, WARMUP = (1088, 1376), (136, 172), 2


def one(model: str, backend: str, iterations: int) -> dict[str, float]:
    """Seconds of `iterations` steps at 1088x1376 with samples at x8, and the peak memory of the process."""
    torch.manual_seed(0)
    guide, f = torch.rand(1, 3, *SIZE), torch.randn(1, 1, *LOW)
    data = DataTerm(f, torch.rand(1, 1, *LOW), MODELS[model].norm, Resample(SIZE, LOW))
    energy = build_energy(model, guide, data, ModelParameters(eps=0.1))
    u = torch.randn(1, MODELS[model].channels, *SIZE)
    steps, state, workspace = preconditioned(energy, u), State.start(energy, u), SolverWorkspace()
    with torch.no_grad(), use_backend(backend):
        for n in range(WARMUP + iterations):
            if n == WARMUP:
                start = time.perf_counter()
            state = primal_dual_step(energy, state, steps, workspace)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def measured(model: str, backend: str, iterations: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.speed.solver", "--one", model, backend, str(iterations)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def table(iterations: int) -> dict[str, object]:
    rows = []
    for model in MODELS:
        eager, default = measured(model, "torch", iterations), measured(model, "auto", iterations)
        rows.append({"model": model, "torch": eager, "default": default})
        print(
            f"{model:<9} torch {eager['seconds']:7.2f} s {eager['peak_mib']:6.0f} MiB   "
            f"default {default['seconds']:7.2f} s {default['peak_mib']:6.0f} MiB",
            file=sys.stderr,
        )
    machine = (
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}"
    )
    today = dt.date.today().isoformat()
    return {"date": today, "machine": machine, "size": SIZE, "iterations": iterations, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=3, metavar=("MODEL", "BACKEND", "N"), help=argparse.SUPPRESS)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(args.one[0], args.one[1], int(args.one[2]))))
        return
    result = json.dumps(table(args.iterations), indent=1)
    print(result)
    if args.out:
        args.out.write_text(result + "\n")


if __name__ == "__main__":
    main()
