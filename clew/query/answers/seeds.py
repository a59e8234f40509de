"""Entities that a question means: named in it, or whose names lie near it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.indexer.lexical.analysis import UNDETERMINED, analyze_batch
from clew.indexer.lexical.questions import AnalyzedQuestion
from clew.query.candidates import Scores
from clew.query.knowledge import Knowledge

MOST = 5
NAME_LANGUAGES = 3  # commonest of the index, in which names are analysed
#: Cosine of a question and a name below which the name is no seed, by the embedder's name. Of other embedders only names that a
#: question holds are seeds, until `clew graph calibrate` has fitted a floor.
FLOORS: Mapping[str, float] = {"all-MiniLM-L6-v2": 0.55}


@dataclass(frozen=True, kw_only=True, slots=True)
class Seed:
    """An entity where a walk begins."""

    entity: int  # ordinal
    similarity: float | None  # cosine of its name and the question
    coverage: float  # share of the question's words, by idf², that its name holds
    named: bool  # the question holds the whole name
    proper: bool = False  # as a proper name or identifier, written in the question as the graph knows it


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """How the cosines of names and a question fall: a peak where it names a subject, flat where it names none."""

    first: float
    fourth: float
    names: int

    @property
    def gap(self) -> float:
        """Between the first and the fourth."""
        return self.first - self.fourth


class NameIndex:
    """Names of entities by their words. A name counts as held where all its words are in a question."""

    def __init__(self, graph: Knowledge) -> None:
        rows = graph.entities
        owners: list[int] = []
        names: list[str] = []
        for ordinal, (name, aliases) in enumerate(
            zip(rows["name"].to_pylist(), rows["aliases"].to_pylist(), strict=True)
        ):
            for one in (name, *aliases):
                owners.append(ordinal)
                names.append(one)
        self._by_word: dict[str, dict[int, None]] = {}
        self._forms: list[tuple[int, frozenset[str]]] = []
        for code in name_languages(graph.pinned.languages):
            for owner, tokens in zip(owners, analyze_batch(names, [code] * len(names)), strict=True):
                words = frozenset(tokens.split())
                if not words:
                    continue
                at = len(self._forms)
                self._forms.append((owner, words))
                for word in sorted(words):
                    self._by_word.setdefault(word, {})[at] = None

    def held(self, tokens: set[str], most: int = 20_000) -> dict[int, frozenset[str]]:
        """Entities of which a form stands in these tokens, with the words of the longest such form."""
        found: dict[int, frozenset[str]] = {}
        looked = 0
        for token in sorted(tokens, key=lambda one: (len(self._by_word.get(one, ())), one)):
            for at in self._by_word.get(token, ()):
                looked += 1
                if looked > most:
                    return found
                owner, words = self._forms[at]
                if words <= tokens and len(words) > len(found.get(owner, ())):
                    found[owner] = words
        return found

    def sharing(self, tokens: set[str], most: int = 5_000) -> list[int]:
        """Entities of which a form shares a word with these tokens, those of the rarest words first."""
        found: dict[int, None] = {}
        for token in sorted(tokens, key=lambda one: (len(self._by_word.get(one, ())), one)):
            for at in self._by_word.get(token, ()):
                found[self._forms[at][0]] = None
                if len(found) >= most:
                    return list(found)
        return list(found)


def name_languages(languages: Mapping[str, int]) -> list[str | None]:
    """Codes of the rules by which names are read: those of the commonest languages of an index."""
    ranked = sorted(languages.items(), key=lambda item: (-item[1], item[0]))
    return [None if code == UNDETERMINED else code for code, _ in ranked[:NAME_LANGUAGES]] or [None]


def name_index(graph: Knowledge) -> NameIndex:
    """The index of a snapshot's names, made when it is first asked for."""
    return graph.pinned.once("_name_index", lambda: NameIndex(graph))


_WORDS = re.compile(r"[\w][\w.+/-]*\w|\w")


def proper_words(text: str) -> frozenset[str]:
    """Words of a question that are written as names are: with a capital within a sentence, or with a digit; folded.

    The capital of a first word says nothing, unless the second has one, too: "Tomás Viegas, in short".
    """
    found = set()
    for match in _WORDS.finditer(text):
        word, before = match[0], text[: match.start()].rstrip(" \"'«“„(¿¡")
        after = text[match.end() : match.end() + 2]
        begins = (not before or before[-1] in ".?!:…\n") and not (after[:1] == " " and after[1:].isupper())
        inner = any(c.isupper() for c in word[1:])
        if inner or any(c.isdigit() for c in word) or (word[0].isupper() and not begins):
            found.add(word.casefold())
    return frozenset(found)


