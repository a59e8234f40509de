"""Without these, an index could rot under many commits, upkeep could take what readers need, or leave what was to go."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from clew.cli.main import main
from clew.errors import NoSuchDocumentError, NoSuchSnapshotError
from clew.indexer.compaction import Thresholds, compact, keep_tidy
from clew.indexer.garbage import Retention, Swept, segment_name, sweep
from clew.indexer.links.edges import edge_name
from clew.indexer.pins import pin, pins, unpin
from clew.indexer.place import Place
from clew.indexer.purge import purge
from clew.indexer.run import RunOptions, run_index
from clew.indexer.snapshots import generation_name, object_name
from clew.indexer.upkeep import POINTS, Upkeep, upkeep_of
from clew.query.difference import Comparison
from clew.query.index import Index
from clew.query.pinned import PinnedIndex
from clew_client.upkeep import Difference
from tests.integration.indexer.killed_upkeep import collect, dies_at, merge, remove
from tests.servers import S3Server

DAY = 24 * 3600.0
WORD = "quetzalcoatlus"


@dataclass
class Collection:
    """Files on a disk or in a bucket, and the index beside them."""

    root: str
    options: dict[str, Any] = field(default_factory=dict)
    client: Any = None
    bucket: str = ""

    def write(self, name: str, text: str) -> None:
        """Write a file; on a disk old enough that its time is beyond doubt."""
        if self.client is not None:
            self.client.put_object(Bucket=self.bucket, Key=f"docs/{name}", Body=text.encode())
            return
        path = Path(self.root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        old = time.time() - 3600 - len(text)
        os.utime(path, (old, old))

    def remove(self, name: str) -> None:
        """Delete a file."""
        if self.client is not None:
            self.client.delete_object(Bucket=self.bucket, Key=f"docs/{name}")
        else:
            (Path(self.root) / name).unlink()

    def build(self, embedder: str = "hashing:16", **options: Any) -> int:
        """Bring the index up to date; the snapshot's number."""
        given = {"embedder": embedder, "workers": 0, "storage_options": self.options, **options}
        return run_index(self.root, RunOptions(**given)).snapshot.number

    @property
    def place(self) -> Place:
        """The index."""
        return Place.open(f"{self.root}/.clew", self.options)

    def upkeep(self) -> Any:
        """The right to write."""
        return upkeep_of(self.place)

    def compact(self) -> None:
        """`clew compact`."""
        with self.upkeep() as upkeep:
            compact(upkeep.writer, full=True)

    def sweep(self, *, superseded: float = 0, older_than: float = 0, **options: Any) -> Swept:
        """`clew gc`."""
        with self.upkeep() as upkeep:
            return sweep(upkeep, Retention(superseded=superseded, older_than=older_than, **options))

    def open(self, snapshot: int | None = None) -> Index:
        """The index, pinned."""
        return Index.open(self.root, storage_options=self.options, snapshot=snapshot)

    def assert_clean(self) -> None:
        """`clew check --deep` finds nothing in any snapshot that is kept and whose links are resolved."""
        for number in self.place.snapshots.numbers():
            if self.place.snapshots.read(number).pending.links:
                continue
            with self.open(number) as index:
                assert index.check(deep=True).findings == (), f"snapshot {number}"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def local(tmp_path: Path) -> Collection:
    """An empty collection on a disk."""
    (tmp_path / "docs").mkdir()
    return Collection(str(tmp_path / "docs"))


@pytest.fixture(params=["disk", pytest.param("bucket", marks=pytest.mark.slow)])
def docs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Collection]:
    """An empty collection, on a disk and in a bucket."""
    if request.param == "disk":
        (tmp_path / "docs").mkdir()
        yield Collection(str(tmp_path / "docs"))
        return
    server: S3Server = request.getfixturevalue("moto_s3")
    bucket = server.bucket()
    yield Collection(f"s3://{bucket}/docs", server.storage_options, server.client(), bucket)


