"""The service under attack: started as users start it, traced, with traps around it.

It runs in a network of its own, which has nothing but the loopback device, where the system allows that. Its
temporary files and its home lie in folders of their own. Beside them are canaries, files whose content must
never leave the machine, and a listener that must never be called.
"""

import json
import os
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.attack.seed_images import ours
from benchmarks.attack.trace import CallTrace
from benchmarks.service_process import Service, children, running

OPTIONS = ("--method", "bilinear", "--device", "cpu", "--upload-seconds", "5", "--answer-seconds", "5",
           "--memory-gib", "4", "--queue", "16")  # fmt: skip
INSIDE = "PRIMALDEPTH_ATTACK_INSIDE"  # set where this program runs in a network of its own


def enter_own_network() -> bool:
    """Start this program again without any network but loopback; False if the system does not allow that."""
    if os.environ.get(INSIDE):
        return True
    again = [sys.executable, "-m", "benchmarks.attack", *sys.argv[1:]]
    lo_up = ["unshare", "-n", "ip", "link", "set", "lo", "up"]
    with suppress(OSError):
        if subprocess.run(lo_up, check=False, capture_output=True).returncode == 0:
            os.environ[INSIDE] = "1"
            shell = 'ip link set lo up && exec "$@"'
            os.execvp("unshare", ["unshare", "-n", "sh", "-c", shell, "sh", *again])  # noqa: S606 - itself
    return False


class Listener:
    """Answers HTTP on loopback, and remembers who called: nobody should."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.calls: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        picture = ours(".png", "mm", np.ones((6, 8)))
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: {len(picture)}\r\n\r\n".encode()
        )
        while True:
            line, _ = self._socket.accept()
            with line, suppress(OSError):
                line.settimeout(2.0)
                self.calls.append(line.recv(2000)[:200] or b"(nothing)")
                line.sendall(head + picture)


@dataclass(frozen=True)
class Canaries:
    """Files outside of the service's folders; `words` must appear in no answer."""

    folder: Path
    words: tuple[str, ...]

    @classmethod
    def make(cls, folder: Path) -> "Canaries":
        folder.mkdir()
        secret, number = f"canary{secrets.token_hex(8)}", 7_000_000 + secrets.randbelow(900_000)
        (folder / "depth.png").write_bytes(ours(".png", "mm", np.full((6, 8), 1.234)))
        Image.new("RGB", (16, 12), (12, 34, 56)).save(folder / "guide.png")
        (folder / "cameras.txt").write_text(f"{secret} 600 0 8\n0 600 6\n0 0 1\n")
        (folder / "cameras.yaml").write_text(f"{secret}: [1, 2\n")
        camera = {
            "fx": float(number),
            "fy": 600.0,
            "cx": 8.0,
            "cy": 6.0,
            "width": 16,
            "height": 12,
            secret: 1,
        }
        (folder / "cameras.json").write_text(json.dumps({"guide": camera}))
        os.mkfifo(folder / "pipe.png")
        return cls(folder, (secret, str(number)))

    def release(self) -> None:
        """Let go whoever waits for the pipe, so that the attack can go on."""
        with suppress(OSError):  # nobody does
            os.close(os.open(self.folder / "pipe.png", os.O_WRONLY | os.O_NONBLOCK))

    def seen(self, answer: bytes) -> bool:
        return any(word.encode() in answer for word in self.words)


@dataclass
class Target:
    """A running service and everything that watches it."""

    service: Service
    trace: CallTrace
    canaries: Canaries
    listener: Listener
    temporary: Path
    home: Path
    faults: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.service.url

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").partition(":")
        return host, int(port)

    @property
    def workers(self) -> list[int]:
        return children(self.service.process.pid)

    def fault(self, text: str) -> None:
        self.faults.append(" ".join(text.split())[:300])

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1


@contextmanager
def target(place: Path, *options: str) -> Iterator[Target]:
    """Start the service with its own folders below `place`."""
    temporary, home = place / "temporary", place / "home"
    for folder in (temporary, home):
        folder.mkdir(exist_ok=True)
    trace = CallTrace(place / "trace.log")
    env = {**os.environ, "TMPDIR": str(temporary), "HOME": str(home)}
    env.pop("PRIMALDEPTH_TOKEN", None)
    with running(*OPTIONS, *options, log=place / "service.log", before=trace.command(), env=env) as service:
        yield Target(service, trace, Canaries.make(place / "canaries"), Listener(), temporary, home)
