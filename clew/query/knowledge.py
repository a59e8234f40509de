"""The graph of one snapshot, as answers need it: arrays to walk, and evidence that is looked at before it is shown.

The graph may be older than the passages beside it. So nothing here is handed out whose passage the snapshot does not hold: a
deleted file takes its mentions, claims, answers and statements with it at once, though their rows go with the next build.

Where only some of the files are to be known of, the tables are those that a build of these files alone would make (see
`clew.query.restricted`), and nothing here need know of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.errors import NoGraphError
from clew.indexer.graph.schemas import graph_schemas
from clew.indexer.number_sets import distinct_numbers
from clew.query.pinned import PinnedIndex

Keys = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """A span of a document that supports something; `text` is what stands there."""

    chunk_key: int
    public_key: int  # the chunk's key as it is told
    path: str
    record: str | None
    char_start: int  # code points into the document's normalised text
    char_end: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Adjacency:
    """Edges of one kind in compressed rows over entity ordinals; each node's edges stand heaviest first."""

    starts: NDArray[np.int64]  # (n + 1,)
    targets: NDArray[np.int32]  # (m,)
    weights: NDArray[np.float32]  # (m,)

    def neighbours(self, node: int, cap: int | None = None) -> NDArray[np.int32]:
        """Ordinals of a node's neighbours, heaviest first, at most `cap`."""
        start, end = int(self.starts[node]), int(self.starts[node + 1])
        return self.targets[start : end if cap is None else min(end, start + cap)]


