"""Keys: who may ask what. Kept hashed, one object a key, in the index place or wherever the configuration says.

    keys/<id>            what the key allows, and the scrypt hash of its secret; written once
    keys/<id>.revoked    from when on it is not valid any more

A key is `clew_<id>_<secret>`; the id finds the record, 256 random bits are the secret. The service looks at the listing at most
every half second, and only when it is asked, so that a key counts, or ceases to, within a second and without a restart.
The slow hash is computed once a key and process; afterwards a keyed hash of the secret, under a random key that lives in
this process alone, is compared.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clew.connectors.objects import ObjectStore
from clew.errors import InvalidKeyError, NoSuchKeyError, ObjectExistsError, OptionError, OverloadedError, StorageError
from clew.query.restriction import Restriction

FOLDER = "keys/"
PREFIX = "clew_"
#: Seconds that a listing is taken for the truth.
LOOK_SECONDS = 0.5
#: Seconds after which keys that could not be looked up any more are not trusted.
TRUST_SECONDS = 10.0
#: scrypt's cost (RFC 7914): 16 MB and some 50 ms.
_N, _R, _P = 1 << 14, 8, 1
#: Wrong keys a minute from one peer; more are refused unseen, as each costs a slow hash.
WRONG_PER_MINUTE = 30
_PEERS = 10_000  # whose wrong keys are remembered
_KEY = re.compile(r"clew_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_WRITTEN = re.compile(r"clew_([0-9a-f]{16})_[A-Za-z0-9_-]+")
_ID = re.compile(r"[0-9a-f]{16}")

Scope = Literal["search", "full"]
logger = logging.getLogger("clew.audit")


class Key(BaseModel):
    """What a key allows; its secret is not in it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    salt: str  # hexadecimal
    hash: str  # hexadecimal, of the secret
    scope: Scope
    collections: tuple[str, ...] | None = None  # None: all
    paths: tuple[str, ...] | None = None  # files and folders; None: everything
    created: float  # seconds since 1970, UTC
    expires: float | None = None  # likewise
    rate: float | None = Field(None, gt=0)  # requests a second
    note: str | None = None
    strict: bool = False  # with paths: lexical statistics, too, are those of these paths alone

    def restriction(self) -> Restriction | None:
        """The part of a collection that the key may see; None for all of it."""
        return None if self.paths is None else Restriction.of(self.paths, strict=self.strict)


class KeyInfo(BaseModel):
    """A key as it is listed."""

    id: str
    scope: Scope
    collections: tuple[str, ...] | None
    paths: tuple[str, ...] | None
    created: str
    expires: str | None
    revoked: str | None
    rate: float | None
    note: str | None
    strict: bool
    valid: bool


class CreatedKey(BaseModel):
    """A new key. It is shown this once."""

    id: str
    key: str


