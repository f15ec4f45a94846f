"""Many clients at once: does each get its own result, is memory flat, and does SIGTERM finish what runs?

    python -m benchmarks.robustness.load_service --clients 32 --seconds 300 --json load.json
    python -m benchmarks.robustness.load_service --method pdn-any --samples 160x120 --scale 4 \\
        --files camera --processes 4 --tolerance 0.02 --serve="--device cuda --queue 64"

Every client sends ramps about a level that no other request of the moment has, so that an answer tells whose
it is. A client that hears 429 waits and asks again. At the end the service is told to end while all clients
still ask: what was accepted must be answered, what comes later is refused with 503 or finds the port closed.
"""

import argparse
import collections
import io
import json
import multiprocessing
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx2
import numpy as np
from PIL import Image

from benchmarks.service_process import Service, running

MILLIMETRE = 1e-3
NO_LINE, BROKEN = 0, -1  # in place of an HTTP status: the port is closed, the line broke


@dataclass(frozen=True)
class Load:
    """What each client sends: raw arrays of metres, or files as a camera makes them, PNG in mm and JPEG."""

    sizes: list[tuple[int, int]]
    scale: int
    files: Literal["arrays", "camera"]
    tolerance: float

    def guide(self, size: tuple[int, int]) -> bytes:
        """Smooth colours with grain."""
        rows, columns = np.mgrid[: size[0] * self.scale, : size[1] * self.scale]
        waves = np.stack([np.sin(rows / 31), np.cos(columns / 23), np.sin((rows + columns) / 47)], axis=-1)
        grain = np.random.default_rng(0).integers(-12, 13, waves.shape)
        image = (128 + 80 * waves + grain).clip(0, 255).astype(np.uint8)
        return _jpeg(image) if self.files == "camera" else _npy(image)

    def depth(self, size: tuple[int, int], level: float) -> bytes:
        """A ramp of 10 cm, as much above the level as below."""
        metres = np.broadcast_to(level + np.linspace(-0.05, 0.05, size[1]), size)
        if self.files == "arrays":
            return _npy(metres.astype(np.float32))
        stream = io.BytesIO()
        Image.fromarray(np.rint(metres / MILLIMETRE).astype(np.uint16)).save(stream, "PNG")
        return stream.getvalue()

    @property
    def accept(self) -> str:
        """The format of the answers."""
        return "image/png" if self.files == "camera" else "application/x-npz"

    def is_own(self, body: bytes, level: float) -> bool:
        """Whether the answer's middle is the level."""
        if self.files == "camera":
            with Image.open(io.BytesIO(body)) as image:
                depth = np.asarray(image) * MILLIMETRE
        else:
            with np.load(io.BytesIO(body)) as arrays:
                depth = arrays["depth"]
        return bool(abs(np.median(depth) - level) < self.tolerance)


@dataclass(frozen=True)
class Reply:
    """What one request came to."""

    at: float
    status: int
    seconds: float = 0.0
    foreign: bool = False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--processes", type=int, default=1, help="that the clients share")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--warmup", type=float, default=0.0, help="seconds of load that are not counted")
    parser.add_argument("--method", default="bilinear")
    parser.add_argument("--scale", type=int, default=8)
    parser.add_argument("--samples", type=_size, nargs="+", default=[(24, 32), (30, 40)], metavar="WxH")
    parser.add_argument("--files", choices=("arrays", "camera"), default="arrays")
    parser.add_argument("--tolerance", type=float, default=1e-3, help="metres of the median")
    parser.add_argument("--serve", default="", help="further options of the service")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    load = Load(arguments.samples, arguments.scale, arguments.files, arguments.tolerance)
    with running("--no-page", "--method", arguments.method, *arguments.serve.split()) as service:
        clients = Clients(service.url, load, arguments.clients, arguments.processes)
        start = time.monotonic() + arguments.warmup
        memory = _watch(service, arguments.warmup + arguments.seconds)
        end = time.monotonic()
        service.tell_to_end()
        code = service.process.wait(timeout=120)
        replies = clients.replies()
    report = {"clients": arguments.clients, "service": arguments.serve, "method": arguments.method}
    report |= {
        "files": arguments.files,
        "output_sizes": [[w * load.scale, h * load.scale] for h, w in load.sizes],
    }
    report |= summary(replies, memory, start, end) | {"exit_code": code}
    report["passed"] = report["passed"] and code == 0
    finish(report, arguments.json)


