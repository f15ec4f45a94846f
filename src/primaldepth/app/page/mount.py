"""The page in the service: at `/`, behind the paths of the HTTP interface."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from primaldepth.app.engine import Engine
from primaldepth.app.page.folders import Folders
from primaldepth.app.page.layout import build
from primaldepth.app.page.theme import theme
from primaldepth.app.settings import ServiceSettings
from primaldepth.samples import example_scenes

_OURS = ("/v1/{rest:path}", "/healthz", "/readyz", "/metrics", "/openapi.json")
_TIDY_SECONDS = 60.0
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self' data: blob:; worker-src 'self' blob:; "
    "frame-ancestors 'self'; base-uri 'self'; form-action 'self'; object-src 'none'"
)


def mount_page(app: FastAPI, engine: Engine, settings: ServiceSettings) -> None:
    """Add the page; what neither it nor the HTTP interface knows is refused as the interface does."""
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    folders = Folders(settings.disk_gib * 2**30)
    os.environ["GRADIO_TEMP_DIR"] = str(folders.gradio)
    import gradio as gr

    known = list(app.router.routes)
    for path in _OURS:
        app.router.routes.append(Route(path, _Refusal(known)))
    gr.mount_gradio_app(
        app,
        build(engine, settings, folders),
        path="/",
        app_kwargs={"exception_handlers": {404: app.exception_handlers[HTTPException]}},
        footer_links=[],
        run_history=False,
        allowed_paths=[str(example.depth.parent) for example in example_scenes()],
        max_file_size=settings.max_bytes,
        ssr_mode=False,
        theme=theme(),
        css=Path(__file__).with_name("style.css").read_text(encoding="utf-8"),
        mcp_server=False,
        pwa=False,
    )
    app.add_middleware(OwnBytesOnly)
    app.add_middleware(TidyBeforeUpload, folders=folders)
    _keep_tidy(app, folders)


def _keep_tidy(app: FastAPI, folders: Folders) -> None:
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


async def _tidy_for_ever(folders: Folders) -> None:
    while True:
        await asyncio.sleep(_TIDY_SECONDS)
        with suppress(OSError):
            await run_in_threadpool(folders.tidy)


class _Refusal:
    """404, or 405 where the path is known but not the method: the page at `/` would answer otherwise."""

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


class TidyBeforeUpload:
    """Make room before another file is taken in."""

    def __init__(self, app: ASGIApp, folders: Folders) -> None:
        self._app, self._folders = app, folders

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let every request through, an upload to the page after the old ones are removed."""
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"].endswith("/upload"):
            await run_in_threadpool(self._folders.tidy)
        await self._app(scope, receive, send)


class OwnBytesOnly:
    """Tell browsers to load nothing from elsewhere, whatever a library would like."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the policy to every page."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(b"content-security-policy", _POLICY.encode()), (b"referrer-policy", b"no-referrer")]
                message["headers"] = [*message.get("headers", []), *extra]
            await send(message)

        await self._app(scope, receive, with_policy)