def text(number: int, version: int = 0) -> str:
    """A document that links to two others; every fifth is in Portuguese."""
    words = "chaves e marés do porto" if number % 5 == 0 else "keys and tides of the harbour"
    return (
        f"# Page {number}\n\nVersion {version} of what is known about {words}, {'signing ' * (number % 4)}number {number}.\n\n"
        f"See [next](p{number + 1}.md) and [other](p{number * 3 % 12}.md#page-{number * 3 % 12}).\n"
    )


def fill(docs: Collection, count: int = 12) -> None:
    """Write some files, and index them."""
    for number in range(count):
        docs.write(f"p{number}.md", text(number))
    docs.build()


def churn(docs: Collection, commits: int) -> None:
    """Change, add and remove files, one run after the other."""
    for number in range(commits):
        docs.write(f"p{number % 12}.md", text(number % 12, version=number + 1))
        docs.write(f"new{number}.md", text(number + 40))
        if number % 3 == 2:
            docs.remove(f"new{number - 1}.md")
        docs.build()


QUESTIONS = ("signing keys of the harbour", "marés", "version 3 number 40", "page")


def answers(index: Index) -> list[Any]:
    """What people see: passages with their trails, texts, links."""
    found: list[Any] = [
        (question, hit.path, hit.char_start, round(hit.score, 5), len(hit.trail))
        for question in QUESTIONS
        for hit in index.search(question, k=50).hits
    ]
    found += [(row.source, row.target, row.href, row.state, round(row.weight or 0, 5)) for row in index.links()]
    found += [(row.path, row.size, index.show(row.path).text) for row in index.files()]
    return sorted(found, key=repr)


def scores(index: Index) -> dict[Any, dict[str, float]]:
    """Raw scores of all paths, by question and passage."""
    return {
        (question, hit.path, hit.char_start): {name: source.raw for name, source in hit.sources.items()}
        for question in QUESTIONS
        for hit in index.search(question, k=50, hops=0).hits
    }


# --- compaction -----------------------------------------------------------------------------------


def test_after_compaction_every_score_is_that_of_a_fresh_build(docs: Collection, tmp_path: Path) -> None:
    """Scores to 1e-9, counts and languages exactly; cosines to 1e-6, as a matrix product depends on the order of rows."""
    fill(docs)
    churn(docs, 2 if docs.client else 5)
    with docs.open() as index:
        rotten = scores(index)
    docs.compact()
    docs.assert_clean()
    with docs.open() as index:
        compacted, said, status = scores(index), answers(index), index.status()
    docs.build(full=True)
    with docs.open() as index:
        fresh, fresh_said, fresh_status = scores(index), answers(index), index.status()
    assert {key[:2] for key in compacted} == {key[:2] for key in fresh}
    for key, expected in fresh.items():
        assert compacted[key].keys() == expected.keys()
        for name, raw in expected.items():
            assert compacted[key][name] == pytest.approx(raw, abs=1e-6 if name == "dense" else 1e-9), (key, name)
    bm25 = [(rotten[key]["bm25"], raw["bm25"]) for key, raw in fresh.items() if raw.get("bm25")]
    assert any(abs(one - two) > 1e-3 for one, two in bm25)  # the dead did count, or this test shows nothing
    assert [row[:3] for row in said] == [row[:3] for row in fresh_said]
    assert (status.segments, status.languages, status.links, status.files, status.chunks, status.vectors) == (
        fresh_status.segments, fresh_status.languages, fresh_status.links, fresh_status.files, fresh_status.chunks,
        fresh_status.vectors,
    )  # fmt: skip


def test_a_second_compaction_finds_nothing_to_do(local: Collection) -> None:
    fill(local)
    churn(local, 3)
    local.compact()
    number = local.place.snapshots.numbers()[-1]
    local.compact()
    assert local.place.snapshots.numbers()[-1] == number


def test_compaction_of_an_index_without_passages_and_of_one_emptied(local: Collection) -> None:
    local.write("empty.md", "")
    local.build()
    local.compact()
    local.write("a.md", "# A\n\nText.\n")
    local.build()
    local.remove("a.md")
    local.build()
    local.compact()
    local.assert_clean()
    assert local.place.snapshots.require().segments == ()


