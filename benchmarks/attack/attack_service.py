"""`--http`: every attack on the service in turn, good requests beside, and what it came to."""

import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.attack import bodies, page, routes, seed_images
from benchmarks.attack.answers import Hung, ask, check_alive
from benchmarks.attack.good import GoodRequests, good_files
from benchmarks.attack.served import Target, enter_own_network, target
from benchmarks.attack.trace import strangers
from benchmarks.service_process import children

sys.path.append(str(Path(__file__).parents[2] / "tests" / "app"))
from malformed import requests

MEMORY_MIB = 50.0
_LIBRARIES = tuple(dict.fromkeys(Path(each).resolve() for each in (sys.prefix, sys.base_prefix)))


def attack(seed: int, malformed: int) -> dict[str, Any]:
    """The report of the whole attack; its faults are in `faults`."""
    alone = enter_own_network()
    paths = routes.known_routes()
    with tempfile.TemporaryDirectory(prefix="attack-http-") as name:
        place = Path(name).resolve()
        with target(place) as served, httpx2.Client(base_url=served.url, timeout=60) as client:
            _warm_up(served, client, seed)
            start, before, workers = served.trace.position(), served.service.memory_mib(), served.workers
            good = GoodRequests(served.url)
            with good.beside():
                seconds = _all(served, client, random.Random(seed), paths, malformed)
            report = _judged(served, good, start, before, workers)
    return {"own_network": alone, "routes": len(paths), "seconds": seconds, **report}


def _warm_up(served: Target, client: Any, seed: int) -> None:
    """Everything once that is loaded or opened on first use."""
    for request in requests(110, seed=seed + 1):
        request.send(client)
    draw = random.Random(seed)
    for seeds in (seed_images.mats73, seed_images.exrs_apart, seed_images.tiffs_apart):
        [data] = seeds(draw)[0].files.values()
        client.post("/v1/upsample", files=good_files(depth=("d", data)))
    visitor = page.PageVisitor(served, client)
    for event in visitor.events:
        visitor.submit(
            "warm", visitor.values() if event is visitor.run else [None] * len(event["inputs"]), event
        )
    for path in ("/", "/config", "/theme.css", "/robots.txt", "/gradio_api/info", "/favicon.ico", "/metrics"):
        client.get(path)
    served.faults.clear()
    served.counts.clear()


def _all(
    served: Target, client: Any, rng: random.Random, paths: list[str], malformed: int
) -> dict[str, float]:
    """Seconds that each part of the attack took."""
    parts = {
        "hosts": lambda: routes.attack_hosts(served),
        "http": lambda: routes.attack_http(served),
        "fields": lambda: page.attack_fields(served, client),
        "events": lambda: page.attack_events(served, client, rng),
        "files": lambda: page.attack_files(served, client),
        "routes": lambda: routes.attack_routes(served, client, rng, paths),
        "forms": lambda: bodies.attack_forms(served),
        "malformed": lambda: _malformed(served, client, rng, malformed),
        "bombs": lambda: bodies.attack_bombs(served, client),
        "slow": lambda: bodies.attack_slowly(served),
        "crowd": lambda: bodies.attack_in_a_crowd(served),
        "devices": lambda: page.attack_devices(served, client),
    }
    seconds = {}
    for name, part in parts.items():
        start = time.perf_counter()
        try:
            part()
            check_alive(served)
        except Hung as error:
            served.fault(f"{name}: the service hangs: {error}")
            return seconds
        seconds[name] = round(time.perf_counter() - start, 1)
        print(f"{name}: {seconds[name]} s, {len(served.faults)} faults so far", flush=True)
    return seconds


def _malformed(served: Target, client: Any, rng: random.Random, count: int) -> None:
    for request in requests(count, seed=rng.randrange(2**31)):
        sent = (
            {"content": request.body}
            if request.body is not None
            else {"files": request.files, "data": request.data}
        )
        what = f"malformed {request.kind}"
        ask(served, client, what, "POST", "/v1/upsample", headers=request.headers, refused=True, **sent)


def _judged(
    served: Target, good: GoodRequests, start: int, before: float, workers: list[int]
) -> dict[str, Any]:
    """Look at what is left: files, calls, memory, the worker, the good answers."""
    after = _settled_memory(served, before)
    own = [*_LIBRARIES, Path(__file__).resolve().parents[2] / "src", served.temporary, served.home]
    during = served.trace.opened(start)
    opened = strangers(during, served.trace.opened(0, start), own)
    called = sorted(served.trace.called(start))
    faults = [f"opened {path}" for path in opened] + [f"connected to {each}" for each in called]
    faults += [f"the listener was called: {call!r}" for call in served.listener.calls]
    if after - before > MEMORY_MIB:
        faults.append(f"memory went from {before:.1f} to {after:.1f} MiB")
    faults += [f"good request {text}" for text in good.wrong]
    if good.counts["right"] == 0:
        faults.append("no good request was answered")
    if served.service.process.poll() is not None:
        faults.append("the service ended")
    return {
        "requests": sum(served.counts.values()),
        "statuses": _by_status(served.counts),
        "counts": dict(sorted(served.counts.items())),
        "good_requests": dict(good.counts),
        "memory_mib": {"before": round(before, 1), "after": round(after, 1)},
        "files_opened": {"all": len(during), "outside": len(opened)},
        "connections": {"made": len(called), "received_by_the_listener": len(served.listener.calls)},
        "same_worker": children(served.service.process.pid) == workers,
        "faults": [*served.faults, *faults],
    }


def _by_status(counts: dict[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, number in counts.items():
        status = name.rpartition(" ")[2]
        found[status] = found.get(status, 0) + number
    return dict(sorted(found.items()))


def _settled_memory(served: Target, before: float) -> float:
    """Memory once it is back, or after half a minute: what was freed is returned by and by."""
    found = served.service.memory_mib()
    for _ in range(30):
        if found - before <= MEMORY_MIB:
            break
        time.sleep(1.0)
        found = served.service.memory_mib()
    return found
