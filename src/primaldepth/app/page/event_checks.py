"""Check requests to Gradio's queue: known events, with values of the kinds that their inputs have.

Gradio takes values of any shape from anyone who can reach it: a path is read and an address is fetched
wherever it is written. So nothing that a client sent is passed on. It is read as the values below, each is
held against the input it is meant for, and what Gradio gets is written anew from them.
"""

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, ValidationError

from primaldepth.app.page.readable_files import ReadableFiles
from primaldepth.app.problems import Problem, RefusedError

MOST_BYTES = 64 * 2**10
_MOST_INPUTS = 32
_MOST_FILES = 64  # of one input that takes several
SESSION = "[A-Za-z0-9_-]{1,64}"  # as the browser draws it
_Text = Annotated[StrictStr, Field(max_length=4096)]


class _File(BaseModel):
    """A file by its path; all other keys are dropped, above all addresses."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    path: _Text
    orig_name: _Text | None = None


class _QueueEvent(BaseModel):
    """The choice that an event reports, such as that of a tab."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    index: StrictInt
    value: Annotated[StrictStr, Field(max_length=64)]


class _Join(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    session_hash: Annotated[StrictStr, Field(pattern=f"^{SESSION}$")]
    fn_index: StrictInt
    trigger_id: StrictInt | None = None
    event_data: _QueueEvent | None = None
    data: Annotated[
        list[
            _File
            | Annotated[list[_File], Field(max_length=_MOST_FILES)]
            | StrictBool
            | Annotated[float, Field(strict=True, allow_inf_nan=False)]
            | _Text
            | None
        ],
        Field(max_length=_MOST_INPUTS),
    ]


def rewritten(body: bytes, events: dict[int, Any], sources: ReadableFiles) -> tuple[str, bytes]:
    """Return the session of a request to join the queue, and the request written anew.

    Args:
        body: as the client sent it.
        events: Gradio's events by number.
        sources: where files may lie.

    Raises:
        RefusedError: if it asks for an unknown event, has values that its inputs cannot have, or names a file
            that is not in `sources`.
    """
    try:
        join = _Join.model_validate_json(body)
    except ValidationError:
        raise _refused("no request that this page makes") from None
    event = events.get(join.fn_index)
    if event is None or len(event.inputs) != len(join.data):
        raise _refused("no event of this page")
    if event.collects_event_data and join.event_data is None:
        raise _refused("an event of which nothing is told")
    data = [_value(*each, sources) for each in zip(event.inputs, join.data, strict=True)]
    return join.session_hash, json.dumps(join.model_dump() | {"data": data}).encode()


def _value(component: Any, value: Any, sources: ReadableFiles) -> Any:
    """Return a value as its input takes it."""
    kind = component.get_block_name()
    if kind == "file" and isinstance(value, _File) and component.file_count == "single":
        return _file(component, value, sources)
    if kind == "file" and isinstance(value, list) and component.file_count == "multiple":
        return [_file(component, each, sources) for each in value]
    if (
        (kind in ("file", "state") and value is None)
        or (kind == "checkbox" and isinstance(value, bool))
        or (kind == "dropdown" and _is_choice(component, value))
        or (kind == "number" and _is_number(component, value))
    ):
        return value
    raise _refused(f"no value for '{component.label}'")


def _is_choice(component: Any, value: Any) -> bool:
    if component.allow_custom_value:
        return value is None or isinstance(value, str)
    return isinstance(value, str) and any(value == choice for _, choice in component.choices)


def _is_number(component: Any, value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, float) and value >= component.minimum


def _file(component: Any, value: _File, sources: ReadableFiles) -> dict[str, Any]:
    path = sources.resolve(value.path)
    if path.suffix.lower() not in component.file_types:
        raise _refused(f"no file of one of the types {', '.join(component.file_types)}")
    return {"path": str(path), "orig_name": value.orig_name, "meta": {"_type": "gradio.FileData"}}


def _refused(what: str) -> RefusedError:
    return RefusedError(Problem(400, "bad_request", f"this is {what}", "load the page again"))
