"""Without these, listing a large bucket could cost a request a folder, lose keys where it is split, or fill memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from clew.connectors import s3
from clew.connectors.listing import ListingTally, list_entries
from clew.connectors.location import Root
from clew.connectors.patterns import Selection
from tests.unit.connectors.buckets import FakeBucket

Listed = tuple[list[str], ListingTally]


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Listed]:
    def run(
        bucket: FakeBucket, url: str = "s3://bucket/p", selection: Selection | None = None, workers: int = 8
    ) -> Listed:
        monkeypatch.setattr(s3, "client", lambda options: bucket)
        tally = ListingTally()
        found = [entry.path for entry in list_entries(Root.parse(url), selection, workers=workers, tally=tally)]
        assert len(found) == len(set(found)), "a key came twice"
        assert tally.files == len(found)
        assert tally.requests == bucket.lists
        return sorted(found), tally

    return run


def test_a_listing_costs_one_request_a_thousand_keys(listed: Callable[..., Listed]) -> None:
    """C5: many small folders must not cost a request each."""
    keys = [f"p/{number // 3:05d}/{number % 3}.md" for number in range(15_001)]
    bucket = FakeBucket(keys)
    found, _ = listed(bucket)
    assert found == sorted(key[2:] for key in keys)
    assert bucket.lists == 16
    assert bucket.gets == []
    assert bucket.heads == []


@pytest.mark.parametrize(
    "key",
    [
        lambda number: f"p/{number // 500:04d}/{number % 500}.md",
        lambda number: f"p/one/two/{number // 50:05d}/{number % 50}.md",
        lambda number: f"p/{number % 7}/{number % 1001:04d}/{number}.md",
        lambda number: f"p/flat-{number:07d}.md",
    ],
    ids=["folders", "deep folders", "many levels", "one flat folder"],
)
def test_long_listings_are_split_without_losing_a_key(listed: Callable[..., Listed], key: Callable[[int], str]) -> None:
    keys = [key(number) for number in range(120_000)]
    bucket = FakeBucket(keys)
    found, _ = listed(bucket)
    assert found == sorted(name[2:] for name in keys)
    assert bucket.lists <= 120 * 1.2


def test_servers_of_unknown_order_are_not_split(listed: Callable[..., Listed]) -> None:
    keys = [f"p/{number // 500:04d}/{number % 500}.md" for number in range(60_000)]
    bucket = FakeBucket(keys, server="SeaweedFS 4.48")
    listed(bucket)
    assert bucket.lists == 60


def test_a_large_folder_that_is_left_out_is_skipped(listed: Callable[..., Listed]) -> None:
    keys = [f"p/node_modules/{number}/x.md" for number in range(100_000)] + ["p/a.md", "p/z.md"]
    bucket = FakeBucket(keys)
    assert listed(bucket)[0] == ["a.md", "z.md"]
    assert bucket.lists <= 3


def test_only_the_included_prefixes_are_listed(listed: Callable[..., Listed]) -> None:
    keys = [f"p/logs/{number}" for number in range(50_000)] + ["p/docs/a.md", "p/docs/a.txt", "p/notes/b.md"]
    bucket = FakeBucket(keys)
    assert listed(bucket, selection=Selection(include=("docs/**/*.md", "notes/*")))[0] == ["docs/a.md", "notes/b.md"]
    assert bucket.lists == 2


def test_ignore_files_hold_on_both_sides_of_a_split(listed: Callable[..., Listed]) -> None:
    keys = [f"p/{number // 500:04d}/{'keep' if number % 2 else 'drop'}-{number % 500}.md" for number in range(60_000)]
    bucket = FakeBucket(keys, texts={"p/.clewignore": "drop-*\n", "p/0100/.clewignore": "!drop-*\n"})
    found, _ = listed(bucket)
    expected = sorted(key[2:] for key in keys if "keep" in key or key.startswith("p/0100/"))
    assert found == expected
    assert len(bucket.gets) < 60


def test_keys_sorted_before_the_ignore_file_obey_it(listed: Callable[..., Listed]) -> None:
    keys = ["p/ space.md", "p/!a.md", "p/-b.md", "p/sub/+c.md", "p/sub/d.md", "p/e.md"]
    bucket = FakeBucket(keys, texts={"p/.clewignore": "\\ space.md\n\\!a.md\n", "p/sub/.clewignore": "+c.md\n"})
    assert listed(bucket)[0] == ["-b.md", "e.md", "sub/d.md"]


def test_keys_that_are_no_paths_are_counted_and_left_out(
    listed: Callable[..., Listed], caplog: pytest.LogCaptureFixture
) -> None:
    keys = ["p/a.md", "p//b.md", "p/../c.md", "p/d/./e.md", "p/f//g.md", "p/folder/", "p/", "p/..h.md", "p/i..", "q/x"]
    found, tally = listed(FakeBucket(keys), selection=Selection(hidden=True))
    assert found == ["..h.md", "a.md", "i.."]
    assert tally.ignored_names == 4
    assert "4 keys were left out" in caplog.text


def test_listing_a_hundred_thousand_keys_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """C10: a reconcile of a large bucket must not hold it in memory."""
    bucket = FakeBucket([f"p/{number // 500:04d}/{number % 500}.md" for number in range(100_000)])
    monkeypatch.setattr(s3, "client", lambda options: bucket)
    tracemalloc.start()
    try:
        count = sum(1 for _ in list_entries(Root.parse("s3://bucket/p"), workers=4))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 100_000
    assert peak < 16 << 20
