"""Without these, a filter could lose hits at some selectivity, or a text be missed by words copied out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.indexer.lexical.analysis import Analyzer, analyze_chunks, fold, words
from clew.indexer.lexical.assembly import open_lexical, unpack
from clew.indexer.lexical.identifiers import identifiers, odd_words
from clew.indexer.lexical.postings import Postings, PostingsBuilder, write_postings
from clew.indexer.lexical.questions import analyze_question
from clew.indexer.lexical.segment import SegmentBuilder
from clew.query.bm25 import Bm25Path
from clew.query.candidates import Universe
from clew.query.tfidf import TfidfPath

CHUNKS = 4000
SELECTIVITIES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
WORDS = [f"word{i:02}x" for i in range(40)]


def unpacked(directory: Path, texts: Sequence[str], borders: Sequence[int]) -> list[Path]:
    parts = []
    for low, high in pairwise(borders):
        titles = [WORDS[number % len(WORDS)] if number % 13 == 0 else None for number in range(low, high)]
        analyzed = analyze_chunks(titles, texts[low:high], ["en"] * (high - low))
        with SegmentBuilder(directory) as builder:
            builder.add(
                chunk_keys=np.arange(low, high, dtype=np.int64) * 3 + 1,
                titles=analyzed.titles,
                bodies=analyzed.bodies,
                idents=analyzed.idents,
                languages=analyzed.languages,
            )
            file = builder.finish()
        parts.append(unpack(file.path, directory / "cache", segment_id=file.id))
    return parts


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> tuple[Bm25Path, TfidfPath, Universe]:
    """4,000 chunks with many ties and a rising trend, so that masks meet good and bad regions; a tenth is deleted."""
    random = np.random.default_rng(4)
    texts = []
    for i in range(CHUNKS):
        count = 2 + (i * 7) % 9
        texts.append(
            " ".join(WORDS[n] for n in random.zipf(1.4, count) % len(WORDS)) + f" {WORDS[i // 101]}" * (i // 1500)
        )
    parts = unpacked(tmp_path_factory.mktemp("lexical"), texts, [0, 700, 2900, CHUNKS])
    alive = np.flatnonzero(random.random(CHUNKS) > 0.1)
    universe = Universe(keys=alive * 3 + 1, tie=random.permutation(len(alive)).astype(np.int64))
    lexical = open_lexical(parts, parts[0].parents[1])
    tfidf = TfidfPath(lexical.segments, universe)
    return Bm25Path(lexical.index, universe, holders=tfidf.holders), tfidf, universe


@settings(max_examples=120, deadline=None)
@given(
    question=st.lists(st.sampled_from(WORDS), min_size=1, max_size=6),
    share=st.sampled_from(SELECTIVITIES),
    begin=st.floats(0, 1),
    scattered=st.booleans(),
    k=st.sampled_from([1, 7, 50, 400]),
    seed=st.integers(0, 2**16),
)
def test_filtered_search_equals_brute_force(
    paths: tuple[Bm25Path, TfidfPath, Universe],
    question: list[str],
    share: float,
    begin: float,
    scattered: bool,
    k: int,
    seed: int,
) -> None:
    """Whenever k allowed chunks match, the k best come back, in the universe's order (lancedb#2761)."""
    bm25, tfidf, universe = paths
    count = len(universe)
    if scattered:
        allowed = np.random.default_rng(seed).random(count) < share
    else:  # one folder: a run of neighbours
        allowed = np.zeros(count, dtype=bool)
        low = int(begin * (count - 1))
        allowed[low : low + max(1, int(share * count))] = True
    asked = analyze_question(" ".join(question), {"en": 1})
    for path in (bm25, tfidf):
        scores = path.scores(asked, np.arange(count))
        matching = np.flatnonzero(allowed & (scores > 0))
        best = matching[np.lexsort((universe.tie[matching], -scores[matching]))][:k]
        found = path.search(asked, k, allowed)
        assert found.ordinals.tolist() == best.tolist()
        assert found.scores.tolist() == scores[best].tolist()


@settings(max_examples=40, deadline=None)
@given(
    texts=st.lists(st.lists(st.sampled_from(["a", "b", "c", "é", "日本"]), max_size=12), max_size=30),
    cut=st.integers(0, 30),
)
def test_postings_equal_a_count_by_hand(
    texts: list[list[str]], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever the batches, a posting is there if and only if the term is in the chunk."""
    builder = PostingsBuilder()
    joined = [" ".join(tokens) for tokens in texts]
    builder.add(joined[:cut])
    builder.add(joined[cut:])
    path = tmp_path_factory.mktemp("postings") / "postings.arrow"
    write_postings(builder.finish(), path)
    postings = Postings(path)
    for term in ("a", "b", "c", "é", "日本"):
        expected = [Counter(tokens)[term] for tokens in texts]
        place = postings.find(term)
        found = np.zeros(len(texts), dtype=np.int64)
        if place >= 0:
            entry = postings[place]
            slot, run = entry.among(np.arange(len(texts)))
            found[slot] = entry.tf[run]
        assert found.tolist() == expected


@settings(max_examples=300, deadline=None)
@given(text=st.text(max_size=60), code=st.sampled_from(["en", "pt", "ru", "ja", "th", "hi", "ar", "ta", "pl", None]))
def test_words_copied_from_a_text_are_among_its_tokens(text: str, code: str | None) -> None:
    """A question goes through other code than a text (word by word, no single characters); they must agree."""
    analyzer = Analyzer(code)
    tokens = set(analyzer.tokens(text))
    joined, names = analyzer.streams(text)
    assert set(joined.split(" ")) - {""} == tokens
    stems = {analyzer.stem(word) for word in words(fold(text))} - {None}
    assert stems <= tokens
    assert identifiers(odd_words(fold(text))) == list(names)
    assert not any(" " in token or not token for token in tokens)


@settings(max_examples=200, deadline=None)
@given(text=st.text(alphabet=st.sampled_from("ab \"'“”«»()[]{}:*?~^+-&|!\\/0日Тé\u0301\ud800"), max_size=40))
def test_no_question_raises(text: str) -> None:
    """Whatever is typed is text."""
    question = analyze_question(text, {"en": 5, "ru": 3, "ja": 1, "und": 1})
    tokens = [token for term in question.terms for token in term.variants]
    assert len(tokens) == len(set(tokens))
