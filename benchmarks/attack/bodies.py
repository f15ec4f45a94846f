"""Bodies that come slowly, break off, lie about their length or hold a bomb, and a crowd of connections."""

import collections
import socket
import threading
import time
from contextlib import ExitStack, suppress
from typing import Any

from benchmarks.attack import bomb_files, forms, hdf5
from benchmarks.attack.answers import ask, check, raw
from benchmarks.attack.good import good_files
from benchmarks.attack.served import Target

_HEAD = (
    b"POST /v1/upsample HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n"
    b"Content-Type: multipart/form-data; boundary=b\r\n\r\n"
)


def _form(end: bytes = b"--b--\r\n", again: str = "") -> bytes:
    """A good form, ended otherwise, or with a field that is there twice."""
    parts = [forms.part(name, data, filename) for name, (filename, data) in good_files().items()]
    parts += [forms.part("noise", b"1"), *(part for part in parts if part.name == again.encode())]
    if again == "noise":
        parts.append(forms.part("noise", b"2"))
    return forms.packed(parts, end).partition(b"\n")[2]


def attack_forms(target: Target) -> None:
    """Forms that do not end, end too soon or late, or say a thing twice: each is refused."""
    for end in (b"", b"--b", b"--b\r\n", b"--c--\r\n"):
        _post(target, f"form end {end!r}", _form(end))
    for name in ("depth", "guide", "noise"):
        _post(target, f"form twice {name}", _form(again=name))
    whole = _form()
    _post(target, "form longer than said", whole, len(whole) - 30)
    for share in (0, 1, len(whole) // 2, len(whole) - 1):
        raw(target, _HEAD % len(whole) + whole[:share], seconds=0.5)  # and then the line is closed
        target.count("form closed early")
    status, _, body = raw(target, _HEAD % len(whole) + whole, seconds=30.0)
    if status != 200:
        target.fault(f"form: a good one is refused with {status}: {body[:100]!r}")


def _post(target: Target, what: str, body: bytes, length: int | None = None) -> None:
    data = _HEAD % (len(body) if length is None else length) + body
    status, kind, answer = raw(target, data, seconds=30.0)
    check(target, what, status, kind, answer, refused=True)
    if status == 0:
        target.fault(f"{what}: no answer")


def _device_names() -> dict[str, bytes]:
    return {name: hdf5.beside(make)[hdf5.NAME] for name, make in hdf5.OUTWARD.items()}


_REFUSED = (bomb_files.png_flush, bomb_files.png_headers, bomb_files.npz_channels, bomb_files.mat_longer)
_COSTLY = (bomb_files.png_crowd, bomb_files.exr_overlap, bomb_files.tiff_overlap, bomb_files.tiff_pages)


def attack_bombs(target: Target, client: Any) -> None:
    """The known bombs as uploads: what is wrong is refused, what only costs much need not be."""
    for make in (*_REFUSED, *_COSTLY):
        files = good_files(depth=("d", make()))
        what, refused = f"bomb {make.__name__}", make in _REFUSED
        ask(target, client, what, "POST", "/v1/upsample", files=files, refused=refused)
    scans = good_files(guide=("g", bomb_files.jpeg_scans()))
    ask(target, client, "bomb jpeg scans", "POST", "/v1/upsample", files=scans)
    for name, data in _device_names().items():
        files = good_files(depth=("d", data))
        ask(target, client, f"bomb mat {name}", "POST", "/v1/upsample", files=files, refused=True)
    text = b'{"guide": {"fx": [' + b"1," * 20_000_000 + b"1]}}"
    files = good_files(cameras=("c.json", text))
    ask(target, client, "bomb cameras", "POST", "/v1/upsample", files=files, refused=True)


class SlowSenders:
    """Clients that send one byte a second, of a body or of the headers before it, and wait for an answer."""

    def __init__(self, address: tuple[str, int], count: int, headers: bool = False) -> None:
        self._address, self._found = address, list[str]()
        start = _HEAD % 100_000 + b"--b\r\n" if not headers else b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "
        self._threads = [threading.Thread(target=self._send, args=(start,)) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _send(self, start: bytes) -> None:
        answer = b""
        with suppress(OSError), socket.create_connection(self._address, timeout=60) as line:
            line.sendall(start)
            line.settimeout(1.0)
            for _ in range(40):
                try:
                    answer = line.recv(1000)
                    break
                except TimeoutError:
                    line.sendall(b"x")
        self._found.append(answer[9:12].decode("latin1") or "closed")

    def statuses(self) -> dict[str, int]:
        """How each was answered."""
        for thread in self._threads:
            thread.join()
        return dict(collections.Counter(self._found))


def attack_slowly(target: Target, count: int = 20) -> None:
    """Slow bodies are answered 408; slow headers do not keep others out, which the good requests tell."""
    bodies = SlowSenders(target.address, count)
    headers = SlowSenders(target.address, count, headers=True)
    for status, number in bodies.statuses().items():
        target.counts[f"slow body {status}"] = number
        if status not in ("408", "429"):
            target.fault(f"slow body: {number} answered {status}")
    for status, number in headers.statuses().items():
        target.counts[f"slow headers {status}"] = number


def attack_in_a_crowd(target: Target, count: int = 1000, seconds: float = 5.0) -> None:
    """So many connections at once: a third is silent, a third within a request, a third asks something."""
    starts = (b"", _HEAD % 1000 + b"--b\r\n", b"GET /v1/methods HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    with ExitStack() as stack:
        lines = []
        for index in range(count):
            try:
                line = stack.enter_context(socket.create_connection(target.address, timeout=10))
                line.sendall(starts[index % 3])
            except OSError as error:
                target.fault(f"crowd: connection {index} of {count}: {error}")
                break
            lines.append(line)
        target.counts["crowd connections"] = len(lines)
        time.sleep(seconds)
        answered = 0
        for line in lines[2::3]:
            line.settimeout(10)
            with suppress(OSError):
                answered += line.recv(20).startswith(b"HTTP/1.1 200")
        target.counts["crowd answered"] = answered
        if answered < len(lines[2::3]):
            target.fault(f"crowd: {answered} of {len(lines[2::3])} requests were answered")
