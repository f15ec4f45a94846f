"""What `import primaldepth` adds to `import torch`.

    python scripts/import_time.py [PYTHON]

Processor time of new interpreters, taken in turns, so that a busy machine slows both alike.
"""

import resource
import subprocess
import sys
from statistics import median

MOST = 1.3  # times the import of torch
RUNS = 5


def main() -> None:
    """Print the medians; fail where the package takes more than it may."""
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    torch, ours = (median(values) for values in measured(python, RUNS))
    print(f"import torch {torch:.2f} s, import primaldepth {ours:.2f} s: {ours / torch - 1:+.0%}")
    sys.exit(ours > MOST * torch)


def measured(python: str, runs: int) -> tuple[list[float], list[float]]:
    """Seconds of importing torch, and primaldepth; a first run of each fills the caches."""
    seconds: dict[str, list[float]] = {"torch": [], "primaldepth": []}
    for _ in range(runs + 1):
        for name, values in seconds.items():
            values.append(_processor_seconds(python, name))
    return seconds["torch"][1:], seconds["primaldepth"][1:]


def _processor_seconds(python: str, module: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([python, "-c", f"import {module}"], check=True)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    main()
