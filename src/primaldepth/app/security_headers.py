"""Headers that restrict what browsers let an answer do, to what the page needs."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

INTERFACE = ("/v1", "/healthz", "/readyz", "/metrics", "/openapi.json")
_COMMON = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_NOTHING = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_PAGE = (  # Gradio's program needs inline scripts and eval
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self' data: blob:; worker-src 'self' blob:; "
    "frame-ancestors 'self'; base-uri 'self'; form-action 'self'; object-src 'none'"
)
_LASTING = ("/assets/", "/static/")  # files of the page, whose names change with their content


class SafeHeaders:
    """ASGI middleware that adds the headers to every answer, and lets no other site read one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message.setdefault("headers", [])
                _complete(MutableHeaders(scope=message), scope["path"])
            await send(message)

        await self._app(scope, receive, with_headers)


def _complete(headers: MutableHeaders, path: str) -> None:
    for name in [each for each in headers if each.startswith("access-control-")]:
        del headers[name]
    for name, value in _COMMON.items():
        headers[name] = value
    headers["Content-Security-Policy"] = _NOTHING if path.startswith(INTERFACE) else _PAGE
    if not path.startswith(_LASTING):
        headers["Cache-Control"] = "no-store"