def reachable(place: Place) -> set[str]:
    """Objects that the newest snapshot names, those of its tables included."""
    snapshot = place.snapshots.require()
    generation = snapshot.generation
    names = {object_name(snapshot.number), generation_name(generation)}
    names |= {segment_name(generation, one.id) for one in snapshot.segments}
    names |= {edge_name(generation, one.id) for one in snapshot.edges}
    for name, table in place.tables(snapshot, place.generation(snapshot)).items():
        names.add(f"{name} at version {table.version}")
        for fragment in table.dataset.get_fragments():
            names |= {f"{name}/{file.path}" for file in fragment.data_files()}
            if fragment.num_deletions:
                names.add(f"{name}/{fragment.deletion_file()}")
    return names


def test_many_commits_leave_few_objects_and_every_passage(local: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty commits of a file each; eight of them without upkeep, to see that it is upkeep that bounds them."""
    for number in range(40):
        local.write(f"n{number}.md", text(number))
        local.build(embedder="none")
        if number == 11:
            monkeypatch.setattr("clew.indexer.run.keep_tidy", lambda writer: None)
            rotten = len(reachable(local.place))
        if number == 19:
            assert len(reachable(local.place)) > rotten + 30
            monkeypatch.undo()
            monkeypatch.setenv("XDG_CACHE_HOME", str(Path(local.root).parent / "cache"))
    assert (
        len(reachable(local.place)) <= 75
    )  # at most 3 parts of a tier, 3 tiers, 4 tables with deletions, segments, edges
    with local.open() as index:
        assert index.check(deep=True).findings == ()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_2500_commits_reach_at_most_300_objects_and_cost_no_more_and_more(local: Collection) -> None:
    """The 100 commits before the 2,500th take at most 1.5 times the CPU time of those before the 200th."""
    spent: list[float] = []
    most = 0
    for number in range(2500):
        local.write(f"d{number % 50}/n{number}.md", text(number))
        before = time.process_time()
        local.build(embedder="none")
        spent.append(time.process_time() - before)
        if number % 50 == 49:
            most = max(most, len(reachable(local.place)))
    early, late = sorted(spent[100:200])[50], sorted(spent[-100:])[50]
    assert most <= 300, f"{most} objects"
    assert late <= 1.5 * early, f"{early * 1000:.0f} ms, then {late * 1000:.0f} ms"


def test_upkeep_rewrites_segments_that_are_mostly_dead(local: Collection) -> None:
    """A tenth of all passages dead: the segments they are in are found and rebuilt, the others left alone."""
    fill(local)
    for number in range(6):
        local.remove(f"p{number}.md")
    local.build()
    with local.upkeep() as upkeep:
        done = keep_tidy(upkeep.writer, Thresholds(factor=1000, least_dead=2))
        assert done.passages == 6
    snapshot = local.place.snapshots.require()
    assert sum(segment.documents for segment in snapshot.segments) == snapshot.statistics.chunks
    local.assert_clean()


# --- garbage --------------------------------------------------------------------------------------


def test_a_sweep_leaves_what_the_newest_snapshot_names_and_nothing_else(docs: Collection) -> None:
    fill(docs)
    churn(docs, 1 if docs.client else 4)
    docs.compact()
    before = answers(docs.open())
    docs.build(full=True)  # another generation
    old = {one.generation for one in map(docs.place.snapshots.read, docs.place.snapshots.numbers())}
    done = docs.sweep()
    newest = docs.place.snapshots.require()
    assert docs.place.snapshots.numbers() == [newest.number] == done.kept
    assert set(done.generations) == old - {newest.generation}
    names = {stored.name for stored in docs.place.store.list("")}
    assert {name.split("/")[1] for name in names if name.startswith("generations/")} == {newest.generation}
    named = reachable(docs.place)
    for folder in ("lexical", "edges"):
        prefix = f"generations/{newest.generation}/{folder}/"
        assert {one for one in names if one.startswith(prefix)} == {one for one in named if one.startswith(prefix)}
    tables = f"generations/{newest.generation}/tables/"
    data = {one for one in names if one.startswith(tables) and ("/data/" in one or "/_deletions/" in one)}
    assert len(data) == len([one for one in named if one.split("/")[0] in newest.tables])
    assert len([one for one in names if one.startswith(tables) and one.endswith(".manifest")]) == len(newest.tables)
    docs.assert_clean()
    assert answers(docs.open()) == before
    again = docs.sweep()
    assert (again.objects, again.orphans) == (0, 0)
    docs.write("after.md", text(3))
    docs.build()
    docs.assert_clean()


def test_a_dry_run_removes_nothing(local: Collection) -> None:
    fill(local)
    churn(local, 2)
    before = {stored.name for stored in local.place.store.list("generations/")}
    numbers = local.place.snapshots.numbers()
    told = local.sweep(dry_run=True)
    assert told.snapshots == numbers[:-1]
    assert {stored.name for stored in local.place.store.list("generations/")} == before
    assert local.sweep().snapshots == told.snapshots


def test_retention_counts_from_the_successor_and_pins_hold(local: Collection) -> None:
    """A snapshot of last year that was replaced a minute ago stays; one that was replaced last year goes, unless pinned."""
    fill(local)
    churn(local, 3)
    numbers = local.place.snapshots.numbers()
    ancient = time.time() - 365 * DAY
    for number in numbers[:-2]:  # all but the last two were published a year ago
        os.utime(Path(local.place.address) / object_name(number), (ancient, ancient))
    pin(local.place.store, numbers[2])
    done = local.sweep(superseded=DAY)
    assert done.kept == [numbers[2], *numbers[-3:]]
    local.assert_clean()
    unpin(local.place.store, numbers[2])
    assert local.sweep(superseded=DAY).snapshots == [numbers[2]]


def test_young_orphans_stay_and_old_ones_go(local: Collection) -> None:
    """What a killed writer left may be a commit under way while it is young."""
    fill(local)
    local.sweep()
    place, generation = local.place, local.place.snapshots.require().generation
    tables = place.tables(place.snapshots.require(), place.generation(place.snapshots.require()))
    tables["chunks"].write(tables["chunks"].read())  # fragments that no version names
    orphans = [
        segment_name(generation, "0" * 32), edge_name(generation, "0" * 32), "generations/dead/generation.json",
        "generations/dead/tables/files.lance/data/x.lance", "probes/x",
    ]  # fmt: skip
    for name in orphans:
        place.store.put(name, b"orphan")
    half = Path(place.address) / "snapshots" / ".clew-part-x"
    half.write_bytes(b"half")
    assert local.sweep(older_than=3600).orphans == 0
    for path in [*(Path(place.address) / "generations").rglob("*"), Path(place.address) / "probes/x", half]:
        os.utime(path, (1, 1))
    done = local.sweep(superseded=DAY, older_than=3600)
    assert (done.orphans, done.temporaries) == (len(orphans) + 1, 1)
    assert not any(place.store.exists(name) for name in orphans)
    assert not half.exists()
    local.assert_clean()


def test_a_snapshot_that_is_pinned_during_the_sweep_stays(local: Collection) -> None:
    """The pin comes after the sweep has looked at the pins, and before it deletes what the snapshot names."""
    fill(local)
    churn(local, 1)
    first = local.place.snapshots.numbers()[0]
    with local.upkeep() as upkeep:
        store = upkeep.place.store
        delete: Callable[[Any], None] = store.delete

        def pin_first(names: Any) -> None:
            names = list(names)
            if object_name(first) in names and not pins(store):
                pin(store, first)
            delete(names)

        store.delete = pin_first  # type: ignore[method-assign]
        done = sweep(upkeep, Retention(superseded=0, older_than=0))
    assert first in done.kept
    assert first not in done.snapshots
    assert local.place.snapshots.numbers()[0] == first
    local.assert_clean()


def test_a_pinned_reader_answers_alike_while_commits_compaction_and_a_sweep_pass(docs: Collection) -> None:
    """Some commits, a compaction and a sweep that keeps a day."""
    fill(docs)
    reader, fresh_reader = docs.open(), docs.open()
    before = answers(reader)
    number = reader.snapshot
    churn(docs, 2 if docs.client else 6)
    docs.compact()
    done = docs.sweep(superseded=DAY, older_than=0)
    assert done.snapshots == []
    assert answers(reader) == before
    assert answers(fresh_reader) == before  # which had loaded nothing when all that passed
    with docs.open(number) as late:
        assert answers(late) == before


@pytest.mark.slow
def test_a_pinned_reader_answers_alike_while_fifty_commits_compaction_and_a_sweep_pass(local: Collection) -> None:
    """With a pin and no retention at all: what only the pinned snapshot names stays, and everything else goes."""
    fill(local)
    reader, number = local.open(), local.place.snapshots.require().number
    pin(local.place.store, number)
    before = answers(reader)
    began = local.place.snapshots.require().number
    for turn in range(50):
        local.write(f"p{turn % 12}.md", text(turn % 12, version=turn + 1))
        local.build()
        if turn == 25:
            local.compact()
            local.sweep()
        if turn % 5 == 0:
            assert answers(reader) == before
    assert local.place.snapshots.require().number >= began + 50
    local.compact()
    local.sweep()
    assert local.place.snapshots.numbers() == [number, local.place.snapshots.require().number]
    assert answers(reader) == before
    with local.open(number) as late:
        assert answers(late) == before
    local.assert_clean()


def test_a_reader_whose_snapshot_was_swept_is_told_so_and_goes_on_when_it_refreshes(docs: Collection) -> None:
    fill(docs)
    reader = docs.open()
    churn(docs, 1)
    docs.sweep()
    with pytest.raises(NoSuchSnapshotError, match="swept while it was being read"):
        reader.search("keys")
    reader.refresh()
    assert reader.search("keys").hits


# --- killed ---------------------------------------------------------------------------------------

WORK: dict[str, Callable[[Upkeep], None]] = {"compact": merge, "gc": collect}


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_killed_upkeep_of_a_bucket_leaves_a_sound_index(s3_server: S3Server, point: str) -> None:
    name = s3_server.bucket()
    bucket = Collection(f"s3://{name}/docs", s3_server.storage_options, s3_server.client(), name)
    fill(bucket)
    churn(bucket, 1)
    before = answers(bucket.open())
    assert dies_at(point, bucket.place.address, WORK[point.partition(".")[0]], bucket.options)
    bucket.assert_clean()
    assert {row[:2] for row in answers(bucket.open())} == {row[:2] for row in before}
    bucket.write("after.md", text(5))
    bucket.build()
    bucket.compact()
    bucket.sweep()
    bucket.assert_clean()


@pytest.mark.parametrize("point", POINTS)
def test_killed_upkeep_leaves_a_sound_index_and_is_finished_by_the_next(local: Collection, point: str) -> None:
    fill(local)
    churn(local, 2)
    before = answers(local.open()) if point.startswith("gc") else None
    assert dies_at(point, local.place.address, WORK[point.partition(".")[0]])
    local.assert_clean()
    local.write("after.md", text(5))
    local.build()
    local.assert_clean()
    local.remove("after.md")
    local.build()
    local.compact()
    local.sweep()
    local.assert_clean()
    expected = {name for name in reachable(local.place) if "/data/" not in name}
    there = {stored.name for stored in local.place.store.list("generations/")}
    assert {name for name in there if "/lexical/" in name} == {name for name in expected if "/lexical/" in name}
    assert before is None or {row[:2] for row in before} == {row[:2] for row in answers(local.open())}


# --- purge ----------------------------------------------------------------------------------------


def holders(folder: Path) -> list[str]:
    """Files below a folder in whose bytes the word stands."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [str(path.relative_to(folder)) for path in paths if WORD.encode() in path.read_bytes().lower()]


@pytest.fixture
def secret(local: Collection) -> Collection:
    """Twelve files; then a secret one, that was changed, moved and removed in one copy, and stands in another."""
    fill(local)
    local.sweep()
    local.write("secret.md", f"# Secret\n\nThe {WORD} sleeps here. See [page](p1.md).\n")
    local.write("p2.md", "# Two\n\nSee [the secret](secret.md).\n")
    local.build()
    local.write("secret.md", f"# Secret\n\nThe {WORD} sleeps there now. See [page](p1.md).\n")
    local.build()
    churn(local, 1)
    return local


def test_a_purged_text_is_in_no_file_of_the_index_nor_of_the_cache(secret: Collection) -> None:
    with secret.open() as index:
        assert any(hit.path == "secret.md" for hit in index.search(WORD).hits)
    pin(secret.place.store, None, "held")
    old = secret.place.snapshots.numbers()
    assert holders(Path(secret.place.address))
    with secret.upkeep() as upkeep:
        done = purge(upkeep, "secret.md")
    assert holders(Path(secret.place.address)) == []
    assert (done.passages, done.links, done.pins) == (1, 1, ["held"])
    assert done.swept.kept == [old[0], done.snapshot]  # the one before the text came stays
    secret.assert_clean()
    with secret.open() as index:
        assert index.search(WORD, paths=["bm25", "tfidf"]).hits == ()
        dangling = [row for row in index.links() if row.href == "secret.md"]
        assert [(row.source, row.state) for row in dangling] == [("p2.md", "dangling")]
    assert pins(secret.place.store) == []
    secret.remove("secret.md")
    secret.build()
    secret.assert_clean()


def test_a_text_that_was_removed_before_can_still_be_purged(secret: Collection) -> None:
    secret.remove("secret.md")
    secret.build()
    assert holders(Path(secret.place.address))
    with secret.upkeep() as upkeep:
        done = purge(upkeep, "secret.md")
    assert done.passages == 0
    assert holders(Path(secret.place.address)) == []
    secret.assert_clean()
    with secret.upkeep() as upkeep, pytest.raises(NoSuchDocumentError, match="secret"):
        purge(upkeep, "secret.md")


@pytest.mark.parametrize(
    "point", ["publish.after-put", "compact.after-chunks", "gc.after-snapshots", "gc.after-versions"]
)
def test_a_killed_purge_is_finished_by_the_next(secret: Collection, point: str) -> None:
    assert dies_at(point, secret.place.address, remove)
    secret.assert_clean()
    with secret.upkeep() as upkeep:
        purge(upkeep, "secret.md")
    assert holders(Path(secret.place.address)) == []
    assert list(secret.place.store.list("purges/")) == []
    secret.assert_clean()


# --- time travel ----------------------------------------------------------------------------------


def compared(docs: Collection, old: int, new: int) -> list[Difference]:
    """`clew diff`."""
    return list(Comparison(PinnedIndex.open(docs.place, old), PinnedIndex.open(docs.place, new)).rows())


def moves(docs: Collection) -> None:
    """A change, a rename, a removal and an arrival."""
    docs.write("p3.md", "# Page 3\n\nAnother text.\n\nSee [next](p4.md).\n")
    shutil.move(f"{docs.root}/p6.md", f"{docs.root}/moved.md")
    docs.remove("p9.md")
    docs.write("new.md", "# New\n\nA new text.\n")


def told(rows: list[Difference], what: str) -> list[Any]:
    """What is said of files, chunks or links."""
    found: list[Any] = []
    for row in rows:
        if row.what != what:
            continue
        if what == "link":
            found.append((row.change, row.path, row.href, row.target))
        elif what == "file":
            found.append((row.change, row.path, row.former_path))
        else:
            found.append((row.change, row.path, "".join(row.text or "").split("\n")[0]))
    return found


@pytest.mark.parametrize("full", [False, True], ids=["same generation", "another generation"])
def test_a_difference_tells_files_chunks_and_links(local: Collection, full: bool) -> None:
    fill(local)
    first = local.place.snapshots.numbers()[-1]
    moves(local)
    last = local.build(full=full)
    rows = compared(local, first, last)
    assert sorted(told(rows, "file")) == [
        ("added", "new.md", None), ("changed", "p3.md", None), ("removed", "p9.md", None), ("renamed", "moved.md", "p6.md"),
    ]  # fmt: skip
    assert sorted(told(rows, "chunk")) == [
        ("added", "new.md", "New"), ("added", "p3.md", "Page 3"), ("removed", "p3.md", "Page 3"), ("removed", "p9.md", "Page 9"),
    ]  # fmt: skip
    links = told(rows, "link")
    assert ("removed", "p8.md", "p9.md", "p9.md") in links
    assert ("added", "p8.md", "p9.md", None) in links
    assert ("removed", "p5.md", "p6.md", "moved.md") in links  # by its name of today
    assert ("added", "p5.md", "p6.md", None) in links
    assert not [one for one in links if one[1] == "p0.md"]  # nothing of it changed
    assert compared(local, last, last) == []
    back = {(row.change, row.path) for row in compared(local, last, first) if row.what == "file"}
    assert back == {("removed", "new.md"), ("changed", "p3.md"), ("added", "p9.md"), ("renamed", "p6.md")}


# --- the command line -----------------------------------------------------------------------------


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[Any], str]:
    """Exit status, JSON lines, messages."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    printed = capsys.readouterr()
    return int(str(ended.value.code or 0)), [json.loads(line) for line in printed.out.splitlines()], printed.err


def test_the_commands_speak_json(local: Collection, capsys: pytest.CaptureFixture[str]) -> None:
    fill(local)
    moves(local)
    local.build()
    status, rows, _ = command(capsys, "snapshots", local.root, "--json")
    numbers = [row["number"] for row in rows]
    assert status == 0
    assert numbers == local.place.snapshots.numbers()
    assert command(capsys, "snapshots", local.root, "pin", str(numbers[0]), "--name", "old", "--json")[1] == [
        {"name": "old", "number": numbers[0]}
    ]
    assert command(capsys, "snapshots", local.root, "list", "--json")[1][0]["pins"] == ["old"]
    status, rows, _ = command(capsys, "diff", local.root, str(numbers[1]), str(numbers[-1]), "--json")
    assert {row["what"] for row in rows} == {"file", "chunk", "link"}
    status, [merged], _ = command(capsys, "compact", local.root, "--json")
    assert (status, merged["published"], merged["segments"]["after"]) == (0, True, 1)
    options = ("--retention", "0s", "--older-than", "0s", "--json")
    status, [dry], _ = command(capsys, "gc", local.root, "--dry-run", *options)
    assert (status, dry["dry_run"]) == (0, True)
    status, [swept], _ = command(capsys, "gc", local.root, *options)
    assert (status, swept["kept"]) == (0, [numbers[0], merged["snapshot"]])
    assert swept["snapshots"] == dry["snapshots"]
    assert command(capsys, "search", local.root, "page", "--snapshot", str(numbers[0]), "--json")[0] == 0
    status, [purged], said = command(capsys, "purge", local.root, "new.md", "--json")
    assert (status, purged["still_at_root"], purged["passages"]) == (0, True, 1)
    assert "indexes it again" in said
    assert command(capsys, "snapshots", local.root, "unpin", "--name", "old", "--json")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gc", "--retention", "soon"), "--retention soon"),
        (("gc", "--older-than", "-1s"), "--older-than -1s"),
        (("snapshots", "hold"), "list, pin or unpin"),
        (("snapshots", "unpin"), "Say what"),
        (("snapshots", "pin", "99"), "Snapshot 99"),
        (("diff", "1", "99"), "Snapshot 99"),
        (("purge", "nothing.md"), "nothing.md"),
    ],
)
def test_wrong_requests_are_told_in_a_sentence(
    local: Collection, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    local.write("a.md", "# A\n")
    local.build(embedder="none")
    status, rows, said = command(capsys, arguments[0], local.root, *arguments[1:])
    assert (status, rows) == (2, [])
    assert message in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("arguments", [("compact",), ("gc",), ("snapshots",), ("diff", "1", "2"), ("purge", "a.md")])
def test_no_index_is_said_plainly(
    local: Collection, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    status, _, said = command(capsys, arguments[0], local.root, *arguments[1:])
    assert status == 2
    assert "clew index" in said
    assert not (Path(local.root) / ".clew").exists()
