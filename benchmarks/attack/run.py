"""Run many inputs in one process, watched by another, and sum up what was found."""

import faulthandler
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.attack.bombs import BOMBS, bomb_for
from benchmarks.attack.cases import Mutant, Reader, Seed, digest, write_files
from benchmarks.attack.readers import READERS
from benchmarks.attack.watch import InputLimits, InputOutcome, Watch

SPARE_BYTES = 3 * 2**30  # of address space: what a bomb may take before it is stopped
_SILENCE = 1800.0  # seconds after which a worker that says nothing is ended, however busy the machine is


@dataclass(frozen=True)
class Assignment:
    """What one worker is to do; everything that decides an input."""

    seed: int
    plan: tuple[str, ...]
    keep: Path | None = None
    limits: InputLimits = field(default_factory=InputLimits)


def chosen(names: Sequence[str]) -> list[Reader]:
    """Readers of these names, all if there is none."""
    known = {reader.name: reader for reader in READERS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no reader '{unknown[0]}'; there are {', '.join(known)}")
    return [reader for reader in READERS if not names or reader.name in names]


def plan(readers: Sequence[Reader], count: int, bombs: bool = True) -> list[str]:
    """Names of the inputs: the bombs of these readers, then `count` mutants, each reader's spread evenly."""
    names = {reader.name for reader in readers}
    total = sum(reader.share for reader in readers)
    shares = {reader.name: max(1, round(count * reader.share / total)) for reader in readers}
    spread = [
        ((index + 0.5) / share, f"{name}:{index}") for name, share in shares.items() for index in range(share)
    ]
    first = [bomb.name for bomb in BOMBS if bombs and bomb.reader in names]
    return first + [name for _, name in sorted(spread)]


class InputMaker:
    """Makes inputs by their names; the same name and seed make the same input."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.readers = {reader.name: reader for reader in READERS}
        self.seeds: Callable[[str], list[Seed]] = cache(self._seeds)

    def _seeds(self, reader: str) -> list[Seed]:
        return self.readers[reader].seeds(random.Random(f"{self._seed} {reader}"))

    def make(self, name: str, folder: Path) -> Mutant:
        """Put the files of an input into an empty folder; returns what it is."""
        reader, _, rest = name.partition(":")
        if not rest.isdecimal():
            bomb = bomb_for(name)
            bomb.make(folder, self.seeds(reader)[0])
            return Mutant({}, rest, bomb.promise)
        mutant = self.readers[reader].mutate(random.Random(f"{self._seed} {name}"), self.seeds(reader))
        write_files(folder, mutant.files)
        return mutant


class Worker:
    """Reads inputs in this process."""

    def __init__(self, work: Assignment, place: Path) -> None:
        self._work, self._place = work, place
        self._inputs = InputMaker(work.seed)
        scratch = place / "scratch"
        scratch.mkdir(exist_ok=True)
        tempfile.tempdir = os.environ["TMPDIR"] = str(scratch)
        self._watch = Watch(scratch, work.limits)
        self._expected: dict[tuple[str, int], str] = {}

    def warm_up(self, names: set[str]) -> None:
        """Read every seed: libraries are loaded, and what a promise "same" speaks of is known."""
        for name in sorted(names):
            reader = self._inputs.readers[name]
            for origin, seed in enumerate(self._inputs.seeds(name)):
                folder = self._folder()
                write_files(folder, seed.files)
                for _ in range(2):
                    self._expected[name, origin] = digest(reader.read(folder))
                outcome = self._watch.look(reader, folder)
                if reader.apart:
                    known = self._watch.baseline.get(name, 0.0)
                    self._watch.baseline[name] = max(known, outcome.growth_mib + known)

    def look(self, name: str) -> tuple[InputOutcome, Mutant]:
        """Make one input and read it."""
        folder = self._folder()
        try:
            mutant = self._inputs.make(name, folder)
        except Exception as error:
            return InputOutcome("none", [("harness", f"cannot make the input: {error!r}")]), Mutant(
                {}, "none"
            )
        reader = self._inputs.readers[name.partition(":")[0]]
        expected = self._expected.get((reader.name, mutant.origin), "")
        outcome = self._watch.look(reader, folder, mutant.promise, expected)
        if outcome.faults and self._work.keep is not None:
            self._keep(name, folder, outcome, mutant)
        return outcome, mutant

    def _folder(self) -> Path:
        folder = self._place / "input"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    def _keep(self, name: str, folder: Path, outcome: InputOutcome, mutant: Mutant) -> None:
        target = (self._work.keep or folder) / name.replace(":", "-")
        small = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 2**20
        if small and not target.exists():
            regular = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
            write_files(target, {str(path.relative_to(folder)): path.read_bytes() for path in regular})
        target.mkdir(parents=True, exist_ok=True)
        lines = [f"{kind}: {detail}" for kind, detail in outcome.faults]
        (target / "FAULT.txt").write_text(
            "\n".join([f"{name}, {mutant.how}, {mutant.promise}", *lines]) + "\n"
        )


def limit_memory() -> None:
    """Leave a bomb some room, so that it is seen, and stop it before the machine suffers."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def serve(line: Connection, work: Assignment, start: int, place: Path) -> None:
    """Do the plan from `start` on; says before each input where it is, and after it how it ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    noise = os.open(place / "noise.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(noise, 2)  # libraries talk
    faulthandler.enable()
    warnings.simplefilter("ignore")
    worker = Worker(work, place)
    worker.warm_up({name.partition(":")[0] for name in work.plan})
    limit_memory()
    for position in range(start, len(work.plan)):
        line.send((position, None))
        outcome, mutant = worker.look(work.plan[position])
        line.send((position, (outcome, mutant.how)))
    line.send((-1, None))


class NoWorkerError(Exception):
    """The worker cannot even read valid files, or fails for reasons of its own."""


@dataclass
class Supervised:
    """A worker in another process; it is started again behind an input that ended it."""

    work: Assignment
    place: Path
    next: int = 0
    at: int = -1
    done: bool = False
    process: Any = None
    line: Any = None
    crashes: int = field(default=0)

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.line, far = context.Pipe(duplex=False)
        self.process = context.Process(
            target=serve, args=(far, self.work, self.next, self.place), daemon=True
        )
        self.at = -1
        self.process.start()
        far.close()

    def hear(self) -> Iterator[tuple[str, InputOutcome, str]]:
        """Outcomes as they come, until the plan is done."""
        while not self.done:
            try:
                if not self.line.poll(_SILENCE):
                    yield from self._lost("hang", f"no end after {_SILENCE:.0f} s")
                    continue
                position, found = self.line.recv()
            except (EOFError, OSError):
                self.process.join()
                yield from self._lost("crash", f"the process ended with {self.process.exitcode}")
                continue
            if position < 0:
                self.done = True
            elif found is None:
                self.at = position
            else:
                self.next = position + 1
                yield self.work.plan[position], *found
        self.process.join()

    def _lost(self, kind: str, detail: str) -> Iterator[tuple[str, InputOutcome, str]]:
        """The process is gone: the input it was at has a fault, and the next one is tried."""
        self.process.kill()
        self.process.join()
        if self.at < 0:
            sys.stderr.write((self.place / "noise.txt").read_text(errors="replace")[-3000:])
            raise NoWorkerError("the worker does not start")
        yield self.work.plan[self.at], InputOutcome("none", [(kind, detail)]), ""
        self.next = self.at + 1
        self.done = self.next >= len(self.work.plan)
        if not self.done:
            self.start()
