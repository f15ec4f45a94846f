"""What is no HTTP, or comes too slowly, below the level at which requests are told apart."""

import json
import socket
from urllib.parse import urlsplit

import pytest

OK = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
POST = b"POST /v1/upsample HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"


def exchange(live, data):
    """The status of the answer to these bytes, and its JSON."""
    where = urlsplit(live)
    with socket.create_connection((where.hostname, where.port), timeout=30) as line:
        line.sendall(data)
        with line.makefile("rb") as stream:
            head, _, body = stream.read().partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head.lower()
    assert b"nosniff" in head
    return int(head.split()[1]), json.loads(body)


WRONG = {
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    "no host": (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
    "two hosts": (OK + b"Host: evil.example\r\n\r\n", 400),
    "another host": (OK.replace(b"127.0.0.1", b"evil.example") + b"\r\n", 421),
    "a whole address": (b"GET http://127.0.0.1" + OK[4:] + b"\r\n", 400),
    "a tunnel": (b"CONNECT evil.example:80" + OK[12:] + b"\r\n", 400),
    "two lengths": (POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef", 400),
    "length and chunks": (POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "no number for a length": (POST + b"Content-Length: +5\r\n\r\nabcde", 400),
    "endless length": (POST + b"Content-Length: " + b"9" * 6000 + b"\r\n\r\n", 400),
    "another encoding": (POST + b"Transfer-Encoding: gzip\r\n\r\n", 400),
    "broken chunks": (POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    "long header": (OK + b"X: " + b"a" * 40_000 + b"\r\n\r\n", 431),
    "endless header": (OK + b"X: " + b"a" * 400_000, 431),
    "many headers": (OK + b"X: a\r\n" * 200 + b"\r\n", 431),
    "long path": (OK.replace(b"healthz", b"a" * 40_000) + b"\r\n", 431),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_request_is_refused_in_json(live, case):
    data, status = WRONG[case]
    found, body = exchange(live, data)
    assert found == status
    assert set(body["error"]) == {"code", "message", "hint"}


def test_a_web_socket_is_not_opened(live):
    upgrade = b"Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    data = (
        OK.replace(b"Connection: close\r\n", upgrade) + b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    assert exchange(live, data)[0] == 200
