"""Thousands of requests that make no sense: is each refused, and is the service none the worse for it?

    python -m benchmarks.malformed_requests --count 2000 --json malformed.json

Each must be answered 4xx with a JSON reason; then the service must still answer a good request, from the same
worker, and its memory must be within 50 MB of what it was. Slow senders are tried at the same time.
"""

import argparse
import collections
import json
import socket
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from benchmarks.service_process import children, running

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "app"))
from malformed import good_files, requests

MEMORY_MIB = 50.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    options = ("--no-page", "--method", "bilinear", "--upload-seconds", "5", "--queue", "64")
    with running(*options) as service, httpx2.Client(base_url=service.url, timeout=60) as client:
        for request in requests(110, seed=arguments.seed + 1):  # decoders are imported on first use
            request.send(client)
        before, workers = service.memory_mib(), children(service.process.pid)
        slow = SlowSenders(service.url, 20)
        start = time.perf_counter()
        statuses, wrong = _send_all(service.url, arguments)
        seconds = time.perf_counter() - start
        slow_statuses = slow.statuses()
        time.sleep(2.0)
        after = service.memory_mib()
        good = client.post("/v1/upsample", files=good_files())
        same = children(service.process.pid) == workers
    report = {
        "requests": arguments.count,
        "statuses": statuses,
        "slow_senders": slow_statuses,
        "not_refused": wrong[:20],
        "seconds": round(seconds, 1),
        "memory_mib": {"before": round(before, 1), "after": round(after, 1)},
        "good_request_after": good.status_code,
        "same_worker": same,
    }
    text = json.dumps(report, indent=1)
    print(text)
    if arguments.json:
        arguments.json.write_text(text + "\n")
    unharmed = same and good.status_code == 200 and after - before < MEMORY_MIB
    if wrong or not unharmed or set(slow_statuses) != {"408"}:
        raise SystemExit("FAILED")


def _send_all(url: str, arguments: argparse.Namespace) -> tuple[dict[str, int], list[str]]:
    drawn, lock = requests(arguments.count, arguments.seed), threading.Lock()
    statuses: collections.Counter[str] = collections.Counter()
    wrong: list[str] = []

    def client() -> None:
        with httpx2.Client(base_url=url, timeout=120) as line:
            while True:
                with lock:
                    request = next(drawn, None)
                if request is None:
                    return
                reason = _outcome(request, line)
                with lock:
                    statuses[reason[0]] += 1
                    if reason[1]:
                        wrong.append(f"{request.kind}: {reason[1]}")

    threads = [threading.Thread(target=client) for _ in range(arguments.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return dict(sorted(statuses.items())), wrong


def _outcome(request, line) -> tuple[str, str]:
    """(status, what is wrong with the answer)."""
    try:
        answer = request.send(line)
    except httpx2.TransportError as error:
        return "none", repr(error)
    status = str(answer.status_code)
    if not 400 <= answer.status_code < 500:
        return status, status
    try:
        error = answer.json()["error"]
    except (ValueError, KeyError):
        return status, "no JSON reason"
    return status, "" if error["code"] and error["message"] else "an empty reason"


class SlowSenders:
    """Clients that send one byte a second and wait for what they are told."""

    def __init__(self, url: str, count: int) -> None:
        self._found: list[str] = []
        self._threads = [threading.Thread(target=self._send, args=(url,)) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _send(self, url: str) -> None:
        place = urlsplit(url)
        with socket.create_connection((place.hostname, place.port), timeout=60) as line:
            line.sendall(
                b"POST /v1/upsample HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n"
                b"Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
            )
            line.settimeout(1.0)
            answer = b""
            for _ in range(60):
                try:
                    answer = line.recv(1000)
                    break
                except TimeoutError:
                    line.sendall(b"x")
            self._found.append(answer[9:12].decode() or "none")

    def statuses(self) -> dict[str, int]:
        for thread in self._threads:
            thread.join()
        return dict(collections.Counter(self._found))


if __name__ == "__main__":
    main()
