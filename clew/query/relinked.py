"""The links of a part of a collection, resolved as an index of this part alone would resolve them.

Which file a link means can depend on which files there are: two files claim one address, two record files hold one id, a path
from the root stands before a name. Where the whole collection chose a file that the part does not hold, the link is not
dangling for the part if another file of it could be meant; that it were shown so would tell that the forbidden file is there, and
whoever may write files could ask for any name in this way. So these links, and no others, are resolved and weighed anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.indexer.links.edges import edges_of
from clew.indexer.links.linking import CHUNK_COLUMNS, DOCUMENT_COLUMNS, FILE_COLUMNS, Linker, Passages, PathByKey
from clew.indexer.links.path_index import PathIndex
from clew.indexer.schemas import LINKS
from clew.indexer.tables import Table

if TYPE_CHECKING:
    from clew.indexer.embedders.protocol import Embedder
    from clew.query.restricted import RestrictedIndex

#: What a resolution decides, of the columns of LINKS.
DECIDED = ("fragment", "probed", "target_file", "target_record", "target_chunk", "fragment_found", "weight", "state")
_SLICE = 16_384  # links with their texts in memory at a time
_EMBEDDED_AT_ONCE = 1024
_TARGET = re.compile(r"\btarget_file = (\d+)")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Relinked:
    """Links that lead elsewhere in a part than in the whole."""

    rows: pa.Table  # LINKS, by rising link_key
    keys: NDArray[np.int64]  # their link_key
    addresses: NDArray[np.uint64]  # where they stand in the whole table

    @property
    def edges(self) -> pa.Table:
        """Theirs, by schema EDGES."""
        return edges_of(self.rows)

    def patch(self, found: pa.Table, keys: NDArray[np.int64]) -> pa.Table:
        """Rows of the whole table, `keys` being their link keys, with what was decided anew in its place."""
        if not len(self.keys) or not len(keys):
            return found
        place = np.searchsorted(self.keys, keys).clip(0, len(self.keys) - 1)
        chosen = np.where(self.keys[place] == keys, len(keys) + place, np.arange(len(keys)))
        for name in DECIDED:
            number = found.schema.get_field_index(name)
            if number >= 0:
                both = pa.chunked_array([*found[name].chunks, *self.rows[name].cast(found[name].type).chunks])
                found = found.set_column(number, found.schema.field(number), both.take(pa.array(chosen)))
        return found

    def to(self, file_key: int) -> NDArray[np.uint64]:
        """Addresses of those that lead to a file."""
        leading = self.rows["target_file"].fill_null(-1).to_numpy() == file_key
        addresses: NDArray[np.uint64] = self.addresses[leading]
        return addresses


@dataclass(kw_only=True)
class RelinkedTable(Table):
    """The links table as a part sees it. Its rows are those of the whole; only to be read."""

    whole: Table
    changed: Callable[[], Relinked]

    @classmethod
    def of(cls, whole: Table, changed: Callable[[], Relinked]) -> RelinkedTable:
        """`changed`: asked for when the table is first read."""
        return cls(
            name=whole.name,
            uri=whole.uri,
            schema=whole.schema,
            version=whole.version,
            storage_options=whole.storage_options,
            explain=whole.explain,
            whole=whole,
            changed=changed,
        )

    def read(self, columns: list[str] | None = None, where: str | None = None) -> pa.Table:
        """See `Table.read`."""
        wanted = self.schema.names if columns is None else columns
        return self.read_with_addresses(wanted, where).select(wanted)

    def read_with_addresses(self, columns: list[str], where: str | None = None) -> pa.Table:
        """See `Table.read_with_addresses`. What is filtered by is looked up as the whole has it; what leads to a file here
        alone is added."""
        read = list(dict.fromkeys([*columns, "link_key"]))
        found = self.whole.read_with_addresses(read, where)
        changed = self.changed()
        if where is not None and (target := _TARGET.search(where)):
            addresses = np.setdiff1d(changed.to(int(target[1])), found["_rowaddr"].to_numpy())
            added = self.whole.take_addresses(addresses, read).append_column("_rowaddr", pa.array(addresses))
            found = pa.concat_tables([found, added.select(found.column_names).cast(found.schema)])
        return changed.patch(found, found["link_key"].to_numpy()).select([*columns, "_rowaddr"])

    def batches(self, columns: list[str], where: str | None = None) -> Iterator[pa.RecordBatch]:
        """See `Table.batches`."""
        for batch in self.whole.batches(list(dict.fromkeys([*columns, "link_key"])), where):
            rows = pa.Table.from_batches([batch])
            yield from self.changed().patch(rows, rows["link_key"].to_numpy()).combine_chunks().to_batches()

    def take_addresses(self, addresses: NDArray[np.uint64], columns: list[str]) -> pa.Table:
        """See `Table.take_addresses`."""
        found = self.whole.take_addresses(addresses, list(dict.fromkeys([*columns, "link_key"])))
        return self.changed().patch(found, found["link_key"].to_numpy()).select(columns)


def relink(part: RestrictedIndex, links: Table, embedder: Embedder | None) -> Relinked:
    """The links of a part whose target in the whole it does not hold, and which lead to another file of it.

    `links`: the table of the whole. `embedder`: what weighed them; None where the passages' vectors did.
    """
    addresses = _lost(part, links)
    rows: list[pa.Table] = []
    kept: list[NDArray[np.uint64]] = []
    if len(addresses):
        files = part.tables["files"].read(FILE_COLUMNS)
        files = files.filter(pa.array(part.holding(files["file_key"].to_numpy())))
        documents = part.catalog.documents.select(DOCUMENT_COLUMNS)
        linker = Linker(
            PathIndex(files["path"], files["urls"], files["file_key"].to_numpy()),
            PathByKey(files),
            documents.filter(documents["record"].is_valid()),
            lambda wanted: _passages(part, wanted),
            part.snapshot.site,
        )
        for start in range(0, len(addresses), _SLICE):
            some = addresses[start : start + _SLICE]
            resolved = linker.resolve(links.take_addresses(some, LINKS.names))
            leading = resolved["state"].to_numpy(zero_copy_only=False) != "dangling"
            rows.append(_weighed(part, resolved.filter(pa.array(leading)), embedder))
            kept.append(some[leading])
    found = pa.concat_tables([LINKS.empty_table(), *rows])
    order = np.argsort(found["link_key"].to_numpy(), kind="stable")
    found = found.take(pa.array(order))
    where = np.concatenate([np.empty(0, dtype=np.uint64), *kept])
    return Relinked(rows=found, keys=found["link_key"].to_numpy(), addresses=where[order])


def _lost(part: RestrictedIndex, links: Table) -> NDArray[np.uint64]:
    """Addresses of the part's links that lead out of it."""
    found = [np.empty(0, dtype=np.uint64)]
    for batch in links.batches(["source_file", "target_file"], "target_file IS NOT NULL"):
        out = part.holding(batch["source_file"].to_numpy()) & ~part.holding(batch["target_file"].to_numpy())
        found.append(batch["_rowaddr"].to_numpy()[out])
    return np.concatenate(found)


