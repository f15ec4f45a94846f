"""Many clients at once: does each get its own result, is memory flat, and does SIGTERM finish what runs?

    python -m benchmarks.load_service --clients 32 --seconds 300 --json load.json
    python -m benchmarks.load_service --method pdn-any --samples 160x120 --scale 4 --tolerance 0.1 \\
        --serve="--device cuda --queue 64"

Every client sends constant depth maps of a level that no other request has, so that an answer tells whose
it is. A client that hears 429 waits and asks again. At the end the service is told to end while all clients
still ask: what was accepted must be answered, what comes later is refused with 503 or finds the port closed.
"""

import argparse
import collections
import io
import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import numpy as np

from benchmarks.service_process import Service, running


@dataclass
class Tally:
    """What the clients saw."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    seconds: list[float] = field(default_factory=list)
    statuses: collections.Counter = field(default_factory=collections.Counter)
    foreign: int = 0
    broken: int = 0
    ending: bool = False
    refused_while_ending: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--method", default="bilinear")
    parser.add_argument("--scale", type=int, default=8)
    parser.add_argument("--samples", type=_size, nargs="+", default=[(24, 32), (30, 40)], metavar="WxH")
    parser.add_argument("--tolerance", type=float, default=5e-5, help="what a method adds to a constant")
    parser.add_argument("--serve", default="", help="further options of the service")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    tally, memory = Tally(), []
    with running("--no-page", "--method", arguments.method, *arguments.serve.split()) as service:
        guides = {size: _guide(size, arguments.scale) for size in arguments.samples}
        threads = [
            threading.Thread(target=_client, args=(service.url, guides, tally, index, arguments.tolerance))
            for index in range(arguments.clients)
        ]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        memory = _watch(service, arguments.seconds)
        answered, rejected = tally.statuses[200], tally.statuses[429]
        elapsed = time.perf_counter() - start
        tally.ending = True
        service.tell_to_end()
        code = service.process.wait(timeout=120)
        for thread in threads:
            thread.join()
    report = _report(tally, memory, arguments, answered, rejected, elapsed, code)
    text = json.dumps(report, indent=1)
    print(text)
    if arguments.json:
        arguments.json.write_text(text + "\n")
    if not report["passed"]:
        raise SystemExit("FAILED")


def _report(tally, memory, arguments, answered, rejected, elapsed, code) -> dict:
    times = np.array(tally.seconds) * 1000
    settled = memory[len(memory) // 5 :]  # the first requests import and compile
    growth = float(np.mean(settled[-3:]) - np.mean(settled[:3]))
    others = {status: count for status, count in tally.statuses.items() if status not in (200, 429, 503)}
    return {
        "clients": arguments.clients,
        "service": arguments.serve,
        "method": arguments.method,
        "output_sizes": [
            [size[1] * arguments.scale, size[0] * arguments.scale] for size in arguments.samples
        ],
        "seconds": round(elapsed, 1),
        "answered": answered,
        "requests_per_second": round(answered / elapsed, 1),
        "rejected_429": rejected,
        "p50_ms": round(float(np.percentile(times, 50)), 1),
        "p99_ms": round(float(np.percentile(times, 99)), 1),
        "other_statuses": others,
        "results_of_another_request": tally.foreign,
        "requests_without_answer": tally.broken,
        "memory_mib": [round(value, 1) for value in (settled[0], settled[-1])],
        "answered_after_sigterm": tally.statuses[200] - answered,
        "refused_after_sigterm": tally.statuses[503] + tally.refused_while_ending,
        "exit_code": code,
        "passed": not others and not tally.foreign and not tally.broken and growth < 50 and code == 0,
    }


def _watch(service: Service, seconds: float) -> list[float]:
    end, found = time.perf_counter() + seconds, []
    while time.perf_counter() < end:
        time.sleep(min(1.0, seconds / 20))
        found.append(service.memory_mib())
    return found


def _guide(size: tuple[int, int], scale: int) -> bytes:
    stream = io.BytesIO()
    shape = (size[0] * scale, size[1] * scale, 3)
    np.save(stream, np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8))
    return stream.getvalue()


def _size(text: str) -> tuple[int, int]:
    width, height = map(int, text.split("x"))
    return height, width


def _client(url: str, guides: dict, tally: Tally, index: int, tolerance: float) -> None:
    count, sizes = 0, list(guides)
    with httpx2.Client(base_url=url, timeout=120) as line:
        while True:
            count += 1
            level = 1.0 + index * 0.25 + (count % 1000) * 2e-4
            size = sizes[count % len(sizes)]
            if not _ask(line, guides[size], np.full(size, level, np.float32), tally, tolerance):
                return


def _ask(line: httpx2.Client, guide: bytes, depth: np.ndarray, tally: Tally, tolerance: float) -> bool:
    """One request; False when the service is no longer there."""
    stream = io.BytesIO()
    np.save(stream, depth)
    files = {"depth": ("d", stream.getvalue()), "guide": ("g", guide)}
    start = time.perf_counter()
    try:
        answer = line.post("/v1/upsample", files=files, headers={"Accept": "application/x-npz"})
    except httpx2.ConnectError:
        with tally.lock:
            tally.refused_while_ending += tally.ending
            tally.broken += not tally.ending
        return False
    except httpx2.TransportError:
        with tally.lock:
            tally.broken += 1
        return False
    taken = time.perf_counter() - start
    with tally.lock:
        tally.statuses[answer.status_code] += 1
        if answer.status_code == 200:
            tally.seconds.append(taken)
            tally.foreign += not _is_own(answer.content, float(depth[0, 0]), tolerance)
    if answer.status_code == 429:
        time.sleep(0.2)
    return answer.status_code != 503


def _is_own(body: bytes, level: float, tolerance: float) -> bool:
    with np.load(io.BytesIO(body)) as arrays:
        return bool(np.abs(arrays["depth"] - level).max() < tolerance)


if __name__ == "__main__":
    main()
