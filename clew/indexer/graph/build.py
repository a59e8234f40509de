"""Building the graph, or bringing it up to date: read what is new, put everything together again, write what differs.

Passages are read once; what they give is kept in the tables `readings`, `mentions` and `claims`. Everything behind that
(entities, aliases, relations, communities, reports) is a function of those rows, computed anew over arrays and compared with what
is stored: so an update gives what a fresh build gives, but for the names of communities, which stay where they can.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.indexer.embedders.protocol import Embedder
from clew.indexer.graph.claims import note_contradictions
from clew.indexer.graph.communities import Method, Shape, available
from clew.indexer.graph.community_rows import Former, write_communities
from clew.indexer.graph.entity_rows import write_aliases, write_entities, write_phrases
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
    pair_numbers,
)  # fmt: skip
from clew.indexer.graph.homonyms import Senses, in_their_sense, names_of_one, sensed_keys, told_apart, write_keys
from clew.indexer.graph.occurrences import Occurrences
from clew.indexer.graph.passages import MODEL, blocks, of_documents, readings, unread
from clew.indexer.graph.reading import KINDS, STANDS_FOR, Reader, RuleReader
from clew.indexer.graph.relation_rows import write_relations
from clew.indexer.graph.report_author import ModelAuthor
from clew.indexer.graph.resolution import Alias, resolve
from clew.indexer.graph.row_vectors import EMBEDDED_AT_ONCE
from clew.indexer.graph.schemas import graph_schemas
from clew.indexer.graph.work import Built, Work, without_old_garbage
from clew.indexer.number_sets import difference, distinct_numbers, is_among, union
from clew.indexer.progress import Progress, Silence
from clew.indexer.snapshots import GraphSettings
from clew.indexer.tables import Table, TableChange
from clew.indexer.writer import Writer

__all__ = ["BuildOptions", "Built", "build_graph"]

SPILLED = 16_384  # passages held until their rows are written
READ_TABLES = ("readings", "mentions", "claims")

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildOptions:
    """What a build is asked for; what is None stays as the graph has it."""

    reader: Reader | None = None  # None: the rules for what nothing has read; what a model read stays
    author: ModelAuthor | None = None  # of reports; None: extraction for what changed
    method: Method | None = None
    min_size: int | None = None
    max_levels: int | None = None
    documents: Sequence[tuple[int, int]] | None = (
        None  # (file_key, record_number): read these, and nothing else that is new
    )
    read: bool = True  # False: only forget what is gone
    workers: int | None = None
    anew: bool = False  # put everything together again though nothing was read: a merge was undone


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
        self._work = Work(writer=writer, embedder=embedder, progress=progress)
        former = writer.snapshot.graph
        shape = Shape(
            method=available(options.method or (former.method if former else None)),
            min_size=options.min_size or (former.min_size if former else Shape().min_size),
            max_levels=options.max_levels or (former.max_levels if former else Shape().max_levels),
        )
        same_method = former is not None and former.method == shape.method
        self._former = Former(
            shape=shape, quality=former.quality if former is not None else 0.0, same_method=same_method,
            same_shape=same_method and former is not None
            and (former.min_size, former.max_levels) == (shape.min_size, shape.max_levels),
            entities=np.empty(0, np.int64), author=options.author,
        )  # fmt: skip

    def run(self) -> Built:
        """All steps, in order."""
        writer, built = self._writer, self._work.built
        before = dict(writer.snapshot.tables)
        writer.add_tables(list(graph_schemas(None)))
        self._read()
        self._work.step("read")
        former = writer.snapshot.graph
        kept = self._options.reader is None and former is not None and former.reader.startswith(MODEL)
        settings = GraphSettings(
            reader=former.reader if kept and former is not None else self._reader.id, method=self._former.shape.method, min_size=self._former.shape.min_size,
            max_levels=self._former.shape.max_levels, links_version=self._work.table("links").version,
            quality=former.quality if former is not None else 0.0,
        )  # fmt: skip
        moved = any(
            name not in before or table.version != before[name].version for name, table in writer.tables.items()
        )
        if moved or settings != writer.snapshot.graph or self._options.anew or self._options.author is not None:
            with without_old_garbage():
                self._assemble(gather(self._work.table("mentions").read(MENTION_COLUMNS, "kind != 'phrase'")))
            settings = settings.model_copy(update={"quality": self._former.quality})
        built.method = self._former.shape.method
        moved = any(
            name not in before or table.version != before[name].version for name, table in writer.tables.items()
        )
        if moved or settings != writer.snapshot.graph:
            writer.publish(graph=settings)
            built.published = True
        built.snapshot = writer.snapshot.number
        built.rows = {name: self._work.table(name).rows for name in graph_schemas(None)}
        self._work.step("publish")
        return built

    # --- reading -------------------------------------------------------------------------------

    def _read(self) -> None:
        """Forget passages that are gone, and read those that are new; three commits at most."""
        options, built = self._options, self._work.built
        chunks = self._work.table("chunks").read(["chunk_key", "file_key", "record_number", "language"])
        self._chunks = chunks.sort_by("chunk_key")
        known = self._work.table("readings").read_with_addresses(["chunk_key", "reader"])
        fresh, _ = unread(chunks, known, self._reader.id, keep_models=options.reader is None)
        keys, live = known["chunk_key"].to_numpy(), chunks["chunk_key"].to_numpy()
        dead = ~is_among(keys, live)
        if options.documents is not None:
            chosen = of_documents(chunks, options.documents)
            if options.reader is None:
                by_model = np.array([one.startswith(MODEL) for one in known["reader"].to_pylist()], dtype=bool)
                chosen = difference(chosen, keys[by_model])
            built.passages_unread = len(difference(fresh, chosen)) if len(fresh) else 0
            fresh = chosen
        elif not options.read:
            built.passages_unread, fresh = len(fresh), fresh[:0]
        reading = _Reading(work=self._work, workers=options.workers, held={name: [] for name in READ_TABLES})
        read = reading.read(self._reader, fresh)
        if len(read) < len(fresh):
            # What a model did not get to is read by the rules, where nothing has read it: the graph is whole, and the next
            # build with the model finds what is left.
            left = difference(fresh, read)
            built.passages_left = len(left)
            rest = difference(left, keys)
            read = union(read, reading.read(RuleReader(), rest))
        # Rows of another reader go where they were replaced; where a reader did not get to them, they stay.
        gone = keys[dead | is_among(keys, read)]
        built.passages_read, built.passages_forgotten = len(read), len(gone)
        built.stopped = self._reader.stopped
        for name, fragments in reading.written().items():
            table = self._work.table(name)
            delete = known["_rowaddr"].to_numpy()[is_among(keys, gone)] if name == "readings" else _rows_of(table, gone)
            table.commit(TableChange(delete=delete, append=tuple(fragments)))

    # --- putting together ----------------------------------------------------------------------

    def _assemble(self, mentions: Mentions) -> None:
        documents = len(distinct_numbers(documents_of(self._chunks)))
        apart = self._parted()
        senses = told_apart(self._work, mentions, names_of_one(mentions, apart), documents)
        if senses is not None:
            mentions = mentions.sensed(*sensed_keys(mentions, senses))
        write_keys(self._work, mentions, senses)
        may = eligible(mentions, documents)
        with self._work.stage("Resolving names", int(may.sum()), "names"):
            aliases = self._resolve(mentions, may, apart, senses)
            self._work.progress.advance(int(may.sum()))
        by_form = {alias.form.key: alias for alias in aliases}
        root_of = np.array(
            [by_form[key].entity if key in by_form else -1 for key in mentions.form_keys.tolist()], dtype=np.int64
        )
        self._work.step("resolve")
        phrases = self._phrases(mentions, may & (root_of >= 0), documents)
        self._work.step("phrases")
        # From here on an entity is its place among the roots.
        roots = distinct_numbers(root_of[root_of >= 0])
        place = np.where(root_of >= 0, np.searchsorted(roots, root_of.clip(0)), -1)
        own = place[mentions.form]
        theirs = place[phrases.form] if len(phrases.form) else np.empty(0, np.int64)
        passages = mentions.passages
        explicit = own >= 0
        # A phrase counts where its entity is not named anyway.
        new = ~is_among(pair_numbers(theirs, phrases.passage), pair_numbers(own[explicit], passages[explicit]))
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
        found = Occurrences.of(renumber[entity[live]], passage[live], document[live], kind[live])
        keys = roots[chosen]
        write_phrases(self._work, mentions, phrases, renumber[theirs] >= 0)
        write_aliases(self._work, aliases, keys, apart)
        self._former.entities = self._work.table("entities").read(["entity_key"])["entity_key"].to_numpy()
        entities = write_entities(self._work, mentions, aliases, keys, renumber[place], found)
        self._work.step("entities")
        with self._work.stage("Relating entities", len(keys), "entities"):
            edges = write_relations(self._work, entities, found, mentions, renumber[place], documents)
            self._work.progress.advance(len(keys))
        self._work.step("relations")
        note_contradictions(self._work, mentions, renumber[place])
        self._work.step("claims")
        write_communities(self._work, self._former, entities, edges, found)

    def _parted(self) -> dict[int, int]:
        """Forms that a hand took out of an entity, and which."""
        rows = self._work.table("aliases").read(["form_key", "apart_from"], "apart_from IS NOT NULL")
        return dict(zip(rows["form_key"].to_pylist(), rows["apart_from"].to_pylist(), strict=True))

    def _resolve(
        self, mentions: Mentions, may: NDArray[np.bool_], apart: Mapping[int, int], senses: Senses | None
    ) -> list[Alias]:
        stated = self._work.table("claims").read(["subject", "object"], f"predicate = '{STANDS_FOR}'")
        forms = [form for form, is_ in zip(mentions.forms, may.tolist(), strict=True) if is_]
        return resolve(
            forms,
            abbreviations=zip(stated["subject"].to_pylist(), stated["object"].to_pylist(), strict=True),
            apart=apart.items(),
            embed=self._embedded if self._work.embedder is not None else None,
            senses=senses.told() if senses is not None else None,
            together=mentions.together,
        )

    def _embedded(self, names: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of names: of entities as they are stored, of others from the embedder."""
        assert self._work.embedder is not None
        table = self._work.table("entities")
        known = table.read(["name", "vector"], "vector IS NOT NULL") if table.rows else None
        matrix = np.zeros((len(names), self._work.embedder.fingerprint.dimension), dtype=np.float32)
        missing = np.ones(len(names), dtype=bool)
        if known is not None and known.num_rows:
            at = pc.index_in(pa.array(names), value_set=known["name"].combine_chunks())
            missing = at.is_null().to_numpy(zero_copy_only=False)
            rows = known["vector"].combine_chunks().take(at.drop_null())
            matrix[~missing] = rows.flatten().to_numpy(zero_copy_only=False).reshape(len(rows), -1)
        places = np.flatnonzero(missing)
        if not len(places):
            return matrix
        with self._work.stage("Embedding names", len(places), "texts"):
            for start in range(0, len(places), EMBEDDED_AT_ONCE):
                part = places[start : start + EMBEDDED_AT_ONCE]
                matrix[part] = self._work.embedder.embed_passages([names[place] for place in part.tolist()])
                self._work.progress.advance(len(part))
        return matrix

    def _phrases(self, mentions: Mentions, may: NDArray[np.bool_], documents: int) -> Phrases:
        table = self._work.table("readings").read(["chunk_key", "file_key", "record_number", "phrases"])
        first = np.zeros(len(mentions.forms), dtype=np.int64)
        first[mentions.form[::-1]] = mentions.passages[::-1]
        at = np.searchsorted(self._chunks["chunk_key"].to_numpy(), first).clip(0, max(0, self._chunks.num_rows - 1))
        languages = self._chunks["language"].take(pa.array(at)).to_pylist() if self._chunks.num_rows else []
        return in_their_sense(mentions, match_phrases(mentions, may, table, languages, documents))

    def _kept(self, mentions: Mentions, place: Ints, roots: Ints, counts: Ints, documents: int) -> NDArray[np.bool_]:
        """Which entities are worth a row: all in a small collection; else those of two documents, and what has a page."""
        if documents < SMALL:
            return counts > 0
        named = (named_by(mentions, "title") | named_by(mentions, "anchor")) & (place >= 0)
        paged = np.zeros(len(roots), dtype=bool)
        paged[place[named]] = True
        return (counts >= 2) | (paged & (counts > 0))


