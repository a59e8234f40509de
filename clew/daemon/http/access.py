"""Who asks: the key of a request, and what it may see.

Without a single key the service answers programs of its own machine only. From the first key on nothing but health checks is
answered without one.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.daemon.keys import Key, KeyRing, redacted
from clew.errors import AccessDeniedError, InvalidKeyError, NoSuchCollectionError, OverloadedError
from clew.query.restriction import Restriction

if TYPE_CHECKING:
    from starlette.requests import Request

audit = logging.getLogger("clew.audit")


@dataclass(frozen=True, kw_only=True, slots=True)
class Access:
    """What a request may do. Without keys: everything."""

    key: Key | None = None

    @property
    def restriction(self) -> Restriction | None:
        """The part of each collection that may be seen; None for all of it."""
        return None if self.key is None else self.key.restriction()

    @property
    def is_full(self) -> bool:
        """Whether it may do more than ask."""
        return self.key is None or self.key.scope == "full"

    @property
    def sees_everything(self) -> bool:
        """Whether nothing of the service is to be kept from it."""
        return self.is_full and (self.key is None or (self.key.paths is None and self.key.collections is None))

    def sees(self, collection: str) -> bool:
        """Whether it may know of a collection."""
        return self.key is None or self.key.collections is None or collection in self.key.collections

    def require_collection(self, name: str) -> None:
        """NoSuchCollectionError for one that it may not know of: the same as for one that is not there."""
        if not self.sees(name):
            raise NoSuchCollectionError(f"There is no collection {name!r}; GET /v1/collections lists them.")

    def require_full(self, *, whole: bool = False) -> None:
        """AccessDeniedError where the key only asks; `whole`: or sees a part only."""
        if not self.is_full or (whole and self.restriction is not None):
            raise AccessDeniedError("This takes a key of scope full" + (", not limited to paths." if whole else "."))


class Gatekeeper:
    """Finds the access of each request."""

    def __init__(self, keys: KeyRing | None, *, trust_peer: bool) -> None:
        self._keys = keys
        self._trust_peer = trust_peer

    async def access(self, request: Request) -> Access:
        """InvalidKeyError, AccessDeniedError or OverloadedError where there is none."""
        scope = request.scope
        peer = scope["client"][0] if scope.get("client") else "local"
        keys = self._keys
        if keys is not None:
            text = bearer(request.headers)
            if keys.is_at_hand(text):
                key = self._keyed(request, keys, text, peer) if keys.locked else None
            else:  # listing keys and hashing a secret block: not on the thread that serves everybody
                key = await asyncio.to_thread(lambda: self._keyed(request, keys, text, peer) if keys.locked else None)
            if key is not None:
                return Access(key=key)
        forwarded = any(
            name in ("forwarded", "x-real-ip", "via") or name.startswith("x-forwarded-") for name in request.headers
        )
        if not self._trust_peer and (forwarded or not is_loopback(peer)):
            raise AccessDeniedError(
                "Without keys the service answers programs of its own machine only, and not through a proxy; make one with "
                "`clew keys create`."
            )
        return Access()

    def _keyed(self, request: Request, keys: KeyRing, text: str | None, peer: str) -> Key:
        scope = request.scope
        line: dict[str, Any] = {
            "request_id": scope.get("clew.request_id"),
            "client": peer,
            "method": scope["method"],
            "path": redacted(scope["path"]),
        }
        try:
            key = keys.check(text, peer)
        except (InvalidKeyError, OverloadedError) as error:
            audit.warning("refused: %s", type(error).__name__, extra={**line, "refused": type(error).__name__})
            raise
        scope["clew.key"] = key.id
        audit.info("key %s: %s %s", key.id, line["method"], line["path"], extra={**line, "key": key.id})
        return key


def bearer(headers: Mapping[str, str]) -> str | None:
    """The key of an Authorization header."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" and value.strip() else None


def is_loopback(peer: str) -> bool:
    """Whether an address is of this machine; what comes through a local socket has none."""
    if peer == "local":
        return True
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
