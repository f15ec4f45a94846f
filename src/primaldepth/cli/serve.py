"""`primaldepth serve`: the web page and the HTTP interface."""

import logging
import os
from pathlib import Path

import typer

from primaldepth.api import DEFAULT_METHOD
from primaldepth.cli.output import note
from primaldepth.core.errors import InputError, MissingDependencyError
from primaldepth.methods import create

_TOKEN_VARIABLE = "PRIMALDEPTH_TOKEN"  # noqa: S105 - the name of a variable


def serve(
    host: str = typer.Option("127.0.0.1", "--host", metavar="ADDRESS", help="Where to listen."),
    port: int = typer.Option(7860, "--port", metavar="PORT", help="0 takes a free one."),
    method: str = typer.Option(
        DEFAULT_METHOD, "--method", metavar="NAME", help="Used where a request names none.", show_default=True
    ),
    device: str = typer.Option("auto", "--device", metavar="auto|cpu|cuda", help="Where to compute."),
    max_bytes: int = typer.Option(64 * 2**20, "--max-bytes", metavar="N", help="Of one request."),
    max_pixels: int = typer.Option(2**24, "--max-pixels", metavar="N", help="Of one image."),
    max_side: int = typer.Option(16384, "--max-side", metavar="N", help="Pixels in a row or column."),
    seconds: float = typer.Option(60.0, "--seconds", metavar="S", help="To compute one frame."),
    queue: int = typer.Option(16, "--queue", metavar="N", help="Requests that may wait."),
    batch: int = typer.Option(8, "--batch", metavar="N", help="Requests computed together."),
    upload_seconds: float = typer.Option(
        30.0, "--upload-seconds", metavar="S", help="For the body of a request to arrive."
    ),
    grace_seconds: float = typer.Option(
        60.0, "--grace-seconds", metavar="S", help="To finish what was accepted when told to end."
    ),
    memory_gib: float = typer.Option(
        16.0, "--memory-gib", metavar="GIB", help="For decoding and computing on the CPU."
    ),
    token_file: Path | None = typer.Option(
        None,
        "--token-file",
        metavar="FILE",
        help=f"Require the token in this file; or set {_TOKEN_VARIABLE}.",
    ),
    page: bool = typer.Option(True, "--page/--no-page", help="Offer the web page at /."),
) -> None:
    """Serve the web page and the HTTP interface until SIGTERM or Ctrl-C."""
    try:
        from primaldepth.app.http import create_app
        from primaldepth.app.server import listen
        from primaldepth.app.server import serve as run
    except ImportError as error:
        raise MissingDependencyError(
            f"serve: needs {error.name}; run: pip install 'primaldepth[app]'"
        ) from error
    from primaldepth.app.settings import ServiceSettings

    values = {
        "host": host,
        "port": port,
        "method": method,
        "device": device,
        "max_bytes": max_bytes,
        "max_pixels": max_pixels,
        "max_side": max_side,
        "seconds": seconds,
        "queue": queue,
        "batch": batch,
        "upload_seconds": upload_seconds,
        "grace_seconds": grace_seconds,
        "memory_gib": memory_gib,
        "token": _token(token_file),
        "page": page,
    }
    settings = ServiceSettings.parse(values, "serve")
    create(settings.method)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", force=True)
    for name in ("uvicorn", "httpx", "gradio", "asyncio", "python_multipart"):
        logging.getLogger(name).setLevel(logging.ERROR)
    listener = listen(settings)  # a port that is taken is told before anything is loaded
    app = create_app(settings)
    address, found = listener.getsockname()[:2]
    note(f"listening on http://{f'[{address}]' if ':' in address else address}:{found}")
    run(app, listener, settings)


def _token(path: Path | None) -> str | None:
    """From the file, else from the environment; neither shows up in a list of processes."""
    token = os.environ.get(_TOKEN_VARIABLE) if path is None else path.read_text(encoding="utf-8").strip()
    if token is not None and len(token) < 16:
        where = _TOKEN_VARIABLE if path is None else str(path)
        raise InputError(f"{where}: a token of {len(token)} characters can be guessed; use 16 or more")
    return token
