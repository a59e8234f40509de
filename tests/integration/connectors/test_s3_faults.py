"""Without these, a throttled or broken connection could end a run, tear a file, or publish a snapshot twice."""

from __future__ import annotations

import hashlib
import logging
import tracemalloc
from pathlib import Path

import pytest

from clew.connectors import buckets, reading, retries, s3store
from clew.connectors.entry import Entry
from clew.connectors.listing import ListingTally, head, list_entries
from clew.connectors.location import Root
from clew.connectors.objects import ObjectStore
from clew.connectors.reading import open_stable, read_stable
from clew.errors import (
    AmbiguousWriteError,
    ListingError,
    ObjectChangedError,
    ObjectExistsError,
    ObjectMissingError,
    StorageError,
    UnreadableFileError,
)
from tests.servers import FaultProxy, Seen

_ZEROS = hashlib.sha256(bytes(64 << 20)).hexdigest()


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The waits between attempts stay random and growing, from a thousandth of a second."""
    quick = retries.RetryPolicy(attempts=6, first=0.001, longest=0.01)
    monkeypatch.setattr(retries.retry, "__kwdefaults__", {**retries.retry.__kwdefaults__, "policy": quick})
    monkeypatch.setattr(reading.fetch_s3, "__defaults__", (quick,))


@pytest.fixture
def root(faulty_s3: FaultProxy) -> Root:
    return Root.parse(f"s3://{faulty_s3.behind.bucket()}/docs", faulty_s3.server.storage_options)


def put(proxy: FaultProxy, root: Root, path: str, data: bytes) -> None:
    proxy.behind.client().put_object(Bucket=root.bucket, Key=root.prefix + path, Body=data)


def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of ten keys instead of a thousand."""
    real = buckets.Bucket.page
    monkeypatch.setattr(buckets.Bucket, "page", lambda self, **request: real(self, **request, MaxKeys=10))


def is_get_of(name: str):  # type: ignore[no-untyped-def]
    return lambda method, target: method == "GET" and name in target


def test_a_throttled_listing_goes_on(faulty_s3: FaultProxy, root: Root) -> None:
    """C4: 503 SlowDown."""
    for number in range(5):
        put(faulty_s3, root, f"{number}.md", b"x")
    faulty_s3.fail("slow-down", times=3)
    assert len(list(list_entries(root))) == 5
    assert faulty_s3.lists == 4


def test_a_listing_that_stays_throttled_is_an_error_not_an_empty_collection(faulty_s3: FaultProxy, root: Root) -> None:
    put(faulty_s3, root, "a.md", b"x")
    faulty_s3.fail("slow-down", times=1000)
    with pytest.raises(ListingError, match=r"SlowDown.*try again later"):
        list(list_entries(root))


def test_a_forbidden_listing_is_asked_once_and_says_so(faulty_s3: FaultProxy, root: Root) -> None:
    faulty_s3.fail("status", status=403, times=1000)
    with pytest.raises(ListingError, match="credentials"):
        list(list_entries(root))
    assert len(faulty_s3.seen) == 1


def test_a_bucket_that_is_not_there_is_an_error(faulty_s3: FaultProxy) -> None:
    root = Root.parse("s3://no-such-bucket-of-clew/docs", faulty_s3.server.storage_options)
    assert not root.exists()
    with pytest.raises(ListingError, match="NoSuchBucket"):
        list(list_entries(root))


