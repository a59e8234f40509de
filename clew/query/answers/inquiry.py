"""A question beside one snapshot: everything about it that routes need, each computed once, when it is first asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clew.indexer.lexical.analysis import words
from clew.indexer.lexical.questions import AnalyzedQuestion, analyze_question
from clew.query import stopping
from clew.query.abstention import TOP, Judgement
from clew.query.answers import second_opinion
from clew.query.answers.cognates import Cognate, cognates
from clew.query.answers.crossing import FEW, SPOKEN, Crossing, spoken
from clew.query.answers.frame import languages_of, led_to, subject_terms
from clew.query.answers.markers import Marked, fold, marked, weight
from clew.query.answers.merging import merged
from clew.query.answers.names import Names, names_in
from clew.query.answers.quotation import held_share
from clew.query.answers.router import Seen
from clew.query.answers.seeds import (
    Profile,
    Seed,
    joint_coverage,
    name_index,
    name_languages,
    profile,
    proper_words,
    seeds,
    similarities,
)
from clew.query.answers.thresholds import Thresholds
from clew.query.candidates import Scores
from clew.query.found import Found
from clew.query.knowledge import Knowledge
from clew.query.pinned import PinnedIndex
from clew.query.search import Searcher
from clew_client.types import SearchRequest

if TYPE_CHECKING:
    from clew.query.answers.writing import Writer

#: Groups of markers whose words are all frame.
_ASKING = frozenset(
    {"options", "ought", "explore", "told", "help", "whole", "contents", "rest", "above", "end", "deal", "idea"}
)
PASSAGES = 10  # hits that answers are made of


class Inquiry:
    """One question. Not shared between threads."""

    def __init__(
        self, text: str, pinned: PinnedIndex, searcher: Searcher, graph: Knowledge | None, thresholds: Thresholds
    ) -> None:
        """`graph`: None where none was built in this snapshot."""
        self.text = text
        self.asked_as = text  # as people asked it, where words were put beside
        self.pinned = pinned
        self.searcher = searcher
        self.graph = graph
        self.thresholds = thresholds
        self.writer: Writer | None = None  # a language model at work on this question

    def about(self, text: str) -> Inquiry:
        """Another question to the same snapshot."""
        stopping.check()
        return Inquiry(text, self.pinned, self.searcher, self.graph, self.thresholds)

    # --- words ---------------------------------------------------------------------------------

    @cached_property
    def terms(self) -> AnalyzedQuestion:
        """The question as the lexical paths take it."""
        return analyze_question(self.text, self.pinned.languages)

    @cached_property
    def idf(self) -> Scores:
        """(terms,) their idf."""
        return self.searcher.idf(self.terms)

    @cached_property
    def markers(self) -> list[Marked]:
        """What in the question tells its kind."""
        return marked(self.text)

    @cached_property
    def subject(self) -> AnalyzedQuestion:
        """The terms that are no frame of a question; see `clew.query.answers.frame`."""
        kept = subject_terms(self.terms, sorted(code for code in self.pinned.languages if len(code) == 2))
        asking = {word for one in self.markers if one.group in _ASKING for word in words(one.text)}
        kept = [at for at in kept if fold(self.terms.terms[at].word) not in asking]
        kept = self._with_names(kept)
        if weight(self.markers, "aggregation") >= self.thresholds.aggregation:
            kept = led_to(self.terms, kept)
        terms = tuple(self.terms.terms[at] for at in kept)
        return AnalyzedQuestion(text=" ".join(term.word for term in terms), terms=terms, idents=self.terms.idents)

    def _with_names(self, kept: list[int]) -> list[int]:
        """With words that are frame elsewhere, but stand in the question within a name that holds a word of its subject: "signing keys"."""
        if self.graph is None or not kept:
            return kept
        places = {word: at for at, word in enumerate(words(self.text))}
        at_of = {term: places.get(self.terms.terms[term].word, -1) for term in range(len(self.terms.terms))}
        term_of = {token: at for at, term in enumerate(self.terms.terms) for token in term.variants}
        found = set(kept)
        for name in name_index(self.graph).held(set(term_of)).values():
            terms = {term_of[token] for token in name}
            ends = [at_of[term] for term in terms]
            beside = min(ends) >= 0 and max(ends) - min(ends) <= len(terms)  # a word at most between them
            if beside and not terms.isdisjoint(kept):
                found |= terms
        return sorted(found)

    @cached_property
    def subject_idf(self) -> Scores:
        """(terms,) of the subject."""
        return self.searcher.idf(self.subject)

    def share_of(self, text: str) -> float:
        """The share of what is asked about, by idf², that a text without a language of its own holds."""
        terms, idf = self.asked_about
        return held_share(terms, idf, text, name_languages(self.pinned.languages))

    @property
    def asked_about(self) -> tuple[AnalyzedQuestion, Scores]:
        """The subject with its idf; the whole question where it is all frame."""
        return (self.subject, self.subject_idf) if self.subject.terms else (self.terms, self.idf)

    # --- another language ----------------------------------------------------------------------

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """What it may be asked in; see `clew.query.answers.frame`."""
        return languages_of(self.asked_as)

    def reads(self, language: str | None) -> bool:
        """Whether who asks reads a passage in its language: that of the question, or any where the index has none in it.

        Who asks in words that tell no language is taken to read the commonest of the pages'.
        """
        pages = self.pinned.languages
        asked = self.languages or tuple(sorted(pages, key=lambda one: (-pages[one], one))[:1])
        own = [one for one in asked if pages.get(one, 0) >= FEW * sum(pages.values())]
        return not own or language is None or language.partition("-")[0] in own

    @cached_property
    def foreign_tongue(self) -> tuple[str, ...]:
        """The languages it may be asked in, where the index's vectors know none of them; else ()."""
        asked = self.languages
        known = spoken(self.pinned.generation.fingerprint, self.pinned.languages)
        return () if known.intersection(asked) else asked

    @cached_property
    def bridges(self) -> list[Cognate]:
        """Names that words of such a question sound like."""
        if self.graph is None or not self.foreign_tongue:
            return []
        return cognates(self.graph, [term.word for term in self.subject.terms])

    @cached_property
    def bridged(self) -> Inquiry:
        """This question with those names beside its words, which passages in the other language are found by; itself without any."""
        proper = proper_words(self.text)
        added = [
            one.word.capitalize() if one.asked in proper else one.word for one in self.bridges if one.word != one.asked
        ]
        if not added:
            return self
        beside = self.about(f"{self.text} {' '.join(dict.fromkeys(added))}")
        beside.foreign_tongue = self.foreign_tongue
        beside.asked_as = self.asked_as
        beside.writer = self.writer
        return beside

    @cached_property
    def crossing(self) -> Crossing | None:
        """What tells whether pages in another language hold it; None where they are in its own."""
        if not self.foreign_tongue:
            return None
        by_word = {term.word: at for at, term in enumerate(self.subject.terms)}
        squares = self.subject_idf**2
        total = float(squares.sum())
        heard = sum(float(squares[by_word[one.asked]]) for one in self.bridges)
        judged = self.bridged.judgement
        return Crossing(
            languages=self.foreign_tongue,
            bridges=tuple(self.bridges),
            lift=self._lift,
            coverage=0.0 if judged is None else judged.signals.coverage,
            bridged=heard / total if total else 0.0,
            proper=any(seed.proper for seed in self.bridged.seeds),
        )

    @cached_property
    def second_opinion(self) -> second_opinion.Look | None:
        """What a multilingual model sees of a question in another language and the passages found for it; None without one."""
        if not self.foreign_tongue:
            return None
        return second_opinion.look(self.asked_as, self.foreign_tongue[0], self.leads(second_opinion.PASSAGES))

    @property
    def _lift(self) -> float | None:
        """By that look; of a wide question, of its subject, too, as how it is asked is near to much."""
        looks = [self.bridged.second_opinion]
        wide = self.asks_widely or weight(self.markers, "aggregation") >= self.thresholds.aggregation
        if self.subject.terms and wide:
            passages = self.bridged.leads(second_opinion.PASSAGES)
            looks.append(second_opinion.look(self.subject.text, self.foreign_tongue[0], passages))
        return min((one.lift for one in looks if one is not None), default=None)

    def leads(self, count: int) -> list[str]:
        """The texts of the first passages found, with their titles."""
        ordinals = self._first[:count]
        if not ordinals:
            return []
        rows = self.pinned.read_chunks(ordinals, ["title", "text"]).to_pylist()
        return [f"{row['title'] or ''}\n{row['text']}" for row in rows]

    # --- passages ------------------------------------------------------------------------------

    @cached_property
    def found(self) -> Found:
        """What the four paths find for the question, links followed."""
        return self.searcher.find(SearchRequest(text=self.text, k=PASSAGES))

    @cached_property
    def judgement(self) -> Judgement | None:
        """Whether that answers the question."""
        return self.searcher.judge(self.found)

    @cached_property
    def subject_inquiry(self) -> Inquiry:
        """The subject, asked for by itself; this question where it is all subject."""
        if not self.subject.terms or len(self.subject.terms) == len(self.terms.terms):
            return self
        return self.about(self.subject.text)

    @property
    def _first(self) -> list[int]:
        return [int(one) for one in self.found.ordinals[:PASSAGES]]

    def hits(self) -> list[int]:
        """Ordinals of the passages found, best first; as a multilingual model has them, where one has looked."""
        first, look = self._first, self.second_opinion
        if look is None or not look.lifts:
            return first
        # Both orders, by rank: a model of meaning alone puts what is in the question's language before what names its subject.
        again = sorted(range(len(look.lifts)), key=lambda at: (-look.lifts[at], at))
        order = merged({"found": range(len(first)), "again": again})
        names = proper_words(self.text) if any(seed.proper for seed in self.seeds) else ()
        texts = [one.casefold() for one in self.leads(len(first))] if names else []
        named = [first[at] for at, _ in order if names and any(name in texts[at] for name in names)]
        if names and not named:  # the words of the other language outweighed them
            named = self.about(" ".join(sorted(names)))._first[: PASSAGES // 2]
        return list(dict.fromkeys([*named, *(first[at] for at, _ in order)]))[:PASSAGES]

    def passage_cosines(self, ordinals: Sequence[int]) -> list[float | None]:
        """Of passages and the question; None where there is no vector (yet).

        Of a question in another language, what a second opinion says of them in their place: the vectors' cosines tell nothing.
        """
        look = self.second_opinion
        if look is not None and look.lifts:
            by_passage = dict(zip(self._first, look.lifts, strict=False))
            return [by_passage.get(one) for one in ordinals]
        if self.vector is None or not len(ordinals):
            return [None] * len(ordinals)
        places = np.asarray(ordinals, dtype=np.int64)
        vectors, filled = self.pinned.vectors
        cosines = np.asarray(vectors[places], dtype=np.float64) @ self.vector.astype(np.float64)
        return [float(one) if there else None for one, there in zip(cosines, filled[places], strict=True)]

    # --- entities ------------------------------------------------------------------------------

    @cached_property
    def vector(self) -> NDArray[np.float32] | None:
        """The question's vector; None without an embedder."""
        if self.pinned.generation.dimension is None:
            return None
        return self.found.asked.vector()

    @cached_property
    def cosines(self) -> NDArray[np.float32] | None:
        """(n,) cosines of the entities' names and the question."""
        return None if self.graph is None else similarities(self.graph, self.vector)

    @cached_property
    def profile(self) -> Profile | None:
        """Peaked or flat; None where the embedder knows another language than the question's."""
        known = SPOKEN.get((self.pinned.generation.fingerprint or "").rpartition("-")[0])
        if self.foreign_tongue or (known is not None and any(one.language not in known for one in self.markers)):
            return None  # names of the question's language lie near it, whatever they name
        return profile(self.cosines)

    @cached_property
    def seeds(self) -> Sequence[Seed]:
        """Entities that the question means."""
        if self.graph is None:
            return ()
        terms, idf = self.asked_about
        # To an English model names in another language lie near any question in it: "Receção de mercadorias" near all Portuguese ones.
        floor = None if self.foreign_tongue else self.thresholds.seed_floor
        return seeds(self.graph, terms, idf, self.cosines, floor, written=self.text)

    @cached_property
    def seed_cover(self) -> float:
        """The share of its subject that the names of its seeds hold between them."""
        if self.graph is None or not self.seeds or not self.subject.terms:
            return 0.0
        return joint_coverage(self.seeds, self.graph, self.subject, self.subject_idf)

    @cached_property
    def names(self) -> Names:
        """Which of the names in it the first passages hold."""
        if not proper_words(self.text) or not self._first:
            return Names(held=0.0, missing=0.0)
        rows = self.pinned.read_chunks(self._first[:TOP], ["title", "text", "language"]).to_pylist()
        hits = [(f"{row['title'] or ''}\n{row['text']}", row["language"]) for row in rows]
        return names_in(self.text, self.terms, self.idf, hits)

    @property
    def asks_widely(self) -> bool:
        """Whether what surrounds its subject is asked for, rather than one thing of it."""
        return any(one.kind == "generalisation" for one in self.markers)

    @cached_property
    def of_itself(self) -> bool:
        """Whether it asks about the documents as such, and leads to nothing in them."""
        if not any(one.kind == "collection" for one in self.markers):
            return False
        kept = subject_terms(self.terms, sorted(code for code in self.pinned.languages if len(code) == 2))
        return not led_to(self.terms, kept)

    def seen(self) -> Seen:
        """What the router decides by.

        Where the question itself finds too little and words of it only say how it is asked, its subject is looked for by itself; a plain
        question is judged as it stands, as the floor was fitted to such (of two tries the better one lets more foreign questions pass).
        """
        crossing = self.crossing
        asked = self.bridged
        judged = [one for one in [asked.judgement] if one is not None]
        if crossing is None and any(one.abstained for one in judged) and any(one.weight > 0 for one in self.markers):
            judged += [one for one in [self.subject_inquiry.judgement] if one is not None]
        best = max(judged, key=lambda one: one.confidence, default=None)
        confidence, floor = (best.confidence, best.floor) if best else (0.0, 1.0)
        if best is not None and crossing is None:
            confidence = self.names.weighed(confidence)
        graph = self.graph
        return Seen(
            markers=self.markers,
            subject=tuple(term.word for term in self.subject.terms),
            seeds=asked.seeds,
            seed_names=[] if graph is None else [graph.entities["name"][seed.entity].as_py() for seed in asked.seeds],
            seed_cover=asked.seed_cover,
            profile=self.profile,
            confidence=confidence if crossing is None else crossing.confidence,
            floor=floor if crossing is None else crossing.floor,
            names_missing=0.0 if crossing is not None else self.names.missing,
            of_itself=self.of_itself,
            named_file=any(one.named for one in judged),
            crossing=crossing,
            has_graph=graph is not None,
            has_reports=graph is not None and graph.reports.num_rows > 0,
        )
