"""The server: listens on a socket, and finishes accepted work before it ends."""

import asyncio
import logging
import socket
import time
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from primaldepth.app.client_connection import connection_type
from primaldepth.app.engine import Engine
from primaldepth.app.problems import place_of
from primaldepth.app.service_settings import ServiceSettings
from primaldepth.app.upload_slots import UploadSlots
from primaldepth.core.errors import InputError

log = logging.getLogger("primaldepth.app")
_BACKLOG = 2048  # connections that wait to be taken


class Server(uvicorn.Server):
    """A server that finishes accepted work before it ends.

    On SIGTERM or SIGINT new work is refused with 503, what was accepted is finished, then the port closes.
    A second signal ends it at once.
    """

    def __init__(
        self, config: uvicorn.Config, engine: Engine, slots: UploadSlots, grace_seconds: float
    ) -> None:
        super().__init__(config)
        self._engine, self._slots, self._grace = engine, slots, grace_seconds
        self._told_at: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to shut down; `on_tick` closes the port when nothing is left to do."""
        if self._told_at is None:
            self._told_at = time.monotonic()
            log.info("told to end: %d running, %d waiting", self._engine.running, self._engine.waiting)
            self._engine.drain()
            self._slots.close()
            return
        self.should_exit = self.force_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Close the port once nothing is left to do; uvicorn calls this ten times a second."""
        if self._told_at is not None and not self.should_exit:
            late = time.monotonic() - self._told_at > self._grace
            self.should_exit = late or self._all_sent
        return await super().on_tick(counter)

    @property
    def _all_sent(self) -> bool:
        """Whether every answer is computed, and its last byte handed to the system."""
        if not self._engine.idle or self._slots.taken:
            return False
        lines = [connection.transport for connection in self.server_state.connections]
        return all(line.get_write_buffer_size() == 0 for line in lines)


def create_server(app: FastAPI, settings: ServiceSettings) -> Server:
    """Return a server that writes no log of its own and shuts down as `Server` does."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        http=connection_type(settings.answer_seconds, settings.upload_seconds),
        ws="none",
        h11_max_incomplete_event_size=32 * 2**10,
        timeout_graceful_shutdown=5,
        timeout_keep_alive=10,
    )
    return Server(config, app.state.engine, app.state.slots, settings.grace_seconds)


def serve(app: FastAPI, listener: socket.socket, settings: ServiceSettings) -> None:
    """Serve until a signal; returns when the port is closed.

    Args:
        app: the service.
        listener: as `listen` returns it.
        settings: of the service.
    """
    asyncio.run(_serve(create_server(app, settings), listener))


async def _serve(server: Server, listener: socket.socket) -> None:
    asyncio.get_running_loop().set_exception_handler(_note)
    await server.serve(sockets=[listener])


def _note(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log where the event loop failed, without the error's text, which may quote a client."""
    error = context.get("exception")
    log.error("the event loop failed: %s", "?" if error is None else place_of(error))


def listen(settings: ServiceSettings) -> socket.socket:
    """Return a listening socket: clients that connect from now on wait for the service.

    Args:
        settings: of the service.

    Raises:
        InputError: if the address cannot be listened at.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        place = f"{settings.host}:{settings.port}"
        raise InputError(
            place, f"cannot listen there ({error.strerror})", "choose another --port or --host"
        ) from error
    return listener