def test_a_second_page_that_fails_ends_the_listing_with_an_error(
    faulty_s3: FaultProxy, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a listing would delete the other half from the index."""
    short_pages(monkeypatch)
    client = faulty_s3.behind.client()
    for number in range(11):
        client.put_object(Bucket=root.bucket, Key=f"{root.prefix}{number:04d}.md", Body=b"")
    tally = ListingTally()
    assert len(list(list_entries(root, tally=tally))) == 11
    assert tally.requests == 2
    assert faulty_s3.lists == 2
    faulty_s3.fail("status", status=403, times=1000, matches=lambda _, target: "continuation-token" in target)
    with pytest.raises(ListingError):
        list(list_entries(root))


def test_a_broken_download_is_taken_up_where_it_broke(faulty_s3: FaultProxy, root: Root) -> None:
    data = bytes(range(251)) * 20_000
    put(faulty_s3, root, "a.bin", data)
    faulty_s3.fail("cut", times=2, matches=is_get_of("a.bin"))
    digest = read_stable(root, "a.bin", lambda file, _: hashlib.file_digest(file, "sha256").hexdigest())
    assert digest == hashlib.sha256(data).hexdigest()
    gets = [seen for seen in faulty_s3.seen if seen.method == "GET" and "a.bin" in seen.target]
    assert len(gets) == 3
    assert "Range" not in gets[0].headers
    assert [seen.headers["Range"] for seen in gets[1:]] == ["bytes=2510000-", "bytes=3765000-"]
    assert len({seen.headers["If-Match"] for seen in gets}) == 1


def test_an_object_that_changes_during_a_broken_download_is_noticed(faulty_s3: FaultProxy, root: Root) -> None:
    put(faulty_s3, root, "a.bin", b"o" * 1_000_000)
    entry = head(root, "a.bin")
    assert entry is not None
    faulty_s3.fail("cut", matches=is_get_of("a.bin"))
    replaced = []

    def replace(seen: Seen) -> None:
        if seen.method == "GET" and not replaced:
            replaced.append(seen)
            put(faulty_s3, root, "a.bin", b"n" * 1_000_000)

    faulty_s3.after = replace
    with pytest.raises(ObjectChangedError), open_stable(root, entry):
        pass
    assert read_stable(root, "a.bin", lambda file, _: file.read()) == b"n" * 1_000_000


def test_reading_what_may_not_be_read_is_a_ledger_line(faulty_s3: FaultProxy, root: Root) -> None:
    put(faulty_s3, root, "a.md", b"x")
    entry = head(root, "a.md")
    assert entry is not None
    before = len(faulty_s3.seen)
    faulty_s3.fail("status", status=403, matches=is_get_of("a.md"))
    with pytest.raises(UnreadableFileError, match=r"a\.md.*credentials"), open_stable(root, entry):
        pass
    assert len(faulty_s3.seen) == before + 1, "a refusal is not repeated"


def test_a_head_that_fails_is_not_an_absence(faulty_s3: FaultProxy, root: Root) -> None:
    """A file would be deleted from the index because the store was busy."""
    put(faulty_s3, root, "a.md", b"x")
    faulty_s3.fail("status", status=403, times=1)
    with pytest.raises(StorageError):
        head(root, "a.md")
    faulty_s3.fail("slow-down", times=1000)
    with pytest.raises(StorageError):
        head(root, "a.md")


def test_an_object_deleted_before_it_is_read_is_missing(faulty_s3: FaultProxy, root: Root) -> None:
    with pytest.raises(ObjectMissingError), open_stable(root, Entry(path="a.md", size=1, etag="x")):
        pass


def test_memory_does_not_grow_with_the_object(faulty_s3: FaultProxy, root: Root) -> None:
    put(faulty_s3, root, "a.bin", bytes(64 << 20))
    direct = Root.parse(root.url, faulty_s3.behind.storage_options)
    entry = head(direct, "a.bin")
    assert entry is not None
    tracemalloc.start()
    try:
        with open_stable(direct, entry, spool_bytes=1 << 20) as (file, _):
            assert hashlib.file_digest(file, "sha256").hexdigest() == _ZEROS
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 24 << 20, "the comparison aside, a few pieces at a time"


def test_splitting_a_listing_on_a_real_server_loses_nothing(
    faulty_s3: FaultProxy, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "ORDERED_SERVERS", ("werkzeug",))
    monkeypatch.setattr(buckets, "_PAGES_BEFORE_SPLITTING", 1)
    short_pages(monkeypatch)
    monkeypatch.setattr(buckets.Bucket, "_may_look", lambda self: True)
    client = faulty_s3.behind.client()
    expected = [f"{folder}/{sub}/{number}.md" for folder in "a-b c" for sub in "xy" for number in range(6)]
    for path in expected:
        client.put_object(Bucket=root.bucket, Key=root.prefix + path, Body=b"")
    assert sorted(entry.path for entry in list_entries(root, workers=4)) == sorted(expected)
    assert any("delimiter" in seen.target for seen in faulty_s3.seen), "it was split"


# --- the index's place ------------------------------------------------------------------------


@pytest.fixture
def store(faulty_s3: FaultProxy) -> ObjectStore:
    return ObjectStore.open(f"s3://{faulty_s3.behind.bucket()}/.clew", faulty_s3.server.storage_options)


def test_a_lost_answer_to_a_creating_put_is_told(faulty_s3: FaultProxy, store: ObjectStore) -> None:
    """Taken for a failure, a published snapshot would be published again; taken for success, never."""
    faulty_s3.fail("swallow", matches=lambda method, _: method == "PUT")
    with pytest.raises(AmbiguousWriteError) as caught:
        store.put_if_absent("snapshots/1", b"mine")
    assert caught.value.ambiguous
    assert store.get("snapshots/1") == b"mine", "this time it had arrived"
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("snapshots/1", b"other")


def test_a_throttled_creating_put_is_tried_again(faulty_s3: FaultProxy, store: ObjectStore) -> None:
    faulty_s3.fail("slow-down", times=3)
    store.put_if_absent("snapshots/1", b"mine")
    assert store.get("snapshots/1") == b"mine"


def test_a_creating_put_that_stays_throttled_is_not_ambiguous(faulty_s3: FaultProxy, store: ObjectStore) -> None:
    faulty_s3.fail("slow-down", times=1000)
    with pytest.raises(StorageError) as caught:
        store.put_if_absent("snapshots/1", b"mine")
    assert not caught.value.ambiguous


def test_a_plain_put_survives_a_lost_answer(faulty_s3: FaultProxy, store: ObjectStore) -> None:
    faulty_s3.fail("swallow", matches=lambda method, _: method == "PUT")
    store.put("heartbeat", b"1")
    assert store.get("heartbeat") == b"1"


def test_a_store_without_conditional_put_is_refused(faulty_s3: FaultProxy, store: ObjectStore) -> None:
    from clew.errors import NoConditionalPutError

    faulty_s3.fail("status", status=501, matches=lambda method, _: method == "PUT")
    with pytest.raises(NoConditionalPutError, match="--index"):
        store.put_if_absent("snapshots/1", b"mine")


def test_a_store_that_ignores_the_condition_is_refused(faulty_s3: FaultProxy, store: ObjectStore) -> None:
    from clew.errors import NoConditionalPutError

    faulty_s3.dropped_headers = frozenset({"if-none-match"})
    with pytest.raises(NoConditionalPutError, match="overwrites"):
        store.probe_conditional_put()


def test_a_broken_copy_leaves_no_file(faulty_s3: FaultProxy, store: ObjectStore, tmp_path: Path) -> None:
    store.put("segment", bytes(1_000_000))
    faulty_s3.fail("cut", times=1000, matches=is_get_of("segment"))
    faulty_s3.fail("slow-down", times=1000, matches=is_get_of("segment"))
    with pytest.raises(StorageError):
        store.get_file("segment", tmp_path / "cache" / "segment")
    assert list((tmp_path / "cache").iterdir()) == []


def test_large_files_go_up_in_parts_despite_hiccups(faulty_s3: FaultProxy, store: ObjectStore, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(range(256)) * (160 << 10))
    faulty_s3.fail("slow-down", matches=lambda method, target: method == "PUT" and "partNumber" in target)
    store.put_file("segment", source)
    assert store.size("segment") == 40 << 20
    assert any("partNumber" in seen.target for seen in faulty_s3.seen)


def test_more_objects_than_one_request_takes_are_deleted(
    faulty_s3: FaultProxy, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert s3store._BATCH == 1000
    monkeypatch.setattr(s3store, "_BATCH", 10)
    client = faulty_s3.behind.client()
    root = Root.parse(store.place, store.storage_options)
    names = [f"g/{number:04d}" for number in range(25)]
    for name in names:
        client.put_object(Bucket=root.bucket, Key=root.prefix + name, Body=b"")
    assert sum(1 for _ in store.list("g/")) == 25
    store.delete(names)
    assert list(store.list()) == []
    assert sum(seen.method == "POST" for seen in faulty_s3.seen) == 3


def test_keys_are_never_logged_with_secrets(
    faulty_s3: FaultProxy, root: Root, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    faulty_s3.fail("status", status=403, times=10)
    with pytest.raises(StorageError) as caught:
        head(root, "a.md")
    assert faulty_s3.server.secret not in str(caught.value) + caplog.text
