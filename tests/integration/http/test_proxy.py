"""The service below a path of a reverse proxy; without these its page, its document and its clients would look for it at the top."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError

from clew.daemon.collections import Collections
from clew.daemon.http.app import create_app
from clew.daemon.http.settings import HttpSettings
from clew_client import Client
from tests.integration.http.conftest import app_with, client_of, through

pytestmark = pytest.mark.xdist_group("http")  # one process indexes what they ask

PUBLIC = "https://intranet.example.org/tools/clew"
TOLD = {"X-Forwarded-Prefix": "/tools/clew"}


def works(client: TestClient, base: str, headers: dict[str, str]) -> None:
    """The page, what it is made of, the API and its document, from an address that the proxy hands on."""
    page = client.get(f"{base}/", headers=headers)
    assert page.status_code == 200
    for asset in re.findall(r'(?:href|src)="(page/[^"]+)"', page.text):
        assert client.get(f"{base}/{asset}", headers=headers).status_code == 200, asset
    found = client.get(f"{base}/v1/collections", headers=headers).json()
    assert [one["name"] for one in found["collections"]] == ["handbook"]
    document = client.get(f"{base}/v1/openapi.json", headers=headers).json()
    assert document["servers"] == [{"url": "/tools/clew"}]
    assert all(path.startswith("/") and not path.startswith("/tools") for path in document["paths"])
    asked = {**headers, "Origin": "https://intranet.example.org"}
    body: dict[str, Any] = {"text": "signing key", "k": 2}
    assert len(client.post(f"{base}/v1/collections/handbook/search", json=body, headers=asked).json()["hits"]) == 2
    assert client.get(f"{base}/v1/nothing", headers=headers).status_code == 404
    assert client.get(f"{base}/readyz", headers=headers).json()["ready"]


def test_proxy_that_takes_the_path_off_says_so_or_the_settings_do(collections: Collections) -> None:
    with client_of(app_with(collections, trust_peer=True, cors_origins=["https://intranet.example.org"])) as client:
        works(client, "", TOLD)
        assert "servers" not in client.get("/v1/openapi.json").json()  # what one request says holds for no other
    with client_of(app_with(collections, public_url=PUBLIC)) as client:
        works(client, "", {"Host": "intranet.example.org"})


def test_proxy_that_leaves_the_path_on_is_understood(collections: Collections) -> None:
    with client_of(app_with(collections, public_url=f"{PUBLIC}/")) as client:
        works(client, "/tools/clew", {"Host": "intranet.example.org"})
        moved = client.get("/tools/clew?q=keel", follow_redirects=False)  # the page stands in a folder
        assert (moved.status_code, moved.headers["location"]) == (308, "/tools/clew/?q=keel")
        assert client.get("/tools/clewless/").status_code == 404
        with Client("http://localhost/tools/clew", transport=through(client)) as asking:
            assert asking.search("signing key", k=1).hits
            assert next(iter(asking.links(path="ops/README.md")))


def test_no_other_place_is_taken_from_a_header(collections: Collections) -> None:
    with client_of(app_with(collections, trust_peer=True)) as client:
        for prefix in ("//evil.example", "https://evil.example", "/a/../b", "/<script>", "/a b", "/" + "x" * 101):
            answer = client.get("/v1/openapi.json", headers={"X-Forwarded-Prefix": prefix})
            assert answer.status_code == 200
            assert "servers" not in answer.json(), prefix


def test_without_keys_nothing_is_answered_through_a_proxy(collections: Collections) -> None:
    with client_of(create_app(collections)) as client:
        assert client.get("/v1/collections", headers=TOLD).status_code == 403


@pytest.mark.parametrize(
    "address", ["intranet.example.org", "ftp://x/y", "https://x/a b", "https://u@x/", "https://x/?q"]
)
def test_address_that_nobody_can_visit_is_refused(address: str) -> None:
    with pytest.raises(ValidationError, match="public_url"):
        HttpSettings(public_url=address)
