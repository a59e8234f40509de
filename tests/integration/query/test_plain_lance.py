"""Other readers open the tables as they are; without these whoever leaves clew would find that nobody else can read them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.indexer.embedders.hashing import HashingEmbedder

pytestmark = pytest.mark.xdist_group("plain lance")  # lancedb takes three seconds to import


@pytest.fixture
def connected(index: clew.Index) -> Iterator[Any]:
    """lancedb over the tables of the index."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of parts that lancedb imports
        lancedb = pytest.importorskip("lancedb")
        yield lancedb.connect(index.tables)


def test_lancedb_opens_every_table(connected: Any, index: clew.Index) -> None:
    """All four, at the published version, with as many rows as clew says."""
    status = index.status()
    rows = {name: connected.open_table(name).count_rows() for name in ("files", "documents", "chunks", "links")}
    assert rows == {
        "files": status.files["total"],
        "documents": status.documents,
        "chunks": status.chunks,
        "links": status.links.total,
    }


def test_lancedb_finds_the_neighbours_that_clew_finds(connected: Any, index: clew.Index) -> None:
    """A vector search of its own over our vectors, alone and with a filter of its own."""
    text = "how is a signing key rotated"
    query = HashingEmbedder(32).embed_query(text)
    chunks = connected.open_table("chunks")
    near = chunks.search(query).distance_type("cosine").limit(5).to_list()
    wanted = index.search(text, k=5, paths=["dense"], hops=0).hits
    assert [row["chunk_key"] for row in near] == [hit.chunk_key for hit in wanted]
    assert [1 - row["_distance"] for row in near] == pytest.approx(
        [hit.sources["dense"].raw for hit in wanted], abs=1e-5
    )
    only = chunks.search(query).distance_type("cosine").where("language = 'pt'", prefilter=True).limit(5).to_list()
    assert {row["language"] for row in only} == {"pt"}
    dangling = connected.open_table("links").search().where("state = 'dangling'").to_list()
    assert {row["href"] for row in dangling} == {row.href for row in index.links(state="dangling")}


def test_duckdb_counts_and_joins_the_tables(index: clew.Index) -> None:
    """SQL over Arrow: files by kind, and passages by file."""
    duckdb = pytest.importorskip("duckdb")
    import lance

    files = lance.dataset(f"{index.tables}/files.lance").to_table()
    chunks = lance.dataset(f"{index.tables}/chunks.lance").to_table(columns=["file_key", "text"])
    connection = duckdb.connect()
    connection.register("files", files)
    connection.register("chunks", chunks)
    counted = dict(connection.execute("select kind, count(*) from files group by kind").fetchall())
    rows = list(index.files())
    assert counted == {kind: sum(row.type == kind for row in rows) for kind in {row.type for row in rows}}
    passages = connection.execute(
        "select path, count(*) from chunks join files using (file_key) group by path order by path"
    ).fetchall()
    assert passages == [(row.path, row.chunk_count) for row in rows if row.chunk_count]


def test_pandas_free_reading_through_arrow(index: clew.Index) -> None:
    """Hits as an Arrow table, for whoever goes on from there."""
    table = index.search("signing key", k=7).to_arrow()
    assert table.num_rows == 7
    assert {"path", "score", "text", "char_start"} <= set(table.column_names)


def test_link_beside_the_data_leads_to_the_tables_in_force(tmp_path: Path) -> None:
    """`.clew/tables` is a name that stays, also when the index was built anew with another embedder."""
    import lance

    (tmp_path / "a.md").write_text("# A\n\nTides.\n")
    clew.index(str(tmp_path), embedder="hashing:32", workers=0)
    link = tmp_path / ".clew/tables"
    first = link.resolve()
    assert lance.dataset(str(link / "chunks.lance")).count_rows() == 1
    assert str(first) == clew.open(str(tmp_path)).tables
    (tmp_path / "b.md").write_text("# B\n\nEbb.\n")
    clew.index(str(tmp_path), embedder="hashing:16", workers=0, full=True)
    assert link.resolve() != first
    assert str(link.resolve()) == clew.open(str(tmp_path)).tables
    dataset = lance.dataset(str(link / "chunks.lance"))
    assert dataset.count_rows() == 2
    assert dataset.schema.field("vector").type.list_size == 16


def test_tag_names_the_published_version(index: clew.Index) -> None:
    """A reader that asks for the tag `clew` never sees what a run has committed but not published."""
    import lance

    for name in ("files", "documents", "chunks", "links"):
        dataset = lance.dataset(f"{index.tables}/{name}.lance")
        tagged = lance.dataset(f"{index.tables}/{name}.lance", version="clew")
        assert tagged.version == dataset.version
        assert tagged.count_rows() == dataset.count_rows()
