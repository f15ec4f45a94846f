"""A running service for the tests that need one; they are skipped where the extra `app` is not installed."""

import asyncio
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # the benchmarks start services as users do

pytest.importorskip("fastapi", reason="the extra 'app' is not installed")
pytest.importorskip("prometheus_client", reason="the extra 'app' is not installed")

from benchmarks.pages.browse_page import MAX_BYTES
from benchmarks.service_process import running
from fastapi.testclient import TestClient

from primaldepth.app.routes import create_app
from primaldepth.app.server import create_server, listen
from primaldepth.app.service_settings import ServiceSettings
from waiting import wait_until

SMALL = {"max_bytes": 3_000_000, "max_pixels": 2**20, "max_side": 4096, "queue": 4, "batch": 4}


def _settings(**given):
    return ServiceSettings(**{"page": False, "method": "bilinear", "device": "cpu", "port": 0} | given)


@pytest.fixture(scope="session")
def start():
    """Open a service with these settings; all are closed at the end."""
    clients = []

    def open_service(**given):
        client = TestClient(create_app(_settings(**given)), base_url="http://127.0.0.1")
        client.__enter__()
        clients.append(client)
        wait_until(lambda: client.get("/readyz").status_code == 200)
        return client

    yield open_service
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture(scope="session")
def service(start):
    """One service with small limits, shared by the tests that leave it as it was."""
    return start(**SMALL)


@pytest.fixture(scope="session")
def served_log(tmp_path_factory):
    """Where `served` writes its log."""
    return tmp_path_factory.mktemp("served") / "log"


@pytest.fixture(scope="session")
def served(served_log):
    """A service with the page, in a process of its own."""
    pytest.importorskip("gradio", reason="the extra 'app' is not installed")
    options = ("--method", "bilinear", "--device", "cpu", "--max-bytes", str(MAX_BYTES))
    with running(*options, log=served_log) as found:
        yield found


@pytest.fixture(scope="session")
def live():
    """The address of a service that listens on a port of this machine."""
    settings = _settings(**SMALL)
    listener = listen(settings)
    app = create_app(settings)
    server = create_server(app, settings)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
    thread.start()
    wait_until(lambda: server.started and app.state.engine.ready)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=30)
