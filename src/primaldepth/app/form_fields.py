"""Fields of the HTTP form, made from what the pipeline declares."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields
from inspect import Parameter
from typing import Annotated, Any, Literal, get_type_hints

from fastapi import File, Form, Header, Request, UploadFile

from primaldepth.app.response_formats import MEDIA_TYPES, file_name
from primaldepth.app.tasks import INPUTS, OPTIONS, method_names
from primaldepth.pipeline import request as pipeline
from primaldepth.pipeline.outputs import OUTPUTS
from primaldepth.pipeline.request import Item, declarations

FIELDS = (*INPUTS, *OPTIONS, "output")
_EXAMPLES = {"unit": ["mm", "5000"], "noise": ["auto", "12.5"]}


def with_declared_fields(method: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a route a form field for each input and option, and one that names the output.

    Args:
        method: used where a form names none.
    """

    def changed(route: Callable[..., Any]) -> Callable[..., Any]:
        accept = Header(description=f"One of {', '.join(MEDIA_TYPES.values())}.")
        parameters = [
            Parameter("request", Parameter.KEYWORD_ONLY, annotation=Request),
            *_files(),
            *_options(method),
            _parameter("accept", str | None, accept, None),
        ]
        route.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return route

    return changed


def _files() -> Iterator[Parameter]:
    for name, each in declarations(Item).items():
        needed = name in ("depth", "guide")
        kind = UploadFile if needed else UploadFile | None
        yield _parameter(name, kind, File(description=each.help), Parameter.empty if needed else None)


def _options(method: str) -> Iterator[Parameter]:
    hints, shown = get_type_hints(pipeline.Request), declarations(pipeline.Request)
    defaults = {each.name: each.default for each in fields(pipeline.Request)} | {"method": method}
    for name in OPTIONS:
        more = {"enum": method_names()} if name == "method" else None
        form = Form(description=shown[name].help, examples=_EXAMPLES.get(name), json_schema_extra=more)
        kind = str if name == "noise" else hints[name]
        yield _parameter(name, kind, form, defaults[name])
    names = tuple(file_name(each) for each in OUTPUTS)
    output = Form(description="What to answer with; Accept picks its format.")
    yield _parameter("output", Literal[names], output, "depth")


def _parameter(name: str, kind: Any, form: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, form])
