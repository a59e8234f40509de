"""Passages to hand to a model: as many of the best hits as a budget of tokens holds, in the order of reading.

Hits are taken by rank. A hit that overlaps or touches one already taken becomes one passage with it; a text that stands in
several documents is taken once. The first hit that does not fit is cut to those of its sentences that answer most of the
question, and ends the selection: so a larger budget never loses what a smaller one holds. Passages of a document stand
together, by position; documents stand by their best hit, those that a link led to behind the document it stands in.

Where all that may be seen fits the budget, all of it is handed over, and nothing is searched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clew.connectors.location import Root
from clew.indexer.chunking import join_spans
from clew.indexer.number_sets import distinct_numbers, is_among
from clew.indexer.sentences import line_spans, paragraph_spans, sentence_spans, word_spans
from clew.query.candidates import Mask, Ordinals
from clew.query.found import Found
from clew.query.inspection import location_of, url_of
from clew.query.pinned import PinnedIndex
from clew.query.search import Searcher, require_question
from clew.query.tokens import Tokenizer
from clew.query.trails import Trails
from clew_client.types import ContextRequest, ContextResult, Passage, TrailStep

if TYPE_CHECKING:
    from clew.indexer.lexical.questions import AnalyzedQuestion

PARENT_WINDOW = 1024  # tokens
LONGEST_TOKEN = 8  # characters a token has at most, on average: what cannot fit is not read
_COLUMNS = [
    "file_key", "record", "title", "heading_path", "text", "tail", "char_start", "char_end", "location_unit",
    "location_value", "language",
]  # fmt: skip
SHORTEST_PART = 24  # tokens of a hit's part that are worth a passage of their own
_NEIGHBOURS = 64  # chunks on either side that a parent window may hold

#: What a text holds of a question: a name and a weight each.
Worth = Callable[[str], Mapping[str, float]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """One chunk, as the selection sees it."""

    place: int  # rank by (path, record, position); the next chunk of a document has the next place
    document: int
    start: int  # code points into the document's normalised text
    end: int
    text: str
    tail: str = ""  # white space up to the next chunk; '' where they overlap

    @property
    def reach(self) -> int:
        """Where the next chunk begins, or lies before."""
        return self.end + len(self.tail)


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Pieces of one document that follow each other: one passage."""

    pieces: tuple[Piece, ...]
    tokens: int

    @property
    def text(self) -> str:
        return joined(self.pieces)

    @property
    def start(self) -> int:
        return self.pieces[0].start

    @property
    def end(self) -> int:
        return max(piece.end for piece in self.pieces)


def joined(pieces: Sequence[Piece]) -> str:
    """The text from the first piece's start to the last one's end."""
    base = pieces[0].start
    spans = [(piece.start - base, piece.text, piece.tail) for piece in pieces]
    return join_spans(spans)[: max(piece.end for piece in pieces) - base]


