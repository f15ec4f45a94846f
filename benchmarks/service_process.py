"""A service in a process of its own, as its users start it, and what can be seen of it from outside."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2

PROGRAM = "from primaldepth.cli.main import run; run()"


@dataclass(frozen=True)
class Service:
    process: "subprocess.Popen[str]"
    url: str

    def memory_mib(self) -> float:
        """Resident memory of the service and of everything it started."""
        return sum(_resident(pid) for pid in (self.process.pid, *children(self.process.pid))) / 2**20

    def tell_to_end(self) -> None:
        self.process.send_signal(signal.SIGTERM)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # a thread may end meanwhile
            for child in task.read_text().split():
                found += [int(child), *children(int(child))]
    return found


def _resident(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/statm").read_text()
    except OSError:
        return 0
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def running(
    *options: str, log: Path | None = None, before: Sequence[str] = (), env: Mapping[str, str] | None = None
) -> Iterator[Service]:
    """`primaldepth serve` on a free port, ready for requests; told to end afterwards.

    Args:
        options: of `serve`.
        log: where its log is written.
        before: a command that starts it, such as a tracer.
        env: the whole environment; that of this process if None.
    """
    command = [*before, sys.executable, "-c", PROGRAM, "serve", "--port", "0", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env)
    reader = threading.Thread(target=_drain, args=(process, log), daemon=True)
    try:
        url = _address(process)
        reader.start()
        _wait_ready(url)
        yield Service(process, url)
    finally:
        process.terminate()  # it removes its folders
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if reader.ident is not None:
            reader.join()


def _address(process: "subprocess.Popen[str]") -> str:
    for line in process.stderr or ():
        match = re.search(r"http://\S+", line)
        if match:
            return match[0]
    raise SystemExit("the service did not start")


def _drain(process: "subprocess.Popen[str]", log: Path | None) -> None:
    """Read the rest of its log, or it would wait for a reader."""
    if process.stderr is None:
        return
    with process.stderr, (log or Path(os.devnull)).open("w") as file:
        for line in process.stderr:
            file.write(line)
            file.flush()


def _wait_ready(url: str, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if httpx2.get(f"{url}/readyz").status_code == 200:
                return
        except httpx2.TransportError:
            pass
        time.sleep(0.1)
    raise SystemExit("the service did not become ready")
