"""Building the graph, or bringing it up to date: read what is new, put everything together again, write what differs.

Passages are read once; what they give is kept in the tables `readings`, `mentions` and `claims`. Everything behind that
(entities, aliases, relations, communities, reports) is a function of those rows, computed anew over arrays and compared with what
is stored: so an update gives what a fresh build gives, but for the names of communities, which stay where they can.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.indexer.embedders.protocol import Embedder
from clew.indexer.graph import communities as grouping
from clew.indexer.graph.claims import contradictions
from clew.indexer.graph.communities import Method, Shape, available
from clew.indexer.graph.cooccurrence import Edges, cooccurrences, ranked
from clew.indexer.graph.difference import bring_to
from clew.indexer.graph.gathering import (
    MENTION_COLUMNS,
    SMALL,
    Mentions,
    Phrases,
    distinct,
    documents_of,
    eligible,
    gather,
    match_phrases,
    named_by,
)
from clew.indexer.graph.passages import blocks, of_documents, readings, unread
from clew.indexer.graph.reading import KINDS, STANDS_FOR, Reader, RuleReader
from clew.indexer.graph.reports import MOST_EVIDENCE, Member, Source, embedded, report
from clew.indexer.graph.resolution import Alias, resolve, type_of
from clew.indexer.graph.schemas import ALIASES, COMMUNITIES, MENTIONS, RELATIONS, graph_schemas
from clew.indexer.progress import Progress, Silence
from clew.indexer.snapshots import GraphSettings
from clew.indexer.tables import Table, TableChange
from clew.indexer.writer import Writer

DEGREE_CAP = 64  # relations of a kind that an entity keeps
WEAK_IN_LARGE = 2  # documents of a relation, in a collection of SMALL documents and more
EMBEDDED_AT_ONCE = 512
SPILL_BLOCKS = 16

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildOptions:
    """What a build is asked for; what is None stays as the graph has it."""

    reader: Reader | None = None  # None: the rules
    method: Method | None = None
    min_size: int | None = None
    max_levels: int | None = None
    documents: Sequence[tuple[int, int]] | None = (
        None  # (file_key, record_number): read these, and nothing else that is new
    )
    read: bool = True  # False: only forget what is gone
    workers: int | None = None
    anew: bool = False  # put everything together again though nothing was read: a merge was undone


@dataclass(kw_only=True)
class Built:
    """What a build did, and what there is now."""

    snapshot: int = 0
    published: bool = False
    passages_read: int = 0
    passages_forgotten: int = 0
    passages_unread: int = 0
    reports_made: int = 0
    rows: dict[str, int] = field(default_factory=dict)  # by table
    written: dict[str, int] = field(default_factory=dict)  # rows that differed, by table
    levels: list[int] = field(default_factory=list)  # communities a level, the finest first
    method: str = ""
    seconds: dict[str, float] = field(default_factory=dict)  # of CPU, by step


def build_graph(
    writer: Writer,
    options: BuildOptions | None = None,
    embedder: Embedder | None = None,
    progress: Progress | None = None,
) -> Built:
    """Build or update the graph, and publish it in one snapshot. `embedder`: None where the generation has none."""
    return _Build(writer, options or BuildOptions(), embedder, progress or Silence()).run()


class _Build:
    def __init__(self, writer: Writer, options: BuildOptions, embedder: Embedder | None, progress: Progress) -> None:
        self._writer = writer
        self._options = options
        self._reader: Reader = options.reader or RuleReader()
        self._embedder = embedder
        self._progress = progress
        self._built = Built()
        self._clock = time.process_time()
        former = writer.snapshot.graph
        self._shape = Shape(
            method=available(options.method or (former.method if former else None)),
            min_size=options.min_size or (former.min_size if former else Shape().min_size),
            max_levels=options.max_levels or (former.max_levels if former else Shape().max_levels),
        )
        self._quality = former.quality if former is not None else 0.0
        self._same_method = former is not None and former.method == self._shape.method
        self._same_shape = former is not None and (former.method, former.min_size, former.max_levels) == (
            self._shape.method,
            self._shape.min_size,
            self._shape.max_levels,
        )

    def _table(self, name: str) -> Table:
        return self._writer.tables[name]

    def _step(self, name: str) -> None:
        now = time.process_time()
        self._built.seconds[name] = round(self._built.seconds.get(name, 0.0) + now - self._clock, 3)
        self._clock = now

    def run(self) -> Built:
        """All steps, in order."""
        writer, built = self._writer, self._built
        before = dict(writer.snapshot.tables)
        writer.add_tables(list(graph_schemas(None)))
        self._read()
        self._step("read")
        settings = GraphSettings(
            reader=self._reader.id, method=self._shape.method, min_size=self._shape.min_size,
            max_levels=self._shape.max_levels, links_version=self._table("links").version,
            quality=former.quality if (former := writer.snapshot.graph) is not None else 0.0,
        )  # fmt: skip
        moved = any(
            name not in before or table.version != before[name].version for name, table in writer.tables.items()
        )
        if moved or settings != writer.snapshot.graph or self._options.anew:
            self._assemble(gather(self._table("mentions").read(MENTION_COLUMNS, "kind != 'phrase'")))
            settings = settings.model_copy(update={"quality": self._quality})
        built.method = self._shape.method
        moved = any(
            name not in before or table.version != before[name].version for name, table in writer.tables.items()
        )
        if moved or settings != writer.snapshot.graph:
            writer.publish(graph=settings)
            built.published = True
        built.snapshot = writer.snapshot.number
        built.rows = {name: self._table(name).rows for name in graph_schemas(None)}
        self._step("publish")
        return built

    # --- reading -------------------------------------------------------------------------------

    def _read(self) -> None:
        """Forget passages that are gone, and read those that are new; three commits at most."""
        options, built = self._options, self._built
        chunks = self._table("chunks").read(["chunk_key", "file_key", "record_number", "language"])
        self._chunks = chunks.sort_by("chunk_key")
        known = self._table("readings").read_with_addresses(["chunk_key", "reader"])
        fresh, stale = unread(chunks, known, self._reader.id)
        if options.documents is not None:
            chosen = of_documents(chunks, options.documents)
            keys = known["chunk_key"].to_numpy()
            stale = ~np.isin(keys, chunks["chunk_key"].to_numpy()) | np.isin(keys, chosen)
            built.passages_unread = len(np.setdiff1d(fresh, chosen)) if len(fresh) else 0
            fresh = chosen
        elif not options.read:
            stale = ~np.isin(known["chunk_key"].to_numpy(), chunks["chunk_key"].to_numpy())
            built.passages_unread, fresh = len(fresh), fresh[:0]
        gone = known["chunk_key"].to_numpy()[stale]
        built.passages_read, built.passages_forgotten = len(fresh), len(gone)
        written: dict[str, list[Any]] = {"readings": [], "mentions": [], "claims": []}
        held: dict[str, list[pa.Table]] = {name: [] for name in written}

        def spill() -> None:
            for name, tables in held.items():
                rows = pa.concat_tables(tables) if tables else None
                if rows is not None and rows.num_rows:
                    written[name] += self._table(name).write(rows)
                tables.clear()

        self._progress.begin("Reading for the graph", len(fresh), "passages")
        workers = options.workers if options.workers is not None else len(os.sched_getaffinity(0))
        passages = blocks(self._table("chunks"), self._table("links"), fresh)
        for reading in readings(passages, self._reader, len(fresh), workers):
            for name in written:
                held[name].append(getattr(reading, name))
            self._progress.advance(reading.readings.num_rows)
            if len(held["readings"]) >= SPILL_BLOCKS:
                spill()
        spill()
        self._progress.end()
        for name, fragments in written.items():
            table = self._table(name)
            delete = known["_rowaddr"].to_numpy()[stale] if name == "readings" else _rows_of(table, gone)
            table.commit(TableChange(delete=delete, append=tuple(fragments)))

    # --- putting together ----------------------------------------------------------------------

    def _assemble(self, mentions: Mentions) -> None:
        documents = len(np.unique(documents_of(self._chunks)))
        may = eligible(mentions, documents)
        aliases = self._resolve(mentions, may)
        by_form = {alias.form.key: alias for alias in aliases}
        root_of = np.array(
            [by_form[key].entity if key in by_form else -1 for key in mentions.form_keys.tolist()], dtype=np.int64
        )
        self._step("resolve")
        phrases = self._phrases(mentions, may & (root_of >= 0), documents)
        self._step("phrases")
        # From here on an entity is its place among the roots.
        roots = np.unique(root_of[root_of >= 0])
        place = np.where(root_of >= 0, np.searchsorted(roots, root_of.clip(0)), -1)
        own = place[mentions.form]
        theirs = place[phrases.form] if len(phrases.form) else np.empty(0, np.int64)
        passages = mentions.passages
        explicit = own >= 0
        # A phrase counts where its entity is not named anyway.
        new = ~np.isin(_pair(theirs, phrases.passage), _pair(own[explicit], passages[explicit]))
        theirs, phrases = theirs[new], Phrases(
            form=phrases.form[new], passage=phrases.passage[new], document=phrases.document[new]
        )  # fmt: skip
        entity = np.concatenate([own[explicit], theirs])
        passage = np.concatenate([passages[explicit], phrases.passage])
        document = np.concatenate([mentions.document[explicit], phrases.document])
        kind = np.concatenate([mentions.kind[explicit], np.full(len(theirs), KINDS.index("phrase"), dtype=np.int8)])
        counts = distinct(entity, document, len(roots))
        keep = self._kept(mentions, place, roots, counts, documents)
        chosen = np.flatnonzero(keep)
        renumber = np.full(len(roots) + 1, -1, dtype=np.int64)
        renumber[chosen] = np.arange(len(chosen))
        live = renumber[entity] >= 0
        entity, passage, document, kind = renumber[entity[live]], passage[live], document[live], kind[live]
        keys = roots[chosen]
        self._write_phrases(mentions, phrases, renumber[theirs] >= 0)
        self._write_aliases(aliases, keys)
        entities = self._write_entities(mentions, aliases, keys, renumber[place], entity, document)
        self._step("entities")
        edges = self._relations(entities, entity, passage, document, kind, mentions, renumber[place], documents)
        self._step("relations")
        self._claims(mentions, keys, renumber[place])
        self._step("claims")
        self._communities(entities, edges, entity, passage, document)

    def _resolve(self, mentions: Mentions, may: NDArray[np.bool_]) -> list[Alias]:
        stated = self._table("claims").read(["subject", "object"], f"predicate = '{STANDS_FOR}'")
        apart = self._table("aliases").read(["form_key", "apart_from"], "apart_from IS NOT NULL")
        forms = [form for form, is_ in zip(mentions.forms, may.tolist(), strict=True) if is_]
        self._apart = dict(zip(apart["form_key"].to_pylist(), apart["apart_from"].to_pylist(), strict=True))
        return resolve(
            forms,
            abbreviations=zip(stated["subject"].to_pylist(), stated["object"].to_pylist(), strict=True),
            apart=self._apart.items(),
            embed=self._embedded if self._embedder is not None else None,
        )

    def _embedded(self, names: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of names: of entities as they are stored, of others from the embedder."""
        assert self._embedder is not None
        table = self._table("entities")
        known = table.read(["name", "vector"], "vector IS NOT NULL") if table.rows else None
        matrix = np.zeros((len(names), self._embedder.fingerprint.dimension), dtype=np.float32)
        missing = np.ones(len(names), dtype=bool)
        if known is not None and known.num_rows:
            at = pc.index_in(pa.array(names), value_set=known["name"].combine_chunks())
            missing = at.is_null().to_numpy(zero_copy_only=False)
            rows = known["vector"].combine_chunks().take(at.drop_null())
            matrix[~missing] = rows.flatten().to_numpy(zero_copy_only=False).reshape(len(rows), -1)
        places = np.flatnonzero(missing)
        for start in range(0, len(places), EMBEDDED_AT_ONCE):
            part = places[start : start + EMBEDDED_AT_ONCE]
            matrix[part] = self._embedder.embed_passages([names[place] for place in part.tolist()])
        return matrix

    def _phrases(self, mentions: Mentions, may: NDArray[np.bool_], documents: int) -> Phrases:
        table = self._table("readings").read(["chunk_key", "file_key", "record_number", "phrases"])
        first = np.zeros(len(mentions.forms), dtype=np.int64)
        first[mentions.form[::-1]] = mentions.passages[::-1]
        at = np.searchsorted(self._chunks["chunk_key"].to_numpy(), first).clip(0, max(0, self._chunks.num_rows - 1))
        languages = self._chunks["language"].take(pa.array(at)).to_pylist() if self._chunks.num_rows else []
        return match_phrases(mentions, may, table, languages, documents)

    def _kept(self, mentions: Mentions, place: Ints, roots: Ints, counts: Ints, documents: int) -> NDArray[np.bool_]:
        """Which entities are worth a row: all in a small collection; else those of two documents, and what has a page."""
        if documents < SMALL:
            return counts > 0
        named = (named_by(mentions, "title") | named_by(mentions, "anchor")) & (place >= 0)
        paged = np.zeros(len(roots), dtype=bool)
        paged[place[named]] = True
        return (counts >= 2) | (paged & (counts > 0))

    # --- tables --------------------------------------------------------------------------------

    def _note(self, name: str, done: tuple[int, int]) -> None:
        self._built.written[name] = max(done)

    def _write_phrases(self, mentions: Mentions, phrases: Phrases, keep: NDArray[np.bool_]) -> None:
        form, passage, document = phrases.form[keep], phrases.passage[keep], phrases.document[keep]
        pair = _pair(form, passage)
        _, first = np.unique(pair, return_index=True)
        form, passage, document = form[first], passage[first], document[first]
        names = pa.array([form.name for form in mentions.forms], pa.string())
        types = pa.array([form.type for form in mentions.forms], pa.string())
        count = len(form)
        nothing = pa.nulls(count, pa.int32())
        rows = pa.table(
            {
                "form_key": mentions.form_keys[form], "chunk_key": passage, "file_key": document >> 32,
                "record_number": pa.array((document & 0xFFFFFFFF).astype(np.int32)), "name": names.take(pa.array(form)),
                "type": types.take(pa.array(form)), "kind": pa.array(["phrase"] * count, pa.string()), "start": nothing,
                "end": nothing, "count": pa.array(np.ones(count, np.int32)), "definition_start": nothing,
                "definition_end": nothing, "definition_score": pa.nulls(count, pa.float32()),
            },
            schema=MENTIONS,
        )  # fmt: skip
        self._note("mentions", bring_to(self._table("mentions"), rows, ["form_key", "chunk_key"], "kind = 'phrase'"))

    def _write_aliases(self, aliases: Sequence[Alias], keys: Ints) -> None:
        kept = set(keys.tolist())
        rows = [
            {
                "form_key": one.form.key, "entity_key": one.entity, "name": one.form.name, "type": one.form.type, "how": one.how,
                "reason": one.reason, "similarity": one.similarity, "documents": one.form.documents,
                "mentions": one.form.mentions, "apart_from": self._apart.get(one.form.key),
            }
            for one in aliases
            if one.entity in kept or one.form.key in self._apart
        ]  # fmt: skip
        table = pa.Table.from_pylist(rows, schema=ALIASES)
        self._note("aliases", bring_to(self._table("aliases"), table, ALIASES.names))

    def _write_entities(
        self, mentions: Mentions, aliases: Sequence[Alias], keys: Ints, of_form: Ints, entity: Ints, document: Ints
    ) -> pa.Table:
        """Rows of the entities, by key; answers, their hashes and vectors are taken over where they are still right."""
        table = self._table("entities")
        self._former_entities = table.read(["entity_key"])["entity_key"].to_numpy()
        by_key: dict[int, list[Alias]] = {key: [] for key in keys.tolist()}
        for alias in aliases:
            if alias.entity in by_key:
                by_key[alias.entity].append(alias)
        total = np.zeros(len(keys), dtype=np.int64)
        known = of_form >= 0
        np.add.at(total, of_form[known], np.array([form.mentions for form in mentions.forms], dtype=np.int64)[known])
        names, types, others = [], [], []
        for key in keys.tolist():
            group = sorted(by_key[key], key=lambda one: (-one.form.mentions, one.form.name, one.form.type))
            root = next(one.form for one in group if one.form.key == key)
            names.append(root.name)
            types.append(type_of(one.form for one in group) or "term")
            others.append([name for name in dict.fromkeys(one.form.name for one in group) if name != root.name])
        answers = self._answers(mentions, of_form, len(keys))
        rows = pa.table(
            {
                "entity_key": keys, "name": pa.array(names, pa.string()), "type": pa.array(types, pa.string()),
                "aliases": pa.array(others, pa.list_(pa.string())),
                "documents": distinct(entity, document, len(keys)), "mentions": total, **answers,
            }
        )  # fmt: skip
        compared = list(rows.schema.names)
        if "vector" in table.schema.names:
            rows = rows.append_column(
                "vector", self._vectors(table, "entity_key", ["name"], rows, lambda row: row["name"])
            )
        filled = "vector" if self._embedder is not None else None
        self._note("entities", bring_to(table, rows, compared, filled=filled))
        return rows

    def _answers(self, mentions: Mentions, of_form: Ints, count: int) -> dict[str, pa.Array]:
        """The best definition of each entity, from its passage."""
        score = mentions.table["definition_score"].fill_null(-1.0).to_numpy()
        owner = of_form[mentions.form]
        rows = np.flatnonzero((score > 0) & (owner >= 0))
        order = rows[np.lexsort((mentions.passages[rows], mentions.kind[rows], -score[rows], owner[rows]))]
        first = order[np.r_[True, owner[order][1:] != owner[order][:-1]]] if len(order) else order
        chunks = self._table("chunks").read_keys(
            "chunk_key", np.unique(mentions.passages[first]), ["chunk_key", "text", "content_hash"]
        )
        text_of = dict(zip(chunks["chunk_key"].to_pylist(), chunks["text"].to_pylist(), strict=True))
        hash_of = dict(zip(chunks["chunk_key"].to_pylist(), chunks["content_hash"].to_pylist(), strict=True))
        found: list[tuple[Any, ...]] = [(None,) * 5] * count
        starts = mentions.table["definition_start"].take(pa.array(first)).to_pylist()
        ends = mentions.table["definition_end"].take(pa.array(first)).to_pylist()
        for row, start, end in zip(first.tolist(), starts, ends, strict=True):
            key = int(mentions.passages[row])
            found[int(owner[row])] = (text_of[key][start:end], key, start, end, hash_of[key])
        kinds = {
            "answer": pa.string(), "answer_chunk": pa.int64(), "answer_start": pa.int32(), "answer_end": pa.int32(),
            "answer_hash": pa.binary(16),
        }  # fmt: skip
        return {name: pa.array([one[n] for one in found], kind) for n, (name, kind) in enumerate(kinds.items())}

    def _vectors(
        self, table: Table, key: str, same: Sequence[str], rows: pa.Table, text: Callable[[dict[str, Any]], str]
    ) -> pa.Array:
        """Vectors of rows: found again where key and the columns `same` are as they were, else embedded."""
        field_ = table.schema.field("vector")
        known = table.read([key, *same, "vector"], "vector IS NOT NULL")
        stored = {
            tuple(values): at
            for at, values in enumerate(zip(*(known[one].to_pylist() for one in (key, *same)), strict=True))
        }
        dimension = field_.type.list_size
        matrix = np.zeros((rows.num_rows, dimension), dtype=np.float32)
        filled = np.zeros(rows.num_rows, dtype=bool)
        wanted = list(zip(*(rows[one].to_pylist() for one in (key, *same)), strict=True))
        again = [(row, stored[values]) for row, values in enumerate(wanted) if values in stored]
        if again:
            vectors = known["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(-1, dimension)
            at = np.array(again)
            matrix[at[:, 0]], filled[at[:, 0]] = vectors[at[:, 1]], True
        missing = np.flatnonzero(~filled)
        if self._embedder is not None and len(missing):
            self._progress.begin("Embedding names", len(missing), "texts")
            for start in range(0, len(missing), EMBEDDED_AT_ONCE):
                part = missing[start : start + EMBEDDED_AT_ONCE]
                matrix[part] = self._embedder.embed_passages(
                    [text(row) for row in rows.take(pa.array(part)).to_pylist()]
                )
                filled[part] = True
                self._progress.advance(len(part))
            self._progress.end()
        flat = pa.array(matrix.reshape(-1))
        return pa.FixedSizeListArray.from_arrays(flat, dimension, mask=pa.array(~filled))

    def _relations(
        self, entities: pa.Table, entity: Ints, passage: Ints, document: Ints, kind: NDArray[np.int8], mentions: Mentions,
        of_form: Ints, documents: int,
    ) -> Edges:  # fmt: skip
        """Write co-occurrences and hyperlinks; returns the co-occurrences that some end keeps, each once."""
        keys = entities["entity_key"].to_numpy()
        edges = cooccurrences(entity, passage, document, kind.astype(np.int64))
        if documents >= SMALL:
            strong = edges.weight >= WEAK_IN_LARGE
            edges = Edges(
                source=edges.source[strong], target=edges.target[strong], weight=edges.weight[strong],
                passage=edges.passage[strong],
            )  # fmt: skip
        source = np.concatenate([edges.source, edges.target]).astype(np.int64)
        target = np.concatenate([edges.target, edges.source]).astype(np.int64)
        weight, where = np.tile(edges.weight, 2), np.tile(edges.passage, 2)
        rows, rank = ranked(source, target, weight, keys, DEGREE_CAP)
        kept = np.unique(rows % max(1, len(edges)))
        parts = [_relation_rows(keys, source[rows], target[rows], "cooccurrence", weight[rows], rank, where[rows])]
        links = self._hyperlinks(mentions, of_form)
        if len(links[0]):
            a, b, count, at = links
            rows, rank = ranked(a, b, count, keys, DEGREE_CAP)
            parts.append(_relation_rows(keys, a[rows], b[rows], "hyperlink", count[rows], rank, at[rows]))
        self._note("relations", bring_to(self._table("relations"), pa.concat_tables(parts), RELATIONS.names))
        return Edges(
            source=edges.source[kept], target=edges.target[kept], weight=edges.weight[kept], passage=edges.passage[kept]
        )

    def _hyperlinks(self, mentions: Mentions, of_form: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """(source, target, documents, passage) of links between documents whose titles are entities."""
        nothing = (np.empty(0, np.int64),) * 4
        titled = np.flatnonzero((mentions.kind == KINDS.index("title")) & (of_form[mentions.form] >= 0))
        links = self._table("links").read(
            ["source_file", "source_record", "source_chunk", "target_file", "target_record"], "target_file IS NOT NULL"
        )
        if not len(titled) or not links.num_rows:
            return nothing
        owner = mentions.document[titled]
        owner, first = np.unique(owner, return_index=True)
        subject = of_form[mentions.form[titled[first]]]
        ends = []
        for side in ("source", "target"):
            record = links[f"{side}_record"].fill_null(0).to_numpy().astype(np.int64)
            ends.append((links[f"{side}_file"].to_numpy().astype(np.int64) << 32) | record)
        at = [np.searchsorted(owner, end).clip(0, len(owner) - 1) for end in ends]
        known = (owner[at[0]] == ends[0]) & (owner[at[1]] == ends[1])
        a, b = subject[at[0]], subject[at[1]]
        known &= a != b
        a, b, document = a[known], b[known], ends[0][known]
        where = links["source_chunk"].fill_null(-1).to_numpy()[known]
        if not len(a):
            return nothing
        order = np.lexsort((where, document, b, a))
        a, b, document, where = a[order], b[order], document[order], where[order]
        new = np.r_[True, (a[1:] != a[:-1]) | (b[1:] != b[:-1]) | (document[1:] != document[:-1])]
        a, b, where = a[new], b[new], where[new]
        heads = np.flatnonzero(np.r_[True, (a[1:] != a[:-1]) | (b[1:] != b[:-1])])
        return a[heads], b[heads], np.diff(np.r_[heads, len(a)]).astype(np.int64), where[heads]

    def _claims(self, mentions: Mentions, keys: Ints, of_form: Ints) -> None:
        """Note which claims cannot hold beside each other."""
        table = self._table("claims")
        columns = ["claim_key", "subject_form", "predicate", "object", "kind", "negated", "contradicts"]
        rows = table.read_with_addresses(columns)
        at = np.searchsorted(mentions.form_keys, rows["subject_form"].to_numpy())
        at = at.clip(0, max(0, len(mentions.form_keys) - 1))
        owner = np.full(rows.num_rows, -1, dtype=np.int64)
        if len(mentions.form_keys):
            known = mentions.form_keys[at] == rows["subject_form"].to_numpy()
            owner[known] = of_form[at[known]]
        found = contradictions(rows, owner)
        stored = rows["contradicts"].to_pylist()
        keys_ = rows["claim_key"].to_pylist()
        differ = np.array([found.get(key, []) != old for key, old in zip(keys_, stored, strict=True)], dtype=bool)
        if not differ.any():
            return
        addresses = rows["_rowaddr"].to_numpy()[differ]
        full = table.take_addresses(addresses, table.schema.names)
        column = pa.array([found.get(key, []) for key in full["claim_key"].to_pylist()], pa.list_(pa.int64()))
        full = full.set_column(full.schema.get_field_index("contradicts"), table.schema.field("contradicts"), column)
        table.commit(TableChange(delete=addresses, append=table.write(full.cast(table.schema))))
        self._built.written["claims"] = len(addresses)

    # --- communities and reports ---------------------------------------------------------------

    def _communities(self, entities: pa.Table, edges: Edges, entity: Ints, passage: Ints, document: Ints) -> None:
        keys = entities["entity_key"].to_numpy()
        weight = grouping.strengths(edges.source, edges.target, edges.weight, entities["documents"].to_numpy())
        stored = self._table("communities").read(["community_key", "level", "members"]).to_pylist()
        former: dict[int, dict[int, frozenset[int]]] = {}
        for row in stored:
            former.setdefault(row["level"], {})[row["community_key"]] = frozenset(row["members"])
        # The same graph has the same communities: Leiden that goes on from its own result may still move somebody.
        built = self._built
        unchanged = not built.passages_read and not built.passages_forgotten and not any(built.written.values())
        if unchanged and self._same_shape and stored:
            return
        graph = (len(keys), edges.source, edges.target, weight)
        labels_of = [self._labels(keys, former[level]) for level in sorted(former)]
        levels = None
        if self._same_shape and self._shape.method == "leiden":
            levels = grouping.kept(*graph, labels_of, ~np.isin(keys, self._former_entities), self._quality)
        if levels is None:
            start = labels_of[0] if labels_of and self._same_method else None
            levels = grouping.hierarchy(*graph, self._shape, start)
            self._quality = grouping.quality_of(levels[0], *graph[1:]) if levels else 0.0
        self._step("leiden")
        groups = grouping.communities(levels, keys, self._shape, former)
        self._built.levels = np.bincount([one.level for one in groups]).tolist() if groups else []
        rows: list[dict[str, Any]] = []
        sources: list[Source] = []
        members = _Members(entities)
        for level, labels in enumerate(levels):
            of_level = [one for one in groups if one.level == level]
            weights = _inner_degrees(labels, edges, weight, len(keys))
            documents = distinct(labels[entity], document, int(labels.max(initial=-1)) + 1)
            evidence = _evidence(labels, entity, passage)
            for one in of_level:
                label = int(labels[one.members[0]])
                ordered = sorted(one.members, key=lambda member: (-weights[member], int(keys[member])))
                rows.append(
                    {
                        "community_key": one.key, "level": level, "parent": one.parent,
                        "members": [int(keys[member]) for member in ordered], "documents": int(documents[label]),
                    }
                )  # fmt: skip
                sources.append(
                    Source(
                        community_key=one.key, level=level, members=[members.of(member) for member in ordered],
                        documents=int(documents[label]), evidence=evidence.get(label, []),
                    )
                )  # fmt: skip
        table = pa.Table.from_pylist(rows, schema=COMMUNITIES)
        self._note("communities", bring_to(self._table("communities"), table, COMMUNITIES.names))
        self._reports(sources)
        self._step("reports")

    def _labels(self, keys: Ints, former: dict[int, frozenset[int]]) -> Ints:
        """Labels of a former level; -1 for what was in none of its communities."""
        labels = np.full(len(keys), -1, dtype=np.int64)
        for label, key in enumerate(sorted(former)):
            members = np.array(sorted(former[key]), dtype=np.int64)
            at = np.searchsorted(keys, members).clip(0, max(0, len(keys) - 1))
            labels[at[keys[at] == members]] = label
        return labels

    def _reports(self, sources: Sequence[Source]) -> None:
        """Report anew what changed; the others stay as they are."""
        table = self._table("reports")
        known = table.read_with_addresses(["community_key", "level", "input_hash"])
        stored = dict(
            zip(
                known["community_key"].to_pylist(),
                zip(known["level"].to_pylist(), known["input_hash"].to_pylist(), strict=True),
                strict=True,
            )
        )
        if self._embedder is not None:
            for key in table.read(["community_key"], "vector IS NULL")["community_key"].to_pylist():
                stored[key] = (-1, b"")  # made when nothing could embed it
        wanted = {one.community_key: (one.level, one.input_hash) for one in sources}
        now = time.time_ns()
        made = [report(one, now) for one in sources if stored.get(one.community_key) != wanted[one.community_key]]
        gone = np.array([stored[key] != wanted.get(key) for key in known["community_key"].to_pylist()], dtype=bool)
        append: tuple[Any, ...] = ()
        if made:
            names = [name for name in table.schema.names if name != "vector"]
            rows = pa.Table.from_pylist(made, schema=pa.schema([table.schema.field(name) for name in names]))
            if "vector" in table.schema.names:
                rows = rows.append_column(
                    "vector", self._vectors(table, "community_key", ["input_hash"], rows, embedded)
                )
            append = table.write(rows.cast(table.schema))
        table.commit(TableChange(delete=known["_rowaddr"].to_numpy()[gone], append=append))
        self._built.reports_made = len(made)
        self._built.written["reports"] = max(len(made), int(gone.sum()))


class _Members:
    """Entities as reports take them."""

    def __init__(self, entities: pa.Table) -> None:
        names = ("entity_key", "name", "answer", "answer_chunk", "answer_start", "answer_end")
        self._columns = {name: entities[name].to_pylist() for name in names}

    def of(self, entity: int) -> Member:
        columns = self._columns
        return Member(
            entity_key=columns["entity_key"][entity], name=columns["name"][entity], answer=columns["answer"][entity],
            chunk_key=columns["answer_chunk"][entity], start=columns["answer_start"][entity], end=columns["answer_end"][entity],
        )  # fmt: skip


def _pair(one: Ints, other: Ints) -> NDArray[np.uint64]:
    """A number for two, unequal for unequal pairs but for one chance in 2^64."""
    with np.errstate(over="ignore"):
        mixed = one.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        return np.asarray(mixed * np.uint64(0xBF58476D1CE4E5B9) + other.astype(np.uint64), dtype=np.uint64)


def _rows_of(table: Table, chunk_keys: Ints) -> NDArray[np.uint64]:
    if not len(chunk_keys):
        return np.empty(0, dtype=np.uint64)
    index = table.read_with_addresses(["chunk_key"])
    rows: NDArray[np.uint64] = index["_rowaddr"].to_numpy()[np.isin(index["chunk_key"].to_numpy(), chunk_keys)]
    return rows


def _relation_rows(
    keys: Ints, source: Ints, target: Ints, kind: str, weight: Ints, rank: NDArray[np.int32], passage: Ints
) -> pa.Table:
    where = pa.array(passage, pa.int64(), mask=passage < 0)
    return pa.table(
        {
            "source": keys[source], "target": keys[target], "kind": pa.array([kind] * len(source), pa.string()),
            "weight": weight.astype(np.float32), "rank": rank, "chunk_key": where,
        },
        schema=RELATIONS,
    )  # fmt: skip


def _inner_degrees(labels: Ints, edges: Edges, weight: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """How strongly each entity is tied to its own group, rounded so that the order of sums decides nothing."""
    inside = labels[edges.source] == labels[edges.target]
    total = np.bincount(edges.source[inside], weights=weight[inside], minlength=count)
    total = total + np.bincount(edges.target[inside], weights=weight[inside], minlength=count)
    return np.asarray(np.round(total, 9))


def _evidence(labels: Ints, entity: Ints, passage: Ints, most: int = MOST_EVIDENCE) -> dict[int, list[int]]:
    """The passages that name most members of each group: at most so many, ties by key."""
    label = labels[entity]
    order = np.lexsort((entity, passage, label))
    one, two, three = label[order], passage[order], entity[order]
    if not len(one):
        return {}
    new = np.r_[True, (one[1:] != one[:-1]) | (two[1:] != two[:-1]) | (three[1:] != three[:-1])]
    one, two = one[new], two[new]
    heads = np.flatnonzero(np.r_[True, (one[1:] != one[:-1]) | (two[1:] != two[:-1])])
    size = np.diff(np.r_[heads, len(one)])
    one, two = one[heads], two[heads]
    order = np.lexsort((two, -size, one))
    one, two = one[order], two[order]
    starts = np.flatnonzero(np.r_[True, one[1:] != one[:-1]])
    place = np.arange(len(one)) - np.repeat(starts, np.diff(np.r_[starts, len(one)]))
    found: dict[int, list[int]] = {}
    for group, key in zip(one[place < most].tolist(), two[place < most].tolist(), strict=True):
        found.setdefault(group, []).append(key)
    return found
