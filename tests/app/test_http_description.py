"""The service does what its OpenAPI description says, tried with requests made from it."""

import pytest

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

from hypothesis import HealthCheck, settings
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture
def description(service):
    return schemathesis.openapi.from_asgi("/openapi.json", service.app)


schema = schemathesis.pytest.from_fixture("description")


@schema.parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_answers_conform_to_the_description(case):
    case.call_and_validate(checks=CHECKS)
