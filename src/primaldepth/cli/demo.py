"""`primaldepth demo`: the shipped sample, from two files to depth, picture, cloud and errors."""

from pathlib import Path

import torch
import typer

from primaldepth.api import DEFAULT_METHOD, as_depth_map, load_inputs, pick_device
from primaldepth.cli.output import note, progress_bar, show_table
from primaldepth.cli.places import check_place
from primaldepth.cli.writing import write_cloud_file, write_preview_file
from primaldepth.core.frame import Prediction
from primaldepth.evaluation.metrics import mae, rmse
from primaldepth.io import read_depth, write_depth
from primaldepth.methods import create
from primaldepth.samples import sample_files

RESULTS = ("depth.png", "preview.png", "cloud.ply", "cloud.glb")
COMPARED = ("nearest", "bicubic", "atgv-l2", DEFAULT_METHOD)


def demo(
    out: Path = typer.Option(
        Path("primaldepth-demo"), "--out", metavar="DIR", help="Folder for the results.", show_default=True
    ),
) -> None:
    """Run on the shipped sample scene: a stranger's first minute."""
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
    best = as_depth_map(results[DEFAULT_METHOD], inputs)
    write_depth(out / "depth.png", best)
    write_preview_file(out / "preview.png", inputs, results[DEFAULT_METHOD], truth=truth)
    write_cloud_file(out / "cloud.ply", inputs, results[DEFAULT_METHOD])
    write_cloud_file(out / "cloud.glb", inputs, results[DEFAULT_METHOD])
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
