"""Errors as clients receive them: a status, a code for programs, a message and a hint."""

import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from primaldepth.core.errors import FileFormatError, MissingDependencyError, PrimalDepthError, TooLargeError


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a request failed.

    Args:
        status: of the HTTP answer.
        code: short and stable, for programs.
        message: what was found.
        hint: what to do.
        headers: of the HTTP answer, beside the usual ones.
    """

    status: int
    code: str
    message: str
    hint: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def with_headers(self, more: dict[str, str]) -> "Problem":
        """Return the problem with these headers added."""
        return replace(self, headers=self.headers | more)

    def body(self) -> dict[str, dict[str, str]]:
        """Return the JSON answer."""
        texts = {"code": self.code, "message": self.message, "hint": self.hint}
        return {"error": {name: _sendable(text) for name, text in texts.items()}}


def _sendable(text: str) -> str:
    """Return the text with characters that cannot be encoded replaced: clients may send halves of pairs."""
    return text.encode("utf-8", "replace").decode()


class RefusedError(PrimalDepthError):
    """Error for a refused request, which is answered with the problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.message}; {problem.hint}" if problem.hint else problem.message)
        self.problem = problem


class ErrorDetail(BaseModel):
    """The error of an answer: code, message and hint."""

    model_config = ConfigDict(extra="forbid")

    code: str = Field(description="Short and stable, for programs.", examples=["unreadable_file"])
    message: str = Field(description="What was found.", examples=["depth: is empty (0 bytes)"])
    hint: str = Field(description="What to do; may be empty.", examples=["copy or export it again"])


class ErrorBody(BaseModel):
    """Every answer that is not a success."""

    model_config = ConfigDict(extra="forbid")

    error: ErrorDetail


INTERNAL = Problem(
    500, "internal", "the service failed on this request", "try again; if it stays, tell the operator"
)
DRAINING = Problem(
    503, "draining", "the service is ending and takes no new work", "try again soon", {"Retry-After": "10"}
)
NOT_READY = Problem(
    503, "not_ready", "the service is starting", "try again in some seconds", {"Retry-After": "5"}
)
BUSY_RETRY = {"Retry-After": "2"}
RESULT = "result."  # begins the name of a file that is made for a client
GONE = 499  # status of a request whose client did not wait for the answer
_CODES = {400: "bad_request", 404: "not_found", 405: "method_not_allowed", 413: "too_large"}
_NO_CAMERAS = (
    "give JSON with 'guide', a camera_info of ROS as YAML or JSON, or a 3x3 matrix as text; "
    "the command line, with --cameras, names what is wrong in a file"
)
_HINTS = {404: "see /openapi.json for what there is", 405: "see the Allow header for what may be done here"}


def problem_of(error: PrimalDepthError, folder: Path | None = None) -> Problem:
    """Return an error of this package as an answer.

    Args:
        error: raised on purpose.
        folder: where the uploads lie; their files are told by their field, and nothing is quoted from them.
    """
    if isinstance(error, RefusedError):
        return error.problem
    message, hint = _told(error, folder)
    if isinstance(error, TooLargeError):
        return Problem(413, "too_many_pixels", message, hint)
    if isinstance(error, MissingDependencyError):
        return Problem(422, "unsupported_format", message, "use another format")
    if isinstance(error, FileFormatError):
        return Problem(422, "unreadable_file", message, hint)
    return Problem(422, "invalid_input", message, hint)


def _told(error: PrimalDepthError, folder: Path | None) -> tuple[str, str]:
    """Return message and hint of an error in the words of the form, without text of the client."""
    subject, hint = (getattr(each, "in_form", each) for each in (error.subject, error.hint))
    quoted: Sequence[str] = error.quoted
    if folder is not None and folder in Path(subject).parents:
        field = Path(subject).relative_to(folder).parts[0]
        if field == "cameras":  # text, of which errors quote words and numbers in many ways
            return "cameras: cannot be used as a camera file", _NO_CAMERAS
        subject = "the result" if field.startswith(RESULT) else field
        quoted = ["..."] * len(quoted)
    return " ".join(error.message(subject, quoted).split()), " ".join(hint.split())


def place_of(error: BaseException) -> str:
    """Return the kind of an exception and the lines of code it came through, without its message.

    The message may hold a client's text, which no log shall hold.
    """
    lines = traceback.extract_tb(error.__traceback__)[-4:]
    places = " > ".join(f"{Path(each.filename).name}:{each.lineno}" for each in lines)
    return f"{type(error).__name__} at {places}" if places else type(error).__name__


def problem_of_status(status: int, detail: str, headers: dict[str, str] | None = None) -> Problem:
    """Return the problem for what a web framework refuses by a bare status.

    Args:
        status: of the HTTP answer.
        detail: in the framework's words.
        headers: of the HTTP answer.
    """
    code = _CODES.get(status, "bad_request" if status < 500 else "internal")
    return Problem(status, code, _sentence(detail), _HINTS.get(status, ""), headers or {})


def _sentence(detail: str) -> str:
    words = re.sub(r"\s+", " ", detail).strip()[:300]
    return words.lower()
