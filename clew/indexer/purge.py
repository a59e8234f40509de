"""Purging: a text leaves every snapshot, table version and segment, at once.

Deleting a file from the index leaves its text in earlier snapshots, which readers may ask for, and in parts of the newest one
that are rewritten only when it is worth it. A purge takes the file's rows, rewrites every part in which anything deleted still
stands, and then drops all snapshots that could hold the text: those that were published after its key was handed out. Keys are
handed out once and never again, so what an earlier snapshot names cannot hold it. Pins do not protect it.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import orjson
import xxhash
from numpy.typing import NDArray

from clew.errors import ConfigurationError, NoSuchDocumentError, NoSuchSnapshotError, ObjectMissingError
from clew.indexer.batch import statistics
from clew.indexer.changes import file_text
from clew.indexer.compaction import forget_the_dead
from clew.indexer.garbage import Retention, Swept, sweep
from clew.indexer.links.linking import arrival_hashes
from clew.indexer.links.linkpass import resolve_links
from clew.indexer.number_sets import distinct_numbers
from clew.indexer.pins import FOLDER as PINS
from clew.indexer.pins import pins
from clew.indexer.progress import Progress, Silence
from clew.indexer.snapshots import Snapshot
from clew.indexer.tables import Table, TableChange
from clew.indexer.upkeep import Upkeep
from clew.indexer.writer import Writer

FOLDER = "purges/"
THREADS = 8
_KEY_COLUMNS = {"documents": "file_key", "chunks": "file_key", "links": "source_file", "files": "file_key"}


@dataclass(kw_only=True)
class Purged:
    """What a purge did."""

    path: str
    file_keys: list[int] = field(default_factory=list)  # that ever stood for this path
    passages: int = 0  # of the newest snapshot
    links: int = 0  # written in the file, of the newest snapshot
    pins: list[str] = field(default_factory=list)  # that held a snapshot with the text
    snapshot: int = 0  # the newest, which goes on
    swept: Swept = field(default_factory=Swept)


def purge(upkeep: Upkeep, path: str, progress: Progress | None = None) -> Purged:
    """Remove a file's text from every snapshot. Raises NoSuchDocumentError where no snapshot knows the path.

    A purge that was interrupted is finished by the next one of the same path.
    """
    writer, store = upkeep.writer, upkeep.place.store
    text, _ = file_text(path)
    marker = f"{FOLDER}{xxhash.xxh3_128_hexdigest(text.encode('utf-8', 'surrogatepass'))}"
    snapshots = dict(_snapshots(upkeep))
    keys = sorted({*_keys_of(upkeep, snapshots, text), *_begun(upkeep, marker)})
    if not keys:
        raise NoSuchDocumentError(f"No snapshot of the index at {store.place} holds a file {path!r}.")
    store.put(marker, orjson.dumps(keys))  # the text may be in orphans once no snapshot knows the path
    done = Purged(path=path, file_keys=keys)
    _take_out(writer, np.array(keys, dtype=np.int64), done, progress or Silence())
    if writer.snapshot.graph is not None:
        from clew.indexer.graph.build import BuildOptions, build_graph

        build_graph(
            writer, BuildOptions(read=False), progress=progress
        )  # names, claims and statements go with the text
    forget_the_dead(writer)
    clean = {number for number, snapshot in snapshots.items() if snapshot.next_file_key <= keys[0]}
    done.pins = [pin.name for pin in pins(store) if pin.number not in clean]
    store.delete([PINS + name for name in done.pins])
    done.swept = sweep(upkeep, Retention(superseded=0, older_than=0, spare=clean.__contains__))
    store.delete([marker])
    done.snapshot = writer.snapshot.number
    return done


def _snapshots(upkeep: Upkeep) -> Iterator[tuple[int, Snapshot]]:
    """Snapshots that can be read; the others are dropped, as nobody can say what they hold."""
    log = upkeep.place.snapshots
    for number in log.numbers():
        try:
            yield number, log.read(number)
        except (ConfigurationError, NoSuchSnapshotError):
            continue


def _begun(upkeep: Upkeep, marker: str) -> list[int]:
    """Keys that an interrupted purge of this path had found."""
    try:
        keys: list[int] = orjson.loads(upkeep.place.store.get(marker))
    except (ObjectMissingError, orjson.JSONDecodeError):
        return []
    return keys


def _keys_of(upkeep: Upkeep, snapshots: dict[int, Snapshot], path: str) -> set[int]:
    """Keys under which any snapshot knows the path; each version of a files table is read once."""
    place = upkeep.place
    generations = {one.generation: place.generation(one) for one in snapshots.values()}
    versions = {(one.generation, one.tables["files"].version): one for one in snapshots.values()}
    quoted = path.replace("'", "''")

    def read(snapshot: Snapshot) -> list[int]:
        table = place.tables(snapshot, generations[snapshot.generation])["files"]
        keys: list[int] = table.read(["file_key"], f"path = '{quoted}'")["file_key"].to_pylist()
        return keys

    with ThreadPoolExecutor(THREADS) as pool:
        return {key for keys in pool.map(read, versions.values()) for key in keys}


def _take_out(writer: Writer, keys: NDArray[np.int64], done: Purged, progress: Progress) -> None:
    """Delete the files' rows from the newest snapshot; links to them dangle."""
    files = writer.tables["files"].read_keys("file_key", keys, ["path", "urls"])
    if not files.num_rows:
        return
    records = writer.tables["documents"].read_keys("file_key", keys, ["record"])["record"].drop_null()
    gone = arrival_hashes(zip(files["path"].to_pylist(), files["urls"].to_pylist(), strict=True), records.to_pylist())
    for name, column in _KEY_COLUMNS.items():
        dead = _addresses(writer.tables[name], column, keys)
        if name == "chunks":
            done.passages = len(dead)
        elif name == "links":
            done.links = len(dead)
        writer.tables[name].commit(TableChange(delete=dead))
    writer.publish(
        pending=writer.snapshot.pending.model_copy(update={"links": True}),
        statistics=statistics(writer, writer.snapshot),
    )
    resolve_links(writer, touched_files=keys, arrivals=distinct_numbers(gone), everything=False, progress=progress)


def _addresses(table: Table, column: str, keys: NDArray[np.int64]) -> NDArray[np.uint64]:
    index = table.read_with_addresses([column])
    addresses: NDArray[np.uint64] = index["_rowaddr"].to_numpy()[np.isin(index[column].to_numpy(), keys)]
    return addresses