class Selection:
    """Pieces taken one by one, while they fit."""

    def __init__(self, tokenizer: Tokenizer, budget: int, overhead: int = 0) -> None:
        self.tokenizer = tokenizer
        self._budget = budget
        self._overhead = overhead
        self._runs: dict[int, Run] = {}  # by the place of each piece
        self._texts: set[str] = set()
        self._passages = 0
        self.tokens = 0  # of all passages; with the overhead never above the budget

    @property
    def runs(self) -> list[Run]:
        """All passages, by place."""
        return [run for place, run in sorted(self._runs.items()) if run.pieces[0].place == place]

    @property
    def room(self) -> int:
        """Tokens that one more passage may have."""
        return self._budget - self.tokens - self._overhead * (self._passages + 1)

    def holds(self, piece: Piece) -> bool:
        """Whether the piece, or the very same text of another document, is there already."""
        return piece.place in self._runs or piece.text in self._texts

    def take(self, piece: Piece) -> bool:
        """Take a piece if it fits, merged with its neighbours; False leaves everything as it was."""
        if self.holds(piece):
            return True
        pieces, merged = [piece], []
        before, after = self._runs.get(piece.place - 1), self._runs.get(piece.place + 1)
        if before is not None and _follows(before.pieces[-1], piece):
            pieces = [*before.pieces, *pieces]
            merged.append(before)
        if after is not None and _follows(piece, after.pieces[0]):
            pieces = [*pieces, *after.pieces]
            merged.append(after)
        run = Run(pieces=tuple(pieces), tokens=self.tokenizer.of(joined(pieces)))
        tokens = self.tokens + run.tokens - sum(one.tokens for one in merged)
        passages = self._passages + 1 - len(merged)
        if tokens + self._overhead * passages > self._budget:
            return False
        self.tokens, self._passages = tokens, passages
        for one in run.pieces:
            self._runs[one.place] = run
        self._texts.add(piece.text)
        return True

    def touches(self, piece: Piece) -> bool:
        """Whether a neighbour of the piece is there."""
        return any(
            (run := self._runs.get(place)) is not None and run.pieces[0].document == piece.document
            for place in (piece.place - 1, piece.place + 1)
        )


def fill(selection: Selection, pieces: Sequence[Piece], worth: Callable[[Piece], Worth]) -> list[int]:
    """Take pieces, best first, until one does not fit; of that one a part, if there is room for it.

    Indexes of the pieces taken. A larger budget takes the same ones, and then more.
    """
    taken: list[int] = []
    for at, piece in enumerate(pieces):
        if selection.holds(piece):
            continue
        if selection.take(piece):
            taken.append(at)
            continue
        if not taken or (selection.room >= SHORTEST_PART and not selection.touches(piece)):
            part = cut(piece, selection.room, selection.tokenizer, worth(piece))
            if part is not None and selection.take(part):
                taken.append(at)
        break
    return taken


def _follows(first: Piece, second: Piece) -> bool:
    return first.document == second.document and second.start <= first.reach


def cut(piece: Piece, room: int, tokenizer: Tokenizer, worth: Worth) -> Piece | None:
    """The sentences of a piece, one after the other, that fit the room and hold most of what is asked; of equal ones the
    longest, then the first. As many words as fit, where no sentence does; None where no word does."""
    if room < 1:
        return None
    spans = _sentences(piece.text)
    found = [worth(piece.text[start:end]) for start, end in spans]
    best: tuple[float, int, int, int] | None = None
    for first in range(len(spans)):
        held: dict[str, float] = {}
        last = first
        while last < len(spans) and tokenizer.of(piece.text[spans[first][0] : spans[last][1]]) <= room:
            held.update(found[last])
            last += 1
        if last > first:
            start, end = spans[first][0], spans[last - 1][1]
            value = (round(sum(sorted(held.values())), 9), end - start, -start, end)
            best = value if best is None or value[:3] > best[:3] else best
    if best is not None:
        return _part(piece, -best[2], best[3])
    words = list(word_spans(piece.text, 0, len(piece.text)))
    fits, start = 0, words[0][0] if words else 0
    low, high = 0, len(words)
    while low < high:  # tokens grow with the words
        middle = (low + high + 1) // 2
        if tokenizer.of(piece.text[start : words[middle - 1][1]]) <= room:
            low = fits = middle
        else:
            high = middle - 1
    return _part(piece, start, words[fits - 1][1]) if fits else None


def _sentences(text: str) -> list[tuple[int, int]]:
    return [
        span
        for paragraph in paragraph_spans(text, 0, len(text))
        for line in line_spans(text, *paragraph)
        for span in sentence_spans(text, *line)
    ]


def _part(piece: Piece, start: int, end: int) -> Piece:
    return Piece(
        place=piece.place,
        document=piece.document,
        start=piece.start + start,
        end=piece.start + end,
        text=piece.text[start:end],
    )


