"""What people change in a graph by hand: undo a merge, drop a report; and what a build would cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clew.errors import NoGraphError, NoSuchDocumentError, OptionError
from clew.indexer.embedders.protocol import Embedder
from clew.indexer.graph.build import BuildOptions, Built, build_graph
from clew.indexer.graph.model_reading import ModelReader
from clew.indexer.graph.names import key_of
from clew.indexer.graph.passages import blocks, of_documents, unread
from clew.indexer.graph.reading import Reader, RuleReader
from clew.indexer.graph.schemas import ALIASES
from clew.indexer.number_sets import is_among
from clew.indexer.progress import Progress
from clew.indexer.snapshots import Snapshot
from clew.indexer.tables import Table, TableChange
from clew.indexer.writer import Writer

MOST_DOCUMENTS = 50  # read on demand at once


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """What a build would read."""

    passages: int
    to_read: int
    characters: int
    calls: int = 0  # of a model; 0 with rules
    tokens_in: int = 0
    tokens_out: int = 0  # at most
    money: float | None = None  # at most; None without prices


def undo_merge(writer: Writer, form_key: int, embedder: Embedder | None, progress: Progress | None = None) -> Built:
    """Take a form out of the entity it was merged into, or join what was told apart as a homonym, for good.

    OptionError where it was neither.
    """
    _require(writer)
    table = writer.tables["aliases"]
    rows = table.read_keys("form_key", np.array([form_key]), ALIASES.names)
    if not rows.num_rows or rows["how"][0].as_py() == "self":
        raise OptionError(f"{form_key:016x} is no merge of this graph; `clew graph merges` lists them.")
    if rows["how"][0].as_py() == "homonym":
        rows = _common_form(table, rows["name"][0].as_py())
        parted = rows["form_key"][0].as_py()  # from itself: see ALIASES
    else:
        parted = rows["entity_key"][0].as_py()
    row = rows.drop_columns(["_rowaddr"]).to_pylist()[0] | {"apart_from": parted}
    table.commit(
        TableChange(delete=rows["_rowaddr"].to_numpy(), append=table.write(pa.Table.from_pylist([row], schema=ALIASES)))
    )
    return build_graph(writer, BuildOptions(read=False, anew=True), embedder, progress)


def _common_form(table: Table, name: str) -> pa.Table:
    """A form of this name in its commonest sense, with its address. OptionError where each was parted from another by hand."""
    rows = table.read_with_addresses(ALIASES.names)
    of_name = rows.filter(pc.equal(rows["name"], name)).sort_by("form_key")
    for at, row in enumerate(of_name.to_pylist()):
        if row["form_key"] == key_of(name, row["type"]) and row["apart_from"] is None:
            return of_name.slice(at, 1)
    raise OptionError(f"All forms of {name!r} were parted from another one by hand; one form keeps one such decision.")


def delete_report(writer: Writer, community_key: int, *, community: bool = False) -> Snapshot:
    """Remove a community's report (with `community`: the community, too) until a build makes it again."""
    _require(writer)
    tables = ["reports", "communities"] if community else ["reports"]
    found = False
    for name in tables:
        table = writer.tables[name]
        rows = table.read_with_addresses(["community_key"])
        dead = rows["_rowaddr"].to_numpy()[rows["community_key"].to_numpy() == community_key]
        found |= bool(len(dead))
        table.commit(TableChange(delete=dead))
    if not found:
        raise OptionError(f"{community_key:016x} is no community of this graph; `clew graph reports` lists them.")
    return writer.publish()


def estimate(writer: Writer, options: BuildOptions) -> Estimate:
    """What a build with these options would read, and what a model would cost at most. Nothing is written, nobody is asked."""
    chunks = writer.tables["chunks"].read(["chunk_key", "file_key", "record_number", "char_start", "char_end"])
    fresh = np.sort(chunks["chunk_key"].to_numpy())
    reader: Reader = options.reader or RuleReader()
    if options.documents is not None:
        fresh = of_documents(chunks, options.documents)
    elif "readings" in writer.tables:
        known = writer.tables["readings"].read(["chunk_key", "reader"])
        fresh, _ = unread(chunks, known, reader.id, keep_models=options.reader is None)
    sizes = chunks["char_end"].to_numpy() - chunks["char_start"].to_numpy()
    wanted = is_among(chunks["chunk_key"].to_numpy(), fresh)
    found = Estimate(passages=chunks.num_rows, to_read=len(fresh), characters=int(sizes[wanted].sum()))
    if not isinstance(reader, ModelReader):
        return found
    passages = blocks(writer.tables["chunks"], writer.tables["links"], fresh, reader.block)
    cost = reader.forecast(passages)
    return replace(found, calls=cost.calls, tokens_in=cost.tokens_in, tokens_out=cost.tokens_out, money=cost.money)


def documents_named(writer: Writer, ids: Sequence[str]) -> list[tuple[int, int]]:
    """(file_key, record_number) of documents by id: a path, a record's id, or PATH#RECORD.

    OptionError for more than MOST_DOCUMENTS; NoSuchDocumentError names the first that is not there.
    """
    if len(ids) > MOST_DOCUMENTS:
        raise OptionError(f"--documents names {len(ids)} documents; at most {MOST_DOCUMENTS} are read at once.")
    files = writer.tables["files"].read(["file_key", "path"])
    by_path = dict(zip(files["path"].to_pylist(), files["file_key"].to_pylist(), strict=True))
    rows = writer.tables["documents"].read(["file_key", "record_number", "record"]).to_pylist()
    by_record = {row["record"]: (row["file_key"], row["record_number"]) for row in rows if row["record"] is not None}
    of_file: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        of_file.setdefault(row["file_key"], []).append((row["file_key"], row["record_number"]))
    found: list[tuple[int, int]] = []
    for one in ids:
        path, _, record = one.rpartition("#")
        if one in by_path:
            found += of_file.get(by_path[one], [])
        elif one in by_record:
            found.append(by_record[one])
        elif path in by_path and by_record.get(record, (None, None))[0] == by_path[path]:
            found.append(by_record[record])
        else:
            raise NoSuchDocumentError(f"The index holds no document {one!r}; `clew files ROOT` lists them.")
    return found


def _require(writer: Writer) -> Table:
    if "aliases" not in writer.tables:
        raise NoGraphError(f"The index at {writer.place.address} has no graph; build it with `clew graph build`.")
    return writer.tables["aliases"]
