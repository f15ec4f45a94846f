"""`primaldepth serve`: the web page and the HTTP interface."""

import logging
import os
from importlib.util import find_spec
from pathlib import Path

import typer

from primaldepth.app.settings import ServiceSettings
from primaldepth.app.tasks import method_names
from primaldepth.cli.output import note
from primaldepth.core.errors import InputError, MissingDependencyError
from primaldepth.io.files import read_text
from primaldepth.methods import create
from primaldepth.pipeline.request import DEFAULT_METHOD
from primaldepth.pipeline.run import pick_device

_ON_GPU = 4
_MOST_TOKEN = 4096  # bytes of its file
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
    seconds: float = typer.Option(
        60.0, "--seconds", metavar="S", help="For one request: decode, compute and encode."
    ),
    queue: int = typer.Option(16, "--queue", metavar="N", help="Requests that may wait."),
    batch: int = typer.Option(8, "--batch", metavar="N", help="Requests computed together."),
    workers: int | None = typer.Option(
        None, "--workers", metavar="N", help="Processes that compute.  [default: 4 on a GPU, else 1]"
    ),
    upload_seconds: float = typer.Option(
        30.0, "--upload-seconds", metavar="S", help="For the body of a request to arrive."
    ),
    answer_seconds: float = typer.Option(
        30.0, "--answer-seconds", metavar="S", help="For a client to read on in its answer."
    ),
    grace_seconds: float = typer.Option(
        60.0, "--grace-seconds", metavar="S", help="To finish what was accepted when told to end."
    ),
    memory_gib: float = typer.Option(
        16.0, "--memory-gib", metavar="GIB", help="For decoding and computing on the CPU."
    ),
    disk_gib: float = typer.Option(
        8.0, "--disk-gib", metavar="GIB", help="For the page's uploads and results; the oldest go first."
    ),
    allowed_host: list[str] = typer.Option(
        [],
        "--allowed-host",
        metavar="NAME",
        help="Name under which it may be asked, beside localhost and its address; repeatable, * for all.",
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
    values = dict(locals())  # options are named as the settings they set
    values["workers"] = _workers(device) if workers is None else workers
    values["allowed_hosts"], values["token"] = values.pop("allowed_host"), _token(values.pop("token_file"))
    _serve(ServiceSettings.parse(values, "serve"))


def _workers(device: str) -> int:
    """One decodes and encodes while others compute; on the CPU they would only share the cores."""
    return _ON_GPU if pick_device(device).type == "cuda" else 1


def _serve(settings: ServiceSettings) -> None:
    _check_method(settings.method)  # what is wrong is told before anything is loaded
    pick_device(settings.device)
    _check_packages(settings)
    from primaldepth.app import server
    from primaldepth.app.http import create_app

    listener = server.listen(settings)
    _write_log()
    app = create_app(settings)
    address, port = listener.getsockname()[:2]
    note(f"listening on http://{f'[{address}]' if ':' in address else address}:{port}")
    server.serve(app, listener, settings)


def _check_method(name: str) -> None:
    create(name)
    if name not in method_names():
        hint = "run `primaldepth methods` for those there are"
        raise InputError(f"--method {name}", "a service offers methods by name, not files", hint)


def _check_packages(settings: ServiceSettings) -> None:
    needed = (
        "fastapi",
        "uvicorn",
        "python_multipart",
        "prometheus_client",
        *(["gradio"] if settings.page else []),
    )
    for name in needed:
        if find_spec(name) is None:
            hint = ", or use --no-page" if name == "gradio" else ""
            raise MissingDependencyError(
                "serve", f"needs {name}", f"run: pip install 'primaldepth[app]'{hint}"
            )


def _write_log() -> None:
    """Our lines to stderr; what libraries say of a request may hold what a client sent."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", force=True)
    for name in ("uvicorn", "httpx", "gradio", "asyncio", "python_multipart"):
        logging.getLogger(name).setLevel(logging.ERROR)


def _token(path: Path | None) -> str | None:
    """Return the token of the file, else of the environment; neither shows up in a list of processes.

    The variable is taken out of the environment, which every process started from here would inherit.
    """
    token = os.environ.pop(_TOKEN_VARIABLE, None) if path is None else read_text(path, _MOST_TOKEN).strip()
    if token is not None and len(token) < 16:
        where = _TOKEN_VARIABLE if path is None else str(path)
        raise InputError(where, f"a token of {len(token)} characters can be guessed", "use 16 or more")
    return token
