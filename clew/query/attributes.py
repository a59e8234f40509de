"""The attribute path: words of the question that are words of names, directories, extensions and tags.

    score(document) = Σ over question words t of idf(t) · max over fields of weight(field) · cover(field)

`idf` is over documents; `cover` is 1, save for names, where it is half fixed and half the share of the name that the
question covers, so that `keys.md` beats `old-keys-of-2019.md`. A file name that stands in the question as it is written
adds the weight of all words once more. Documents score; each sends its first chunk as candidate.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.query import words
from clew.query.candidates import Candidates, Mask, Ordinals, Scores, Universe
from clew.query.catalog import Catalog, Rows
from clew.query.conditions import TAG_KEYS
from clew.query.vocabulary import Vocabulary

NAME, DIRECTORY, TAG, EXTENSION = 1.0, 0.5, 0.4, 0.3  # weights of the fields
MAX_POSTINGS = 50_000  # a question's rarest words are scored first, and none that would pass this: bounds its time
MAX_WORDS = 64  # of a question
MIN_TITLE = 4  # characters of a title that is looked for in questions
MAX_PHRASE = 12  # words
_CHECKED = 1000  # names compared with the question as written
_REMEMBERED = 16  # questions: `scores` follows `search`

#: Words that ask, and say nothing of a name. They count only where a question has no others.
_ASKING = frozenset(
    words.words_of(
        "a an the of in on at to for from by with and or is are was were be do does did how what why when where which who "
        "whose can could should would will i we you it its this that my our your about into as there has have had not "
        "o a os as um uma de do da dos das em no na nos nas para por com e ou é são como qual quais que quem quando onde "
        "el la los las un una y en del al es son cómo qué cuál quién cuándo dónde por para con "
        "и в на с о к по из за для от до или как что где когда кто какой какая какие это не ли"
    )
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Postings:
    """Rows that hold a word."""

    vocabulary: Vocabulary
    starts: NDArray[np.int64]
    rows: Rows

    def of(self, word: str) -> Rows:
        """Rising."""
        found = self.vocabulary.rows(word)
        if not len(found):
            return np.empty(0, dtype=np.int32)
        return self.rows[self.starts[found[0]] : self.starts[found[0] + 1]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Match:
    """The documents that a question matched."""

    documents: NDArray[np.int64]  # rising
    scores: Scores
    maximum: float


class AttributesPath:
    """Names, directories, extensions and tags of a snapshot's documents. Indices are built when first asked for."""

    def __init__(self, catalog: Catalog, universe: Universe) -> None:
        self._catalog = catalog
        self._universe = universe
        self._lock = threading.RLock()
        self._matches: OrderedDict[str, _Match] = OrderedDict()

    # --- the path ---

    def search(self, question: str, k: int, allowed: Mask | None = None) -> Candidates:
        """The first allowed chunk of each of the best documents; ties by path. `allowed` is a mask over ordinals."""
        match = self._match(question)
        ordinals = self._first_chunk[match.documents]
        live = ordinals >= 0
        ordinals, scores, documents = ordinals[live], match.scores[live], match.documents[live]
        if allowed is not None:
            ordinals = self._first_allowed(documents, ordinals, allowed)
            keep = ordinals >= 0
            ordinals, scores = ordinals[keep], scores[keep]
        return Candidates.best(ordinals, scores, k, self._universe.tie)

    def scores(self, question: str, ordinals: Ordinals) -> Scores:
        """Each chunk's document's score; 0 where it matches nothing."""
        match = self._match(question)
        if not len(match.documents):
            return np.zeros(len(ordinals))
        documents = self._catalog.document_of[ordinals]
        at = np.searchsorted(match.documents, documents)
        at[at == len(match.documents)] = 0
        return np.where(match.documents[at] == documents, match.scores[at], 0.0)

    def maximum(self, question: str) -> float:
        """What a document would score whose name is the question: a bound that does not flatter a chance match."""
        return self._match(question).maximum

    def title_phrase(self, question: str, telling: Callable[[str], float] = lambda phrase: 1.0) -> Scores:
        """For every document: 1 where its title is a phrase of the question, less where several have that title; else 0.

        A parenthesised suffix of the title does not count, nor do case, accents and punctuation. A title inside a longer
        one that is a phrase too counts half: asked for New York City, York is not what was meant. `telling`: of a phrase, 0…1,
        how much it counts at all.
        """
        bonus = np.zeros(len(self._catalog))
        spoken = words.phrase_of(question).split()[:400]
        spans = {
            " ".join(spoken[i:j]): (i, j)
            for i in range(len(spoken))
            for j in range(i + 1, min(i + MAX_PHRASE, len(spoken)) + 1)
        }
        titles = self._titles
        found = titles.vocabulary.rows_of_any([phrase for phrase in spans if len(phrase) >= MIN_TITLE])
        for phrase, codes in found:
            begin, end = spans[phrase]
            inside = any(
                spans[other][0] <= begin and end <= spans[other][1] for other, _ in found if len(other) > len(phrase)
            )
            rows = titles.rows[titles.starts[codes[0]] : titles.starts[codes[0] + 1]]
            bonus[rows] = telling(phrase) * (0.5 if inside else 1.0) / np.sqrt(len(rows))
        return bonus

    # --- matching ---

    def _match(self, question: str) -> _Match:
        with self._lock:
            match = self._matches.get(question)
        if match is None:
            match = self._matched(question)
            with self._lock:
                self._matches[question] = match
                while len(self._matches) > _REMEMBERED:
                    self._matches.popitem(last=False)
        return match

    def _matched(self, question: str) -> _Match:
        asked = list(dict.fromkeys(words.words_of(question)))
        telling = ([word for word in asked if word not in _ASKING] or asked)[:MAX_WORDS]
        count = len(self._catalog)
        postings = {word: self._postings_of(word) for word in telling}
        idf = {word: _idf(count, sum(len(rows) for rows in found.values())) for word, found in postings.items()}
        maximum = sum(idf.values())
        left = MAX_POSTINGS
        parts: list[tuple[float, int, float, NDArray[np.int64]]] = []
        for term, word in enumerate(sorted(postings, key=lambda word: -idf[word])):
            left -= sum(len(rows) for rows in postings[word].values())
            if left < 0 and parts:
                break
            parts.extend((weight, term, idf[word], rows) for weight, rows in postings[word].items() if len(rows))
        if not parts:
            return _Match(documents=np.empty(0, dtype=np.int64), scores=np.empty(0), maximum=maximum)
        documents, scores, covered = self._scored(parts, len(postings))
        scores = scores + maximum * self._written_out(question, documents, scores, covered)
        return _Match(documents=documents, scores=scores, maximum=maximum)

    def _scored(
        self, parts: list[tuple[float, int, float, NDArray[np.int64]]], terms: int
    ) -> tuple[NDArray[np.int64], Scores, NDArray[np.int64]]:
        """(documents rising, scores, how many words of their name the question holds)."""
        rows = np.concatenate([rows for _, _, _, rows in parts])
        documents, place = np.unique(rows, return_inverse=True)
        in_name = np.concatenate([np.full(len(rows), weight == NAME) for weight, _, _, rows in parts])
        covered = np.bincount(place[in_name], minlength=len(documents))
        length = np.maximum(self._name_words[self._catalog.file_row[documents]], 1)
        cover = 0.5 + 0.5 * np.minimum(covered / length, 1.0)
        value = np.concatenate([np.full(len(rows), weight * idf) for weight, _, idf, rows in parts])
        value[in_name] *= cover[place[in_name]]
        term = np.concatenate([np.full(len(rows), term) for _, term, _, rows in parts])
        pair = place.astype(np.int64) * terms + term
        order = np.lexsort((-value, pair))
        first = np.ones(len(order), dtype=np.bool_)
        first[1:] = pair[order][1:] != pair[order][:-1]
        best = order[first]  # of each document and word the field that says most
        scores = np.bincount(place[best], weights=value[best], minlength=len(documents))
        return documents.astype(np.int64), scores.astype(np.float64), covered.astype(np.int64)

    def _written_out(
        self, question: str, documents: NDArray[np.int64], scores: Scores, covered: NDArray[np.int64]
    ) -> Scores:
        """1 for documents whose file name stands in the question as it is written, case aside."""
        out = np.zeros(len(documents))
        files = self._catalog.file_row[documents]
        whole = np.flatnonzero(covered >= np.maximum(self._name_words[files], 1))
        whole = whole[np.argsort(-scores[whole], kind="stable")[:_CHECKED]]
        asked = question.lower()
        for place in whole.tolist():
            name = str(self._catalog.files["name"][int(files[place])].as_py()).lower()
            out[place] = float(name in asked)
        return out

    def _postings_of(self, word: str) -> dict[float, NDArray[np.int64]]:
        """Documents that hold a word, by the weight of the field."""
        return {
            NAME: self._of_files(self._names.of(word)),
            DIRECTORY: self._of_files(self._directories.of(word)),
            TAG: self._tags.of(word).astype(np.int64),
            EXTENSION: self._of_files(self._extensions.of(word)),
        }

    def _of_files(self, files: Rows) -> NDArray[np.int64]:
        """Documents of files; those of a file lie together."""
        if self._catalog.one_each:
            return files.astype(np.int64)
        begin, end = self._first_document[files], self._first_document[files + 1]
        count = end - begin
        before = np.cumsum(count) - count
        return np.repeat(begin - before, count) + np.arange(int(count.sum()))

    # --- chunks ---

    def _first_allowed(self, documents: NDArray[np.int64], first: Ordinals, allowed: Mask) -> Ordinals:
        """Each document's first allowed chunk; -1 where it has none. Filters are by document, so mostly its first."""
        out = np.where(allowed[first], first, -1)
        missing = documents[out < 0]
        if not len(missing):
            return out
        wanted = np.zeros(len(self._catalog), dtype=np.bool_)
        wanted[missing] = True
        ordinals = np.flatnonzero(allowed & wanted[self._catalog.document_of])
        if len(ordinals):
            out[out < 0] = _first_of(
                self._catalog.document_of[ordinals], ordinals, self._universe.tie, len(self._catalog)
            )[missing]
        return out

    # --- indices, built once ---

    @cached_property
    def _first_chunk(self) -> Ordinals:
        n = len(self._catalog.document_of)
        return _first_of(self._catalog.document_of, np.arange(n), self._universe.tie, len(self._catalog))

    @cached_property
    def _first_document(self) -> NDArray[np.int64]:
        return np.searchsorted(self._catalog.file_row, np.arange(self._catalog.files.num_rows + 1))

    @cached_property
    def _names(self) -> _Postings:
        names = _combined(self._catalog.files["name"])
        return _postings(*words.cut(pc.replace_substring_regex(names, r"(.)\.[^.]*$", r"\1")))

    @cached_property
    def _name_words(self) -> NDArray[np.int64]:
        """Distinct words of each file's name."""
        return np.bincount(self._names.rows, minlength=self._catalog.files.num_rows)

    @cached_property
    def _directories(self) -> _Postings:
        return _shared(pc.binary_join(_combined(self._catalog.files["directories"]), "/"))

    @cached_property
    def _extensions(self) -> _Postings:
        return _shared(_combined(self._catalog.files["extension"]))

    @cached_property
    def _tags(self) -> _Postings:
        rows, values = self._catalog.meta_values(lambda keys: pc.is_in(keys, pa.array(TAG_KEYS)))
        tags, tagged = words.cut(values)
        return _postings(tags, rows[tagged])

    @cached_property
    def _titles(self) -> _Postings:
        titles = words.titles(_combined(self._catalog.documents["title"]))
        return _postings(titles, np.arange(len(titles), dtype=np.int32))