def reading_order(documents: Sequence[int], leads: Mapping[int, int]) -> list[int]:
    """Documents by rank, each behind the one that it was reached from: a depth-first walk of `leads` (document → the
    document it was reached from). Every document once; whoever leads in a circle is broken at its best rank."""
    known = list(dict.fromkeys(documents))
    children: dict[int, list[int]] = {}
    ranks = {document: rank for rank, document in enumerate(known)}
    roots = []
    for document in known:
        lead = leads.get(document)
        if lead is None or lead not in ranks or ranks[lead] > ranks[document] or lead == document:
            roots.append(document)
        else:
            children.setdefault(lead, []).append(document)
    order: list[int] = []
    waiting = list(reversed(roots))
    while waiting:
        document = waiting.pop()
        order.append(document)
        waiting.extend(reversed(children.get(document, ())))
    return order


def window_tokens(pieces: Sequence[int], seeds: Sequence[int], window: int = PARENT_WINDOW) -> int:
    """Tokens of the union of windows around seeds of one stretch of text.

    `pieces`: tokens of the parts that the stretch consists of, in order; `seeds`: indexes of parts. Each window has
    `window` tokens around its seed, or all there are, and never less than the seed.
    """
    ends = np.cumsum(pieces, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    windows: list[tuple[int, int]] = []
    for seed in seeds:
        end = int(ends[seed])
        begin = end - pieces[seed]
        width = min(total, max(window, end - begin))
        left = min(max(0, (begin + end - width) // 2), total - width)
        windows.append((left, left + width))
    tokens, reached = 0, 0
    for left, right in sorted(windows):
        tokens += max(0, right - max(left, reached))
        reached = max(reached, right)
    return tokens


@dataclass(kw_only=True)
class _Taken:
    """Which hits became passages."""

    runs: list[Run]
    rows: dict[int, dict[str, Any]]  # place → the chunk's row
    ranks: dict[int, int] = field(default_factory=dict)  # place → rank of the hit
    trails: dict[int, tuple[TrailStep, ...]] = field(default_factory=dict)  # place → its links, of supports
    leads: dict[int, int] = field(default_factory=dict)  # document → the document it was reached from
    documents: list[int] = field(default_factory=list)  # by rank


class ContextBuilder:
    """Builds contexts on one snapshot. Safe to share between threads."""

    def __init__(self, pinned: PinnedIndex, searcher: Searcher, root: Root | None = None) -> None:
        self._pinned = pinned
        self._searcher = searcher
        self._root = root

    def build(self, request: ContextRequest, tokenizer: Tokenizer, found: Found | None = None) -> ContextResult:
        """Passages within the budget; `found`: what was found for the question already, at least as deep as asked for.

        Raises WhereError and OptionError for what cannot be asked.
        """
        began = time.perf_counter()
        require_question(request.text)
        allowed = self._searcher.allowed(request.where)
        taken = self._whole(request, tokenizer, allowed) if found is None else None
        whole, judged, degraded = taken is not None, {}, {}
        if taken is None:
            found = self._searcher.find(request) if found is None else found
            degraded = found.answered.degraded
            judgement = self._searcher.judge(found)
            judged = {} if judgement is None else judgement.report()
            silent = judgement is not None and judgement.abstained and request.abstain == "on"
            taken = _Taken(runs=[], rows={}) if silent else self._select(request, tokenizer, found)
        tokens = sum(run.tokens for run in taken.runs)
        return ContextResult(
            passages=self._passages(taken),
            tokens=tokens,
            parent_window_tokens=tokens if whole else max(tokens, self._parents(taken, tokenizer)),
            whole_collection=whole,
            query=request.text,
            snapshot=self._pinned.snapshot.number,
            max_tokens=request.max_tokens,
            tokenizer=tokenizer.name,
            degraded=degraded,
            took_ms=round((time.perf_counter() - began) * 1000, 3),
            **judged,
        )

    # --- what is taken ---

    def _whole(self, request: ContextRequest, tokenizer: Tokenizer, allowed: Mask | None) -> _Taken | None:
        """Everything that may be seen, where it fits."""
        pinned = self._pinned
        lengths = pinned.catalog.documents["char_count"].fill_null(0).to_numpy()
        held = np.zeros(len(lengths), dtype=np.bool_)
        everyone = np.arange(len(pinned.universe)) if allowed is None else np.flatnonzero(allowed)
        held[pinned.catalog.document_of[everyone]] = True
        if not len(everyone) or int(lengths[held].sum()) > request.max_tokens * LONGEST_TOKEN:
            return None
        ordinals = everyone[np.argsort(pinned.universe.tie[everyone])]
        pieces, rows = self._pieces(ordinals)
        groups: list[list[Piece]] = []
        for piece in pieces:
            if groups and _follows(groups[-1][-1], piece):
                groups[-1].append(piece)
            else:
                groups.append([piece])
        texts = {joined(group): group for group in reversed(groups)}  # of equal ones the first stays
        counts = dict(zip(texts, tokenizer.count(list(texts)), strict=True))
        if sum(counts.values()) + request.overhead * len(texts) > request.max_tokens:
            return None
        runs = [Run(pieces=tuple(group), tokens=counts[text]) for text, group in reversed(texts.items())]
        return _Taken(runs=runs, rows=rows)

    def _select(self, request: ContextRequest, tokenizer: Tokenizer, found: Found) -> _Taken:
        """The best hits that fit."""
        pinned = self._pinned
        ordinals = found.ordinals[request.offset : request.offset + request.k]
        pieces, rows = self._pieces(ordinals)
        trails = Trails(pinned, found.expansion, found.answered.deepened, ordinals)
        lead = _reached(found, ordinals)
        selection = Selection(tokenizer, request.max_tokens, request.overhead)
        held = fill(selection, pieces, lambda piece: self._worth(found.asked.terms, rows[piece.place]))
        taken = _Taken(runs=selection.runs, rows=rows)
        for at in held:
            ordinal, piece = int(ordinals[at]), pieces[at]
            taken.ranks[piece.place] = request.offset + at + 1
            taken.documents.append(piece.document)
            if ordinal in lead:
                taken.trails[piece.place] = trails.of(ordinal)
                taken.leads.setdefault(piece.document, int(pinned.catalog.document_of[lead[ordinal]]))
        return taken

    def _pieces(self, ordinals: Ordinals) -> tuple[list[Piece], dict[int, dict[str, Any]]]:
        places = self._pinned.universe.tie[ordinals].tolist()
        documents = self._pinned.catalog.document_of[ordinals].tolist()
        rows = self._pinned.read_chunks(ordinals, ["chunk_key", *_COLUMNS]).to_pylist()
        pieces = [
            Piece(
                place=place,
                document=document,
                start=row["char_start"],
                end=row["char_end"],
                text=row["text"],
                tail=row["tail"],
            )
            for place, document, row in zip(places, documents, rows, strict=True)
        ]
        return pieces, dict(zip(places, rows, strict=True))

    def _worth(self, question: AnalyzedQuestion, row: Mapping[str, Any]) -> Worth:
        """What a sentence holds of the question's words, by their idf."""
        from clew.indexer.lexical.analysis import Analyzer
        from clew.indexer.lexical.languages import language_code

        analyzer = Analyzer(language_code(row["language"]) if row["language"] else None)
        idf = self._searcher.idf(question)
        weights = {
            token: (term.word, float(value))
            for term, value in zip(question.terms, idf, strict=True)
            for token in term.variants
        }
        return lambda text: dict(weights[token] for token in analyzer.tokens(text) if token in weights)

    # --- what is told of it ---

    def _passages(self, taken: _Taken) -> tuple[Passage, ...]:
        order = {document: at for at, document in enumerate(reading_order(taken.documents, taken.leads))}
        runs = sorted(taken.runs, key=lambda run: (order.get(run.pieces[0].document, 0), run.pieces[0].place))
        return tuple(self._passage(run, taken) for run in runs)

    def _passage(self, run: Run, taken: _Taken) -> Passage:
        first = taken.rows[run.pieces[0].place]
        path = self._pinned.path_of(first["file_key"])
        places = [piece.place for piece in run.pieces]
        ranks = [taken.ranks[place] for place in places if place in taken.ranks]
        best = min((place for place in places if place in taken.ranks), key=taken.ranks.__getitem__, default=None)
        found = [place for place in places if place not in taken.trails]  # by the question itself
        return Passage(
            path=path,
            record=first["record"],
            char_start=run.start,
            char_end=run.end,
            text=run.text,
            tokens=run.tokens,
            role="seed" if found else "support",
            title=first["title"],
            heading=first["heading_path"][-1] if first["heading_path"] else None,
            location=location_of(first["location_unit"], first["location_value"]),
            url=url_of(self._root, self._pinned.snapshot.site.url_template, path),
            rank=min(ranks, default=None),
            chunk_keys=tuple(self._pinned.public_key(taken.rows[place]["chunk_key"]) for place in places),
            trail=() if found or best is None else taken.trails[best],
        )

    def _parents(self, taken: _Taken, tokenizer: Tokenizer) -> int:
        """Tokens of the files around the hits, each cut to PARENT_WINDOW around its hit, overlaps counted once."""
        seeds = np.array(sorted(taken.ranks), dtype=np.int64)
        if not len(seeds):
            return 0
        places, ordinals = self._around(seeds)
        rows = self._pinned.read_chunks(ordinals, ["text", "char_start"])
        texts, starts = rows["text"].to_pylist(), rows["char_start"].to_numpy()
        documents = self._pinned.catalog.document_of[ordinals]
        border = (np.diff(places) != 1) | (np.diff(documents) != 0)
        for i in np.flatnonzero(~border).tolist():  # what the next chunk repeats counts there
            texts[i] = texts[i][: int(starts[i + 1] - starts[i])]
        tokens = tokenizer.count(texts)
        bounds = [0, *(np.flatnonzero(border) + 1).tolist(), len(places)]
        total = 0
        for first, last in pairwise(bounds):
            inside = seeds[(seeds >= places[first]) & (seeds <= places[last - 1])] - places[first]
            total += window_tokens(tokens[first:last], inside.tolist())
        return total

    def _around(self, seeds: NDArray[np.int64]) -> tuple[NDArray[np.int64], Ordinals]:
        """(places, ordinals) of all chunks of the same documents that windows around the seeds may reach, by place."""
        pinned = self._pinned
        order = pinned.once("_order", lambda: np.argsort(pinned.universe.tie))  # place → ordinal
        steps = np.arange(-_NEIGHBOURS, _NEIGHBOURS + 1)
        places = np.clip(seeds[:, None] + steps[None, :], 0, len(order) - 1)
        around, own = order[places], order[seeds][:, None]
        near = pinned.catalog.document_of[around] == pinned.catalog.document_of[own]
        starts = pinned.chunks.char_starts
        near &= np.abs(starts[around] - starts[own]) <= PARENT_WINDOW * LONGEST_TOKEN
        found = distinct_numbers(places[near])
        return found, order[found]


def _reached(found: Found, ordinals: Ordinals) -> dict[int, int]:
    """Of the chunks that links led to: the chunk that each was reached from."""
    walk, deepened = found.expansion, found.answered.deepened
    lead: dict[int, int] = {}
    if deepened is not None:
        for ordinal in ordinals.tolist():
            if ordinal not in found.answered.position and (trail := deepened.trail(ordinal)):
                lead[ordinal] = trail[-1].ordinal
    if walk is not None:
        here = np.flatnonzero((walk.depth > 0) & is_among(walk.ordinals, ordinals))
        lead.update(zip(walk.ordinals[here].tolist(), walk.ordinals[walk.parent[here]].tolist(), strict=True))
    return lead
