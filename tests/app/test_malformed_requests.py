"""Hundreds of requests that make no sense: all refused with a reason, none with a failure of ours."""

import tempfile
from itertools import islice

import pytest
from malformed import KINDS, odd_but_fine, requests_of


def reason(answer):
    """The error of an answer; exactly three texts, of which two are never empty."""
    assert answer.headers["content-type"] == "application/json"
    error = answer.json()["error"]
    assert set(error) == {"code", "message", "hint"}
    assert error["code"]
    assert error["message"]
    return error


# A form that ends too soon leaves the frameworks' temporary file to the garbage collector.
@pytest.mark.filterwarnings("ignore:.*SpooledTemporaryFile:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:Unclosed file:ResourceWarning")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__[1:])
def test_refused_with_a_reason(service, kind):
    for request in islice(requests_of(kind, seed=7), 33):
        answer = request.send(service)
        assert 400 <= answer.status_code < 500, (request.kind, answer.status_code, answer.text[:300])
        assert tempfile.gettempdir() not in reason(answer)["message"]


def test_odd_requests_that_are_meant_are_answered(service):
    for request in odd_but_fine():
        answer = request.send(service)
        assert answer.status_code == 200, (request.kind, answer.text)


def test_the_same_worker_has_served_all(service):
    assert service.app.state.engine.restarts == 0