def finish(report: dict, path: Path | None) -> None:
    """Print a report, write it if there is a path, and fail unless it says `passed`."""
    text = json.dumps(report, indent=1)
    print(text)
    if path:
        path.write_text(text + "\n")
    if not report["passed"]:
        raise SystemExit("FAILED")


def summary(replies: list[Reply], memory: list[float], start: float, end: float) -> dict:
    """Counts and times of what was answered between start and end, and what came after."""
    during = [reply for reply in replies if start <= reply.at < end]
    after = [reply for reply in replies if reply.at >= end]
    answered = [reply for reply in during if reply.status == 200]
    times = 1000 * np.array([reply.seconds for reply in answered])
    settled = memory[len(memory) // 5 :]  # the first requests import and compile
    growth = float(np.mean(settled[-3:]) - np.mean(settled[:3]))
    seen = collections.Counter(reply.status for reply in replies)
    broken = seen[BROKEN] + sum(reply.status == NO_LINE for reply in during)
    others = {
        status: count for status, count in seen.items() if status not in (200, 429, 503, NO_LINE, BROKEN)
    }
    foreign = sum(reply.foreign for reply in replies)
    return {
        "seconds": round(end - start, 1),
        "answered": len(answered),
        "requests_per_second": round(len(answered) / (end - start), 1),
        "rejected_429": sum(reply.status == 429 for reply in during),
        "p50_ms": round(float(np.percentile(times, 50)), 1),
        "p99_ms": round(float(np.percentile(times, 99)), 1),
        "other_statuses": others,
        "results_of_another_request": foreign,
        "requests_without_answer": broken,
        "memory_mib": [round(value, 1) for value in (settled[0], settled[-1])],
        "answered_after_sigterm": sum(reply.status == 200 for reply in after),
        "refused_after_sigterm": sum(reply.status in (503, NO_LINE) for reply in after),
        "passed": not others and not foreign and not broken and growth < 50,
    }


class Clients:
    """Clients that ask until the service is gone, shared out to processes."""

    def __init__(self, url: str, load: Load, count: int, processes: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._queue = context.Queue()
        self._processes = [
            context.Process(target=_ask_all, args=(url, load, range(count)[k::processes], self._queue))
            for k in range(processes)
        ]
        for process in self._processes:
            process.start()

    def replies(self) -> list[Reply]:
        """Of all clients, when they have ended."""
        found = [reply for _ in self._processes for reply in self._queue.get(timeout=120)]
        for process in self._processes:
            process.join()
        return found


def _ask_all(url: str, load: Load, clients: range, queue: "multiprocessing.Queue[list[Reply]]") -> None:
    found: list[Reply] = []
    guides = {size: load.guide(size) for size in load.sizes}
    threads = [threading.Thread(target=_client, args=(url, load, guides, index, found)) for index in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    queue.put(found)


def _client(
    url: str, load: Load, guides: dict[tuple[int, int], bytes], index: int, found: list[Reply]
) -> None:
    with httpx2.Client(base_url=url, timeout=120) as line:
        for count in range(10**9):
            size = load.sizes[count % len(load.sizes)]
            reply = ask(line, load, guides[size], size, 1.0 + index * 0.25 + (count % 10) * 0.025)
            found.append(reply)
            if reply.status == 429:
                time.sleep(0.2)
            if reply.status in (503, NO_LINE, BROKEN):
                return


def ask(line: httpx2.Client, load: Load, guide: bytes, size: tuple[int, int], level: float) -> Reply:
    """Send one request and check that the answer is its own."""
    files = {"depth": ("d", load.depth(size, level)), "guide": ("g", guide)}
    start = time.monotonic()
    try:
        answer = line.post("/v1/upsample", files=files, headers={"Accept": load.accept})
    except httpx2.ConnectError:
        return Reply(time.monotonic(), NO_LINE)
    except httpx2.TransportError:
        return Reply(time.monotonic(), BROKEN)
    now = time.monotonic()
    foreign = answer.status_code == 200 and not load.is_own(answer.content, level)
    return Reply(now, answer.status_code, now - start, foreign)


def _watch(service: Service, seconds: float) -> list[float]:
    end, found = time.perf_counter() + seconds, []
    while time.perf_counter() < end:
        time.sleep(min(1.0, seconds / 20))
        found.append(service.memory_mib())
    return found


def _jpeg(image: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "JPEG", quality=90)
    return stream.getvalue()


def _npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def _size(text: str) -> tuple[int, int]:
    width, height = map(int, text.split("x"))
    return height, width


if __name__ == "__main__":
    main()
