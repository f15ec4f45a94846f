"""Every route of the service and of the page, with odd methods, bodies, hosts and broken HTTP."""

import json
import random
from collections.abc import Iterator
from typing import Any

from benchmarks.attack.answers import ask, check, raw
from benchmarks.attack.served import Target
from benchmarks.attack.text import odd_value

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "FOO")
_FILLINGS = (
    "x",
    "0",
    "..%2f..%2fetc%2fpasswd",
    "100000",
    "%00",
    "-1",
    "a" * 3000,
    "http:%2f%2f127.0.0.1:9%2f",
)
_ENDLESS = ("heartbeat", "queue/data", "upload_progress", "dev/reload")  # streams that end with the visitor
HOSTS = (
    "evil.example",
    "evil.example:80",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "",
    "[::1",
    "a b",
)


def known_routes() -> list[str]:
    """Paths of every route of the service and of the framework below the page, offered or not."""
    import gradio as gr

    from primaldepth.app.routes import create_app
    from primaldepth.app.service_settings import ServiceSettings

    ours = create_app(ServiceSettings(method="bilinear", device="cpu")).routes
    with gr.Blocks(analytics_enabled=False) as blocks:
        gr.HTML("")
    return sorted({*_paths(ours), *_paths(gr.routes.App.create_app(blocks).routes)})


def _paths(routes: Any, before: str = "") -> Iterator[str]:
    for route in routes:
        path = before + getattr(route, "path", "")
        inner = getattr(route, "original_router", None)
        if inner is not None:
            context = getattr(route, "include_context", None)
            yield from _paths(inner.routes, before + str(getattr(context, "prefix", "") or ""))
        elif type(route).__name__ == "Mount" and hasattr(route.app, "routes"):
            yield from _paths(route.app.routes, path)
        elif path:
            yield path


def _filled(path: str, filling: str) -> str:
    out = path
    while "{" in out:
        head, _, rest = out.partition("{")
        out = head + filling + rest.partition("}")[2]
    return out or "/"


def attack_routes(target: Target, client: Any, rng: random.Random, paths: list[str]) -> None:
    """Each route with each method, and with bodies that it does not expect."""
    for path in paths:
        fillings = _FILLINGS if "{" in path else ("",)
        for method in METHODS:
            address = _filled(path, rng.choice(fillings))
            ask(target, client, f"route {method} {path}", method, address, timeout=_patience(path))
        for filling in fillings:
            ask(target, client, f"route GET {path}", "GET", _filled(path, filling), timeout=_patience(path))
        for body, kind in _bodies(rng):
            head = {"Content-Type": kind}
            address = _filled(path, rng.choice(fillings))
            ask(target, client, f"body POST {path}", "POST", address, content=body, headers=head, timeout=3.0)


def _patience(path: str) -> float:
    return 0.3 if any(word in path for word in _ENDLESS) else 20.0


def _bodies(rng: random.Random) -> Iterator[tuple[bytes, str]]:
    tree = {
        name: odd_value(rng) for name in ("data", "fn_index", "session_hash", "event_id", "path", "action")
    }
    yield json.dumps(tree).encode("utf-8", "surrogatepass"), "application/json"
    yield b"[" * 50_000, "application/json"
    yield b"9" * 10_000, "application/json"
    yield b'{"data": "\\ud800"}', "application/json"
    yield (
        rng.randbytes(300),
        rng.choice(("application/octet-stream", "multipart/form-data; boundary=b", "\xe9")),
    )
    yield b"a=1&a=2&" + b"b=%" * 2000, "application/x-www-form-urlencoded"


def attack_hosts(target: Target) -> None:
    """A name that is not the service's: a page elsewhere may have had it point to this machine."""
    for host in HOSTS:
        for request in (
            b"GET / ",
            b"GET /v1/methods ",
            b"GET /config ",
            b"GET /openapi.json ",
            b"GET /metrics ",
        ):
            data = request + b"HTTP/1.1\r\nHost: " + host.encode() + b"\r\nConnection: close\r\n\r\n"
            status, kind, body = raw(target, data)
            check(target, f"host {host} {request.decode().strip()}", status or 400, kind, body, refused=True)
    port = target.address[1]
    for host in ("127.0.0.1", f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}"):
        status, _, body = raw(target, f"GET /v1/methods HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        if status != 200:
            target.fault(f"host {host}: refused with {status}: {body[:80]!r}")


_POST = b"POST /v1/upsample HTTP/1.1\r\nHost: 127.0.0.1\r\n"
_GET = b"GET / HTTP/1.1\r\n"
BROKEN = (
    b"GET / HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /\r\n\r\n",
    b"\r\n\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01" * 20,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET  / HTTP/1.1\r\n\r\n",
    b"get / http/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    _GET + b"\r\n",
    _GET + b"Host: a\r\nHost: b\r\n\r\n",
    _GET + b"Host 127.0.0.1\r\n\r\n",
    _GET + b"Host: 127.0.0.1\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
    _GET + b"Host: 127.0.0.1\r\n\0: \0\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    _POST + b"Content-Length: -1\r\n\r\n",
    _POST + b"Content-Length: 9\r\nContent-Length: 10\r\n\r\n123456789",
    _POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
    _POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    _POST + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
    _POST + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
    _POST + b"Transfer-Encoding: gzip\r\n\r\n",
    b"GET http://192.0.2.1/ HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n",
    b"CONNECT 192.0.2.1:80 HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n",
    b"GET /%ff%fe%00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /v1/../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /gradio_api/queue/data HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
)


def attack_http(target: Target) -> None:
    """HTTP that is none, below the framework; what answers does so in JSON."""
    for data in BROKEN:
        status, kind, body = raw(target, data, seconds=3.0, close=True)
        if status >= 400:
            check(target, f"broken {data[:50]!r}", status, kind, body)
        else:
            target.count(f"broken {status}")