def _passages(part: RestrictedIndex, files: NDArray[np.int64]) -> Passages:
    chosen = np.flatnonzero(np.isin(part.chunks.file_keys, files))
    return Passages(part.read_chunks(chosen, CHUNK_COLUMNS))


def _weighed(part: RestrictedIndex, links: pa.Table, embedder: Embedder | None) -> pa.Table:
    """Links with their weights and, where they name no place in their target, its best passage: see
    `clew.indexer.links.linkpass.weigh_links`."""
    mode = "source" if embedder is None else part.generation.settings.edge_weights
    if mode == "one" or part.generation.dimension is None or not links.num_rows:
        return links
    weights = np.full(links.num_rows, np.nan, dtype=np.float32)
    chunks = links["target_chunk"].to_pylist()
    vectors, filled = part.vectors
    for start in range(0, links.num_rows, _EMBEDDED_AT_ONCE):
        some = links.slice(start, _EMBEDDED_AT_ONCE)
        contexts = _contexts(part, some, None if mode == "source" else embedder)
        columns = ("target_file", "target_record", "target_chunk", "fragment_found", "source_chunk")
        for row, link in enumerate(some.select(columns).to_pylist()):
            if link["target_chunk"] is None or link["source_chunk"] is None or contexts is None:
                continue
            inside = part.chunks.file_keys == link["target_file"]
            own = np.flatnonzero(inside & (part.chunks.record_numbers == (link["target_record"] or 0)))
            own = own[filled[own]]
            own = own[np.argsort(part.universe.keys[own])]
            if not len(own):
                continue
            # As `weigh_links` does it: in float64, then rounded, whatever else is multiplied with it.
            cosines = (np.asarray(vectors[own], dtype=np.float64) @ contexts[row].astype(np.float64)).astype(np.float32)
            named = np.flatnonzero(part.universe.keys[own] == link["target_chunk"])
            best = int(named[0]) if link["fragment_found"] and len(named) else int(np.argmax(cosines))
            weights[start + row] = np.clip(cosines[best], -1, 1)
            chunks[start + row] = int(part.universe.keys[own[best]])
    values: dict[str, Any] = {
        "target_chunk": pa.array(chunks, pa.int64()),
        "weight": pa.array(weights, pa.float32(), mask=np.isnan(weights)),
    }
    for name, column in values.items():
        links = links.set_column(LINKS.get_field_index(name), LINKS.field(name), column)
    return links


def _contexts(part: RestrictedIndex, links: pa.Table, embedder: Embedder | None) -> NDArray[np.float32] | None:
    """A vector a link: of the words around it, or of the passage it stands in."""
    if embedder is not None:
        return np.asarray(embedder.embed_passages(links["context"].to_pylist()), dtype=np.float32)
    ordinals = part.universe.ordinals(links["source_chunk"].fill_null(-1).to_numpy())
    return np.asarray(part.vectors[0][np.maximum(ordinals, 0)], dtype=np.float32) if len(part.universe) else None
