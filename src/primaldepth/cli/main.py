"""`primaldepth`: one verb per module."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from primaldepth.cli import (
    align,
    bench,
    data,
    demo,
    doctor,
    evaluate,
    export,
    fuse,
    live,
    methods,
    render,
    report,
    serve,
    train,
    upsample,
)
from primaldepth.cli.output import fail, show
from primaldepth.core.errors import PrimalDepthError
from primaldepth.version import __version__

app = typer.Typer(
    name="primaldepth",
    help="A small noisy depth map and a sharp image become one clean, high-resolution depth map.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # usage errors and help as plain lines, whatever they are piped into
)


def _version(wanted: bool) -> None:
    if wanted:
        show(f"primaldepth {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    pass


for verb in (
    *(upsample.upsample, align.align, live.live, fuse.fuse, demo.demo, methods.methods, evaluate.evaluate),
    *(
        report.report,
        render.render,
        train.train_command,
        export.export,
        serve.serve,
        bench.bench,
        doctor.doctor,
    ),
):
    app.command(verb.__name__.removesuffix("_command"))(verb)
app.add_typer(data.app, name="data", help="Check benchmark files or rendered scenes.")


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let SIGTERM end the program as Ctrl-C does, so that it removes the files that it has half written.

    `serve` has its own way to end. A process that was forked off keeps the system's way.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    own = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        if os.getpid() == own:
            raise SystemExit(128 + number)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run() -> None:
    """Entry point: errors of ours and of the file system become one line and exit code 2."""
    try:
        with _ending_in_order():
            app(prog_name="primaldepth")
    except PrimalDepthError as error:
        fail(str(error))
        sys.exit(2)
    except OSError as error:
        fail(f"{error.filename or 'a file'}: {error.strerror or error}")
        sys.exit(2)
    except KeyboardInterrupt:
        fail("interrupted")
        sys.exit(130)