class Keys:
    """The keys of one place: to create, list, revoke and rotate. What a service asks is `KeyRing`."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def create(
        self,
        *,
        scope: Scope = "search",
        paths: Sequence[str] = (),
        collections: Sequence[str] = (),
        seconds: float | None = None,
        rate: float | None = None,
        note: str | None = None,
        strict: bool = False,
    ) -> CreatedKey:
        """A new key, valid for `seconds`. OptionError for a path that names nothing."""
        restriction = Restriction.of(paths) if paths else None
        now = time.time()
        return self._write(
            {
                "scope": scope,
                "paths": restriction.paths if restriction else None,
                "collections": tuple(sorted(set(collections))) or None,
                "created": now,
                "expires": None if seconds is None else now + seconds,
                "rate": rate,
                "note": note,
                "strict": strict,
            }
        )

    def _write(self, rights: dict[str, object]) -> CreatedKey:
        secret, salt = secrets.token_urlsafe(32), secrets.token_bytes(16)
        key = Key.model_validate(
            {**rights, "id": secrets.token_hex(8), "salt": salt.hex(), "hash": _slow_hash(secret, salt).hex()}
        )
        self._store.put_if_absent(FOLDER + key.id, key.model_dump_json(exclude_none=True).encode())
        return CreatedKey(id=key.id, key=f"{PREFIX}{key.id}_{secret}")

    def list(self) -> list[KeyInfo]:
        """All keys, those that are not valid any more included, by time of creation."""
        records, revoked, _ = _read(self._store, {})
        now = time.time()
        return [
            KeyInfo(
                **key.model_dump(include={"id", "scope", "collections", "paths", "rate", "note", "strict"}),
                created=_moment(key.created),
                expires=None if key.expires is None else _moment(key.expires),
                revoked=None if key.id not in revoked else _moment(revoked[key.id]),
                valid=_is_valid(key, revoked, now),
            )
            for key in sorted(records.values(), key=lambda key: (key.created, key.id))
        ]

    def revoke(self, key_id: str, *, after: float = 0.0) -> None:
        """Let a key end now, or `after` seconds. Revoking it again is no error, and never prolongs it."""
        self._require(key_id)
        name, at = f"{FOLDER}{key_id}.revoked", time.time() + after
        try:
            self._store.put_if_absent(name, orjson.dumps({"at": at}))
        except ObjectExistsError:
            if _revocation(self._store.get(name)) > at:
                self._store.put(name, orjson.dumps({"at": at}))

    def rotate(self, key_id: str, *, after: float = 0.0) -> CreatedKey:
        """A new key with the rights of an old one, which ends `after` seconds."""
        old = self._require(key_id)
        kept = old.model_dump(include={"scope", "paths", "collections", "rate", "note", "strict"})
        span = None if old.expires is None else old.expires - old.created
        now = time.time()
        created = self._write({**kept, "created": now, "expires": None if span is None else now + span})
        self.revoke(key_id, after=after)
        return created

    def _require(self, key_id: str) -> Key:
        records, _, _ = _read(self._store, {})
        if key_id not in records:
            raise NoSuchKeyError(f"There is no key {key_id!r} at {self._store.place}; `clew keys list` shows them.")
        return records[key_id]


class KeyRing:
    """The keys as a running service knows them. Safe to share between threads."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._records: dict[str, Key] = {}
        self._revoked: dict[str, float] = {}
        self._locked = False
        self._looked: float | None = None  # when the listing last succeeded
        self._pepper = secrets.token_bytes(32)
        self._proved: dict[str, bytes] = {}  # id → keyed hash of the secret that was right
        self._buckets: dict[str, _Bucket] = {}
        self._wrong: OrderedDict[str, _Bucket] = OrderedDict()

    @property
    def locked(self) -> bool:
        """Whether requests need a key: from the first one on that was ever made, revoked ones included."""
        self._look()
        return self._locked

    def is_at_hand(self, text: str | None) -> bool:
        """Whether `locked` and `check` answer at once: the listing is fresh, and there is no secret to be hashed slowly."""
        if self._looked is None or time.monotonic() - self._looked > LOOK_SECONDS / 2:
            return False
        if not self._locked or text is None:
            return True
        found = _KEY.fullmatch(text)
        return found is not None and self._is_proved(found[1], self._keyed(found[2]))

    def restrictions(self, collection: str) -> list[Restriction]:
        """The parts of a collection that valid keys are limited to, as far as they are known; the newest key's first."""
        now, records, revoked = time.time(), self._records, self._revoked
        keys = sorted(records.values(), key=lambda key: (-key.created, key.id))
        found = [
            key.restriction()
            for key in keys
            if _is_valid(key, revoked, now) and (key.collections is None or collection in key.collections)
        ]
        return list(dict.fromkeys(one for one in found if one is not None))

    def check(self, text: str | None, peer: str) -> Key:
        """The key that a request carries, if it is valid now.

        Raises:
            InvalidKeyError: none, or not a valid one; it does not say which.
            OverloadedError: too many wrong keys came from this peer, or the key is used too often.
        """
        self._look()
        if text is None:
            raise InvalidKeyError("Send a key: `Authorization: Bearer KEY`; `clew keys create` makes one.")
        found = _KEY.fullmatch(text)
        key = self._records.get(found[1]) if found else None
        secret = found[2] if found else ""
        if not self._proves(key, secret, peer) or key is None or not _is_valid(key, self._revoked, time.time()):
            raise InvalidKeyError("The key is not valid: unknown, expired or revoked.")
        if key.rate is not None:
            wait = self._bucket(key).take()
            if wait > 0:
                raise OverloadedError(f"The key is allowed {key.rate:g} requests a second.", retry_after=wait)
        return key

    def _proves(self, key: Key | None, secret: str, peer: str) -> bool:
        keyed = self._keyed(secret)
        if key is not None and self._is_proved(key.id, keyed):
            return True
        wait = self._attempts(peer).wait()
        if wait > 0:
            raise OverloadedError("Too many wrong keys came from this address.", retry_after=wait)
        # An id that nobody has costs as much as a wrong secret, so that time does not tell which ids there are.
        salt, wanted = (bytes.fromhex(key.salt), bytes.fromhex(key.hash)) if key else (b"no such key", bytes(32))
        right = hmac.compare_digest(_slow_hash(secret, salt), wanted) and key is not None
        if right and key is not None:
            self._proved[key.id] = keyed
        else:
            self._attempts(peer).take()
        return right

    def _keyed(self, secret: str) -> bytes:
        return hmac.digest(self._pepper, secret.encode(), "sha256")

    def _is_proved(self, key_id: str, keyed: bytes) -> bool:
        proved = self._proved.get(key_id)
        return proved is not None and hmac.compare_digest(proved, keyed)

    def _attempts(self, peer: str) -> _Bucket:
        with self._lock:
            bucket = self._wrong.get(peer)
            if bucket is None:
                bucket = self._wrong[peer] = _Bucket(WRONG_PER_MINUTE / 60, WRONG_PER_MINUTE)
            self._wrong.move_to_end(peer)
            while len(self._wrong) > _PEERS:
                self._wrong.popitem(last=False)
            return bucket

    def _bucket(self, key: Key) -> _Bucket:
        with self._lock:
            rate = key.rate or 1.0
            return self._buckets.setdefault(key.id, _Bucket(rate, max(1.0, rate)))

    def _look(self) -> None:
        now = time.monotonic()
        if self._looked is not None and now - self._looked < LOOK_SECONDS:
            return
        with self._lock:
            if self._looked is not None and time.monotonic() - self._looked < LOOK_SECONDS:
                return
            began = time.monotonic()
            try:
                records, revoked, seen = _read(self._store, self._records)
            except StorageError:
                if self._looked is None or began - self._looked > TRUST_SECONDS:
                    raise
                return
            for key_id in self._proved.keys() - records.keys():
                del self._proved[key_id]
            self._records, self._revoked = records, revoked
            self._locked = self._locked or seen
            self._looked = began