def is_proper(forms: Sequence[str], written: frozenset[str]) -> bool:
    """Whether a form of an entity stands in a question as a proper name: capitals or digits on both sides, in every word."""
    for form in forms:
        words = [match[0] for match in _WORDS.finditer(form)]
        telling = [word for word in words if any(c.isupper() or c.isdigit() for c in word)]
        if telling and len("".join(words)) >= 2 and all(word.casefold() in written for word in telling):
            return not all(word.isdigit() for word in telling)
    return False


def similarities(graph: Knowledge, vector: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
    """(n,) cosines of the entities' names with a question; NaN where there is no vector yet. None without vectors."""
    vectors, filled = graph.vectors
    if vector is None or not vectors.shape[1] or not filled.any():
        return None
    cosines: NDArray[np.float32] = (vectors @ np.ascontiguousarray(vector, dtype=np.float32)).astype(np.float32)
    cosines[~filled] = np.nan
    return cosines


def profile(cosines: NDArray[np.float32] | None) -> Profile | None:
    """None where fewer than four names have a vector."""
    known = np.empty(0) if cosines is None else cosines[~np.isnan(cosines)]
    if len(known) < 4:
        return None
    top = np.sort(np.partition(known, len(known) - 4)[-4:])[::-1]
    return Profile(first=float(top[0]), fourth=float(top[3]), names=len(known))


def seeds(
    graph: Knowledge,
    question: AnalyzedQuestion,
    idf: Scores,
    cosines: NDArray[np.float32] | None,
    floor: float | None,
    most: int = MOST,
    written: str = "",
) -> list[Seed]:
    """At most `most` seeds: named ones by what they cover of the question, then near ones by cosine.

    `floor`: of the cosine; None: no entity is a seed by its vector. `idf`: (terms,) of the question. `written`: the question as it
    was written, whose capitals tell proper names.
    """
    squares = {
        token: weight**2 for term, weight in zip(question.terms, idf.tolist(), strict=True) for token in term.variants
    }
    term_of = {token: at for at, term in enumerate(question.terms) for token in term.variants}
    total = float((idf**2).sum())

    def covered(words: frozenset[str]) -> float:
        by_term = {term_of[word]: squares[word] for word in words if word in term_of}
        return sum(by_term.values()) / total if total else 0.0

    def cosine(entity: int) -> float | None:
        value = None if cosines is None else float(cosines[entity])
        return None if value is None or np.isnan(value) else round(value, 6)

    held = name_index(graph).held(set(term_of))
    mentions = graph.entities["mentions"].to_numpy()
    named = sorted(held, key=lambda one: (-round(covered(held[one]), 9), -int(mentions[one]), one))
    # A name within a longer one that is held, too, is not meant: "policy" in "backup policy".
    chosen: list[int] = []
    for one in named:
        if not any(held[one] < held[other] for other in chosen):
            chosen.append(one)
    capitals = proper_words(written)
    rows = graph.entities.select(["name", "aliases"]).take(chosen[:most]).to_pylist() if chosen else []
    found = [
        Seed(
            entity=one, similarity=cosine(one), coverage=round(covered(held[one]), 6), named=True,
            proper=is_proper([row["name"], *row["aliases"]], capitals),
        )
        for one, row in zip(chosen[:most], rows, strict=True)
    ]  # fmt: skip
    if cosines is not None and floor is not None and len(found) < most:
        order = np.lexsort((np.arange(len(cosines)), -np.nan_to_num(cosines, nan=-1.0)))[: most + len(chosen)]
        for one in order.tolist():
            if len(found) < most and one not in held and float(np.nan_to_num(cosines[one], nan=-1.0)) >= floor:
                found.append(Seed(entity=one, similarity=cosine(one), coverage=0.0, named=False))
    return found


def joint_coverage(found: Sequence[Seed], graph: Knowledge, question: AnalyzedQuestion, idf: Scores) -> float:
    """The share of the question's words, by idf², that the names of its seeds hold between them."""
    held = name_index(graph).held({token for term in question.terms for token in term.variants})
    words = frozenset().union(*(held.get(one.entity, frozenset()) for one in found)) if found else frozenset()
    squares = (idf**2).tolist()
    total = sum(squares)
    shared = sum(
        weight for term, weight in zip(question.terms, squares, strict=True) if words.intersection(term.variants)
    )
    return shared / total if total else 0.0
