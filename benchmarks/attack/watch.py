"""Watch one input: how it ended, what it cost in CPU time and memory, and what it left behind.

Other programs may use the machine too. So seconds are CPU time, user and system, of this process with all its
threads and of the processes that it has waited for. Whoever sleeps for ever is ended by the wall clock.
"""

import ctypes
import gc
import os
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.attack.cases import Promise, Reader, digest
from benchmarks.service_process import children
from primaldepth.core.errors import PrimalDepthError

LONGEST_MESSAGE = 1000  # characters beside the path
_TRIMMED_MIB = 30.0  # growth after which memory is given back, so that the next growth is seen


class TooLong(BaseException):
    """Raised into a reader that does not end by itself."""


@dataclass(frozen=True)
class InputLimits:
    """What one input may take: `seconds` of CPU time; `patience` seconds of the wall clock end it."""

    seconds: float = 5.0
    growth_mib: float = 300.0
    patience: float = 60.0


@dataclass
class InputOutcome:
    """How one input ended; `faults` are (kind, detail)."""

    ended: str = "read"
    faults: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0
    growth_mib: float = 0.0
    digest: str = ""
    message: str = ""

    def fault(self, kind: str, detail: str) -> None:
        self.faults.append((kind, " ".join(detail.split())[:300]))


class MemoryGrowth:
    """Peak of this process since `start`, and of the processes that it started meanwhile."""

    def __init__(self) -> None:
        self._before = 0.0
        self._far: dict[int, float] = {}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, apart: bool) -> None:
        Path("/proc/self/clear_refs").write_text("5")
        self._before = _status(os.getpid(), "VmRSS")
        self._far = {}
        if apart:
            self._ended.clear()
            self._thread = threading.Thread(target=self._sample, daemon=True)
            self._thread.start()

    def growth(self) -> float:
        """MiB above the level at the start."""
        if self._thread is not None:
            self._ended.set()
            self._thread.join()
            self._thread = None
        own = _status(os.getpid(), "VmHWM") - self._before
        return max(own, 0.0) + max(self._far.values(), default=0.0)

    def _sample(self) -> None:
        own = _command(os.getpid())
        while not self._ended.wait(0.01):
            for pid in children(os.getpid()):
                if _command(pid) not in (own, b""):  # before it is a program of its own it shares our memory
                    self._far[pid] = max(self._far.get(pid, 0.0), _status(pid, "VmHWM"))


def _status(pid: int, name: str) -> float:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    at = text.find(f"{name}:")
    return 0.0 if at < 0 else int(text[at + len(name) + 1 : text.find("kB", at)]) / 1024


def cpu_seconds() -> float:
    """CPU time of this process and of those that it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def open_files() -> set[str]:
    """What the descriptors of this process refer to."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
        except OSError:  # the one that lists them
            continue
    return found


@dataclass
class Watch:
    """Reads inputs one after the other.

    Args:
        scratch: folder in which temporary files are made; it must be empty after every input.
        clock: seconds of work.
        memory: measures growth.
        baseline: MiB by reader that its processes take for a valid file.
    """

    scratch: Path
    limits: InputLimits = InputLimits()
    clock: Callable[[], float] = cpu_seconds
    memory: Any = field(default_factory=MemoryGrowth)
    baseline: dict[str, float] = field(default_factory=dict)

    def look(
        self, reader: Reader, folder: Path, promise: Promise = "any", expected: str = ""
    ) -> InputOutcome:
        """Read what lies in `folder`; `expected` is the digest that a promise "same" speaks of."""
        before = _left(self.scratch, folder)
        outcome = self._timed(reader, folder, promise)
        if outcome.seconds > self.limits.seconds:
            outcome.fault("slow", f"{outcome.seconds:.1f} s")
        outcome.growth_mib -= self.baseline.get(reader.name, 0.0)
        if outcome.growth_mib > self.limits.growth_mib:
            outcome.fault("growth", f"{outcome.growth_mib:.0f} MiB")
        if outcome.ended == "read" and promise == "refused":
            outcome.fault("accepted", "was read although it must be refused")
        if outcome.ended == "read" and promise == "same" and expected and outcome.digest != expected:
            outcome.fault("misread", "other values than the seed's, although a checksum covers the damage")
        self._leftovers(outcome, before, folder)
        if outcome.growth_mib > _TRIMMED_MIB:
            _give_back()
        return outcome

    def _timed(self, reader: Reader, folder: Path, promise: Promise) -> InputOutcome:
        outcome = InputOutcome()
        self.memory.start(reader.apart)
        start = self.clock()
        try:
            with _patience(self.limits.patience):
                self._read(reader, folder, promise, outcome)
        except TooLong:
            outcome.ended = "none"
            outcome.fault("hang", f"no end after {self.limits.patience:g} s")
        except PrimalDepthError as error:
            outcome.ended = "refused"
            outcome.message = str(error)
            _check_message(outcome, folder)
        except Exception as error:
            outcome.ended = "none"
            outcome.fault("foreign", f"{type(error).__name__}: {error} ({_place(error)})")
        outcome.seconds = self.clock() - start
        outcome.growth_mib = self.memory.growth()
        return outcome

    def _read(self, reader: Reader, folder: Path, promise: Promise, outcome: InputOutcome) -> None:
        result = reader.read(folder)
        if promise == "same":
            outcome.digest = digest(result)

    def _leftovers(self, outcome: InputOutcome, before: set[str], folder: Path) -> None:
        after = _left(self.scratch, folder) - before
        if after:
            gc.collect()  # an exception may hold what it came through
            after = _left(self.scratch, folder) - before
        if after:
            outcome.fault("leftover", ", ".join(sorted(after)))


def _left(scratch: Path, folder: Path) -> set[str]:
    files = {f"file {path.name}" for path in scratch.iterdir()}
    files |= {f"file {path.relative_to(folder)}" for path in folder.rglob("*")}
    descriptors = {f"descriptor {each}" for each in open_files()}
    processes = {f"process {pid}" for pid in children(os.getpid())}
    return files | descriptors | processes | {f"thread {each.name}" for each in threading.enumerate()}


def _check_message(outcome: InputOutcome, folder: Path) -> None:
    text = outcome.message
    if "\n" in text or len(text.replace(str(folder), "")) > LONGEST_MESSAGE:
        outcome.fault("message", f"not one short line: {text[:200]!r} ({len(text)} characters)")
    elif str(folder) not in text:
        outcome.fault("message", f"does not name the file: {text[:200]}")


def _give_back() -> None:
    """Return freed memory to the system: what the allocator keeps would hide how far the next input grows."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def _place(error: BaseException) -> str:
    """The last line of ours that the error came through."""
    trace, places = error.__traceback__, []
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if "primaldepth" in Path(name).parts:
            places.append(f"{Path(name).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return places[-1] if places else "outside of the package"


@contextmanager
def _patience(seconds: float) -> Iterator[None]:
    def end(_: int, __: FrameType | None) -> None:
        raise TooLong

    old = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, 5.0)  # again, where a library swallowed the first
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old)
