"""A running service for the tests that need one; they are skipped where the extra `app` is not installed."""

import pytest

pytest.importorskip("fastapi", reason="the extra 'app' is not installed")
pytest.importorskip("prometheus_client", reason="the extra 'app' is not installed")

from fastapi.testclient import TestClient
from waiting import wait_until

from primaldepth.app.http import create_app
from primaldepth.app.settings import ServiceSettings


@pytest.fixture(scope="session")
def start():
    """Open a service with these settings; all are closed at the end."""
    clients = []

    def open_service(**settings):
        app = create_app(ServiceSettings(**{"page": False, "method": "bilinear", "device": "cpu"} | settings))
        client = TestClient(app, raise_server_exceptions=True)
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
    return start(max_bytes=3_000_000, max_pixels=2**20, max_side=4096, queue=4, batch=4)
