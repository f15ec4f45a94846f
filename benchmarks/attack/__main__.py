"""The command line: see the package's own text."""

import argparse
import json
import os
import tempfile
import threading
from pathlib import Path
from queue import Queue
from typing import Any

import benchmarks.attack
from benchmarks.attack.run import (
    Assignment,
    InputMaker,
    NoWorkerError,
    Supervised,
    Worker,
    chosen,
    limit_memory,
    plan,
)
from benchmarks.attack.summary import Summary
from benchmarks.attack.watch import InputLimits


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks.attack",
        description=benchmarks.attack.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=10_000, help="mutated inputs, beside the known bombs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="readers")
    parser.add_argument("--no-bombs", action="store_true", help="leave out the known ones")
    parser.add_argument("--at", metavar="NAME:N", help="one input again, with all that is found")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the inputs")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where inputs with faults are kept")
    parser.add_argument("--http", action="store_true", help="attack the service instead of the readers")
    parser.add_argument(
        "--kill", type=int, nargs="?", const=20, metavar="N", help="kill the service so often"
    )
    parser.add_argument("--malformed", type=int, default=500, help="requests of no sense, with --http")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.at:
        _again(arguments)
        return
    if arguments.http or arguments.kill:
        _attack_service(arguments)
        return
    summary = read_all(arguments)
    report = {"readers": summary.report()}
    if arguments.json:
        _write(arguments.json, report)
    print(_table(summary))
    if summary.failed:
        raise SystemExit("FAILED")


def read_all(arguments: argparse.Namespace) -> Summary:
    """Read every input, each worker its part of the plan."""
    names = plan(chosen(arguments.only), arguments.count, not arguments.no_bombs)
    summary, found = Summary(arguments.seed), Queue[Any]()
    with tempfile.TemporaryDirectory(prefix="attack-", dir=_memory()) as place:
        threads = []
        for job in range(arguments.jobs):
            folder = Path(place) / str(job)
            folder.mkdir()
            work = Assignment(arguments.seed, tuple(names[job :: arguments.jobs]), arguments.keep)
            threads.append(
                threading.Thread(target=_hear, args=(Supervised(work, folder), found), daemon=True)
            )
            threads[-1].start()
        left = len(threads)
        while left:
            item = found.get()
            if isinstance(item, NoWorkerError):
                raise SystemExit(str(item))
            left -= item is None
            for line in summary.add(*item) if item is not None else ():
                print(line, flush=True)
            summary.show_progress(len(names))
    return summary


def _memory() -> str | None:
    """A file system in memory, where there is one: a hundred thousand small folders are slow on a disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - names there are our own


def _hear(worker: Supervised, found: "Queue[Any]") -> None:
    try:
        worker.start()
        for item in worker.hear():
            found.put(item)
        found.put(None)
    except NoWorkerError as error:
        found.put(error)


def _again(arguments: argparse.Namespace) -> None:
    """One input in this process; its files stay if `--keep` is given."""
    with tempfile.TemporaryDirectory(prefix="attack-", dir=_memory()) as place:
        if arguments.keep:
            arguments.keep.mkdir(parents=True, exist_ok=True)
            InputMaker(arguments.seed).make(arguments.at, arguments.keep)
        worker = Worker(Assignment(arguments.seed, (), limits=InputLimits(patience=120.0)), Path(place))
        worker.warm_up({arguments.at.partition(":")[0]})
        limit_memory()
        outcome, mutant = worker.look(arguments.at)
    print(f"{arguments.at}: {mutant.how}, promise '{mutant.promise}', {outcome.ended}: {outcome.message}")
    print(f"{outcome.seconds:.3f} s, {outcome.growth_mib:.1f} MiB")
    for kind, detail in outcome.faults:
        print(f"FAULT {kind}: {detail}")
    if outcome.faults:
        raise SystemExit(1)


def _attack_service(arguments: argparse.Namespace) -> None:
    """The attack on the service, the kills, or both."""
    report: dict[str, Any] = {}
    if arguments.http:
        from benchmarks.attack.attack_service import attack

        report["http"] = attack(arguments.seed, arguments.malformed)
    if arguments.kill:
        from benchmarks.attack.kill import kill

        report["kill"] = kill(arguments.kill)
    if arguments.json:
        _write(arguments.json, report)
    faults = [f"{name}: {text}" for name, part in report.items() for text in part.pop("faults")]
    print("\n".join([json.dumps(report, indent=1), *faults]))
    if faults:
        raise SystemExit(f"FAILED: {len(faults)} faults")


def _table(summary: Summary) -> str:
    report = summary.report()
    lines = [
        f"{'reader':14} {'inputs':>7} {'read':>7} {'refused':>7} {'faults':>7} {'slowest':>8} {'MiB':>7}"
    ]
    for name, row in sorted(summary.rows.items()):
        counts = f"{row.inputs:7} {row.read:7} {row.refused:7} {row.faults:7}"
        lines.append(f"{name:14} {counts} {row.slowest[0]:7.2f}s {row.growth[0]:7.1f}")
    lines += [f"{each['count']:6} x {each['reader']} {each['kind']}: {each['detail']} ({each['inputs'][0]})"
              for each in report["faults"]]  # fmt: skip
    return "\n".join([*lines, f"{report['inputs']} inputs in {report['seconds']} s"])


def _write(path: Path, report: dict[str, Any]) -> None:
    """Put the parts into the file; those of another run of this program that are there stay."""
    kept = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(kept | report, indent=1) + "\n")


if __name__ == "__main__":
    main()