@dataclass(kw_only=True)
class _Reading:
    """Rows of passages as they are read; written in fragments so that they need not all be held."""

    work: Work
    workers: int | None
    held: dict[str, list[pa.Table]]
    fragments: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in READ_TABLES})

    def read(self, reader: Reader, keys: Ints) -> Ints:
        """Read passages; returns the keys of those that were, rising."""
        done: list[Ints] = [np.empty(0, np.int64)]
        work = self.work
        workers = self.workers if self.workers is not None else len(os.sched_getaffinity(0))
        passages = blocks(work.table("chunks"), work.table("links"), keys, reader.block)
        with work.stage("Reading for the graph", len(keys), "passages"):
            for one in readings(passages, reader, len(keys), workers):
                for name, tables in self.held.items():
                    tables.append(getattr(one, name))
                done.append(one.readings["chunk_key"].to_numpy())
                work.progress.advance(one.readings.num_rows)
                if sum(table.num_rows for table in self.held["readings"]) >= SPILLED:
                    self._spill()
        return np.sort(np.concatenate(done))

    def written(self) -> dict[str, list[Any]]:
        """Fragments of each table."""
        self._spill()
        return self.fragments

    def _spill(self) -> None:
        for name, tables in self.held.items():
            rows = pa.concat_tables(tables) if tables else None
            if rows is not None and rows.num_rows:
                self.fragments[name] += self.work.table(name).write(rows)
            tables.clear()


def _rows_of(table: Table, chunk_keys: Ints) -> NDArray[np.uint64]:
    if not len(chunk_keys):
        return np.empty(0, dtype=np.uint64)
    index = table.read_with_addresses(["chunk_key"])
    rows: NDArray[np.uint64] = index["_rowaddr"].to_numpy()[is_among(index["chunk_key"].to_numpy(), chunk_keys)]
    return rows
