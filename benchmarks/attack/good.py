"""Good requests beside an attack: each must be answered, and answered rightly."""

import collections
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

sys.path.append(str(Path(__file__).parents[2] / "tests" / "app"))
from malformed import depth_bytes, good_files, guide_bytes

__all__ = ["GoodRequests", "depth_bytes", "good_files", "guide_bytes"]
BUSY = (429, 503)


class GoodRequests:
    """Asks for the same frame again and again; every answer must be the first one's bytes."""

    def __init__(self, url: str, pause: float = 0.05) -> None:
        self._url, self._pause = url, pause
        self._ended = threading.Event()
        self.counts: collections.Counter[str] = collections.Counter()
        self.wrong: list[str] = []
        with httpx2.Client(base_url=url, timeout=60) as client:
            answer = client.post("/v1/upsample", files=good_files())
            if answer.status_code != 200:
                raise SystemExit(f"a good request is answered {answer.status_code}: {answer.text[:300]}")
        self._expected = answer.content

    @contextmanager
    def beside(self) -> Iterator["GoodRequests"]:
        """Ask as long as the block runs."""
        thread = threading.Thread(target=self._ask)
        thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            thread.join()

    def _ask(self) -> None:
        with httpx2.Client(base_url=self._url, timeout=60) as client:
            while not self._ended.wait(self._pause):
                self.ask(client)

    def ask(self, client: httpx2.Client) -> None:
        """One request; counted as right, busy, broken (no answer) or wrong."""
        try:
            answer = client.post("/v1/upsample", files=good_files())
        except httpx2.TransportError as error:
            self._count("broken", f"{time.strftime('%X')} {error!r}")
            return
        if answer.status_code in BUSY:
            self._count("busy")
        elif answer.status_code == 200 and answer.content == self._expected:
            self._count("right")
        elif answer.status_code == 500:
            self._count("failed", f"{answer.status_code} {answer.text[:100]}")
        else:
            self._count("wrong", f"{answer.status_code} {answer.content[:100]!r}")

    def _count(self, what: str, detail: str = "") -> None:
        self.counts[what] += 1
        if detail and len(self.wrong) < 20:
            self.wrong.append(f"{what}: {detail}")