class _Bucket:
    """A token bucket."""

    def __init__(self, rate: float, size: float) -> None:
        self._rate, self._size = rate, size
        self._left, self._then = size, time.monotonic()
        self._lock = threading.Lock()

    def wait(self) -> float:
        """Seconds until there is a token; 0 where there is one."""
        with self._lock:
            return self._refilled()

    def take(self) -> float:
        """Take a token; seconds until there would be one, 0 where it was there."""
        with self._lock:
            wait = self._refilled()
            if wait == 0:
                self._left -= 1
            return wait

    def _refilled(self) -> float:
        now = time.monotonic()
        self._left = min(self._size, self._left + (now - self._then) * self._rate)
        self._then = now
        return max(0.0, (1 - self._left) / self._rate)


def _read(store: ObjectStore, known: dict[str, Key]) -> tuple[dict[str, Key], dict[str, float], bool]:
    """(keys by id, times of revocation by id, whether there is anything). Keys never change: known ones are not read."""
    records: dict[str, Key] = {}
    revoked: dict[str, float] = {}
    seen = False
    for stored in store.list(FOLDER):
        seen = True
        name = stored.name.removeprefix(FOLDER)
        key_id, _, ending = name.partition(".")
        if not _ID.fullmatch(key_id):
            continue
        if ending == "revoked":
            revoked[key_id] = _revocation(store.get(stored.name))
        elif not ending:
            try:
                records[key_id] = known.get(key_id) or Key.model_validate_json(store.get(stored.name))
            except ValidationError:  # not a valid key, then; the others are
                logger.error("the key %s at %s is not readable; it is not accepted", key_id, store.place)
    return records, revoked, seen


def _revocation(data: bytes) -> float:
    try:
        return float(orjson.loads(data)["at"])
    except (ValueError, KeyError, TypeError):
        return 0.0  # unreadable: revoked since ever


def _is_valid(key: Key, revoked: dict[str, float], now: float) -> bool:
    return (key.expires is None or now < key.expires) and (key.id not in revoked or now < revoked[key.id])


def _slow_hash(secret: str, salt: bytes) -> bytes:
    return hashlib.scrypt(secret.encode(), salt=salt, n=_N, r=_R, p=_P, dklen=32)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def redacted(text: str) -> str:
    """A text for a log: keys in it, put there by mistake, are cut down to their ids."""
    return _WRITTEN.sub(r"clew_\1_…", text)


def read_span(text: str) -> float:
    """`30d`, `12h`, `90m`, `45s` in seconds. OptionError otherwise."""
    found = re.fullmatch(r"(\d{1,9})(s|m|h|d|w)", text.strip())
    if found is None or int(found[1]) == 0:
        raise OptionError(f"{text!r} is no span of time; write it as 30d, 12h, 90m or 45s.")
    return int(found[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}[found[2]]
