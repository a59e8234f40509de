"""Keys as a service sees them; without these a revoked key could go on asking, or a log could give one away."""

from __future__ import annotations

import logging
import runpy
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from clew.connectors.objects import ObjectStore
from clew.daemon import keys as module
from clew.daemon.collections import Collections
from clew.daemon.http.app import create_app
from clew.daemon.keys import KeyRing, Keys, read_span
from clew.errors import InvalidKeyError, NoSuchKeyError, OptionError, OverloadedError, StorageError
from tests.integration.http.conftest import client_of, until

pytestmark = pytest.mark.xdist_group("http")  # one process indexes what they ask

SEARCH = "/v1/collections/handbook/search"


def status(client: TestClient, key: str | None, path: str = "/v1/collections") -> int:
    return client.get(path, headers={"Authorization": f"Bearer {key}"} if key else {}).status_code


def test_guessing_a_secret_costs_memory_and_time() -> None:
    """The other tests hash cheaply: what is shipped is read from the source of the module as it is imported anew."""
    shipped = runpy.run_path(module.__file__)
    assert shipped["_N"] * shipped["_R"] * 128 >= 16 << 20  # bytes that a guess takes (RFC 7914)


def test_from_the_first_key_on_one_is_needed(locked: TestClient, keys: Keys) -> None:
    assert status(locked, None) == 200
    made = keys.create()
    until(lambda: status(locked, None) == 401)
    assert module.LOOK_SECONDS < 1  # the promise; how long it takes on a busy machine is no matter of the product
    refused = locked.get("/v1/collections")
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert refused.headers["content-type"] == "application/problem+json"
    assert status(locked, made.key) == 200
    assert (locked.get("/healthz").status_code, locked.get("/readyz").status_code) == (200, 200)


def test_revoked_key_ends_within_a_second_and_leaves_the_door_locked(locked: TestClient, keys: Keys) -> None:
    made = keys.create()
    until(lambda: status(locked, made.key) == 200)
    assert status(locked, made.key) == 200  # proved and remembered by now
    keys.revoke(made.id)
    until(lambda: status(locked, made.key) == 401)
    assert status(locked, None) == 401
    keys.revoke(made.id)  # again is no error
    with pytest.raises(NoSuchKeyError):
        keys.revoke("0" * 16)


def test_expired_and_foreign_keys_are_refused(locked: TestClient, keys: Keys) -> None:
    short, long = keys.create(seconds=0.05), keys.create(seconds=3600)
    until(lambda: status(locked, short.key) == 401)
    assert status(locked, long.key) == 200
    for wrong in ("", "x", long.key[:-1], long.key + "A", long.key.replace(long.id, "0" * 16), "clew_" + "a" * 60):
        assert status(locked, wrong) == 401
    assert locked.get("/v1/collections", headers={"Authorization": f"Basic {long.key}"}).status_code == 401


def test_rotated_key_keeps_its_rights_and_the_old_one_ends_when_told(locked: TestClient, keys: Keys) -> None:
    old = keys.create(scope="full", paths=["ops/", "people"], rate=50, note="page")
    new = keys.rotate(old.id, after=3600)
    rows = {row.id: row for row in keys.list()}
    kept = ("scope", "paths", "collections", "rate", "note")
    assert [getattr(rows[old.id], name) for name in kept] == [getattr(rows[new.id], name) for name in kept]
    until(lambda: status(locked, new.key) == 200)
    assert status(locked, old.key) == 200
    keys.revoke(old.id)  # sooner than it was to end
    until(lambda: status(locked, old.key) == 401)
    keys.revoke(new.id)
    keys.revoke(new.id, after=3600)  # never prolongs
    assert [row.valid for row in keys.list()] == [False, False]


def test_key_is_limited_to_its_collections_and_scope(locked: TestClient, keys: Keys) -> None:
    other, search, full = (
        keys.create(collections=["elsewhere"], scope="full"),
        keys.create(scope="search"),
        keys.create(scope="full"),
    )
    until(lambda: status(locked, full.key) == 200)
    assert locked.get("/v1/collections", headers={"Authorization": f"Bearer {other.key}"}).json() == {"collections": []}
    hidden = locked.get("/v1/collections/handbook/status", headers={"Authorization": f"Bearer {other.key}"})
    absent = locked.get("/v1/collections/nothing/status", headers={"Authorization": f"Bearer {other.key}"})
    assert (hidden.status_code, hidden.json()["title"]) == (absent.status_code, absent.json()["title"])
    for path in ("/metrics", "/v1/collections/handbook/check", "/v1/collections/handbook/reindex"):
        method = "POST" if path.endswith("reindex") else "GET"
        answers = {
            name: locked.request(method, path, headers={"Authorization": f"Bearer {made.key}"}).status_code
            for name, made in (("search", search), ("full", full))
        }
        assert answers == {"search": 403, "full": 200 if method == "GET" else 409}


