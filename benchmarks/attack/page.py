"""Attacks on the page: a field for a file must take no file and no address of the attacker's choice."""

import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2

from benchmarks.attack.answers import ask, check, check_alive
from benchmarks.attack.good import good_files
from benchmarks.attack.served import Target
from benchmarks.attack.text import odd_value

FIELDS = {"depth": 0, "guide": 1, "confidence": 7, "cameras": 8}


def file_data(path: Any, **more: Any) -> dict[str, Any]:
    """What the page's own script sends for a file."""
    return {"path": path, "meta": {"_type": "gradio.FileData"}, "orig_name": "x.png", **more}


@dataclass
class PageVisitor:
    """A visitor: uploads of its own, and the event that computes."""

    target: Target
    client: Any

    text: str = ""

    def __post_init__(self) -> None:
        config = self.client.get("/config").json()
        self.events = config["dependencies"]
        self.run = max(self.events, key=lambda each: len(each["inputs"]))
        self.uploads = {name: self.upload(name, *given) for name, given in good_files().items()}

    def upload(self, name: str, filename: str, data: bytes) -> str:
        answer = self.client.post("/gradio_api/upload", files={"files": (filename, data)})
        return str(answer.json()[0])

    def values(self) -> list[Any]:
        """A good choice."""
        good = [file_data(self.uploads[name]) for name in ("depth", "guide")]
        unsaid = "as the file says"
        return [*good, "bilinear", "none", "auto", unsaid, unsaid, None, None, False]

    def submit(self, what: str, values: Any, event: dict[str, Any] | None = None, **more: Any) -> str:
        """Join the queue and wait: "computed", "problem" (told on the page), "refused" or "none"."""
        chosen, session = event or self.run, secrets.token_hex(6)
        body = {"data": values, "fn_index": chosen["id"], "session_hash": session, "event_data": None}
        sent = {"content": json.dumps(body | more), "headers": _JSON, "timeout": 10}
        try:
            answer = self.client.post("/gradio_api/queue/join", **sent)
        except httpx2.TransportError as error:
            self.target.fault(f"{what}: {error!r}")
            self.target.canaries.release()
            check_alive(self.target)
            return "none"
        if answer.status_code != 200:
            kind = answer.headers.get("content-type", "")
            check(self.target, what, answer.status_code, kind, answer.content)
            return "refused"
        return self._heard(what, session)

    def _heard(self, what: str, session: str) -> str:
        text = ""
        try:
            with self.client.stream(
                "GET", f"/gradio_api/queue/data?session_hash={session}", timeout=10
            ) as answer:
                for line in answer.iter_lines():
                    text += line
                    if "process_completed" in line or "close_stream" in line or "unexpected_error" in line:
                        break
        except httpx2.TransportError:
            self.target.count(f"{what.partition(' ')[0]} open")
            self.target.canaries.release()
        check(self.target, what, 200, "", text.encode())
        self.text = text
        if "pd-facts" in text:
            return "computed"
        return "problem" if "pd-problem" in text else "refused"


_JSON = {"Content-Type": "application/json"}


def outside(target: Target) -> Iterator[str]:
    """Names of files that the service must not read, in many spellings."""
    canary = target.canaries.folder
    for name in ("depth.png", "guide.png", "cameras.txt", "cameras.yaml", "cameras.json"):
        yield str(canary / name)
    whole = str(canary / "depth.png")
    yield from (f"{before}{whole}" for before in ("file://", "file:", "/proc/self/root", "//"))
    yield f"{whole}/../depth.png"
    yield from (quote(whole, safe=""), whole.replace("/", "%2f"), whole.replace("/", "\\"), f"{whole}\0.png")
    up = "../" * 12
    yield from (
        f"{up}{whole}",
        f"{target.temporary}/{up}{whole}",
        f"{target.temporary}/../canaries/depth.png",
    )
    yield from ("/etc/passwd", "/proc/self/environ", "/dev/null")
    yield from ("~/.bashrc", ".", "", "/", "x" * 5000, f"/gradio_api/file={whole}")
    for folder in target.temporary.glob("*/gradio"):
        place = folder / "linked"
        place.mkdir(exist_ok=True)
        link = place / "depth.png"
        if not link.is_symlink():
            link.symlink_to(whole)
        yield str(link)
        yield str(folder / ".." / ".." / ".." / "canaries" / "depth.png")


def endless(target: Target) -> tuple[str, ...]:
    """Names of what can be read for ever, or is never there to be read."""
    return "/dev/zero", "/dev/stdin", "/dev/fd/0", str(target.canaries.folder / "pipe.png")


