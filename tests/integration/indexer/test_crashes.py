"""Without these, a process killed at the wrong moment could leave an index that lost, doubled or half-showed something."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from clew.indexer import faults, upkeep
from clew.indexer.run import RunOptions, run_index
from clew.query.index import Index
from tests.integration.indexer.killed import dies_at
from tests.servers import S3Server

HOUSE = Path(__file__).parents[3]
SETTINGS: dict[str, Any] = {"embedder": "hashing:16", "workers": 0}

FIRST = {
    "index.md": "# Start\n\nSee [keys](ops/keys.md#emergency), [later](ops/later.md) and [notes](ops/notes.md).\n",
    "ops/keys.md": "# Keys\n\nRotate the signing key every quarter.\n\n## Emergency\n\nRevoke it at once.\n",
    "ops/notes.md": "# Notes\n\nTides and moorings; back to [start](../index.md).\n",
    "ops/gone.md": "# Gone\n\nThis will not last. See [keys](keys.md).\n",
    "people.jsonl": '{"id": "ana", "text": "Ana keeps the harbour."}\n{"id": "rui", "text": "Rui keeps the light."}\n',
}
#: What the second run finds: a change, a rename, a delete, and a file that a link waited for.
SECOND = {
    "index.md": FIRST["index.md"],
    "ops/keys.md": "# Keys\n\nRotate the signing key every month.\n\n## Alarm\n\nRevoke it at once.\n",
    "ops/tides.md": FIRST["ops/notes.md"],
    "ops/later.md": "# Later\n\nWhat comes [later](tides.md).\n",
    "people.jsonl": FIRST["people.jsonl"],
}
#: A first build never fences, restores or forgets, and finds no vector again; only it creates anything.
PHASES = (
    "lease", "create", "fence", "restore", "forget", "commit", "links", "vectors", "weights", "publish", "release",
)  # fmt: skip
OF_RUNS = tuple(point for point in faults.POINTS if point.partition(".")[0] in PHASES)
AT_FIRST = tuple(
    point for point in OF_RUNS if not point.startswith(("fence", "restore", "forget", "vectors.after-refill"))
)
AFTERWARDS = tuple(point for point in OF_RUNS if not point.startswith(("create", "fence", "restore")))
RECOVERING = tuple(point for point in OF_RUNS if point.startswith(("fence", "restore")))
PUBLISHED = 6  # publications of the incremental run: forgotten, read, linked, embedded, weighed


@dataclass
class Collection:
    """Files on a disk or in a bucket, and the index beside them."""

    root: str
    options: dict[str, Any] = field(default_factory=dict)
    client: Any = None
    bucket: str = ""

    def put(self, files: dict[str, str], *, minus: dict[str, str] | None = None) -> None:
        """Make the collection hold these files; a file of equal content that only moved is renamed on a disk."""
        gone = {name: text for name, text in (minus or {}).items() if name not in files}
        if self.client is not None:
            for name, text in files.items():
                self.client.put_object(Bucket=self.bucket, Key=f"docs/{name}", Body=text.encode())
            for name in gone:
                self.client.delete_object(Bucket=self.bucket, Key=f"docs/{name}")
            return
        folder = Path(self.root)
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            former = next((old for old, its in gone.items() if its == text), None)
            if former is not None and (folder / former).exists():
                (folder / former).rename(path)
            elif not path.exists() or path.read_text() != text:
                path.write_text(text)
                past = time.time() - 3600
                os.utime(path, (past, past))
        for name in gone:
            (folder / name).unlink(missing_ok=True)

    def index(self, **more: Any) -> Any:
        """A plain run, in this process."""
        return run_index(self.root, RunOptions(**{**SETTINGS, "storage_options": self.options, "wait": 0.0, **more}))

    def dies_at(self, point: str, count: int = 1) -> bool:
        """A run in another process, killed at a point."""
        return dies_at(point, self.root, count=count, **SETTINGS, storage_options=self.options)


def content(collection: Collection) -> dict[str, Any]:
    """What an index holds, without keys, once `check --deep` found nothing."""
    with Index.open(collection.root, storage_options=collection.options) as index:
        assert index.check(deep=True).findings == ()
        texts = {}
        for row in index.files():
            if row.records == 1:
                texts[row.path] = index.show(row.path).text
            else:
                texts[row.path] = [index.show(row.path, record).text for record in ("ana", "rui")]
        hits = index.search("rotate the signing key", k=20, hops=1)
        assert hits.degraded == {}
        return {
            "files": [(row.path, row.state, row.chunk_count) for row in index.files()],
            "texts": texts,
            "links": sorted(
                (row.source, row.target or "", row.href, row.state, round(row.weight or 0, 5)) for row in index.links()
            ),
            "hits": sorted((hit.path, hit.char_start) for hit in hits.hits),
            "statistics": {
                name: value
                for name, value in index.status().model_dump().items()
                if name in ("files", "chunks", "links")
            },
        }


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A collection that was indexed once, to be copied, and what fresh builds of both states hold."""
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        found: dict[str, Any] = {}
        for name, files in (("first", FIRST), ("second", SECOND)):
            collection = Collection(root=str(folder / name))
            collection.put(files)
            collection.index()
            found[name] = content(collection)
        found["folder"] = folder / "first"
        yield found


