"""`primaldepth methods`: what can be asked for by name."""

from dataclasses import asdict

import typer

from primaldepth.cli.output import show, show_json, show_table
from primaldepth.methods import list_methods
from primaldepth.pipeline.request import DEFAULT_METHOD


def methods(
    as_json: bool = typer.Option(False, "--json", help="Print JSON, with all default settings."),
) -> None:
    """List every method."""
    found = list_methods()
    if as_json:
        show_json([{**asdict(info), "default": info.name == DEFAULT_METHOD} for info in found])
        return
    rows = [[info.name, info.family, "yes" if info.uses_guide else "no", info.summary] for info in found]
    show_table("", ["name", "family", "guide", "what it does"], rows, left=4)
    show()
    show(f"default: {DEFAULT_METHOD}")
