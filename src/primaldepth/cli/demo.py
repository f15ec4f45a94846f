"""`primaldepth demo`: the shipped sample, from two files to depth, picture, cloud and errors."""

from pathlib import Path

import torch
import typer

from primaldepth.api import load_inputs
from primaldepth.cli.output import note, progress_bar, show_table
from primaldepth.compute.device import pick_device
from primaldepth.core.frame import Prediction
from primaldepth.evaluation.metrics import mae, rmse
from primaldepth.io import read_depth
from primaldepth.io.atomic import check_place
from primaldepth.io.picture_files import write_preview
from primaldepth.methods import create
from primaldepth.pipeline.outcome import outcome_of
from primaldepth.pipeline.outputs import OUTPUTS, preview_of
from primaldepth.pipeline.request import DEFAULT_METHOD, Request
from primaldepth.samples import sample_files

RESULTS = ("depth.png", "preview.png", "cloud.ply", "cloud.glb")
COMPARED = ("nearest", "bicubic", "atgv-l2", DEFAULT_METHOD)


def demo(
    out: Path = typer.Option(
        Path("primaldepth-demo"), "--out", metavar="DIR", help="Folder for the results.", show_default=True
    ),
) -> None:
    """Run on the shipped sample scene: depth, picture, point clouds and a table of errors."""
    for name in RESULTS:
        check_place("--out", out / name)
    files = sample_files()
    inputs = load_inputs(files.depth, files.guide, cameras=files.cameras)
    truth = read_depth(files.truth)
    note(f"running {', '.join(COMPARED)} on the sample scene")
    frame = inputs.frame.to(pick_device("auto"))
    results: dict[str, Prediction] = {}
    with progress_bar("demo", len(COMPARED)) as update:
        for index, name in enumerate(COMPARED):
            update(name, index)
            results[name] = create(name)(frame)
    best = outcome_of(Request(), inputs, results[DEFAULT_METHOD], 0.0)
    write_preview(out / "preview.png", preview_of(best, truth))
    for name, file in (("out", "depth.png"), ("cloud", "cloud.ply"), ("cloud", "cloud.glb")):
        OUTPUTS[name].write(out / file, best)
    target = torch.from_numpy(truth.values)[None, None] * 1000.0
    known = torch.from_numpy(truth.valid)[None, None]
    rows = []
    for name, result in results.items():
        depth = result.depth.cpu() * 1000.0
        rows.append([name, f"{rmse(depth, target, known):.1f}", f"{mae(depth, target, known):.1f}"])
    low, high = inputs.frame.low_size, inputs.frame.high_size
    show_table(
        f"sample scene, {low[1]}x{low[0]} to {high[1]}x{high[0]}, error in mm",
        ["method", "RMSE", "MAE"],
        rows,
    )
    for name in RESULTS:
        note(f"wrote {out / name}")