def _postings(found: pa.Array, rows: Rows) -> _Postings:
    """From words and their rows, in any order."""
    encoded = found.dictionary_encode()
    distinct = encoded.dictionary
    codes = np.asarray(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    keep = codes >= 0
    held = np.sort((codes[keep] << 32) | rows[keep].astype(np.int64))
    held = held[np.append(True, held[1:] != held[:-1])[: len(held)]]  # np.unique hashes: 25 times slower on such keys
    starts = np.searchsorted(held >> 32, np.arange(len(distinct) + 1))
    return _Postings(vocabulary=Vocabulary(distinct), starts=starts, rows=(held & 0xFFFFFFFF).astype(np.int32))


def _shared(column: pa.Array) -> _Postings:
    """Postings of a column with few distinct values: cut once each, then spread over the rows."""
    encoded = column.dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    found, of_value = words.cut(encoded.dictionary)
    order = np.argsort(codes, kind="stable").astype(np.int32)
    starts = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
    counts = (starts[1:] - starts[:-1])[of_value]
    before = np.cumsum(counts) - counts
    at = np.repeat(starts[of_value] - before, counts) + np.arange(int(counts.sum()))
    return _postings(found.take(pa.array(np.repeat(np.arange(len(of_value)), counts))), order[at])


def _idf(documents: int, holders: int) -> float:
    """Robertson and Spärck Jones, never negative: ln(1 + (N - df + ½) / (df + ½))."""
    holders = min(documents, holders)
    return float(np.log(1.0 + (documents - holders + 0.5) / (holders + 0.5)))


def _first_of(documents: Rows, ordinals: Ordinals, tie: NDArray[np.int64], count: int) -> Ordinals:
    """For each document the ordinal, of those given, that stands first; -1 where it has none."""
    none = len(tie)
    place = np.full(count, none, dtype=np.int64)
    np.minimum.at(place, documents, tie[ordinals])
    by_place = np.full(none + 1, -1, dtype=np.int64)
    by_place[tie[ordinals]] = ordinals
    return by_place[place]


def _combined(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)
