"""`primaldepth data verify`: compare a folder with the files the protocols were frozen with."""

from pathlib import Path

import typer

from primaldepth.cli.output import note
from primaldepth.core.errors import InputError
from primaldepth.evaluation.protocols import Protocol, get_protocol, protocol_names

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _root() -> None:
    pass


@app.command("verify")
def verify(
    folder: Path = typer.Argument(metavar="DIR", help="Folder that holds the protocols' folders."),
) -> None:
    """Check the files of every protocol in a folder. Exit 1 if one is missing or differs."""
    if not folder.is_dir():
        raise InputError(f"{folder}: not a folder")
    protocols = [get_protocol(name) for name in protocol_names()]
    found = [item for item in protocols if _is_there(item, folder)]
    if not found:
        known = ", ".join(item.folder for item in protocols)
        raise InputError(f"{folder}: none of the folders {known} is there")
    problems = [line for item in found for line in _check(item, folder)]
    for item in protocols:
        if item not in found:
            typer.echo(f"{item.name} v{item.version}: no folder {item.folder}, not checked")
    for line in problems:
        note(line)
    if problems:
        raise typer.Exit(1)


def _is_there(protocol: Protocol, folder: Path) -> bool:
    try:
        protocol.root(folder)
    except InputError:
        return False
    return True


def _check(protocol: Protocol, folder: Path) -> list[str]:
    root = protocol.root(folder)
    lines = [line for scene in protocol.scenes for line in protocol.problems(root / scene, scene)]
    count = sum(len(files) for files in protocol.files.values())
    state = "all as frozen" if not lines else f"{len(lines)} missing or changed"
    typer.echo(f"{protocol.name} v{protocol.version}: {count} files, {state}")
    return lines
