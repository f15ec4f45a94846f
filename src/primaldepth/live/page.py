"""A local web page that shows the newest result: works on a desktop and through `ssh -L` alike.

It listens on 127.0.0.1 only, answers only to that name, and only to who knows the secret in its address. The
picture is drawn when somebody looks, once for all who do.
"""

import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from primaldepth.core.errors import InputError
from primaldepth.io.picture_files import jpeg_bytes
from primaldepth.live.view import live_picture
from primaldepth.pipeline.outcome import Outcome

HOST = "127.0.0.1"
MOST_WATCHERS = 4
QUALITY = 85  # of the JPEGs
PATIENCE = 10.0  # seconds for a request, and to take a picture
_BOUNDARY = b"frame"
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>primaldepth live</title>
<style>body{{margin:0;background:#18181c;color:#ddd;font:15px sans-serif;text-align:center}}
img{{max-width:100%;max-height:92vh}}</style></head>
<body><p>{title}: image, depth, point cloud</p>
<img src="stream" alt="image, depth and point cloud"></body></html>
"""


class Screen:
    """The newest result, drawn as a picture only when somebody asks for it."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._drawing = threading.Lock()
        self._outcome: Outcome | None = None
        self._number, self._closed = 0, False
        self._drawn: tuple[int, bytes] = (0, b"")

    def show(self, outcome: Outcome) -> None:
        """Show this result from now on."""
        with self._change:
            self._outcome, self._number = outcome, self._number + 1
            self._change.notify_all()

    def close(self) -> None:
        """End: whoever waits for a picture gets None."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def picture_after(self, seen: int) -> tuple[int, bytes] | None:
        """Wait for a result newer than `seen`; return its number and JPEG, or None if closed meanwhile."""
        with self._change:
            self._change.wait_for(lambda: self._closed or self._number > seen)
            outcome, number = self._outcome, self._number
        if outcome is None or number <= seen:
            return None
        with self._drawing:
            if self._drawn[0] < number:
                self._drawn = number, jpeg_bytes(live_picture(outcome, number), QUALITY)
            return self._drawn


class Page:
    """The web page of a screen, served by threads of its own.

    Args:
        screen: what to show.
        title: for people to read.
        port: 0 takes one that is free.

    Raises:
        InputError: if the port is taken.
    """

    def __init__(self, screen: Screen, title: str, port: int = 0) -> None:
        secret = secrets.token_urlsafe(16)

        class BoundHandler(_PageHandler):
            """The handler with the values of this page."""

        handler: type[_PageHandler] = BoundHandler
        handler.screen, handler.title, handler.root = screen, title, f"/{secret}/"
        handler.seats = threading.Semaphore(MOST_WATCHERS)
        try:
            self._server = ThreadingHTTPServer((HOST, port), handler)
        except (OSError, OverflowError) as error:
            raise InputError(
                f"--port {port}", str(error), "give another, or 0 for one that is free"
            ) from error
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        handler.names = tuple(f"{name}:{self.port}" for name in (HOST, "localhost"))
        self.address = f"http://{HOST}:{self.port}/{secret}/"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._screen = screen

    def __enter__(self) -> "Page":
        """Begin to answer."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop answering."""
        self._screen.close()
        self._server.shutdown()
        self._server.server_close()


class _PageHandler(BaseHTTPRequestHandler):
    """Answers requests for the page and its stream; all others get an error."""

    screen: ClassVar[Screen]
    title: ClassVar[str]
    root: ClassVar[str]
    seats: ClassVar[threading.Semaphore]
    names: ClassVar[tuple[str, ...]]
    timeout = PATIENCE
    server_version, sys_version = "primaldepth", ""

    def do_GET(self) -> None:
        """Answer one request."""
        if self.headers.get("Host", "") not in self.names:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
        elif secrets.compare_digest(self.path.encode(), self.root.encode()):
            self._head("text/html; charset=utf-8")
            self.wfile.write(_PAGE.format(title=_escaped(self.title)).encode())
        elif secrets.compare_digest(self.path.encode(), f"{self.root}stream".encode()):
            self._stream()
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _stream(self) -> None:
        if not self.seats.acquire(blocking=False):
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, f"{MOST_WATCHERS} watch already")
            return
        try:
            self._head(f"multipart/x-mixed-replace; boundary={_BOUNDARY.decode()}")
            seen = 0
            while (found := self.screen.picture_after(seen)) is not None:
                seen, picture = found
                head = b"--%s\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n"
                self.wfile.write(head % (_BOUNDARY, len(picture)) + picture + b"\r\n")
        except OSError:  # whoever watched has gone
            self.close_connection = True
        finally:
            self.seats.release()

    def _head(self, kind: str) -> None:
        self.send_response(HTTPStatus.OK)
        for name, value in {
            "Content-Type": kind,
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Content-Security-Policy": "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'",
        }.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Log nothing: the address contains a secret."""


def _escaped(text: str) -> str:
    return "".join(each if each.isalnum() or each in " ./_-:" else f"&#{ord(each)};" for each in text)
