"""Messages between the service and its workers, sent as JSON and raw bytes, without pickle.

Reading a pickle runs what its writer put in it. A worker decodes files of strangers, so nothing that it says
may do more here than be a value of one of the types below.
"""

from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from primaldepth.app.frame_trials import Tried
from primaldepth.app.page.result_files import Drawn
from primaldepth.app.problems import Problem
from primaldepth.app.response_formats import Answer
from primaldepth.app.tasks import Task

_MOST_JSON_BYTES = 16 * 2**20  # a batch of tasks, or the charts of one result


@dataclass(frozen=True, slots=True)
class Ticket:
    """A task and the number it is known by."""

    number: int
    task: Task


@dataclass(frozen=True, slots=True)
class Ready:
    """Message that the worker waits for tickets."""

    says: Literal["ready"] = "ready"


@dataclass(frozen=True, slots=True)
class Started:
    """Message that the worker has started on these tickets, so that their time limit runs."""

    numbers: tuple[int, ...]
    says: Literal["started"] = "started"


@dataclass(frozen=True, slots=True)
class Preparing:
    """Message that the worker runs a method for the first time, which includes compiling."""

    method: str
    says: Literal["preparing"] = "preparing"


@dataclass(frozen=True, slots=True)
class Done:
    """The answer to a ticket."""

    number: int
    answer: Answer | Drawn | Tried
    seconds: float
    says: Literal["done"] = "done"


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a ticket has no answer; `trace` names lines of code, never a value."""

    number: int
    problem: Problem
    trace: str = ""
    says: Literal["failed"] = "failed"


@dataclass(frozen=True, slots=True)
class Lost:
    """The device has failed for this process: the worker ends without answering its tickets."""

    trace: str
    says: Literal["lost"] = "lost"


Message = Ready | Started | Preparing | Done | Failed | Lost
_MESSAGE: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="says")])
_TICKETS: TypeAdapter[list[Ticket]] = TypeAdapter(list[Ticket])


def send_tickets(line: Connection, tickets: list[Ticket]) -> None:
    """Send tickets to a worker.

    Args:
        line: to a worker.
        tickets: with the tasks.
    """
    line.send_bytes(_TICKETS.dump_json(tickets))


def receive_tickets(line: Connection) -> list[Ticket]:
    """Wait for the next tickets.

    Raises:
        EOFError: if the service has closed its end.
    """
    return _TICKETS.validate_json(line.recv_bytes(_MOST_JSON_BYTES))


def send_message(line: Connection, message: Message) -> None:
    """Send a message to the service; the body of a file follows its JSON as raw bytes.

    Args:
        line: to the service.
        message: of the worker.
    """
    if isinstance(message, Done) and isinstance(message.answer, Answer):
        body, message = message.answer.body, replace(message, answer=replace(message.answer, body=b""))
        line.send_bytes(_MESSAGE.dump_json(message))
        line.send_bytes(body)
    else:
        line.send_bytes(_MESSAGE.dump_json(message))


def receive_message(line: Connection, most_bytes: int) -> Message:
    """Wait for the next message of a worker.

    Args:
        line: to the worker.
        most_bytes: that the body of a file may have.

    Raises:
        EOFError: if the worker has gone, or says what is no message.
        OSError: if it says more than it may.
    """
    try:
        message = _MESSAGE.validate_json(line.recv_bytes(_MOST_JSON_BYTES))
    except ValidationError as error:
        raise EOFError from error
    if isinstance(message, Done) and isinstance(message.answer, Answer):
        return replace(message, answer=replace(message.answer, body=line.recv_bytes(most_bytes)))
    return message