def addresses(target: Target) -> Iterator[str]:
    """URLs that the service must not fetch."""
    port = target.listener.port
    place = f"127.0.0.1:{port}"
    schemes = ("http://", "HTTP://", "https://", "//", "ftp://", "http:", " http://")
    yield from (f"{scheme}{place}/a.png" for scheme in schemes)
    yield from (f"http://{host}:{port}/a.png" for host in ("localhost", "0x7f000001", "[::1]"))
    yield from (f"http://user@{place}/a.png#.png", "http://192.0.2.1/a.png", "data:image/png;base64,AAAA")


def attack_fields(target: Target, client: Any) -> None:
    """Foreign files and addresses in every field for a file, and beside one that is fine."""
    page = PageVisitor(target, client)
    if page.submit("page good", page.values()) != "computed":
        target.fault("page: a good choice is not computed")
    for name, index in FIELDS.items():
        for given in (*outside(target), *addresses(target)):
            values = page.values()
            for form in ({}, {"url": given}, {"is_stream": True}):
                values[index] = file_data(given, **form)
                _refused(page, f"path {name} {given[:60]}", values)
                if name not in ("depth", "cameras"):
                    break
        for given in addresses(target):
            values = page.values()
            values[index] = file_data(page.uploads["depth"], url=given)
            page.submit(f"url {name} {given[:60]}", values)
    if page.submit("page good", page.values()) != "computed":
        target.fault("page: a good choice is not computed after the attack")
    shown = re.findall(r'"url": ?"http://[^/"]+(/[^"]+)"', page.text)
    if not shown or any(client.get(address).status_code != 200 for address in shown):
        target.fault(f"page: a result of {len(shown)} files cannot be fetched")


def attack_devices(target: Target, client: Any) -> None:
    """Devices and pipes in the fields: last, since a service that opens one never answers again."""
    page = PageVisitor(target, client)
    for given in endless(target):
        for name, index in FIELDS.items():
            values = page.values()
            values[index] = file_data(given)
            _refused(page, f"path {name} {given[:60]}", values)
    for given in endless(target):
        ask(target, client, "file route", "GET", f"/gradio_api/file={given}")


def _refused(page: PageVisitor, what: str, values: list[Any]) -> None:
    if page.submit(what, values) == "computed":
        page.target.fault(f"{what}: was computed")


def attack_events(target: Target, client: Any, rng: Any, count: int = 60) -> None:
    """Every event of the page with values that no one expects."""
    page = PageVisitor(target, client)
    canary = file_data(str(target.canaries.folder / "cameras.json"))
    for event in page.events:
        width = len(event["inputs"])
        for index in range(count if width else 3):
            values = page.values()[:width] if width == len(page.values()) else [canary] * width
            if values:
                values[rng.randrange(width)] = odd_value(rng) if index % 3 else [canary, [canary]]
            if index % 7 == 0:
                values = odd_value(rng)
            page.submit(f"event {event['id']}", values, event)
    for wrong in ({"fn_index": 10**6}, {"fn_index": -1}, {"fn_index": None}, {"session_hash": "x" * 10_000},
                  {"session_hash": None}, {"api_name": "../x"}, {"trigger_id": "x"}, {"batched": True},
                  {"data": None}, {"event_data": canary}, {"simple_format": True}):  # fmt: skip
        page.submit(f"event {next(iter(wrong))}", page.values(), **wrong)


def attack_files(target: Target, client: Any) -> None:
    """The routes that give files: no canary is given, whatever the spelling."""
    for path in outside(target):
        for route in ("/gradio_api/file=", "/gradio_api/file/", "/file=", "/static/", "/assets/", "/svelte/"):
            for spelled in (path, quote(path, safe=""), quote(path)):
                ask(target, client, "file route", "GET", route + _line(spelled))
    for address in addresses(target):
        for route in ("/gradio_api/file=", "/gradio_api/proxy="):
            ask(target, client, "file address", "GET", route + _line(address))
    for name in ("../../x.png", "/etc/x.png", "a\0b.png", "x" * 3000, "", ".", "..", "a/b.png", "CON"):
        files = {"files": (name, Path(target.canaries.folder / "depth.png").read_bytes())}
        ask(target, client, "upload name", "POST", "/gradio_api/upload", files=files)


def _line(text: str) -> str:
    """What may stand in a request line."""
    return (
        quote(text, safe="/%:=.~#?@[]-_") if any(ord(each) < 33 or ord(each) > 126 for each in text) else text
    )
