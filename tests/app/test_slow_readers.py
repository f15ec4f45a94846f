"""Clients that do not read what they asked for, or never finish asking."""

import asyncio
import signal
import socket
import threading
import time

from fastapi import FastAPI, Response

from primaldepth.app.request_checks import RequestChecks
from primaldepth.app.server import create_server
from primaldepth.app.service_metrics import Metrics
from primaldepth.app.service_settings import ServiceSettings
from primaldepth.app.upload_slots import UploadSlots
from waiting import wait_until


class _Idle:
    """An engine that has nothing to do."""

    idle, running, waiting = True, 0, 0

    def drain(self):
        """Nothing is accepted anyway."""


def _watched(connection_type, slots):
    """A list that gets (bytes unsent, slots taken) of every line when it is broken."""
    states, break_line = [], connection_type._break

    def note_and_break(line):
        states.append((line.transport.get_write_buffer_size(), slots.taken))
        break_line(line)

    connection_type._break = note_and_break
    return states


class Unread:
    """A service with one place whose answers have 32 MiB, and a client that sends but need not read."""

    BODY = bytes(32 * 2**20)

    def __init__(self, **given):
        settings, self.slots = ServiceSettings(**given), UploadSlots(1)
        app = FastAPI()
        app.state.engine, app.state.slots = _Idle(), self.slots
        app.post("/v1/upsample")(lambda: Response(self.BODY))
        app.add_middleware(RequestChecks, settings=settings, metrics=Metrics(), slots=self.slots)
        self._server = create_server(app, settings)
        self.broken = _watched(self._server.config.http, self.slots)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread.start()
        self.line = socket.socket()
        self.line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
        self.line.settimeout(30)
        self.line.connect(self._listener.getsockname())
        return self

    def __exit__(self, *_):
        self.line.close()
        self._server.should_exit = True
        self._thread.join(timeout=30)

    def _serve(self):
        asyncio.run(self._server.serve(sockets=[self._listener]))

    def ask(self, times=1, more=""):
        head = f"POST /v1/upsample HTTP/1.1\r\nHost: localhost\r\n{more}Content-Length: 0\r\n\r\n"
        self.line.sendall(head.encode() * times)

    @property
    def connections(self):
        return len(self._server.server_state.connections)

    def lost(self):
        """Whether the service breaks the connection."""
        try:
            return self.line.recv(1) == b""
        except ConnectionResetError:
            return True

    def end(self):
        self._server.handle_exit(signal.SIGTERM, None)


def test_a_slow_reader_loses_its_connection_and_its_place():
    """Two requests on one connection, of which no answer is read."""
    with Unread(answer_seconds=1.0) as service:
        service.ask(times=2)
        wait_until(lambda: service.broken)
        ((unsent, taken),) = service.broken
        assert 0 < unsent < 2**19
        assert taken == 1
        wait_until(lambda: service.connections == 0)
        wait_until(lambda: service.slots.taken == 0)


def test_the_end_of_an_answer_that_is_not_read_is_given_up_too(monkeypatch):
    """All of it lies with the server already, and the request has no place any more."""
    monkeypatch.setattr("primaldepth.app.request_checks.PART_BYTES", 2**30)
    with Unread(answer_seconds=1.0) as service:
        service.ask()
        wait_until(lambda: service.broken)
        ((unsent, taken),) = service.broken
        assert unsent > 2**20
        assert taken == 0
        wait_until(lambda: service.connections == 0)


def test_a_reader_that_reads_on_gets_all_even_when_the_service_ends():
    """For longer than a part may stay unread."""
    seconds = 4.0  # this thread may be kept from reading for almost as long
    with Unread(answer_seconds=seconds) as service:
        service.ask(more="Connection: close\r\n")
        with service.line.makefile("rb") as stream:
            found = len(stream.read(2**20))
            service.end()
            start = time.monotonic()
            while part := stream.read(2**20):
                found += len(part)
                time.sleep(1.3 * seconds / 32)
        assert found > len(service.BODY)
        assert time.monotonic() - start > seconds
        assert not service.broken


def test_a_client_that_never_finishes_the_head_of_its_request_loses_its_connection():
    with Unread(upload_seconds=0.5) as service:
        service.line.sendall(b"POST /v1/upsample HTTP/1.1\r\nHost: local")
        assert service.lost()
        wait_until(lambda: service.connections == 0)


def test_a_client_that_asks_again_on_its_connection_has_as_long_for_the_next_head(monkeypatch):
    monkeypatch.setattr(Unread, "BODY", b"done\n")
    with Unread(upload_seconds=0.5) as service:
        service.ask()
        with service.line.makefile("rb") as stream:
            while stream.readline() != b"done\n":
                pass
        service.line.sendall(b"POST")
        assert service.lost()
