"""Options of the command line: those that the pipeline declares, and settings of methods."""

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import torch
import typer

from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Cameras
from primaldepth.io.cameras import needs_sizes, read_cameras
from primaldepth.pipeline.outputs import OUTPUTS
from primaldepth.pipeline.request import Item, Request, declarations

ENSEMBLE_HELP = "Mean of a network's results on eight flips and rotations: better, slower."
ITERATIONS_HELP = "Primal-dual iterations in place of the method's own number; at most 10000."
DATA_HELP = "Folder with the data of protocols; PRIMALDEPTH_DATA if not given."
JOBS_HELP = "Frames computed at the same time; 0: one per core, or one on a GPU."
NO_CACHE_HELP = "Compute everything; neither take results from the cache nor keep them."
STATIC_SCENE_HELP = "With --temporal: nothing moves but the camera, so average all that fits."
SET_HELP = "Setting of the method; repeat for several."


def method_options(pairs: Sequence[str], **given: int | bool | None) -> dict[str, str]:
    """Return the method's options: KEY=VALUE pairs, and those given under names of their own.

    Args:
        pairs: texts such as `window=5`.
        given: values by name; None for options that were not given.

    Raises:
        InputError: if a pair has no equals sign.
    """
    for pair in pairs:
        if "=" not in pair:
            raise InputError("--set", f"'{pair}' is not KEY=VALUE")
    named = {name: str(value) for name, value in given.items() if value is not None}
    return dict(pair.split("=", 1) for pair in pairs) | named


def data_folder(data: Path | None) -> Path | None:
    """Return --data, else PRIMALDEPTH_DATA, else None: protocols on rendered scenes need neither.

    Args:
        data: as the user gave it.

    Raises:
        InputError: if it is not a folder.
    """
    named = data or (Path(os.environ["PRIMALDEPTH_DATA"]) if os.environ.get("PRIMALDEPTH_DATA") else None)
    if named is not None and not named.is_dir():
        raise InputError(named, "not a folder")
    return named


def processes(jobs: int, device: torch.device) -> int:
    """Return how many frames to compute at the same time.

    Args:
        jobs: as the user asked for; 0 for what suits the device.
        device: that computes.

    Raises:
        InputError: if the number is negative.
    """
    if jobs < 0:
        raise InputError(f"--jobs {jobs}", "expected 0 or a number of processes")
    return jobs or (1 if device.type == "cuda" else os.cpu_count() or 1)


def early_cameras(path: Path | None) -> Cameras | Path | None:
    """Read a camera file, so that errors show before any work, unless it needs the sizes of the images.

    Args:
        path: as the user gave it.

    Returns:
        The cameras, or the path of a file that is read with the images.
    """
    if path is None or (path.is_file() and needs_sizes(path)):
        return path
    return read_cameras(path)


def declared(name: str, default: Any = None) -> Any:
    """Return the option that stands for an input or an option of the pipeline, with its help.

    Args:
        name: of a field of `Item` or `Request`.
        default: of the verb.
    """
    each = (declarations(Item) | declarations(Request))[name]
    metavar = each.metavar or "|".join(each.choices) or "FILE"
    return typer.Option(default, f"--{name}", metavar=metavar, help=each.help)


def with_declared_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Replace `**asked` of a verb by an option for each field of `Request` and each output.

    They stand behind the verb's two arguments, before its other options.
    """
    own = [each for each in inspect.signature(verb).parameters.values() if each.kind != Parameter.VAR_KEYWORD]
    out, *outputs = _output_options()
    parameters = [*own[:2], out, *_request_options(), *outputs, *own[2:]]
    return with_parameters(verb, parameters)


def with_parameters(verb: Callable[..., None], parameters: Iterable[Parameter]) -> Callable[..., None]:
    """Replace the parameters of a verb by these, in their order."""
    named = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters]
    verb.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    return verb


def _request_options() -> Iterator[Parameter]:
    defaults, hints = {each.name: each.default for each in fields(Request)}, get_type_hints(Request)
    for name, each in declarations(Request).items():
        kind = _kind(hints[name], defaults[name])
        yield option(name, kind, defaults[name], each.metavar or "|".join(each.choices), each.help)


def _kind(hint: Any, default: Any) -> Any:
    """Return the type that the command line reads an option as: a number if it can be nothing else."""
    if hint in (float, float | None):
        return hint
    return str if default else str | None


def _output_options() -> Iterator[Parameter]:
    for name, output in OUTPUTS.items():
        if name == "out":
            yield option(name, Path, Parameter.empty, "OUT", output.help, "-o")
        else:
            yield option(name, Path | None, None, output.metavar, output.help)


def option(name: str, kind: Any, default: Any, metavar: str, text: str, *more: str) -> Parameter:
    """Return the parameter of a verb that stands for an option.

    Args:
        name: of the parameter; dashes stand for its underscores on the command line.
        kind: the type that a value is read as.
        default: `Parameter.empty` for an option that must be given.
        metavar: the value in the help.
        text: the help.
        more: other names, such as "-o".
    """
    found = typer.Option(f"--{name.replace('_', '-')}", *more, metavar=metavar, help=text)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, found])
