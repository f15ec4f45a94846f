"""One request to the service, and what its answer may be."""

import json
import socket
from http.client import HTTPException, HTTPResponse
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
    """Send bytes on a connection of their own: (status, type, body) of the answer, status 0 if there is none.

    Args:
        seconds: to wait for an answer.
        close: say that nothing more will be sent.
    """
    with socket.create_connection(target.address, timeout=seconds) as line:
        try:
            line.sendall(data)
            if close:
                line.shutdown(socket.SHUT_WR)
            answer = HTTPResponse(line)
            answer.begin()
            return answer.status, answer.headers.get("content-type", ""), answer.read()
        except (OSError, HTTPException):
            return 0, "", b""
