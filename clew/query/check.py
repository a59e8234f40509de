"""Verify an index from outside: do its parts agree with each other, and with what the snapshot says of them?"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.errors import ClewError
from clew.indexer.links.edges import edges_of, read_edges
from clew.indexer.number_sets import distinct_numbers, is_among
from clew.indexer.schemas import KEY_BITS
from clew.indexer.snapshots import content_of
from clew.query.graph_check import graph_findings, graph_quotes
from clew.query.inspection import document_text
from clew.query.pinned import PinnedIndex
from clew_client.types import CheckReport, Finding

MOST_OF_A_KIND = 20  # findings of one check that are listed; the rest is counted
_BLOCK = 20_000

Findings = Iterator[tuple[str, str | None]]


class Check:
    """The checks, each a generator of (message, path)."""

    def __init__(self, pinned: PinnedIndex) -> None:
        self._pinned = pinned
        self.checked: dict[str, int] = {}

    def run(self, *, deep: bool = False) -> CheckReport:
        """All checks; `deep` reads every text, posting and vector, too."""
        checks: list[tuple[str, Callable[[], Findings]]] = [
            ("objects", self.objects),
            ("counts", self.counts),
            ("documents", self.documents),
            ("segments", self.segments),
            ("links", self.links),
            ("edges", self.edges),
            ("graph", lambda: graph_findings(self._pinned, self.checked)),
        ]
        if deep:
            checks += [("texts", self.texts), ("vectors", self.vectors), ("postings", self.postings)]
            checks += [("quotes", lambda: graph_quotes(self._pinned, self.checked))]
        findings: list[Finding] = []
        for name, check in checks:
            findings += self._collect(name, check)
        return CheckReport(ok=not findings, findings=tuple(findings), checked=self.checked)

    def _collect(self, name: str, check: Callable[[], Findings]) -> list[Finding]:
        listed: list[Finding] = []
        more = 0
        try:
            for message, path in check():
                if len(listed) < MOST_OF_A_KIND:
                    listed.append(Finding(check=name, message=message, path=path))
                else:
                    more += 1
        except (ClewError, OSError) as error:
            listed.append(Finding(check=name, message=str(error)))
        if more:
            listed.append(Finding(check=name, message=f"and {more} more"))
        return listed

    def objects(self) -> Findings:
        """Everything that the snapshot names is there, with its size."""
        pinned = self._pinned
        for message in pinned.place.missing(pinned.snapshot, pinned.tables):
            yield message, None
        self.checked["objects"] = len(pinned.snapshot.segments) + len(pinned.snapshot.edges)
        for table in pinned.tables.values():
            self.checked["objects"] += sum(len(one.data_files()) for one in table.dataset.get_fragments())

    def counts(self) -> Findings:
        """The snapshot's statistics are those of its tables."""
        pinned, statistics = self._pinned, self._pinned.snapshot.statistics
        for name, table in pinned.tables.items():
            if table.rows != pinned.snapshot.tables[name].rows:
                yield f"table {name} has {table.rows} rows, the snapshot says {pinned.snapshot.tables[name].rows}", None
        states = _tally(pinned.tables["files"].read(["state"])["state"])
        if states != statistics.files:
            yield f"files by state are {states}, the statistics say {statistics.files}", None
        links = _tally(pinned.tables["links"].read(["state"])["state"])
        if links != statistics.links:
            yield f"links by state are {links}, the statistics say {statistics.links}", None
        if pinned.tables["chunks"].rows != statistics.chunks:
            yield f"{pinned.tables['chunks'].rows} passages, the statistics say {statistics.chunks}", None
        keys, counts = np.unique(pinned.chunks.file_keys, return_counts=True)
        held = dict(zip(keys.tolist(), counts.tolist(), strict=True))
        for row in pinned.tables["files"].read(["file_key", "path", "chunk_count"]).to_pylist():
            if held.get(row["file_key"], 0) != row["chunk_count"]:
                yield f"{held.get(row['file_key'], 0)} passages, its row says {row['chunk_count']}", row["path"]
        self.checked["files"] = pinned.tables["files"].rows

    def documents(self) -> Findings:
        """Paths and keys are unique; every document has its file, every passage its document."""
        pinned = self._pinned
        files = pinned.tables["files"].read(["file_key", "path"])
        for column in ("file_key", "path"):
            if pc.count_distinct(files[column]).as_py() != files.num_rows:
                yield f"column {column} of the files table holds duplicates", None
        keys = pinned.universe.keys
        if len(distinct_numbers(keys)) != len(keys):
            yield f"{len(keys) - len(distinct_numbers(keys))} passages share their key with another", None
        self.checked["documents"] = len(pinned.catalog)  # raises where documents, files and passages do not fit

    def segments(self) -> Findings:
        """Every live passage stands in exactly one lexical segment."""
        pinned = self._pinned
        held = [segment.keys for segment in pinned.lexical.segments]
        ordinals = pinned.universe.ordinals(np.concatenate(held)) if held else np.empty(0, dtype=np.int64)
        counts = np.bincount(ordinals[ordinals >= 0], minlength=len(pinned.universe))
        for ordinal in np.flatnonzero(counts != 1).tolist():
            path = pinned.path_of(int(pinned.chunks.file_keys[ordinal]))
            yield f"passage {pinned.universe.keys[ordinal]} stands in {counts[ordinal]} lexical segments", path
        self.checked["passages"] = len(pinned.universe)

    def links(self) -> Findings:
        """Every resolved link leads to a file and a passage that are there; no other leads anywhere."""
        pinned = self._pinned
        rows = pinned.tables["links"].read(
            ["link_key", "source_file", "target_file", "source_chunk", "target_chunk", "state"]
        )
        known = np.sort(pinned.files["file_key"].to_numpy())
        resolved = pc.equal(rows["state"], "resolved").to_numpy(zero_copy_only=False)
        target = rows["target_file"].fill_null(-1).to_numpy()
        if ((target >= 0) != resolved).any():
            yield f"{int(((target >= 0) != resolved).sum())} links whose state and target disagree", None
        # Until links are resolved anew, readers take one to a file that has gone for a dangling one.
        ends = ("source",) if pinned.snapshot.pending.links else ("source", "target")
        for name in ends:
            keys = rows["source_file"].to_numpy() if name == "source" else target[target >= 0]
            if not is_among(keys, known).all():
                yield f"{int((~is_among(keys, known)).sum())} links whose {name} file is unknown", None
            lost = pinned.universe.ordinals(rows[f"{name}_chunk"].drop_null().to_numpy()) < 0
            if lost.any():
                yield f"{int(lost.sum())} links whose {name} passage is unknown", None
        self.checked["links"] = rows.num_rows

    def edges(self) -> Findings:
        """The edge files hold what the links table says."""
        pinned = self._pinned
        if pinned.snapshot.pending.links:
            return
        there = read_edges(pinned.place.store, pinned.generation.id, pinned.snapshot.edges)
        there = there.filter(
            pc.is_in(
                pc.shift_right(there["source_chunk"], KEY_BITS), value_set=pinned.files["file_key"].combine_chunks()
            )
        )
        wanted = edges_of(pinned.tables["links"].read(["link_key", "source_chunk", "target_chunk", "weight"]))
        for name in ("link_key", "source_chunk", "target_chunk"):
            if not np.array_equal(_by_link(there, name), _by_link(wanted, name)):
                yield (
                    f"the edge files ({there.num_rows} edges) are not those of the links table ({wanted.num_rows})",
                    None,
                )
                break
        self.checked["edges"] = there.num_rows

    def texts(self) -> Findings:
        """Every document's passages, put together, are one text, and each lies in it where it says."""
        pinned = self._pinned
        document = pinned.catalog.document_of
        order = np.lexsort((pinned.chunks.char_starts, document))
        borders = np.flatnonzero(np.diff(document[order])) + 1
        groups = np.split(order, borders) if len(order) else []
        for block in _blocks(groups, _BLOCK):
            rows = pinned.read_chunks(np.concatenate(block)).to_pylist()
            start = 0
            for group in block:
                chunks = rows[start : start + len(group)]
                start += len(group)
                text = document_text(chunks)
                for chunk in chunks:
                    if text[chunk["char_start"] : chunk["char_end"]] != chunk["text"]:
                        path = pinned.path_of(chunk["file_key"])
                        yield f"passage {chunk['chunk_key']} is not at {chunk['char_start']}–{chunk['char_end']}", path
        self.checked["texts"] = len(groups)

    def vectors(self) -> Findings:
        """Vectors are finite and of length 1, as many as the statistics say."""
        pinned = self._pinned
        if pinned.generation.dimension is None:
            return
        vectors, filled = pinned.vectors
        norms = np.linalg.norm(vectors[filled], axis=1)
        odd = ~np.isfinite(norms) | (np.abs(norms - 1) > 1e-3)
        if odd.any() and not pinned.generation.settings.embedder.startswith("given"):
            yield f"{int(odd.sum())} vectors are not of length 1", None
        if int(filled.sum()) != pinned.snapshot.statistics.vectors:
            yield f"{int(filled.sum())} vectors, the statistics say {pinned.snapshot.statistics.vectors}", None
        self.checked["vectors"] = int(filled.sum())

    def postings(self) -> Findings:
        """The segments' bytes hash to their names."""
        from clew.indexer.lexical.assembly import segment_identity

        pinned = self._pinned
        for segment in pinned.snapshot.segments:
            data = pinned.place.store.get(f"generations/{pinned.generation.id}/lexical/{segment.id}")
            if segment_identity(data) != content_of(segment.id):
                yield f"lexical segment {segment.id} is altered", None
        self.checked["segments"] = len(pinned.snapshot.segments)


def _tally(column: pa.ChunkedArray) -> dict[str, int]:
    return {item["values"].as_py(): item["counts"].as_py() for item in pc.value_counts(column)}


def _by_link(edges: pa.Table, name: str) -> NDArray[np.int64]:
    values: NDArray[np.int64] = edges[name].to_numpy()[np.argsort(edges["link_key"].to_numpy(), kind="stable")]
    return values


def _blocks(groups: list[NDArray[np.int64]], size: int) -> Iterator[list[NDArray[np.int64]]]:
    block: list[NDArray[np.int64]] = []
    held = 0
    for group in groups:
        block.append(group)
        held += len(group)
        if held >= size:
            yield block
            block, held = [], 0
    if block:
        yield block
