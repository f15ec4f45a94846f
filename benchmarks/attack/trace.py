"""What the system calls of a process and its children say: which files they opened, whom they called."""

import re
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_CALLS = "open,openat,openat2,creat,execve,connect"
_OPENED = re.compile(r"= \d+<(.*?)(?:<[^>]*>)?>(?: \(deleted\))?\s*$")
_NAMED = re.compile(r'(?:openat2?|open|creat|execve)\([^"]*"([^"]*)"')
_INET = re.compile(r'sin6?_port=htons\((\d+)\).*?"([0-9a-fA-F.:]+)"')
_PROCESS = re.compile(r"^/proc/(?:self|\d+)/(?:task/\d+/)?")


@dataclass(frozen=True)
class CallTrace:
    """The log of a tracer, which ends with the process that is traced."""

    path: Path

    def command(self) -> list[str]:
        """What starts a program under the tracer; the program has the process id that the caller sees."""
        tracer = shutil.which("strace")
        if tracer is None:
            raise SystemExit("--http needs strace, to see which files the service opens")
        return [tracer, "-D", "-f", "-y", "-qq", "--seccomp-bpf", "-s", "500", "-e", f"trace={_CALLS}",
                "-e", "signal=none", "-o", str(self.path)]  # fmt: skip

    def position(self) -> int:
        """Where the log ends now; it is written without delay, but by another process."""
        time.sleep(0.5)
        return self.path.stat().st_size

    def lines(self, start: int, end: int | None = None) -> Iterator[str]:
        with self.path.open(errors="replace") as file:
            file.seek(start)
            yield from file.read(-1 if end is None else end - start).splitlines()

    def opened(self, start: int, end: int | None = None) -> set[str]:
        """Files that were opened, by their real names, and those on whose opening someone still waits."""
        found, waiting = set(), dict[str, str]()
        for line in self.lines(start, end):
            process, real, named = line.partition(" ")[0], _OPENED.search(line), _NAMED.search(line)
            if "unfinished" in line and named is not None:
                waiting[process] = named[1]
            else:
                waiting.pop(process, None)
            if real is not None and "connect" not in line:
                found.add(_general(real[1]))
        return found | {_general(path) for path in waiting.values()}

    def called(self, start: int, end: int | None = None) -> set[str]:
        """Addresses and ports that someone tried to connect to."""
        found = (_INET.search(line) for line in self.lines(start, end) if "connect(" in line)
        return {f"{each[2]}:{each[1]}" for each in found if each is not None}


def _general(path: str) -> str:
    """The same name for the files of every process."""
    return _PROCESS.sub("/proc/N/", path)


def strangers(opened: set[str], before: set[str], own: Sequence[Path]) -> list[str]:
    """Files that are neither in a folder of the service or its libraries nor opened before the attack."""
    roots = tuple(f"{path}/" for path in own)
    return sorted(
        path
        for path in opened - before
        if path.startswith("/") and not path.startswith(roots) and path not in map(str, own)
    )
