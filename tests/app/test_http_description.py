"""The service does what its OpenAPI description says, tried with requests made from it."""

import pytest
from hypothesis import HealthCheck, given, settings

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
checks = schemathesis.checks
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
MODES = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]


def test_answers_conform_to_the_description(live):
    """Valid and invalid requests, drawn from the description, for every path and method in it."""
    schema = schemathesis.openapi.from_url(f"{live}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) == 5
    for operation in operations:
        for mode in MODES if operation.method == "post" else MODES[:1]:  # a bare GET cannot be invalid

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
            def conforms(case):
                case.call_and_validate(checks=CHECKS)

            conforms()
