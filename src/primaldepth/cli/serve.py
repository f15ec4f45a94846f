"""`primaldepth serve`: the web page and the HTTP interface."""

import inspect
import logging
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from primaldepth.app.service_settings import ServiceSettings
from primaldepth.app.tasks import method_names
from primaldepth.cli.options import option, with_parameters
from primaldepth.cli.output import note
from primaldepth.compute.device import pick_device
from primaldepth.core.errors import InputError, MissingDependencyError
from primaldepth.io.files import read_text
from primaldepth.methods import create

_ON_GPU = 4
_NAMES = {"allowed_hosts": "allowed_host", "token": "token_file"}  # options that are named otherwise
_MOST_TOKEN = 4096  # bytes of its file
_TOKEN_VARIABLE = "PRIMALDEPTH_TOKEN"  # noqa: S105 - the name of a variable


def _with_settings(verb: Callable[..., None]) -> Callable[..., None]:
    """Replace `**values` of a verb by an option for each setting of the service that it does not declare."""
    own, parameters = inspect.signature(verb).parameters, []
    for name, field in ServiceSettings.model_fields.items():
        if field.description is None:
            parameters.append(own[_NAMES.get(name, name)])
        else:
            shown: Any = field.json_schema_extra
            kind, default = type(field.default), field.default
            parameters.append(option(name, kind, default, shown["metavar"], field.description))
    return with_parameters(verb, parameters)


@_with_settings
def serve(
    workers: int | None = typer.Option(
        None, "--workers", metavar="N", help="Processes that compute.  [default: 4 on a GPU, else 1]"
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
    **values: Any,
) -> None:
    """Serve the web page and the HTTP interface until SIGTERM or Ctrl-C."""
    values["workers"] = _workers(values["device"]) if workers is None else workers
    own = {"allowed_hosts": allowed_host, "token": _token(token_file), "page": page}
    _serve(ServiceSettings.parse(values | own, "serve"))


def _workers(device: str) -> int:
    """Return how many workers suit the device: on a GPU one decodes while others compute, on the CPU one."""
    return _ON_GPU if pick_device(device).type == "cuda" else 1


def _serve(settings: ServiceSettings) -> None:
    _check_method(settings.method)  # what is wrong is told before anything is loaded
    pick_device(settings.device)
    _check_packages(settings)
    from primaldepth.app import server
    from primaldepth.app.routes import create_app

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
    page = ["gradio"] if settings.page else []
    for name in ("fastapi", "uvicorn", "python_multipart", "prometheus_client", *page):
        if find_spec(name) is None:
            hint = ", or use --no-page" if name == "gradio" else ""
            raise MissingDependencyError(
                "serve", f"needs {name}", f"run: pip install 'primaldepth[app]'{hint}"
            )


def _write_log() -> None:
    """Log our lines to stderr; of libraries only errors, since their lines may quote a client."""
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
