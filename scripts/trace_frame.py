"""List the calls between files that one frame of a batch makes, as docs/tour.md walks them.

    python scripts/trace_frame.py DEPTHS IMAGES --preview PREVIEWS -o OUT

The frame is the second of the batch, so that nothing is made or read for the first time. Each function is
listed once: as a stop if it calls functions of other files, else as a helper. What the rooms of mathematics
call among themselves is left out.
"""

import itertools
import sys
from pathlib import Path
from types import FrameType

import primaldepth
from primaldepth.cli.main import run
from primaldepth.pipeline.batches import Batch

ROOT = f"{Path(primaldepth.__file__).parent}/"
FRAME = 2  # of the batch
MATHEMATICS = ("methods/", "measurement/", "sensors/", "networks/", "variational/", "operators/", "geometry/")


class HopTrace:
    """Calls between files of the package, for `sys.setprofile`."""

    def __init__(self) -> None:
        self.turn = 0  # how often the batch was asked for a frame
        self.inside: FrameType | None = None  # a call of mathematics
        self.called: dict[str, None] = {}  # by other files, in order
        self.stops: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Take note of a call."""
        if event == "return" and frame is self.inside:
            self.inside = None
        if event != "call" or not _name(frame):
            return
        self.turn += frame.f_code is Batch.run.__code__
        callers = _callers(frame)
        if self.turn == FRAME and callers and _file(callers[0]) != _file(frame):
            same = itertools.takewhile(lambda each: _file(each) == _file(callers[0]), callers)
            self.stops.update(map(_name, same))
            if self.inside is None:
                self.called.setdefault(_name(frame))
                self.inside = frame if _file(frame).startswith(MATHEMATICS) else None


def _callers(frame: FrameType) -> list[FrameType]:
    """Return the calls inside the package that led to this one, the nearest first."""
    found, each = [], frame.f_back
    while each is not None:
        found += [each] if _name(each) else []
        each = each.f_back
    return found


def _file(frame: FrameType) -> str:
    return frame.f_code.co_filename.removeprefix(ROOT)


def _name(frame: FrameType) -> str:
    """Return file and function, or nothing outside of the package."""
    code = frame.f_code
    return f"{_file(frame)}: {code.co_qualname}" if code.co_filename.startswith(ROOT) else ""


def main() -> None:
    """Run the command under the trace, then print its stops and its helpers."""
    trace = HopTrace()
    sys.argv[0:1] = ["primaldepth", "upsample"]
    sys.setprofile(trace)
    try:
        run()
    finally:
        sys.setprofile(None)
        stops = [name for name in trace.called if name in trace.stops]
        helpers = [name for name in trace.called if name not in trace.stops]
        print(f"{len(stops)} stops:", *stops, sep="\n  ")
        print(f"{len(helpers)} helpers:", *helpers, sep="\n  ")


if __name__ == "__main__":
    main()
