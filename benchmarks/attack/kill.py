"""`--kill N`: SIGKILL of the service and of its worker, in turn, N times, while requests and uploads run.

After each kill nothing may be left: no process, and after the next start no upload of before. Every answer
that says it is one must be right.
"""

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.attack.good import GoodRequests, depth_bytes, good_files, guide_bytes
from benchmarks.attack.served import OPTIONS
from benchmarks.service_process import Service, children, running

_CLIENTS = 4
_WITHIN = 5.0  # seconds for what must end to end
_SLOW = {"method": "nltgv-l1"}  # with a large image: computed for much longer than that
_READY = 180.0  # for a service to take work again on a busy machine


@dataclass
class Killed:
    """What was found."""

    kills: dict[str, int] = field(default_factory=lambda: {"service": 0, "worker": 0})
    answers: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def report(self) -> dict[str, Any]:
        return {"kills": self.kills, "answers": self.answers, "faults": self.faults}


def kill(times: int) -> dict[str, Any]:
    """Kill so often; the report's faults say what was left."""
    found = Killed()
    with tempfile.TemporaryDirectory(prefix="attack-kill-") as name:
        place = Path(name).resolve()
        env = {**os.environ, "TMPDIR": str(place)}
        left: set[Path] = set()
        while sum(found.kills.values()) < times:
            with running(*OPTIONS, env=env) as service:
                _check_uploads(found, place, left)
                _kill_worker(found, service, times)
                left = _kill_service(found, service, place, times)
        with running(*OPTIONS, env=env):
            _check_uploads(found, place, left)
    return found.report()


def _check_uploads(found: Killed, place: Path, left: set[Path]) -> None:
    kept = sorted(str(path.relative_to(place)) for path in left if path.exists())
    if kept:
        found.faults.append(
            f"{len(kept)} files of a killed service are left after the next start: {kept[:3]}"
        )


def _kill_worker(found: Killed, service: Service, times: int) -> None:
    """The service goes on with another worker, and answers rightly before and after."""
    if sum(found.kills.values()) >= times:
        return
    with _load(found, service) as good:
        before = set(children(service.process.pid))
        for pid in before:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        found.kills["worker"] += 1
        seen = good.counts["right"]
        if not _wait(lambda: good.counts["right"] > seen, _READY):
            found.faults.append("no good answer after a worker was killed")
    _check_gone(found, before, "worker")


def _kill_service(found: Killed, service: Service, place: Path, times: int) -> set[Path]:
    """Its worker ends with it; returns the files that were there at its end."""
    if sum(found.kills.values()) >= times:
        return set()
    with _load(found, service, long=True):
        time.sleep(1.5)
        workers = set(children(service.process.pid))
        service.process.send_signal(signal.SIGKILL)
        found.kills["service"] += 1
        service.process.wait()
    _check_gone(found, workers, "service")
    return {path for path in place.rglob("*") if path.is_file()}


def _check_gone(found: Killed, pids: set[int], what: str) -> None:
    if not _wait(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids), _WITHIN):
        alive = [pid for pid in pids if Path(f"/proc/{pid}/exe").exists()]
        found.faults.append(f"{len(alive)} processes live {_WITHIN:g} s after the {what} was killed")
        for pid in alive:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _wait(done: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if done():
            return True
        time.sleep(0.05)
    return done()


@contextmanager
def _load(found: Killed, service: Service, long: bool = False) -> Iterator[GoodRequests]:
    """Clients that ask, and one that uploads to the page, until the block ends.

    Args:
        long: the worker is also given something to compute for a long time.
    """
    good, ended = GoodRequests(service.url), threading.Event()

    def ask() -> None:
        with httpx2.Client(base_url=service.url, timeout=60) as client:
            while not ended.is_set():
                good.ask(client)
                ended.wait(0.01)

    def upload() -> None:
        with httpx2.Client(base_url=service.url, timeout=60) as client:
            for index in range(10_000):
                if ended.wait(0.05):
                    return
                name, data = good_files()["guide"]
                with suppress(httpx2.TransportError):
                    client.post("/gradio_api/upload", files={"files": (name, data + bytes(index))})

    def ask_for_much() -> None:
        files = good_files(
            depth=("d.png", depth_bytes(shape=(240, 320))), guide=("g.png", guide_bytes(size=(1280, 960)))
        )
        with suppress(httpx2.TransportError):
            httpx2.post(f"{service.url}/v1/upsample", files=files, data=_SLOW, timeout=60)

    clients = (*[ask] * _CLIENTS, upload, *([ask_for_much] if long else ()))
    threads = [threading.Thread(target=each) for each in clients]
    for thread in threads:
        thread.start()
    try:
        time.sleep(0.5)
        yield good
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        for what, number in good.counts.items():
            found.answers[what] = found.answers.get(what, 0) + number
        found.faults += [text for text in good.wrong if text.startswith("wrong")]