def test_key_asks_no_more_often_than_it_may(locked: TestClient, keys: Keys) -> None:
    made = keys.create(rate=2)
    until(lambda: status(locked, made.key) in (200, 429))
    answers = [locked.get("/v1/collections", headers={"Authorization": f"Bearer {made.key}"}) for _ in range(5)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused
    assert int(refused[0].headers["retry-after"]) >= 1


def test_wrong_keys_are_not_hashed_without_end(tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs a slow hash, known id or not; after some a peer is refused unseen. Right keys of others are not."""
    made = keys.create()
    hashed: list[str] = []
    slow = module._slow_hash

    def counting(secret: str, salt: bytes) -> bytes:
        hashed.append(secret)
        return slow(secret, salt)

    monkeypatch.setattr(module, "_slow_hash", counting)
    monkeypatch.setattr(module, "WRONG_PER_MINUTE", 4)
    ring = KeyRing(ObjectStore.open(str(tmp_path / "keys")))
    for number in range(4):
        key_id = made.id if number % 2 else f"{number:016x}"
        with pytest.raises(InvalidKeyError):
            ring.check(f"clew_{key_id}_{'x' * 43}", "203.0.113.9")
    with pytest.raises(OverloadedError):
        ring.check(f"clew_{made.id}_{'y' * 43}", "203.0.113.9")
    assert len(hashed) == 4
    for _ in range(3):
        assert ring.check(made.key, "198.51.100.7").id == made.id
    assert len(hashed) == 5  # once a key


def test_what_blocks_is_never_at_hand(tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is at hand is looked up on the thread that serves everybody: neither a listing nor a slow hash may happen there."""
    ring = KeyRing(ObjectStore.open(str(tmp_path / "keys")))
    monkeypatch.setattr(module, "LOOK_SECONDS", 3600.0)
    assert not ring.is_at_hand(None)  # never looked
    made = keys.create()
    assert ring.locked
    other = keys.create()  # unknown to the listing that stands
    assert [ring.is_at_hand(text) for text in (None, "nonsense", made.key, other.key)] == [True, False, False, False]
    ring.check(made.key, "local")
    wrong = f"{made.key[:-1]}{'A' if made.key[-1] != 'A' else 'B'}"
    assert [ring.is_at_hand(text) for text in (made.key, wrong)] == [True, False]
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)
    assert not ring.is_at_hand(made.key)


def test_keys_are_not_trusted_when_they_cannot_be_looked_up(
    tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = keys.create()
    store = ObjectStore.open(str(tmp_path / "keys"))
    ring = KeyRing(store)
    assert ring.check(made.key, "local").id == made.id

    def unreachable(*_: object) -> None:
        raise StorageError("the store does not answer")

    monkeypatch.setattr(store, "list", unreachable)
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)
    assert ring.check(made.key, "local").id == made.id  # a hiccup locks nobody out
    monkeypatch.setattr(module, "TRUST_SECONDS", 0.0)
    with pytest.raises(StorageError):
        ring.check(made.key, "local")


def test_damaged_key_is_no_key_and_opens_nothing(tmp_path: Path, keys: Keys) -> None:
    made = keys.create()
    store = ObjectStore.open(str(tmp_path / "keys"))
    store.put(f"keys/{made.id}", b"{}")
    ring = KeyRing(store)
    assert ring.locked
    with pytest.raises(InvalidKeyError):
        ring.check(made.key, "local")


def test_nothing_that_is_kept_or_logged_holds_a_key(
    collections: Collections, tmp_path: Path, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    made, revoked = keys.create(), keys.create()
    keys.revoke(revoked.id)
    secrets = [key.key.removeprefix(f"clew_{key.id}_") for key in (made, revoked)]
    ring = KeyRing(ObjectStore.open(str(tmp_path / "keys")))
    with caplog.at_level(logging.DEBUG), client_of(create_app(collections, keys=ring)) as client:
        for key in (made.key, revoked.key, made.key[:-1] + "?"):
            client.get("/v1/collections", headers={"Authorization": f"Bearer {key}"})
            client.post(SEARCH, json={"text": "x", "key": key}, headers={"Authorization": f"Bearer {key}"})
            client.get(f"/v1/collections/{key}/status", headers={"Authorization": "Bearer x"})
        answer = client.get(
            f"/v1/collections/handbook/files?cursor={made.key}", headers={"Authorization": f"Bearer {made.key}"}
        )
    said = "\n".join(
        f"{record.getMessage()} {record.__dict__}" for record in caplog.records if record.name.startswith("clew")
    )
    kept = b"".join(path.read_bytes() for path in (tmp_path / "keys").rglob("*") if path.is_file()).decode()
    assert f"key {made.id}" in said  # the audit names keys by their ids
    assert "refused: InvalidKeyError" in said
    for secret in secrets:
        assert secret not in said
        assert secret not in kept
        assert secret not in answer.text


@pytest.mark.parametrize("path", ["", "/", ".", "..", "a/../b", "./", "a//b"])
def test_key_for_a_path_that_names_nothing_is_not_made(keys: Keys, path: str) -> None:
    with pytest.raises(OptionError):
        keys.create(paths=[path])
    assert keys.list() == []


def test_spans_of_time_are_read() -> None:
    assert [read_span(text) for text in ("45s", "90m", "12h", "30d", "2w")] == [45, 5400, 43_200, 2_592_000, 1_209_600]
    for text in ("", "30", "0d", "-1d", "1.5h", "1y"):
        with pytest.raises(OptionError):
            read_span(text)
