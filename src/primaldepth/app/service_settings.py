"""Settings of an operator: where to listen, and limits for one request and for all of them."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, SecretStr

from primaldepth.api import Device
from primaldepth.app.host_checks import check_name
from primaldepth.core.settings import Count, Positive, Settings
from primaldepth.pipeline.request import DEFAULT_METHOD

_Gib = Annotated[float, Field(gt=0.0)]


def _option(default: Any, metavar: str, text: str) -> Any:
    """Declare a setting with its value in the help of the command line, and what it means there."""
    return Field(default, description=text, json_schema_extra={"metavar": metavar})


class ServiceSettings(Settings):
    """Limits and addresses of one service; `primaldepth serve` has an option for each.

    max_pixels and max_side are read from an image's header before anything is decoded.
    """

    host: str = _option("127.0.0.1", "ADDRESS", "Where to listen.")
    port: Annotated[int, Field(ge=0, le=65535)] = _option(7860, "PORT", "0 takes a free one.")
    method: str = _option(DEFAULT_METHOD, "NAME", "Used where a request names none.")
    device: Device = _option("auto", "auto|cpu|cuda", "Where to compute.")
    max_bytes: Count = _option(64 * 2**20, "N", "Of one request.")
    max_pixels: Count = _option(2**24, "N", "Of one image.")
    max_side: Count = _option(16384, "N", "Pixels in a row or column.")
    seconds: Positive = _option(60.0, "S", "For one request: decode, compute and encode.")
    queue: Count = _option(16, "N", "Requests that may wait.")
    batch: Count = _option(8, "N", "Requests computed together.")
    workers: Count = 1
    upload_seconds: Positive = _option(30.0, "S", "For the body of a request to arrive.")
    answer_seconds: Positive = _option(30.0, "S", "For a client to read on in its answer.")
    grace_seconds: Positive = _option(60.0, "S", "To finish what was accepted when told to end.")
    memory_gib: _Gib = _option(16.0, "GIB", "For decoding and computing on the CPU.")
    disk_gib: _Gib = _option(8.0, "GIB", "For the page's uploads and results; the oldest go first.")
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
