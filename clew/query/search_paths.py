"""What answers questions on one snapshot: each path and what is needed beside them, built when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from clew.indexer.embedders.protocol import Embedder, LateInteraction
from clew.query import coarse
from clew.query.attributes import AttributesPath
from clew.query.bm25 import Bm25Path
from clew.query.candidates import Candidates, Ordinals, Scores
from clew.query.coverage import Coverage
from clew.query.dense import DensePath
from clew.query.expansion import Passages
from clew.query.found import Asked
from clew.query.pinned import PinnedIndex
from clew.query.sentence_match import SentenceMatch
from clew.query.spreading import DocumentPlaces
from clew.query.tfidf import TfidfPath


class SearchPaths:
    """The paths of a pinned snapshot, which keeps them. Safe to share between threads."""

    def __init__(self, pinned: PinnedIndex, embedder: Callable[[], Embedder | None]) -> None:
        self._pinned = pinned
        self._embedder = embedder

    def dense(self) -> DensePath:
        """Nearest vectors; coarse ones first where they pay."""

        def build() -> DensePath:
            vectors, filled = self._pinned.vectors
            worth_it = coarse.is_loaded() and len(vectors) >= coarse.WORTH_IT and not self._pinned.is_restricted
            quarter = self._pinned.coarse_vectors if worth_it else None
            return DensePath(vectors, filled, self._pinned.universe, coarse=quarter)

        return self._pinned.once("dense_path", build)

    def bm25(self) -> Bm25Path:
        """Words, by tantivy."""
        pinned, tfidf = self._pinned, self.tfidf()
        # Not a function that knows the snapshot: it would keep it, in a cycle.
        return pinned.once("bm25_path", lambda: Bm25Path(pinned.lexical.index, pinned.universe, holders=tfidf.holders))

    def sentences(self) -> SentenceMatch | None:
        """None where the index's embedder cannot compare texts token by token."""

        def build() -> SentenceMatch | None:
            embedder: object = self._embedder()
            return SentenceMatch(embedder, self._pinned.languages) if isinstance(embedder, LateInteraction) else None

        return self._pinned.once("sentences", build)

    def tfidf(self) -> TfidfPath:
        """Words, by cosine."""
        return self._pinned.once("tfidf_path", lambda: TfidfPath(self._pinned.lexical.segments, self._pinned.universe))

    def coverage(self) -> Coverage:
        """How much of a question a passage and its document hold."""
        pinned = self._pinned
        return pinned.once("coverage", lambda: Coverage(self.tfidf(), pinned.universe, pinned.catalog.document_of))

    def passages(self) -> Passages:
        """Which passages stand beside each other."""
        pinned = self._pinned
        return pinned.once("passages", lambda: Passages.of(pinned.universe, pinned.catalog.document_of))

    def document_places(self) -> DocumentPlaces:
        """Where the passages of each document stand."""
        pinned = self._pinned
        return pinned.once(
            "document_places",
            lambda: DocumentPlaces.of(pinned.universe, self.passages().at, pinned.catalog.document_of),
        )

    def attributes(self) -> AttributesPath:
        """Names, folders, titles."""
        return self._pinned.once("attributes_path", lambda: AttributesPath(self._pinned.catalog, self._pinned.universe))


@dataclass(frozen=True, kw_only=True)
class SearchPath:
    """One way to find candidates, and to score given chunks exactly; of whichever snapshot's paths are given."""

    search: Callable[[SearchPaths, Asked, int], Candidates]
    scores: Callable[[SearchPaths, Asked, Ordinals], Scores]


#: Not a searcher's own: functions that hold it would keep a superseded snapshot in memory until cycles are looked for.
PATHS_BY_NAME: Mapping[str, SearchPath] = {
    "dense": SearchPath(
        search=lambda paths, asked, k: paths.dense().search(asked.vector(), k, asked.allowed),
        scores=lambda paths, asked, ordinals: paths.dense().scores(asked.vector(), ordinals),
    ),
    "bm25": SearchPath(
        search=lambda paths, asked, k: paths.bm25().search(asked.terms, k, asked.allowed),
        scores=lambda paths, asked, ordinals: paths.bm25().scores(asked.terms, ordinals),
    ),
    "tfidf": SearchPath(
        search=lambda paths, asked, k: paths.tfidf().search(asked.terms, k, asked.allowed),
        scores=lambda paths, asked, ordinals: paths.tfidf().scores(asked.terms, ordinals),
    ),
    "attributes": SearchPath(
        search=lambda paths, asked, k: paths.attributes().search(asked.request.text, k, asked.allowed),
        scores=lambda paths, asked, ordinals: paths.attributes().scores(asked.request.text, ordinals),
    ),
}
