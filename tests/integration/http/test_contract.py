"""Whatever is sent to the API, the answer is what the OpenAPI document promises: no failure of the service, no other form."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import (
    allow_header_conformance,
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from clew.daemon.collections import Collections
from clew.daemon.http.app import create_app
from clew.daemon.http.settings import HttpSettings

CHECKS = [
    allow_header_conformance,
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]
#: A bounded run: enough that every operation and parameter is reached. The long one is `-m slow`.
FEW, MANY = 8, 400


@pytest.fixture(scope="module")
def app(collections: Collections) -> FastAPI:
    """The handbook, reachable under the name that the client uses."""
    return create_app(collections, settings=HttpSettings(trust_peer=True, hosts=("*",)))


@pytest.fixture(scope="module")
def contract(app: FastAPI) -> Iterator[schemathesis.BaseSchema]:
    """The OpenAPI document, and the app behind it."""
    with TestClient(app, base_url="http://localhost"):
        yield schemathesis.openapi.from_asgi("/v1/openapi.json", app)


def _operations(contract: schemathesis.BaseSchema) -> list[schemathesis.APIOperation]:
    return [found.ok() for found in contract.get_all_operations()]


def test_document_describes_itself(app: FastAPI) -> None:
    document = app.openapi()
    assert document["openapi"].startswith("3.1")
    operations = [one for path in document["paths"].values() for one in path.values()]
    assert len({one["operationId"] for one in operations}) == len(operations) >= 13
    for one in operations:
        assert one["summary"]
        assert one["description"]
        assert one["tags"]
        for parameter in one.get("parameters", ()):
            assert parameter["description"], parameter
        for status, response in one["responses"].items():
            if status.startswith(("4", "5")) and one["operationId"] != "readyz":
                assert list(response["content"]) == ["application/problem+json"], (one["operationId"], status)


@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_no_request_makes_the_service_fail_or_answer_in_another_form(
    contract: schemathesis.BaseSchema, examples: int
) -> None:
    reached = {
        operation.label: _statuses(operation, examples)
        for operation in _operations(contract)
        if operation.label != "GET /readyz"  # 503 is its way of saying no
    }
    assert len(reached) >= 12
    assert {label for label, statuses in reached.items() if 200 in statuses} >= {
        "POST /v1/collections/{name}/search",
        "GET /v1/collections/{name}/files",
        "GET /v1/collections/{name}/links",
        "GET /v1/collections/{name}/errors",
    }, reached


def _statuses(operation: schemathesis.APIOperation, examples: int) -> set[int]:
    """The statuses that requests to an operation are answered with: such as fit the document, most of them of the collection
    that there is, and such as do not."""
    named = {"name": "handbook"} if "{name}" in operation.path and "{key}" not in operation.path else None
    cases = st.one_of(
        operation.as_strategy(GenerationMode.POSITIVE, path_parameters=named),
        operation.as_strategy(GenerationMode.POSITIVE),
        operation.as_strategy(GenerationMode.NEGATIVE, path_parameters=named),
    )
    statuses: set[int] = set()

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def ask(case: schemathesis.Case) -> None:
        response = case.call()
        case.validate_response(response, checks=CHECKS)
        statuses.add(response.status_code)

    ask()
    return statuses
