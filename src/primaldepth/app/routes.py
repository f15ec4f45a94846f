"""The HTTP interface: FastAPI routes over the engine."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response, UploadFile
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from primaldepth.app import openapi
from primaldepth.app.engine import Engine
from primaldepth.app.form_fields import FIELDS, with_declared_fields
from primaldepth.app.problems import (
    DRAINING,
    GONE,
    NOT_READY,
    Problem,
    RefusedError,
    problem_of,
    problem_of_status,
)
from primaldepth.app.request_checks import BodyError, RequestChecks, json_answer
from primaldepth.app.response_formats import Answer, accepted
from primaldepth.app.security_headers import SafeHeaders
from primaldepth.app.service_metrics import CONTENT_TYPE, Metrics
from primaldepth.app.service_settings import ServiceSettings
from primaldepth.app.strict_forms import StrictFormRoute
from primaldepth.app.tasks import INPUTS, OneFile, Task, request_of
from primaldepth.app.upload_slots import UploadSlots
from primaldepth.app.workspace import Workspace
from primaldepth.core.errors import PrimalDepthError, did_you_mean
from primaldepth.methods import list_methods
from primaldepth.version import __version__

_WATCH_SECONDS = 1.0  # how often to look whether a waiting client is still there


class MethodItem(BaseModel):
    """One method that can be asked for."""

    name: str
    family: str
    uses_guide: bool
    summary: str
    default: bool


class ServiceState(BaseModel):
    """State of the service: whether it runs or is ready, and its version."""

    status: str
    version: str


def create_app(settings: ServiceSettings) -> FastAPI:
    """Return the whole service as an ASGI application; its engine runs between start-up and shutdown.

    Args:
        settings: of the service.
    """
    metrics = Metrics()
    engine = Engine(settings, metrics.computed)
    metrics.watch(engine)
    workspace = Workspace()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        engine.start()
        try:
            yield
        finally:
            await run_in_threadpool(engine.stop)
            await run_in_threadpool(workspace.remove)

    app = FastAPI(
        title="primaldepth",
        version=__version__,
        description=openapi.DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
    )
    slots = UploadSlots(settings.slots)
    app.router.route_class = StrictFormRoute
    app.state.engine, app.state.settings, app.state.slots = engine, settings, slots
    app.state.workspace = workspace
    _add_errors(app)
    _add_upsample(app, engine, settings)
    _add_state(app, engine, metrics)
    if settings.page:
        from primaldepth.app.page.mount_page import mount_page  # Gradio takes seconds to import

        mount_page(app, engine, settings)
    app.add_middleware(RequestChecks, settings=settings, metrics=metrics, slots=slots)
    app.add_middleware(SafeHeaders)
    return app


def _add_errors(app: FastAPI) -> None:
    """Register handlers that answer every refused request with JSON, whoever refused it."""

    @app.exception_handler(PrimalDepthError)
    async def ours(_: Request, error: PrimalDepthError) -> JSONResponse:
        return json_answer(problem_of(error))

    @app.exception_handler(HTTPException)
    async def bare(_: Request, error: HTTPException) -> JSONResponse:
        if isinstance(error, BodyError):
            return json_answer(error.problem)
        return json_answer(problem_of_status(error.status_code, str(error.detail), dict(error.headers or {})))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"] if part != "body")
        no_file = field in INPUTS and first["type"] == "value_error"
        found = "is text, expected a file; with curl: -F NAME=@FILE" if no_file else str(first["msg"])[:200]
        message = f"{field or 'body'}: {found}"
        return json_answer(Problem(422, "invalid_field", message, "see /openapi.json for what is expected"))


def _add_upsample(app: FastAPI, engine: Engine, settings: ServiceSettings) -> None:
    @with_declared_fields(settings.method)
    async def upsample(request: Request, output: str, accept: str | None, **asked: Any) -> Response:
        """The answer is a depth map in the format that `Accept` prefers, PNG in the unit of the input.

        `output` asks for another output in place of the depth map.
        """
        name = "out" if output == "depth" else output
        media_type = accepted(accept, name)
        _refuse_unknown(await request.form())
        uploads = {name: asked.pop(name) for name in INPUTS}
        wanted = request_of(**asked)
        with app.state.workspace.new_folder() as place:
            folder = Path(place)
            await run_in_threadpool(_store, uploads, folder)
            task = Task(folder, wanted, OneFile(media_type, name))
            answer = await _awaited(request, engine.submit(task))
        return Response(answer.body, media_type=answer.media_type, headers=answer.headers)

    app.post(
        "/v1/upsample",
        summary="Make a depth map of the guide's size",
        response_class=Response,
        responses=openapi.depth_answer() | openapi.problems(*openapi.OF_UPSAMPLE),
        tags=["depth"],
    )(upsample)


def _refuse_unknown(names: Iterable[str]) -> None:
    """Raise if the form has an unknown field: a mistyped one would otherwise be ignored."""
    for name in names:
        if name not in FIELDS:
            hint = did_you_mean(name, FIELDS) or f"there are {', '.join(FIELDS)}"
            raise RefusedError(Problem(422, "unknown_field", f"'{name[:60]}' is no field", hint))


def _store(uploads: dict[str, UploadFile | None], folder: Path) -> None:
    """Store every upload under the name of its field; the client's own file name is never used."""
    for name, upload in uploads.items():
        if upload is not None:
            with (folder / name).open("wb") as file:
                shutil.copyfileobj(upload.file, file)


async def _awaited(request: Request, future: "Future[Answer]") -> Answer:
    """Return the answer; if the client goes away first, raise and drop the task."""
    promise = asyncio.wrap_future(future)
    try:
        while not promise.done():
            await asyncio.wait([promise], timeout=_WATCH_SECONDS)
            if not promise.done() and await request.is_disconnected():
                raise RefusedError(Problem(GONE, "gone", "the client closed the connection"))
        return promise.result()
    finally:
        promise.cancel()  # not only the future: a later failure would be logged, with its text, as never seen


def _add_state(app: FastAPI, engine: Engine, metrics: Metrics) -> None:
    @app.get(
        "/v1/methods",
        summary="List every method",
        responses=openapi.problems(401, 421, 500),
        tags=["depth"],
    )
    async def methods() -> list[MethodItem]:
        """Methods in the order of the documentation; `default` is used where a request names none."""
        default = app.state.settings.method
        return [
            MethodItem(
                name=info.name,
                family=info.family,
                uses_guide=info.uses_guide,
                summary=info.summary,
                default=info.name == default,
            )
            for info in list_methods()
        ]

    @app.get(
        "/healthz",
        summary="Whether the service lives",
        responses=openapi.problems(421, 500),
        tags=["state"],
    )
    async def healthz() -> ServiceState:
        """Answers as long as the process does."""
        return ServiceState(status="alive", version=__version__)

    @app.get(
        "/readyz",
        summary="Whether the service takes work",
        responses=openapi.state_answer() | openapi.problems(421, 500),
        tags=["state"],
    )
    async def readyz() -> ServiceState:
        """503 while the worker starts, and from the moment the service is told to end."""
        if engine.draining:
            raise RefusedError(DRAINING)
        if not engine.ready:
            raise RefusedError(NOT_READY)
        return ServiceState(status="ready", version=__version__)

    @app.get(
        "/metrics",
        summary="Counters for Prometheus",
        response_class=Response,
        responses={
            200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
            **openapi.problems(401, 421, 500),
        },
        tags=["state"],
    )
    async def metrics_text() -> Response:
        """Requests, their times, the queue and the process, in the text format."""
        return Response(metrics.text(), media_type=CONTENT_TYPE)
