"""What a watcher keeps of the tables must be what the tables say; without these it would delete and resolve the wrong rows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from clew.indexer.batch import path_columns
from clew.indexer.kept import KeptFragments, digests, path_digest
from clew.indexer.links.kept_paths import KeptPaths
from clew.indexer.schemas import FILES, LINKS
from clew.indexer.tables import Table, TableChange, create_tables


def file_row(key: int, path: str, state: str = "indexed", urls: tuple[str, ...] = ()) -> dict[str, Any]:
    """A row of the files table."""
    return {
        **path_columns(path), "file_key": key, "size": 1, "urls": list(urls), "records": 1, "chunk_count": 0,
        "link_count": 0, "next_chunk": 0, "state": state, "attempts": 0,
    }  # fmt: skip


def link_row(key: int, source: int, target: int | None, probed: list[int]) -> dict[str, Any]:
    """A row of the links table."""
    return {
        "link_key": key, "source_file": source, "source_record": 0, "href": "x", "kind": "hyperlink", "anchor": "",
        "context": "", "probed": probed, "target_file": target, "state": "dangling" if target is None else "resolved",
    }  # fmt: skip


def open_table(folder: Path, name: str, schema: pa.Schema) -> Table:
    """An empty table."""
    uri = str(folder / f"{name}.lance")
    create_tables({name: uri}, {name: schema}, {})
    return Table(name=name, uri=uri, schema=schema, version=1)


def append(table: Table, rows: list[dict[str, Any]], delete: np.ndarray | None = None) -> None:
    """Add rows, and take others away, in one commit."""
    fragments = table.write(pa.Table.from_pylist(rows, schema=table.schema)) if rows else ()
    table.commit(TableChange(delete=delete, append=fragments))


def scanned(table: Table) -> Table:
    """The same version, of which nothing is kept."""
    return Table(name=table.name, uri=table.uri, schema=table.schema, version=table.version)


@pytest.fixture
def files(tmp_path: Path) -> Table:
    """A files table of which something is kept."""
    table = open_table(tmp_path, "files", FILES)
    table.kept = KeptFragments()
    return table


def test_files_table_under_changes_is_kept_as_it_is(files: Table) -> None:
    """Additions, replacements, deletions, merged fragments, and commits that are undone: lookups, tallies and paths agree."""
    chance, kept = random.Random(5), KeptPaths()
    living: dict[int, tuple[str, tuple[str, ...]]] = {}
    undo: tuple[int, dict[int, tuple[str, tuple[str, ...]]]] = (1, {})
    for step in range(60):
        if (
            step % 7 == 6
        ):  # the writer died: its commits are undone, and other rows come under the same fragment numbers
            files.version, living = undo[0], dict(undo[1])
            files.restore()
        if step % 3 == 0:
            undo = (files.version, dict(living))
        victims = chance.sample(sorted(living), min(len(living), chance.randrange(3)))
        replaced = [key for key in victims if chance.random() < 0.6]
        keys = [*replaced, *range(1000 * step, 1000 * step + chance.randrange(4))]
        rows = {key: (f"d{key % 3}/n{key}-{step}.md", ("/u",) if key % 2 else ()) for key in keys}
        dead = scanned(files).addresses_of("file_key", np.array(victims, dtype=np.int64))
        states = {key: chance.choice(["indexed", "failed"]) for key in keys}
        append(files, [file_row(key, *_spread(rows[key], states[key])) for key in keys], dead)
        living = {key: facts for key, facts in living.items() if key not in victims} | rows
        if step % 10 == 9:
            merge(files)
        agree(files, kept, living, chance)
        if step % 4 == 0 and files.kept is not None:
            files.kept.retain([files])


def _spread(facts: tuple[str, tuple[str, ...]], state: str) -> tuple[str, str, tuple[str, ...]]:
    return facts[0], state, facts[1]


def merge(table: Table) -> None:
    """All fragments become one."""
    numbers = tuple(one.fragment_id for one in table.dataset.get_fragments())
    table.commit(TableChange(drop=numbers, append=table.write(table.dataset.scanner().to_reader())))


def agree(files: Table, kept: KeptPaths, living: dict[int, tuple[str, tuple[str, ...]]], chance: random.Random) -> None:
    """What is kept says what a scan says."""
    plain = scanned(files)
    some = np.array(chance.sample([*living, 7, 77_777], min(4, len(living) + 2)), dtype=np.int64)
    assert files.addresses_of("file_key", some).tolist() == plain.addresses_of("file_key", some).tolist()
    assert files.tally("state") == dict(plain.tally("state").items())
    for where in ("state = 'failed'", "false"):
        assert files.addresses_where(where).tolist() == plain.addresses_where(where).tolist()
        assert files.count(where) == plain.count(where)
    assert files.kept is not None
    path = living[int(some[0])][0] if int(some[0]) in living else "nowhere"
    found = files.kept.addresses(files, "path", [path_digest(path)])
    assert found is not None
    assert files.take_addresses(found, ["path"])["path"].to_pylist() == [path] * (path != "nowhere")
    assert kept.at(files)
    for key, (path, _) in living.items():
        assert (kept.path_of(key), kept.paths.id_of(path)) == (path, key)
    assert len(kept.paths) == len(living)
    first = min((path for path, urls in living.values() if urls), default=None)
    assert kept.paths.with_url("/u") == first


def test_links_are_found_by_source_target_and_probed_key(tmp_path: Path) -> None:
    """Keys of hashes above 32 bits, links without a target, and several keys a link."""
    table = open_table(tmp_path, "links", LINKS)
    table.kept = KeptFragments()
    append(table, [link_row(1, 5, None, [1 << 63, 9]), link_row(2, 5, 6, [9]), link_row(3, 6, 5, [])])
    append(table, [link_row(4, 7, 5, [(1 << 63) + 4])])

    def found(column: str, *keys: int) -> list[int]:
        assert table.kept is not None
        addresses = table.kept.addresses(table, column, np.array(keys, dtype=np.uint64))
        assert addresses is not None
        return table.take_addresses(addresses, ["link_key"])["link_key"].to_pylist()

    assert found("source_file", 5) == [1, 2]
    assert found("target_file", 5, 6) == [2, 3, 4]
    assert found("probed", 1 << 63, 9) == [1, 2]
    assert found("probed", (1 << 63) + 4) == [4]
    assert found("probed", 8) == []


def test_tables_that_outgrow_memory_are_read_again(files: Table) -> None:
    """Nothing is kept then, and every answer stays right."""
    files.kept = KeptFragments(most_bytes=64)
    append(files, [file_row(key, f"n{key}.md") for key in range(50)])
    assert len(files.addresses_of("file_key", np.array([3, 4], dtype=np.int64))) == 2
    assert files.kept.is_full
    assert (files.tally("state"), files.count("state = 'failed'")) == ({"indexed": 50}, 0)
    assert not KeptPaths().at(files)


def test_digests_are_sorted_and_once_each() -> None:
    assert digests([5, 1 << 40 | 5, 3]).tolist() == [3, 5]
