"""Two services behind nginx, one of them killed under load: which requests are lost?

    python -m benchmarks.robustness.replicas --clients 8 --seconds 20 --json replicas.json
    python -m benchmarks.robustness.replicas --resend

All listen on 127.0.0.1. Halfway one service is killed (SIGKILL). nginx notices the closed port and hands what
comes later to the other one; only what the killed service was working on may be lost. With `--resend` nginx
sends that again too, which is safe because a request changes nothing in a service. Needs nginx.
"""

import argparse
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2

from benchmarks.robustness.load_service import Load, Reply, ask, finish
from benchmarks.service_process import Service, free_port, running

MOST_CLIENTS, MOST_SECONDS = 32, 120.0
CONFIGURATION = """
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_max_body_size 64m;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream depth {{
        least_conn;
        {servers}
    }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://depth;
            proxy_http_version 1.1;
            proxy_set_header Host localhost;
            proxy_next_upstream error timeout http_429 http_503{resend};
            proxy_read_timeout 300s;
        }}
    }}
}}
"""


@dataclass(frozen=True)
class Asked:
    """One request: when it began, and what came of it."""

    began: float
    reply: Reply


def configuration(folder: Path, port: int, urls: Sequence[str], *, resend: bool) -> str:
    """The text of nginx.conf."""
    servers = "\n        ".join(
        f"server {url.removeprefix('http://')} max_fails=1 fail_timeout=5s;" for url in urls
    )
    again = " non_idempotent" if resend else ""
    return CONFIGURATION.format(folder=folder, port=port, servers=servers, resend=again)


def summary(asked: Sequence[Asked], killed: float, gone: float) -> dict:
    """Counts; passed if all that is lost was on its way while the service was being killed."""
    lost = [each for each in asked if each.reply.status != 200]
    unexcused = [each for each in lost if each.began > gone or each.reply.at < killed]
    in_flight = sum(each.began <= gone and each.reply.at > killed for each in asked)
    after = [each for each in asked if each.began > gone]
    foreign = sum(each.reply.foreign for each in asked)
    return {
        "answered": len(asked) - len(lost),
        "in_flight_at_the_kill": in_flight,
        "lost_in_flight": len(lost) - len(unexcused),
        "asked_after_the_kill": len(after),
        "lost_otherwise": len(unexcused),
        "results_of_another_request": foreign,
        "passed": bool(after) and not unexcused and not foreign,
    }


@contextmanager
def balancer(urls: Sequence[str], *, resend: bool) -> Iterator[str]:
    """nginx before the services, on a free port of 127.0.0.1."""
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        folder.chmod(0o755)  # nginx's worker is another user if its master is root
        (folder / "nginx.conf").write_text(configuration(folder, port, urls, resend=resend))
        command = [program, "-p", name, "-c", f"{name}/nginx.conf", "-e", f"{name}/error.log"]
        process = subprocess.Popen([*command, "-g", "daemon off;"])
        url = f"http://127.0.0.1:{port}"
        try:
            _wait_for(url)
            yield url
        finally:
            process.terminate()
            process.wait(timeout=30)


def _wait_for(url: str) -> None:
    for _ in range(300):
        with suppress(httpx2.TransportError):
            if httpx2.get(f"{url}/readyz").status_code == 200:
                return
        time.sleep(0.1)
    raise SystemExit("nginx did not answer")


def _client(url: str, load: Load, index: int, end: float, found: list[Asked]) -> None:
    """Ask again and again until the time is over; a request that is lost is not asked again."""
    guides = {size: load.guide(size) for size in load.sizes}
    with httpx2.Client(base_url=url, timeout=120) as line:
        count = 0
        while (began := time.monotonic()) < end:
            size, level = load.sizes[count % len(load.sizes)], 1.0 + index * 0.25 + (count % 10) * 0.025
            found.append(Asked(began, ask(line, load, guides[size], size, level)))
            count += 1


def measure(clients: int, seconds: float, services: Sequence[Service], url: str) -> dict:
    """Load for so many seconds; the first service is killed halfway."""
    load, found = Load([(24, 32), (30, 40)], 8, "arrays", 1e-3), []
    start = time.monotonic()
    threads = [
        threading.Thread(target=_client, args=(url, load, index, start + seconds, found))
        for index in range(clients)
    ]
    for thread in threads:
        thread.start()
    time.sleep(seconds / 2)
    killed = time.monotonic()
    services[0].process.kill()
    services[0].process.wait()  # until then the kernel may take further connections for it
    gone = time.monotonic()
    for thread in threads:
        thread.join()
    return summary(found, killed, gone)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--resend", action="store_true", help="what was in flight is sent again")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    clients, seconds = min(chosen.clients, MOST_CLIENTS), min(chosen.seconds, MOST_SECONDS)
    with ExitStack() as stack:
        options = ("--no-page", "--method", "bilinear", "--device", "cpu", "--queue", str(4 * clients))
        services = [stack.enter_context(running(*options)) for _ in range(2)]
        url = stack.enter_context(balancer([each.url for each in services], resend=chosen.resend))
        found = {"clients": clients, "seconds": seconds, "resend": chosen.resend}
        found |= measure(clients, seconds, services, url)
    finish(found, chosen.json)


if __name__ == "__main__":
    main()
