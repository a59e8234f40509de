"""Who may tell us to look; without these anybody on the network could keep an indexer busy."""

from __future__ import annotations

import json

import pytest

from clew.connectors.events.scope import Scope
from clew.connectors.events.webhook import LARGEST_BODY, parse_webhook, signature
from clew.connectors.location import Root
from clew.errors import ConfigurationError, UnsignedRequestError

SCOPE = Scope.of(Root.parse("s3://papers/docs"), None)
SECRET = "correct horse"
BODY = json.dumps({"Records": [{"s3": {"bucket": {"name": "papers"}, "object": {"key": "docs/a.md"}}}]}).encode()


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {SECRET}"},
        {"authorization": f"bearer {SECRET}"},
        {"X-Clew-Token": SECRET},
        {"X-Goog-Channel-Token": SECRET},
        {"X-Clew-Signature": signature(BODY, SECRET)},
        {"x-hub-signature-256": signature(BODY, SECRET).upper().replace("SHA256", "sha256")},
        {"X-Clew-Token": "wrong", "X-Clew-Signature": signature(BODY, SECRET)},
    ],
)
def test_who_knows_the_secret_is_heard(headers: dict[str, str]) -> None:
    assert [hint.path for hint in parse_webhook(headers, BODY, SECRET, SCOPE).hints] == ["a.md"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": f"Basic {SECRET}"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer wrong"},
        {"X-Clew-Token": ""},
        {"X-Clew-Token": "corréct"},
        {"X-Clew-Signature": ""},
        {"X-Clew-Signature": signature(BODY, "wrong")},
        {"X-Clew-Signature": signature(BODY + b" ", SECRET)},
        {"X-Clew-Signature": "sha256=\udcff"},
    ],
)
def test_who_does_not_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(UnsignedRequestError):
        parse_webhook(headers, BODY, SECRET, SCOPE)


def test_webhook_without_a_secret_is_open_to_nobody() -> None:
    with pytest.raises(ConfigurationError):
        parse_webhook({"X-Clew-Token": ""}, BODY, "", SCOPE)


def test_body_that_is_too_large_is_not_read() -> None:
    with pytest.raises(UnsignedRequestError, match="over the limit"):
        parse_webhook({"X-Clew-Token": SECRET}, b" " * (LARGEST_BODY + 1), SECRET, SCOPE)


def test_signed_nonsense_is_rejected_and_not_raised() -> None:
    assert parse_webhook({"X-Clew-Token": SECRET}, b"\xff\xfe", SECRET, SCOPE).rejected
