"""One request to the service, and what its answer may be."""

import json
import socket
from typing import Any

import httpx2

from benchmarks.attack.served import Target

_ALLOWED_5XX = (503,)  # busy or ending, as JSON


def check(target: Target, what: str, status: int, kind: str, body: bytes, refused: bool = False) -> None:
    """Note a fault: a failure, a refusal that is no JSON, a secret, or a success that must not be.

    Args:
        what: the request, for people.
        refused: every success is wrong.
    """
    target.count(f"{what.partition(' ')[0]} {status}")
    if target.canaries.seen(body):
        target.fault(f"{what}: the answer holds a canary")
    if status >= 500 and status not in _ALLOWED_5XX:
        target.fault(f"{what}: status {status}: {body[:120]!r}")
    elif status >= 400 and not (kind.startswith("application/json") and _is_json(body)):
        target.fault(f"{what}: status {status} without JSON: {kind}: {body[:80]!r}")
    elif refused and status < 400:
        target.fault(f"{what}: answered {status}")


class Hung(Exception):  # noqa: N818 - the end of the attack, not of this program
    """The service answers nobody any more."""


def check_alive(target: Target, seconds: float = 20.0) -> None:
    """Raise where the service does not even say that it lives."""
    try:
        httpx2.get(f"{target.url}/healthz", timeout=seconds)
    except httpx2.TransportError as error:
        raise Hung(repr(error)) from error


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except ValueError:
        return False
    return True


def ask(target: Target, client: Any, what: str, method: str, path: str, **rest: Any) -> None:
    """Send a request that need not be refused, but must not fail."""
    refused = rest.pop("refused", False)
    try:
        with client.stream(method, path, **rest) as answer:
            body = b""
            for piece in answer.iter_bytes():
                body += piece
                if len(body) > 2**20:
                    break
    except httpx2.ReadTimeout:  # a stream of events without end
        target.count(f"{what.partition(' ')[0]} open")
        return
    except (httpx2.TransportError, httpx2.InvalidURL, ValueError) as error:
        target.count(f"{what.partition(' ')[0]} none")
        if not isinstance(error, httpx2.RemoteProtocolError | httpx2.InvalidURL | ValueError):
            target.fault(f"{what}: {error!r}")
        return
    head = method == "HEAD"
    kind = "application/json" if head else answer.headers.get("content-type", "")
    check(target, what, answer.status_code, kind, b"{}" if head and not body else body, refused)


def raw(target: Target, data: bytes, seconds: float = 10.0, close: bool = False) -> tuple[int, str, bytes]:
    """Send bytes on a connection of their own: (status, type, body) of the answer, 0 if there is none."""
    with socket.create_connection(target.address, timeout=seconds) as line:
        answer = b""
        try:
            line.sendall(data)
            if close:
                line.shutdown(socket.SHUT_WR)
            while piece := line.recv(65536):
                answer += piece
                if _is_whole(answer):
                    break
        except OSError:
            pass
    head, _, body = answer.partition(b"\r\n\r\n")
    kind = next(
        (row[13:].strip() for row in head.split(b"\r\n") if row.lower().startswith(b"content-type:")), b""
    )
    status = int(head[9:12]) if head[:5] == b"HTTP/" and head[9:12].isdigit() else 0
    return status, kind.decode("latin1"), body


def _is_whole(answer: bytes) -> bool:
    head, _, body = answer.partition(b"\r\n\r\n")
    for row in head.lower().split(b"\r\n"):
        if row.startswith(b"content-length:"):
            return len(body) >= int(row[15:])
    return False
