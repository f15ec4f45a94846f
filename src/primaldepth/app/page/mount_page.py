"""Mount the page in the service at `/`, after the paths of the HTTP interface."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.types import Receive, Scope, Send

from primaldepth.app.engine import Engine
from primaldepth.app.page.abandoned_visitors import Sessions
from primaldepth.app.page.layout import FILE_TYPES, build
from primaldepth.app.page.readable_files import ReadableFiles
from primaldepth.app.page.route_checks import RouteChecks
from primaldepth.app.page.theme import theme
from primaldepth.app.page.transfers import Transfers
from primaldepth.app.page.visitor_folders import VisitorFolders
from primaldepth.app.security_headers import INTERFACE
from primaldepth.app.service_settings import ServiceSettings
from primaldepth.samples import example_scenes

_TIDY_SECONDS = 60.0
_MOST_SESSIONS = 256  # whose last meshes are remembered
_GRADIO = {
    "GRADIO_ANALYTICS_ENABLED": "False",
    "GRADIO_ANALYTICS_MAX_EVENTS": "1",  # else it makes tables of events that nobody looks at
    "GRADIO_ANALYTICS_CACHE_FREQUENCY": str(2**31),
}


def mount_page(app: FastAPI, engine: Engine, settings: ServiceSettings) -> None:
    """Add the page to the service; unknown paths are refused in the form of the HTTP interface.

    Args:
        app: the service, with the routes of its HTTP interface.
        engine: that computes.
        settings: of the service.
    """
    os.environ.update(_GRADIO)
    folders = VisitorFolders(app.state.workspace.root / "page", settings.disk_gib * 2**30)
    os.environ["GRADIO_TEMP_DIR"] = str(folders.gradio)
    import gradio as gr

    examples = [example.depth.parent for example in example_scenes()]
    sources = ReadableFiles([folders.gradio, *examples])
    page = build(engine, settings, folders, sources)
    page.state_session_capacity = _MOST_SESSIONS
    known = list(app.router.routes)
    for path in ("/v1/{rest:path}", *INTERFACE):
        app.router.routes.append(Route(path, _Refusal(known)))
    gr.mount_gradio_app(
        app,
        page,
        path="/",
        footer_links=[],
        run_history=False,
        allowed_paths=[str(each) for each in examples],
        show_error=False,
        max_file_size=settings.max_bytes,
        ssr_mode=False,
        theme=theme(),
        css=Path(__file__).with_name("style.css").read_text(encoding="utf-8"),
        mcp_server=False,
        pwa=False,
    )
    page.has_launched = True  # Gradio checks paths, too, only in a page that it believes to have launched
    mounted = app.router.routes.pop()
    if not isinstance(mounted, Mount):
        raise TypeError("Gradio has mounted the page in a way that is not known")
    gate = RouteChecks(mounted.app, page.fns, Sessions(page._queue), Transfers(folders, FILE_TYPES), sources)
    app.router.routes.append(Mount("/", gate))
    _keep_tidy(app, folders)


def _keep_tidy(app: FastAPI, folders: VisitorFolders) -> None:
    """Remove what is old as long as the service runs, and everything at its end."""
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(whole: FastAPI) -> AsyncIterator[Any]:
        tidying = asyncio.create_task(_tidy_for_ever(folders))
        try:
            async with inner(whole) as state:
                yield state
        finally:
            tidying.cancel()
            folders.remove()

    app.router.lifespan_context = lifespan


async def _tidy_for_ever(folders: VisitorFolders) -> None:
    while True:
        await asyncio.sleep(_TIDY_SECONDS)
        with suppress(OSError):
            await run_in_threadpool(folders.tidy)


class _Refusal:
    """Answer what the API does not know with 404 or 405, before the page, which is mounted at `/`, can."""

    def __init__(self, known: list[BaseRoute]) -> None:
        self._routes = [route for route in known if isinstance(route, Route)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        allowed = {
            method
            for route in self._routes
            if route.matches(scope)[0] is Match.PARTIAL
            for method in route.methods or ()
        }
        if allowed:
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(allowed))})
        raise HTTPException(404)
