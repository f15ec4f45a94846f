"""Tasks: what a client asks for, as plain values that can be sent to another process."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from primaldepth.app.frame_trials import Trial
from primaldepth.app.problems import Problem, RefusedError
from primaldepth.core.errors import did_you_mean
from primaldepth.methods import list_methods
from primaldepth.pipeline.request import Item, Request, declarations

INPUTS = tuple(declarations(Item))
OPTIONS = tuple(name for name, each in declarations(Request).items() if not each.local)


@dataclass(frozen=True, slots=True)
class OneFile:
    """Ask for one output as a file, whose bytes are the HTTP answer.

    Args:
        media_type: of the answer.
        output: a name of `OUTPUTS`.
    """

    media_type: str
    output: str = "out"


@dataclass(frozen=True, slots=True)
class PageFiles:
    """Ask for everything the page shows of a result, as files in `folder` whose names begin with `prefix`."""

    folder: Path
    prefix: str


@dataclass(frozen=True, slots=True)
class Task:
    """One frame to compute; it holds plain values only, so that it can be sent as JSON.

    Args:
        folder: where the uploads lie, each under the name of its input.
        wanted: what to make of the result.
    """

    folder: Path
    request: Request
    wanted: OneFile | PageFiles | Trial

    @property
    def item(self) -> Item:
        """The uploads, as the inputs of a frame."""
        found: dict[str, Any] = {name: self.folder / name for name in INPUTS}
        return Item(**{name: path for name, path in found.items() if path.exists()})


def method_names() -> list[str]:
    """Return the methods that may be asked for. Files of weights are not: a client names no path."""
    return [info.name for info in list_methods()]


def request_of(method: str, **options: Any) -> Request:
    """Return the request for the fields of a form; raise if one has an impossible value.

    Args:
        method: its name.
        options: fields of `Request`.

    Raises:
        RefusedError: 422 if there is no such method.
        InputError: if an option has an unknown name or a wrong value.
    """
    names = method_names()
    if method not in names:
        hint = did_you_mean(method, names) or "see /v1/methods for those there are"
        raise RefusedError(Problem(422, "unknown_method", f"method: '{method[:60]}' is not known", hint))
    return Request(method, **options)
