"""The service does what its OpenAPI description says, tried with requests made from it."""

import pytest
from hypothesis import HealthCheck, settings

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
checks = schemathesis.checks
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


@pytest.fixture
def description(service):
    return schemathesis.openapi.from_asgi("/openapi.json", service.app)


schema = schemathesis.pytest.from_fixture("description")


@schema.parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_answers_conform_to_the_description(case):
    case.call_and_validate(checks=CHECKS)