class Knowledge:
    """Entities are numbered 0 … n-1 by rising entity_key; ordinals mean something only beside this object."""

    def __init__(self, pinned: PinnedIndex) -> None:
        if not has_graph(pinned):
            raise NoGraphError(
                f"The index at {pinned.place.address} has no graph in snapshot {pinned.snapshot.number}; build it with "
                "`clew graph build`."
            )
        self.pinned = pinned

    # --- entities ------------------------------------------------------------------------------

    @property
    def entities(self) -> pa.Table:
        """All columns but `vector`, by entity_key."""
        return self.pinned.once("_entities", self._load_entities)

    def _load_entities(self) -> pa.Table:
        names = [name for name in self.pinned.tables["entities"].schema.names if name != "vector"]
        return self.pinned.tables["entities"].read(names).sort_by("entity_key")

    @property
    def keys(self) -> Keys:
        """(n,) entity keys, rising."""
        return self.pinned.once("_entity_keys", lambda: self.entities["entity_key"].to_numpy())

    def ordinals(self, keys: Keys | Sequence[int]) -> NDArray[np.int64]:
        """Ordinals of entity keys; -1 where there is none of that key."""
        return _positions(self.keys, np.asarray(keys, dtype=np.int64))

    @property
    def vectors(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """((n, dimension) vectors of names, which are filled); (n, 0) where the generation has no embedder."""
        return self.pinned.once("_entity_vectors", lambda: self._vectors("entities", "entity_key", self.keys))

    def _vectors(self, name: str, key: str, keys: Keys) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        dimension = self.pinned.generation.dimension or 0
        matrix = np.zeros((len(keys), dimension), dtype=np.float32)
        filled = np.zeros(len(keys), dtype=bool)
        if dimension:
            rows = self.pinned.tables[name].read([key, "vector"], "vector IS NOT NULL")
            places = _positions(keys, rows[key].to_numpy())
            values = rows["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(-1, dimension)
            matrix[places[places >= 0]], filled[places[places >= 0]] = values[places >= 0], True
        return matrix, filled

    def named(self, text: str) -> list[int]:
        """Ordinals of entities of which `text` is a name or alias, whatever its case; the most mentioned first."""
        from clew.indexer.graph.names import folded

        wanted = folded(text)
        found = self._names.get(wanted, [])
        mentions = self.entities["mentions"].to_numpy()
        return sorted(found, key=lambda ordinal: (-int(mentions[ordinal]), ordinal))

    @property
    def _names(self) -> dict[str, list[int]]:
        def load() -> dict[str, list[int]]:
            from clew.indexer.graph.names import folded

            names: dict[str, list[int]] = {}
            rows = self.entities
            for ordinal, (name, aliases) in enumerate(
                zip(rows["name"].to_pylist(), rows["aliases"].to_pylist(), strict=True)
            ):
                for form in dict.fromkeys(folded(one) for one in (name, *aliases)):
                    names.setdefault(form, []).append(ordinal)
            return names

        return self.pinned.once("_entity_names", load)

    # --- mentions ------------------------------------------------------------------------------

    @property
    def mentions(self) -> pa.Table:
        """(entity ordinal, chunk_key, file_key, record_number, count) of live mentions, by entity, then chunk_key.

        `entity` is an int64 column of ordinals; mentions of forms that belong to no entity are left out.
        """
        return self.pinned.once("_live_mentions", self._load_mentions)

    def _load_mentions(self) -> pa.Table:
        rows = self.pinned.tables["mentions"].read(["form_key", "chunk_key", "file_key", "record_number", "count"])
        forms = self.pinned.tables["aliases"].read(["form_key", "entity_key"]).sort_by("form_key")
        place = _positions(forms["form_key"].to_numpy(), rows["form_key"].to_numpy())
        entity = np.full(rows.num_rows, -1, dtype=np.int64)
        entity[place >= 0] = self.ordinals(forms["entity_key"].to_numpy()[place[place >= 0]])
        live = (entity >= 0) & self.live(rows["chunk_key"].to_numpy())
        rows = rows.append_column("entity", pa.array(entity)).filter(pa.array(live)).drop_columns(["form_key"])
        return rows.sort_by([("entity", "ascending"), ("chunk_key", "ascending")])

    def live(self, chunk_keys: Keys) -> NDArray[np.bool_]:
        """Which chunk keys this snapshot holds."""
        return self.pinned.universe.ordinals(chunk_keys) >= 0

    def passages_of(self, entity: int) -> Keys:
        """Chunk keys of the live passages that name an entity, rising."""
        column = self.pinned.once("_mention_entities", lambda: self.mentions["entity"].to_numpy())
        start, end = (int(np.searchsorted(column, entity, side=side)) for side in ("left", "right"))
        return distinct_numbers(self.mentions["chunk_key"].slice(start, end - start).to_numpy())

    # --- evidence ------------------------------------------------------------------------------

    def resolve(self, spans: Sequence[tuple[int, int, int]]) -> list[Evidence | None]:
        """What stands at (chunk_key, start, end); None where the passage is gone."""
        ordinals = self.pinned.universe.ordinals(np.array([span[0] for span in spans], dtype=np.int64))
        present = distinct_numbers(ordinals[ordinals >= 0])
        rows = self.pinned.read_chunks(present, ["file_key", "record", "text", "char_start"]).to_pylist()
        by_ordinal = dict(zip(present.tolist(), rows, strict=True))
        found: list[Evidence | None] = []
        for (key, start, end), ordinal in zip(spans, ordinals.tolist(), strict=True):
            row = by_ordinal.get(ordinal)
            found.append(
                row
                and Evidence(
                    chunk_key=key,
                    public_key=self.pinned.public_key(key),
                    path=self.pinned.path_of(row["file_key"]),
                    record=row["record"],
                    char_start=row["char_start"] + start,
                    char_end=row["char_start"] + min(end, len(row["text"])),
                    text=row["text"][start:end],
                )
            )
        return found

    def answers(self, entities: Sequence[int]) -> list[Evidence | None]:
        """Short answers of entities, each with its source; None where there is none, or its passage has changed."""
        rows = self.entities.select(["answer_chunk", "answer_start", "answer_end"]).take(pa.array(entities, pa.int64()))
        spans = [
            (-1, 0, 0) if row["answer_chunk"] is None else (row["answer_chunk"], row["answer_start"], row["answer_end"])
            for row in rows.to_pylist()
        ]
        return self.resolve(spans)

    # --- relations -----------------------------------------------------------------------------

    @property
    def relations(self) -> pa.Table:
        """Rows of the relations, by source, kind and rank."""

        def load() -> pa.Table:
            order = [("source", "ascending"), ("kind", "ascending"), ("rank", "ascending")]
            table = self.pinned.tables["relations"].read().sort_by(order)
            known = (self.ordinals(table["source"].to_numpy()) >= 0) & (self.ordinals(table["target"].to_numpy()) >= 0)
            return table.filter(pa.array(known))

        return self.pinned.once("_relations", load)

    @property
    def aliases(self) -> pa.Table:
        """Rows of the aliases, by form."""
        return self.pinned.once("_aliases", lambda: self.pinned.tables["aliases"].read().sort_by("form_key"))

    def adjacency(self, kind: str = "cooccurrence") -> Adjacency:
        """The edges of one kind, by rank."""
        return self.pinned.once(f"_adjacency_{kind}", lambda: self._load_adjacency(kind))

    def _load_adjacency(self, kind: str) -> Adjacency:
        columns = ["source", "target", "weight", "rank"]
        rows = self.pinned.tables["relations"].read(columns, f"kind = '{kind}'")
        source, target = self.ordinals(rows["source"].to_numpy()), self.ordinals(rows["target"].to_numpy())
        rank, weight = rows["rank"].to_numpy(), rows["weight"].to_numpy()
        known = (source >= 0) & (target >= 0)
        source, target, rank, weight = source[known], target[known], rank[known], weight[known]
        order = np.lexsort((rank, source))
        starts = np.searchsorted(source[order], np.arange(len(self.keys) + 1))
        return Adjacency(starts=starts, targets=target[order].astype(np.int32), weights=weight[order])

    # --- claims, communities, reports ----------------------------------------------------------

    @property
    def claims(self) -> pa.Table:
        """Live claims with the column `entity` (ordinal; -1 where the subject is no entity), by claim_key."""

        def load() -> pa.Table:
            rows = self.pinned.tables["claims"].read().sort_by("claim_key")
            rows = rows.filter(pa.array(self.live(rows["chunk_key"].to_numpy())))
            forms = self.pinned.tables["aliases"].read(["form_key", "entity_key"]).sort_by("form_key")
            place = _positions(forms["form_key"].to_numpy(), rows["subject_form"].to_numpy())
            entity = np.full(rows.num_rows, -1, dtype=np.int64)
            entity[place >= 0] = self.ordinals(forms["entity_key"].to_numpy()[place[place >= 0]])
            return rows.append_column("entity", pa.array(entity))

        return self.pinned.once("_claims", load)

    @property
    def communities(self) -> pa.Table:
        """Communities, by level and key."""
        order = [("level", "ascending"), ("community_key", "ascending")]
        return self.pinned.once("_communities", lambda: self.pinned.tables["communities"].read().sort_by(order))

    @property
    def levels(self) -> list[int]:
        """Levels of which there are reports, the finest first."""
        return sorted(pc.unique(self.reports["level"]).to_pylist())

    @property
    def reports(self) -> pa.Table:
        """Reports without vectors, the heaviest first; statements whose passages are gone are left out."""
        return self.pinned.once("_reports", self._load_reports)

    def _load_reports(self) -> pa.Table:
        names = [name for name in self.pinned.tables["reports"].schema.names if name != "vector"]
        table = self.pinned.tables["reports"].read(names)
        rows: list[dict[str, Any]] = table.to_pylist()
        for row in rows:
            keys = np.array([one["chunk_key"] for one in row["summary"]], dtype=np.int64)
            row["summary"] = [one for one, live in zip(row["summary"], self.live(keys), strict=True) if live]
            evidence = np.array(row["evidence"], dtype=np.int64)
            row["evidence"] = evidence[self.live(evidence)].tolist()
        rows = [row for row in rows if row["summary"] or row["evidence"]]
        rows.sort(key=lambda row: (-row["documents"], row["level"], row["community_key"]))
        return pa.Table.from_pylist(rows, schema=table.schema)

    @property
    def report_vectors(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """((r, dimension) vectors in the order of `reports`, which are filled)."""

        def load() -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
            keys = self.reports["community_key"].to_numpy()
            stored = distinct_numbers(self.pinned.tables["reports"].read(["community_key"])["community_key"].to_numpy())
            matrix, filled = self._vectors("reports", "community_key", stored)
            place = np.searchsorted(stored, keys)
            return matrix[place], filled[place]

        return self.pinned.once("_report_vectors", load)


def has_graph(pinned: PinnedIndex) -> bool:
    """Whether a graph was built in this snapshot."""
    return all(name in pinned.tables for name in graph_schemas(None))


def _positions(sorted_keys: Keys, keys: Keys) -> NDArray[np.int64]:
    if not len(sorted_keys):
        return np.full(len(keys), -1, dtype=np.int64)
    place = np.searchsorted(sorted_keys, keys).clip(0, len(sorted_keys) - 1)
    return np.where(sorted_keys[place] == keys, place, -1).astype(np.int64)
