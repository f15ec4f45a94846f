"""`primaldepth export`: a network as an ONNX file."""

from pathlib import Path

import typer

from primaldepth.cli.output import note
from primaldepth.core.errors import InputError
from primaldepth.export import check_parity, export_onnx
from primaldepth.io import atomic_path
from primaldepth.io.atomic import check_place
from primaldepth.networks import from_pretrained, load

CHECKED = ((48, 64), (65, 47))


def export(
    name: str = typer.Argument(metavar="NAME", help="Shipped network, or the path of a .safetensors file."),
    out: Path = typer.Option(..., "-o", "--out", metavar="F.onnx", help="Output file."),
    scale: int | None = typer.Option(None, "--scale", metavar="N", help="Scale of a shipped network."),
) -> None:
    """Write the network as ONNX with free height and width, and check it against torch."""
    if out.suffix != ".onnx":
        raise InputError(f"--out {out}", f"extension '{out.suffix}', expected .onnx")
    check_place("--out", out)
    net = from_pretrained(name) if name.endswith(".safetensors") else load(name, scale)
    with atomic_path(out) as temporary:
        export_onnx(net, temporary)
        worst = max(parity.error for parity in check_parity(net, temporary, CHECKED))
    note(f"wrote {out}; differs from torch by at most {worst:.1e} of the depth range")
