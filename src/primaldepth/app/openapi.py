"""Responses in the OpenAPI description of the HTTP interface: every status, with an example."""

from typing import Any

from primaldepth.app.problems import DRAINING, NOT_READY, ErrorBody, Problem
from primaldepth.app.response_formats import MEDIA_TYPES

DESCRIPTION = """A small noisy depth map and a sharp image become one clean, high-resolution depth map.

Every answer that is no success is `{"error": {"code", "message", "hint"}}`: `code` is for programs and stays
the same between versions, `message` says what was found and `hint` what to do."""

_REPORT = {
    "description": "JSON: method, kind, unit, sizes, noise, how far the result departs from the samples; "
    "warnings, a list of sentences, says what to look at before the result is used.",
    "schema": {"type": "string"},
    "example": '{"method": "nlh-l2", "kind": "z", "unit": "mm", "seconds": 0.41, "warnings": []}',
}
_EXAMPLES = {
    400: Problem(400, "bad_request", "there was an error parsing the body", ""),
    401: Problem(
        401, "unauthorized", "the token is missing or wrong", "send the header 'Authorization: ...'"
    ),
    403: Problem(403, "cross_site", "a page of another site asked for this", "open the page of this service"),
    406: Problem(406, "not_acceptable", "no format of the Accept header is offered", "accept image/png"),
    408: Problem(
        408, "too_slow_upload", "the body did not arrive within 30 seconds", "send it faster, or less"
    ),
    413: Problem(413, "too_many_pixels", "guide: claims 40000x40000 pixels, more than the limit", "split it"),
    421: Problem(421, "wrong_host", "host: 'example.org' is no name of this service", "use its address"),
    422: Problem(422, "unreadable_file", "depth: is empty (0 bytes)", "copy or export it again"),
    429: Problem(429, "busy", "16 requests wait already, as many as may", "try again soon"),
    500: Problem(500, "internal", "the service failed on this request", "try again"),
    503: DRAINING,
    504: Problem(504, "too_slow", "not computed within 60 seconds", "use a smaller image or a faster method"),
}
_WORDS = {
    400: "The body is no multipart form, or is not complete.",
    401: "A token is required.",
    403: "A browser sent this for the page of another site.",
    406: "None of the formats offered is accepted.",
    408: "The body took too long to arrive.",
    413: "The body or an image in it is too large.",
    421: "The host that was asked for is no name of this service.",
    422: "A field or a file cannot be used.",
    429: "Too many requests wait.",
    500: "The service failed.",
    503: "The service is starting or ending.",
    504: "Computing took too long.",
}
OF_UPSAMPLE = tuple(_WORDS)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI descriptions of error responses, by status."""
    return {
        status: {
            "description": _WORDS[status],
            "model": ErrorBody,
            "content": {"application/json": {"example": _EXAMPLES[status].body()}},
        }
        for status in statuses
    }


def depth_answer() -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of a response with a depth map."""
    binary = {"schema": {"type": "string", "format": "binary"}}
    return {
        200: {
            "description": "The depth map: 16-bit PNG, EXR, or npz with depth, valid, measured, sigma.",
            "content": dict.fromkeys(MEDIA_TYPES.values(), binary),
            "headers": {"Primaldepth-Report": _REPORT},
        }
    }


def state_answer() -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of /readyz where the service is not ready."""
    found = problems(503)
    found[503]["content"]["application/json"]["example"] = NOT_READY.body()
    return found
