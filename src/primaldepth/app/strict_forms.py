"""Refuse forms that are incomplete or ambiguous, before they are used.

A form that was cut off, or in which a field occurs twice, could be read in more than one way: a field would
be dropped silently. So would what follows the end of a form.
"""

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, Headers
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser

_MOST_PARTS = 16
_MOST_TEXT_BYTES = 64 * 2**10  # of one field that is no file
_MOST_NAME_BYTES = 256
_PLAIN_ENCODINGS = (b"binary", b"8bit", b"7bit")


class _End:
    """Watches for the closing boundary in a body that comes in chunks."""

    def __init__(self, boundary: bytes) -> None:
        self._wanted = b"\r\n--" + boundary + b"--"
        self._tail = b"\r\n"  # a form without a part may begin with its end
        self.seen = False

    def feed(self, chunk: bytes) -> None:
        """Raise if something other than white space follows the closing boundary."""
        rest = chunk
        if not self.seen:
            joined = self._tail + chunk
            before, found, rest = joined.partition(self._wanted)
            self.seen = bool(found)
            self._tail = before[-len(self._wanted) :]
        if self.seen and rest.strip(b"\r\n\t "):
            raise MultiPartException("the form goes on after its closing boundary")


class StrictParser(MultiPartParser):
    """Starlette's parser for forms, which also refuses ambiguous ones.

    Args:
        repeated: name of the one field that may occur more than once.
    """

    def __init__(self, headers: Headers, stream: AsyncGenerator[bytes, None], repeated: str = "") -> None:
        _, options = parse_options_header(headers.get("content-type", ""))
        self._end = _End(options.get(b"boundary", b""))
        limits: dict[str, Any] = {"max_files": _MOST_PARTS, "max_fields": _MOST_PARTS}
        super().__init__(headers, self._watched(stream), max_part_size=_MOST_TEXT_BYTES, **limits)
        if options.get(b"charset", b"utf-8").lower() != b"utf-8":
            raise MultiPartException("the form is in another charset than utf-8")
        self._repeated, self._names = repeated, set[str]()

    async def _watched(self, stream: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        async for chunk in stream:
            self._end.feed(chunk)
            yield chunk
        if not self._end.seen:
            raise MultiPartException("the form ends before its closing boundary")

    def on_headers_finished(self) -> None:
        """Check the headers of a part before its content is read."""
        headers = self._current_part.item_headers
        names = [name for name, _ in headers]
        if len(set(names)) < len(names):
            raise MultiPartException("a part of the form has a header twice")
        given = dict(headers)
        if given.get(b"content-transfer-encoding", b"binary").strip().lower() not in _PLAIN_ENCODINGS:
            raise MultiPartException("a part of the form is encoded; send its bytes as they are")
        if given.get(b"content-type", b"").strip().lower().startswith(b"multipart/"):
            raise MultiPartException("a part of the form is a form itself")
        self._check_name(given.get(b"content-disposition", b""))
        super().on_headers_finished()

    def _check_name(self, disposition: bytes) -> None:
        kind, options = parse_options_header(disposition)
        name = options.get(b"name", b"")
        if kind != b"form-data" or not name or len(name) > _MOST_NAME_BYTES:
            raise MultiPartException("a part of the form has no name, or a very long one")
        try:
            text = name.decode()
        except UnicodeDecodeError:
            raise MultiPartException("the name of a field is not UTF-8") from None
        if text in self._names and text != self._repeated:
            raise MultiPartException(f"the field '{text[:60]}' occurs twice")
        self._names.add(text)


async def read_form(request: Request, repeated: str = "") -> FormData:
    """Read a form of the type multipart/form-data; a body of another type is an empty form.

    Args:
        request: whose body was not read yet.
        repeated: name of the one field that may occur more than once.

    Returns:
        The form, which the caller closes.

    Raises:
        HTTPException: 400 if the form is not complete or can be read in two ways.
    """
    kind, _ = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data":
        return FormData()
    try:
        async with aclosing(request.stream()) as stream:
            return await StrictParser(request.headers, stream, repeated).parse()
    except MultiPartException as error:
        raise HTTPException(400, error.message) from None


class StrictForm(Request):
    """A request whose form is read by `read_form`."""

    async def _get_form(self, **_: Any) -> FormData:
        if self._form is None:
            self._form = await read_form(self)
        return self._form


class StrictFormRoute(APIRoute):
    """A route whose forms are read by `read_form`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the request before FastAPI reads its form."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(StrictForm(request.scope, request.receive))

        return strict