@pytest.fixture
def local(tmp_path: Path) -> Collection:
    """An empty folder."""
    return Collection(root=str(tmp_path / "docs"))


def test_every_point_is_in_the_code_and_in_the_documentation() -> None:
    """A point that is listed and never reached would make the matrix below look fuller than it is."""
    source = "".join(path.read_text() for path in (HOUSE / "clew").rglob("*.py"))
    reached = set(re.findall(r'faults\.reach\("([a-z.-]+)"\)', source))
    # The two places where the name of a table completes the point's.
    reached |= {f"forget.after-{name}" for name in ("documents", "chunks", "links")}
    reached |= {f"compact.after-{name}" for name in ("chunks", "documents", "files", "links")}
    assert reached == {*faults.POINTS, *upkeep.POINTS}
    page = (HOUSE / "docs/reference/fault-points.md").read_text()
    assert re.findall(r"^\| `([a-z.-]+)` \|", page, re.MULTILINE) == [*faults.POINTS, *upkeep.POINTS]


@pytest.mark.parametrize("point", AT_FIRST)
def test_first_build_killed_at(point: str, local: Collection, built: dict[str, Any]) -> None:
    local.put(FIRST)
    assert local.dies_at(point)
    local.index()
    assert content(local) == built["first"]


@pytest.mark.parametrize("count", range(1, PUBLISHED))
@pytest.mark.parametrize("point", [point for point in AFTERWARDS if point.startswith("publish")])
def test_any_publication_killed_at(point: str, count: int, local: Collection, built: dict[str, Any]) -> None:
    """Forgotten, read, linked, embedded, weighed: each publication before, in and behind its put."""
    shutil.copytree(built["folder"], local.root, symlinks=True)
    local.put(SECOND, minus=FIRST)
    assert local.dies_at(point, count)
    local.index()
    assert content(local) == built["second"]


@pytest.mark.parametrize("point", [point for point in AFTERWARDS if not point.startswith("publish")])
def test_incremental_run_killed_at(point: str, local: Collection, built: dict[str, Any]) -> None:
    shutil.copytree(built["folder"], local.root, symlinks=True)
    local.put(SECOND, minus=FIRST)
    assert local.dies_at(point)
    local.index()
    assert content(local) == built["second"]


@pytest.mark.parametrize("point", RECOVERING)
def test_recovery_itself_killed_at(point: str, local: Collection, built: dict[str, Any]) -> None:
    """The run that repairs after a killed one is killed as well."""
    shutil.copytree(built["folder"], local.root, symlinks=True)
    local.put(SECOND, minus=FIRST)
    assert local.dies_at("commit.after-links")
    assert local.dies_at(point)
    local.index()
    assert content(local) == built["second"]


# --- object stores --------------------------------------------------------------------------------

#: Of each phase one, in the default suite; the others are slow.
FEW = ("commit.after-chunks", "publish.after-put", "links.after-commit")


@pytest.fixture
def bucket(s3_server: S3Server) -> Collection:
    """An empty bucket, of each server in turn."""
    name = s3_server.bucket()
    return Collection(
        root=f"s3://{name}/docs", options=s3_server.storage_options, client=s3_server.client(), bucket=name
    )


@pytest.mark.parametrize(
    "point", [point if point in FEW else pytest.param(point, marks=pytest.mark.slow) for point in AFTERWARDS]
)
def test_incremental_run_in_a_bucket_killed_at(point: str, bucket: Collection, built: dict[str, Any]) -> None:
    bucket.put(FIRST)
    bucket.index()
    bucket.put(SECOND, minus=FIRST)
    assert bucket.dies_at(point)
    bucket.index()
    assert content(bucket) == built["second"]


@pytest.mark.slow
@pytest.mark.parametrize("point", AT_FIRST)
def test_first_build_in_a_bucket_killed_at(point: str, bucket: Collection, built: dict[str, Any]) -> None:
    bucket.put(FIRST)
    assert bucket.dies_at(point)
    bucket.index()
    assert content(bucket) == built["first"]


@pytest.mark.slow
@pytest.mark.parametrize("point", RECOVERING)
def test_recovery_in_a_bucket_killed_at(point: str, bucket: Collection, built: dict[str, Any]) -> None:
    bucket.put(FIRST)
    bucket.index()
    bucket.put(SECOND, minus=FIRST)
    assert bucket.dies_at("commit.after-links")
    assert bucket.dies_at(point)
    bucket.index()
    assert content(bucket) == built["second"]
