"""`primaldepth align`: a camera file from frames whose depth and image show different views."""

import math
from pathlib import Path
from typing import cast

import typer

from primaldepth.cli.options import declared
from primaldepth.cli.output import fail, note, show, show_json
from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame
from primaldepth.geometry.camera_fit import MOST_FRAMES, CameraFit, fit_view, with_view
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.io import Kind
from primaldepth.io.atomic import check_place
from primaldepth.io.cameras import write_cameras
from primaldepth.pipeline.load import known_cameras, load
from primaldepth.pipeline.pairing import NamedFiles, list_items
from primaldepth.pipeline.request import Item, Request


def align(
    depth: str = typer.Argument(metavar="DEPTH", help="Depth file, or a folder or quoted glob of them."),
    image: str = typer.Argument(metavar="IMAGE", help="Image, or a folder or quoted glob of them."),
    out: Path = typer.Option(..., "-o", "--out", metavar="F.json", help="Camera file to write."),
    cameras: Path | None = declared("cameras"),
    unit: str | None = declared("unit"),
    kind: str | None = typer.Option(None, "--kind", metavar="z|radial", help="Kind of the depth."),
    as_json: bool = typer.Option(False, "--json", help="Print a JSON report."),
) -> None:
    """Estimate how the depth camera is turned against the image's; write it as a file for --cameras."""
    if out.suffix != ".json":
        raise InputError(f"--out {out}", f"extension '{out.suffix}', expected .json")
    check_place("--out", out)
    items, _ = list_items(NamedFiles(depth, image, {}, None, None, None, note))
    request = Request("bilinear", unit=unit, kind=cast("Kind | None", kind))
    given = _cameras(cameras, items[0], request)
    before, found = _fitted(items, request, given)
    fits = {"before": before}
    if before.certain:
        fits["after"], _ = _fitted(items, request, found)
        write_cameras(out, found)
    if as_json:
        said = {name: _said(fit) for name, fit in fits.items()}
        show_json({"certain": before.certain, "frames": min(len(items), MOST_FRAMES), **said})
    else:
        for name, fit in fits.items():
            show(f"{name}: {_sentence(fit)}")
    if not before.certain:
        fail("edges do not say for certain how depth and image lie; nothing was written; give more frames")
        raise typer.Exit(1)
    note(f"wrote {out}; give it as --cameras")


def _cameras(path: Path | None, item: Item, request: Request) -> Cameras:
    """Return the cameras of a file, or one that is 60 degrees wide."""
    frame = load(item, request, compare_views=False)
    if frame.kind == "disparity":
        raise InputError("align", "the depth holds disparities", "cameras beside each other need distances")
    (height, width), low = frame.frame.high_size, frame.frame.low_size
    if path is not None:
        return known_cameras(path, (height, width), low) or Cameras(Intrinsics.guess(width, height))
    note("no --cameras given, so a camera with a 60 degree wide view was assumed")
    return Cameras(Intrinsics.guess(width, height))


def _fitted(items: list[Item], request: Request, cameras: Cameras) -> tuple[CameraFit, Cameras]:
    """Return how the frames fit with these cameras, and cameras with which they fit best."""
    frames: list[Frame] = []
    for item in items[:MOST_FRAMES]:
        seen = Item(item.depth, item.guide, cameras=cameras, unit=item.unit)
        frames.append(load(seen, request, compare_views=False).frame)
    fit = fit_view(frames, "z", zoom=cameras.depth is None)
    first = frames[0]
    return fit, with_view(cameras, fit.view, first.low_size, first.high_size)


def _said(fit: CameraFit) -> dict[str, object]:
    view = fit.view
    return {
        "offset_px": [round(-each, 2) for each in view.offset],
        "rotation_degrees": round(-math.degrees(view.turn), 3),
        "zoom": round(view.zoom, 4),
        "certain": fit.certain,
    }


def _sentence(fit: CameraFit) -> str:
    view, (right, down) = fit.view, fit.view.offset
    return (
        f"depth lies ({-right:+.1f}, {-down:+.1f}) px (right, down) off the image, "
        f"turned by {-math.degrees(view.turn):+.2f} degrees, {view.zoom:.3f} times as wide a view"
    )
