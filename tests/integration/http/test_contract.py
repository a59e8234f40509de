"""Whatever is sent to the API, the answer is what the OpenAPI document promises: no failure of the service, no other form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

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

from clew.daemon.collections import Collection, Collections
from clew.daemon.http.app import create_app
from clew.daemon.http.settings import HttpSettings
from tests.integration.http.conftest import until

pytestmark = pytest.mark.xdist_group("http")  # one process indexes what they ask

CHECKS = [
    allow_header_conformance,
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]
#: What is answered only to who names a document, a passage or an entity, judges questions, or where a service indexes.
REFUSED = {
    "GET /v1/collections/{name}/chunks/{key}",
    "GET /v1/collections/{name}/show",
    "GET /v1/collections/{name}/part",
    "GET /v1/collections/{name}/graph/fanout",
    "POST /v1/collections/{name}/evaluate",
    "POST /v1/collections/{name}/reindex",
    "POST /v1/collections/{name}/graph/entities/generate",
    "POST /v1/collections/{name}/graph/communities/generate",
    "DELETE /v1/collections/{name}/graph/communities/{id}",
    "DELETE /v1/collections/{name}/graph/reports/{id}",
}
#: Requests of an operation, and one more for each of its parameters: every one of them is reached. The long run is `-m slow`.
FEW, MANY = 2, 400
PATIENCE = 300  # seconds; a machine may be busy: only what never comes fails


@pytest.fixture(scope="module")
def app(collections: Collections, pages: Path) -> Iterator[FastAPI]:
    """The handbook, and pages with a graph; reachable under the name that the client uses."""
    graphed = Collection("pages", str(pages))
    graphed.start()
    until(lambda: graphed.ready)
    both = Collections({"handbook": collections["handbook"], "pages": graphed})
    yield create_app(both, settings=HttpSettings(trust_peer=True, hosts=("*",), seconds=PATIENCE))
    graphed.close()


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
    app: FastAPI, contract: schemathesis.BaseSchema, examples: int
) -> None:
    operations = [one for one in _operations(contract) if one.label != "GET /readyz"]  # 503 is its way of saying no
    documented = parameters(app.openapi())
    seen = {operation.label: Seen(documented[operation.label]) for operation in operations}
    for operation in operations:
        _try(operation, examples + len(documented[operation.label]), seen[operation.label])
    assert len(seen) >= 26
    never = {label for label, one in seen.items() if not one.answered}
    assert never <= REFUSED, never
    missed = {label: sorted(one.missed) for label, one in seen.items() if one.missed}
    assert not missed, missed


def parameters(document: dict[str, Any]) -> dict[str, set[str]]:
    """Names of what each operation takes, in its query and in its body."""
    found: dict[str, set[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            names = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
            schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            for part in (schema, *schema.get("anyOf", ())):
                reference = part.get("$ref", "").rpartition("/")[2]
                names |= set(document["components"]["schemas"].get(reference, {}).get("properties", {}))
            found[f"{method.upper()} {path}"] = names
    return found


class Seen:
    """What was tried of an operation."""

    def __init__(self, names: set[str]) -> None:
        self.answered = False
        self.missed = set(names)

    def note(self, case: schemathesis.Case, status: int) -> None:
        """A request, and how it was answered."""
        self.answered |= status in (200, 202)
        self.missed -= set(case.query or {})
        if isinstance(case.body, dict):
            self.missed -= set(case.body)


def _try(operation: schemathesis.APIOperation, examples: int, seen: Seen) -> None:
    """Requests to an operation: such as fit the document, most of them of a collection that there is, and such as do not."""
    collection = "pages" if "/graph/" in operation.path or operation.path.endswith("/ask") else "handbook"
    named = {"name": collection} if "{name}" in operation.path and operation.path.count("{") == 1 else None
    cases = st.one_of(
        operation.as_strategy(GenerationMode.POSITIVE, path_parameters=named),
        operation.as_strategy(GenerationMode.POSITIVE),
        operation.as_strategy(GenerationMode.NEGATIVE, path_parameters=named),
    )

    def ask(case: schemathesis.Case) -> None:
        response = case.call(timeout=PATIENCE)
        # Who gives the service no time to answer is told so.
        hurried = response.status_code == 504 and isinstance(case.body, dict) and "timeout" in case.body
        case.validate_response(response, checks=[one for one in CHECKS if not (hurried and one is not_a_server_error)])
        seen.note(case, response.status_code)

    for more in (1, 2, 4, 8, 16):  # what chance leaves out the first time is tried for longer
        bounds = settings(
            max_examples=examples * more,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        bounds(given(case=cases)(ask))()
        if not seen.missed and (seen.answered or operation.label in REFUSED):
            return
