"""What an operator decides: where to listen, how much one request and all of them may take."""

from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from primaldepth.api import Device
from primaldepth.app.host_checks import check_name
from primaldepth.core.settings import Count, Positive, Settings
from primaldepth.pipeline.request import DEFAULT_METHOD


class ServiceSettings(Settings):
    """Limits and places of one service.

    max_bytes bounds the body of a request, max_pixels and max_side each image in it (read from its header,
    before anything is decoded), seconds the time that a request is decoded, computed and encoded, queue the
    requests that wait, batch those that are computed together, workers the processes that compute,
    upload_seconds the time a body takes to arrive, answer_seconds the time a client may leave a part of its
    answer unread, grace_seconds the time that is left to finish when the service is told to end, memory_gib
    what decoding and computing may take in all, disk_gib what uploads to the page and its results may.
    allowed_hosts are names under which the service may be asked beside its own addresses; "*" stands for
    every name.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 7860
    method: str = DEFAULT_METHOD
    device: Device = "auto"
    max_bytes: Count = 64 * 2**20
    max_pixels: Count = 2**24
    max_side: Count = 16384
    seconds: Positive = 60.0
    queue: Count = 16
    batch: Count = 8
    workers: Count = 1
    upload_seconds: Positive = 30.0
    answer_seconds: Positive = 30.0
    grace_seconds: Positive = 60.0
    memory_gib: Annotated[float, Field(gt=0.0)] = 16.0
    disk_gib: Annotated[float, Field(gt=0.0)] = 8.0
    allowed_hosts: tuple[Annotated[str, AfterValidator(check_name)], ...] = ()
    token: SecretStr | None = None
    page: bool = True

    @property
    def slots(self) -> int:
        """Requests with a body at a time: those computed, those waiting, and as many on their way."""
        return 2 * self.queue + self.workers * self.batch

    def for_worker(self) -> "ServiceSettings":
        """Return what a worker needs: the same without the token, which files of strangers must not reach."""
        return self.model_copy(update={"token": None})
