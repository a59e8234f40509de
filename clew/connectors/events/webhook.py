"""Webhooks: notifications that a service sends by HTTP, accepted only when the sender knows the secret.

Accepted proofs, in the headers of the request:

- a signature of the body, `X-Clew-Signature: sha256=HEX` (or `X-Hub-Signature-256`), HMAC-SHA256 with the secret as key;
- the secret itself: `Authorization: Bearer SECRET` (MinIO's `auth_token`, a delivery header of Azure Event Grid),
  `X-Clew-Token` or `X-Goog-Channel-Token`.

A signature proves the body, too; a bearer secret only that the sender knows it, so such a webhook needs TLS before it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping

from clew.connectors.events.hints import Parsed
from clew.connectors.events.messages import parse_message
from clew.connectors.events.scope import Scope
from clew.errors import ConfigurationError, UnsignedRequestError

LARGEST_BODY = 4 << 20  # bytes; senders batch some hundred events at most
_SIGNATURES = ("x-clew-signature", "x-hub-signature-256")
_TOKENS = ("x-clew-token", "x-goog-channel-token")


def parse_webhook(headers: Mapping[str, str], body: bytes, secret: str, scope: Scope) -> Parsed:
    """Check the proof of a request and read its body. Pure; header names in any case.

    Raises:
        ConfigurationError: there is no secret, so nobody could be told from anybody.
        UnsignedRequestError: the request carries no valid proof. Answer 401, and keep nothing of it.
    """
    if not secret:
        raise ConfigurationError("A webhook needs a secret; set one, and give it to the sender.")
    lowered = {name.lower(): value for name, value in headers.items()}
    if not any(_is_valid(lowered, body, secret)):
        raise UnsignedRequestError
    if len(body) > LARGEST_BODY:
        raise UnsignedRequestError(f"The webhook's body of {len(body)} bytes is over the limit of {LARGEST_BODY}.")
    return parse_message(body, scope)


def signature(body: bytes, secret: str) -> str:
    """What a sender puts into `X-Clew-Signature`."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def _is_valid(headers: Mapping[str, str], body: bytes, secret: str) -> Iterator[bool]:
    """Every proof that is there, each compared in constant time."""
    expected = signature(body, secret).encode()
    for name in _SIGNATURES:
        if name in headers:
            yield hmac.compare_digest(headers[name].strip().lower().encode("utf-8", "surrogateescape"), expected)
    tokens = [headers[name] for name in _TOKENS if name in headers]
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        tokens.append(token)
    for token in tokens:
        yield hmac.compare_digest(token.strip().encode("utf-8", "surrogateescape"), secret.encode())
