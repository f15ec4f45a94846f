"""`primaldepth data`: check files against their checksums; rendered scenes as the files of a camera."""

from pathlib import Path

import typer

from primaldepth.cli.output import note, progress_bar, show
from primaldepth.core.errors import InputError
from primaldepth.data.camera_files import write_recording
from primaldepth.data.manifest import MANIFEST, Manifest
from primaldepth.data.shards import Shards, shard_problems
from primaldepth.evaluation.protocols import Protocol, get_protocol, protocol_names
from primaldepth.sensors import sensor

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _root() -> None:
    pass


@app.command("verify")
def verify(
    folder: Path = typer.Argument(
        metavar="DIR", help="Folder of the protocols' folders, or of rendered scenes."
    ),
) -> None:
    """Check the files of every protocol, or every shard, in a folder. Exit 1 if one is missing or differs."""
    if not folder.is_dir():
        raise InputError(folder, "not a folder")
    if (folder / MANIFEST).exists():
        _verify_shards(folder)
        return
    protocols = [get_protocol(name) for name in protocol_names()]
    roots = {item.name: root for item in protocols if (root := item.find(folder)) is not None}
    if not roots:
        known = ", ".join(dict.fromkeys(item.folder for item in protocols))
        raise InputError(folder, f"none of the folders {known} is there")
    problems = [line for item in protocols if item.name in roots for line in _check(item, roots[item.name])]
    for item in protocols:
        if item.name not in roots:
            show(f"{item.name} v{item.version}: no folder {item.folder}, not checked")
    for line in problems:
        note(line)
    if problems:
        raise typer.Exit(1)


@app.command("export")
def export(
    scenes: Path = typer.Argument(metavar="SCENES", help="Folder of rendered scenes."),
    out: Path = typer.Option(..., "--out", metavar="DIR", help="Folder for the files; must not exist."),
    name: str = typer.Option(
        "metric-gaussian-v1", "--sensor", metavar="NAME", help="Sensor that measures z in metres."
    ),
    scale: int = typer.Option(4, "--scale", metavar="N", help="Pixels of the image per sample, each way."),
    count: int | None = typer.Option(None, "--count", metavar="N", help="The first scenes only."),
    seed: int = typer.Option(0, "--seed", metavar="S", help="Of the sensor's noise."),
) -> None:
    """Write scenes as a camera would: depth/N.png in mm, guide/N.png, truth/N.png, cameras/N.json."""
    if out.exists():
        raise InputError(f"--out {out}", "exists already", "name a new folder")
    if count is not None and count < 1:
        raise InputError(f"--count {count}", "expected at least 1")
    shards, camera = Shards(scenes), sensor(name, scale=scale)
    total = len(shards) if count is None else min(count, len(shards))
    with progress_bar(str(out), total) as update:
        write_recording(shards, out, camera, count=total, seed=seed, watch=lambda done: update(None, done))
    note(f"{total} scenes; 'primaldepth upsample {out}/depth {out}/guide -o RESULTS' takes them all")
    show(out)


def _verify_shards(folder: Path) -> None:
    manifest = Manifest.read(folder)
    problems = shard_problems(folder, manifest)
    stored = sum(entry.count for entry in manifest.shards)
    state = "all as rendered" if not problems else f"{len(problems)} missing or changed"
    show(f"{stored} of {manifest.count} scenes, {len(manifest.shards)} shards, {state}")
    for line in problems:
        note(line)
    if problems:
        note(f"'primaldepth render --verify' with the settings in {folder / MANIFEST} makes them again")
        raise typer.Exit(1)


def _check(protocol: Protocol, root: Path) -> list[str]:
    parts = [part for part in protocol.parts(root) if part.holds(root)]  # others are rendered elsewhere
    lines = [line for part in parts for scene in part.scenes for line in part.problems(root, scene)]
    lines = list(dict.fromkeys(lines))  # a file that several scenes or variants share is named once
    good = "all as frozen" if all(part.is_frozen for part in parts) else "all of the right form"
    state = good if not lines else f"{len(lines)} missing or changed"
    made_of = ", ".join(dict.fromkeys(part.made_of for part in parts))
    show(f"{protocol.name} v{protocol.version}: {made_of}, {state}")
    return lines
