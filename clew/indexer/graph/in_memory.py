"""The graph of some of the passages, put together in memory as a build of an index of these alone would.

Everything behind the tables `readings`, `mentions` and `claims` is a function of their rows. So is what somebody may know of
who may know of some files only: the same steps over the rows of these files, with nothing of the others in any name, weight,
community or report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.indexer.embedders.protocol import Embedder
from clew.indexer.graph.build import BuildOptions, _Build
from clew.indexer.graph.gathering import MENTION_COLUMNS, gather
from clew.indexer.graph.schemas import graph_schemas
from clew.indexer.progress import Silence
from clew.indexer.snapshots import GraphSettings
from clew.indexer.tables import Table, TableChange
from clew.indexer.writer import Writer

_EQUAL = re.compile(r"(\w+) (=|!=) '([^']*)'")
_NULL = re.compile(r"(\w+) IS (NOT )?NULL")


@dataclass(kw_only=True)
class MemoryTable(Table):
    """A table whose rows are here. Of filters it knows those that the graph asks with."""

    held: pa.Table

    @classmethod
    def of(cls, name: str, rows: pa.Table, schema: pa.Schema) -> MemoryTable:
        """A table of these rows."""
        return cls(name=name, uri="", schema=schema, version=0, held=rows.select(schema.names).cast(schema))

    @property
    def rows(self) -> int:
        return int(self.held.num_rows)

    def read(self, columns: list[str] | None = None, where: str | None = None) -> pa.Table:
        """Rows, in stored order."""
        rows = self.held if where is None else self.held.filter(_mask(self.held, where))
        return rows if columns is None else rows.select(columns)

    def read_with_addresses(self, columns: list[str], where: str | None = None) -> pa.Table:
        """Like `read`, with the column `_rowaddr`: the row's number."""
        numbered = self.held.append_column("_rowaddr", pa.array(np.arange(self.held.num_rows, dtype=np.uint64)))
        rows = numbered if where is None else numbered.filter(_mask(self.held, where))
        return rows.select([*columns, "_rowaddr"])

    def take_addresses(self, addresses: NDArray[np.uint64], columns: list[str]) -> pa.Table:
        """Rows of these numbers, in their order."""
        return self.held.select(columns).take(pa.array(addresses))

    def write(self, rows: pa.Table | pa.RecordBatchReader) -> tuple[Any, ...]:
        """The rows as a fragment that a commit may name."""
        return (rows if isinstance(rows, pa.Table) else rows.read_all(),)

    def commit(self, change: TableChange) -> None:
        """Carry out a change."""
        keep = np.ones(self.held.num_rows, dtype=bool)
        if change.delete is not None:
            keep[np.asarray(change.delete, dtype=np.int64)] = False
        added = [cast("pa.Table", one).select(self.schema.names).cast(self.schema) for one in change.append]
        self.held = pa.concat_tables([self.held.filter(pa.array(keep)), *added])


def _mask(rows: pa.Table, where: str) -> pa.ChunkedArray:
    if found := _EQUAL.fullmatch(where):
        name, sign, value = found.groups()
        return pc.equal(rows[name], value) if sign == "=" else pc.not_equal(rows[name], value)
    if found := _NULL.fullmatch(where):
        name, present = found.groups()
        return pc.is_valid(rows[name]) if present else pc.is_null(rows[name])
    raise ValueError(f"no such filter of a table in memory: {where}")


@dataclass(kw_only=True)
class _Holder:
    """What a build asks of its writer once everything is read."""

    tables: dict[str, Table]
    snapshot: _NoSnapshot = field(default_factory=lambda: _NoSnapshot())


@dataclass(frozen=True, kw_only=True)
class _NoSnapshot:
    graph: GraphSettings | None = None  # there was no graph before


def assemble(
    whole: Mapping[str, Table],
    chunks: pa.Table,
    *,
    settings: GraphSettings,
    dimension: int | None,
    embedder: Embedder | None,
) -> dict[str, MemoryTable]:
    """The graph's tables of some passages of an index.

    Args:
        whole: the index's tables.
        chunks: chunk_key, file_key, record_number, language of the passages, by key.
        settings: how the graph of the index was built.
        dimension: of vectors; None where the index has none.
        embedder: for names and reports whose vectors the index does not hold; None where it has none that takes texts.
    """
    keys = chunks["chunk_key"].to_numpy()
    schemas = graph_schemas(dimension)

    def own(name: str) -> MemoryTable:
        rows = whole[name].read(schemas[name].names)
        return MemoryTable.of(name, rows.filter(pa.array(np.isin(rows["chunk_key"].to_numpy(), keys))), schemas[name])

    tables: dict[str, Table] = {
        name: MemoryTable.of(name, schema.empty_table(), schema) for name, schema in schemas.items()
    }
    tables |= {name: own(name) for name in ("readings", "mentions", "claims")}
    mentions = cast("MemoryTable", tables["mentions"])
    mentions.held = mentions.held.filter(_mask(mentions.held, "kind != 'phrase'"))  # they follow from the entities
    forms = pc.unique(mentions.held["form_key"])
    # What a hand took apart stays apart, where both forms are known; vectors of names are those of the same names.
    apart = whole["aliases"].read(schemas["aliases"].names, "apart_from IS NOT NULL")
    known = pc.and_(pc.is_in(apart["form_key"], forms), pc.is_in(apart["apart_from"], forms))
    tables["aliases"] = MemoryTable.of("aliases", apart.filter(known), schemas["aliases"])
    entities = whole["entities"].read(schemas["entities"].names)
    named = pc.is_in(entities["name"], pc.unique(mentions.held["name"]))
    tables["entities"] = MemoryTable.of("entities", entities.filter(named), schemas["entities"])
    tables["reports"] = MemoryTable.of("reports", whole["reports"].read(schemas["reports"].names), schemas["reports"])
    options = BuildOptions(method=settings.method, min_size=settings.min_size, max_levels=settings.max_levels)
    beside = {name: whole[name] for name in ("chunks", "links", "files")}
    holder = _Holder(tables={**beside, **tables})
    build = _Build(cast("Writer", holder), options, embedder, Silence())
    build._chunks = chunks
    build._assemble(gather(mentions.read(MENTION_COLUMNS)))
    return {name: cast("MemoryTable", holder.tables[name]) for name in schemas}
