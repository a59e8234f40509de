"""Without these, BM25 could raise on a question, drop ties, leak deleted chunks or depend on the segments' borders."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from clew.indexer.lexical.questions import AnalyzedQuestion, analyze_question
from clew.query.bm25 import MAX_TERMS, Bm25Path, Bm25Settings
from clew.query.candidates import Candidates, Mask, Universe
from clew.query.tfidf import TfidfPath

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "kappa", "theta", "iota", "sigma"]
TEXTS = [" ".join(WORDS[(i * j + j) % 10] for j in range(1, 3 + i % 9)) for i in range(300)]
Build = Callable[..., object]


class Searched:
    """An index and one path over it."""

    def __init__(self, built: object, settings: Bm25Settings | None = None) -> None:
        self.lexical = built.lexical  # type: ignore[attr-defined]
        self.universe = built.universe  # type: ignore[attr-defined]
        self.path = Bm25Path(self.lexical.index, self.universe, settings)

    def told_who_holds(self) -> Bm25Path:
        """The path as a service has it: who holds a word is known, so ties need not be fetched."""
        tfidf = TfidfPath(self.lexical.segments, self.universe)
        return Bm25Path(self.lexical.index, self.universe, holders=tfidf.holders)

    def ask(self, text: str) -> AnalyzedQuestion:
        return analyze_question(text, self.lexical.languages)

    def search(self, text: str, k: int = 10, allowed: Mask | None = None) -> Candidates:
        return self.path.search(self.ask(text), k, allowed)

    def hits(self, text: str, k: int = 10) -> list[int]:
        return self.search(text, k).ordinals.tolist()


def okapi(texts: list[list[str]], terms: list[str]) -> np.ndarray:
    """BM25 of short texts by the book (tantivy's length buckets are exact up to 39 tokens)."""
    lengths = np.array([len(text) for text in texts])
    scores = np.zeros(len(texts))
    for term in terms:
        tf = np.array([Counter(text)[term] for text in texts])
        df = np.count_nonzero(tf)
        idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
        scores += idf * tf * 2.2 / (tf + 1.2 * (1 - 0.75 + 0.75 * lengths / lengths.mean()))
    return scores


def test_pairs_are_neighbouring_words_of_the_question_that_stand_together(build: Build) -> None:
    texts = ["alpha beta gamma", "beta one alpha", "alpha one two three beta", "gamma delta", "alpha one two beta"]
    searched = Searched(build(texts))
    scores = searched.path.pairs(searched.ask("alpha beta delta"), np.arange(5))
    assert scores[[1, 2, 3]].tolist() == [0.0, 0.0, 0.0]  # the other way round, too far apart, one word alone
    assert scores[0] > scores[4] > 0
    assert searched.path.pairs(searched.ask("alpha"), np.arange(5)).tolist() == [0.0] * 5
    assert searched.path.pairs(searched.ask("alpha beta"), np.array([4, 0, 4])).tolist() == [
        scores[4],
        scores[0],
        scores[4],
    ]


def test_scores_are_bm25(build: Build) -> None:
    texts = [text for text in TEXTS if "beta" in text or "iota" in text]
    searched = Searched(build(texts))
    expected = okapi([text.split() for text in texts], ["beta", "iota"])
    found = searched.search("beta iota", len(texts))
    assert np.allclose(found.scores, expected[found.ordinals], rtol=1e-5)
    assert len(found) == np.count_nonzero(expected)


def test_split_into_segments_changes_no_score(build: Build) -> None:
    """Statistics are those of one index; merging locally scored results finds only 93 % of the top 100."""
    one, seven = Searched(build(TEXTS)), Searched(build(TEXTS, parts=7))
    for text in ("alpha", "beta iota", "sigma theta kappa zeta", '"alpha beta"'):
        a, b = one.search(text, 300), seven.search(text, 300)
        assert a.ordinals.tolist() == b.ordinals.tolist()
        assert a.scores.tolist() == b.scores.tolist()


def test_equal_chunks_tie_exactly_in_whatever_segment(build: Build) -> None:
    """A difference in the last bit would order copies of a text by accident."""
    texts = [TEXTS[i % 60] for i in range(240)]
    searched = Searched(build(texts, parts=5))
    found = searched.search(" ".join(WORDS), 240)
    by_text: dict[str, set[float]] = {}
    for ordinal, score in zip(found.ordinals, found.scores, strict=True):
        by_text.setdefault(texts[ordinal], set()).add(score)
    assert {len(scores) for scores in by_text.values()} == {1}


def test_all_ties_at_the_border_take_part(build: Build) -> None:
    """The universe's order (here: last first) decides, not the order in which tantivy meets them."""
    searched = Searched(build(["same words here"] * 500, parts=3))
    assert searched.hits("words", 5) == [499, 498, 497, 496, 495]


def test_deleted_chunks_are_replaced_by_the_next_best(build: Build) -> None:
    texts = ["tea " * (20 - i) for i in range(20)] + ["coffee"] * 200
    searched = Searched(build(texts, dead=range(15)))
    assert len(searched.search("tea", 5)) == 5
    assert len(searched.search("tea", 50)) == 5


@pytest.mark.parametrize("share", [0.003, 0.01, 0.05, 0.3, 0.9, 1.0])
def test_mask_keeps_the_best_allowed_ones(build: Build, share: float) -> None:
    searched = Searched(build(TEXTS, parts=2))
    everything = searched.search("alpha sigma", 300)
    allowed = np.random.default_rng(1).random(300) < share
    allowed[7] = True
    expected = [ordinal for ordinal in everything.ordinals.tolist() if allowed[ordinal]]
    for k in (1, 3, 20, 300):
        assert searched.search("alpha sigma", k, allowed).ordinals.tolist() == expected[:k]


@pytest.mark.parametrize("way", ["keys", "ranges", "hits"])
@pytest.mark.parametrize("shape", ["folder", "scattered", "two folders"])
def test_every_way_of_filtering_gives_the_same(
    build: Build, monkeypatch: pytest.MonkeyPatch, way: str, shape: str
) -> None:
    """Which one is taken depends on estimates; what comes back must not."""
    for name, cost in (("_KEY_COST", "keys"), ("_RANGE_COST", "ranges"), ("_HIT_COST", "hits")):
        monkeypatch.setattr(f"clew.query.bm25.{name}", 1.0 if cost == way else 1e9)
    monkeypatch.setattr("clew.query.bm25._CHEAP", 0.0)
    monkeypatch.setattr("clew.query.bm25._MAX_RANGES", 2)
    searched = Searched(build(TEXTS, parts=3, dead=[3, 50, 51, 120]))
    allowed = np.zeros(296, dtype=bool)
    allowed[{"folder": slice(40, 90), "scattered": slice(0, 296, 7), "two folders": slice(10, 20)}[shape]] = True
    if shape == "two folders":
        allowed[200:260] = True
    expected = [o for o in searched.search("alpha sigma", 296).ordinals.tolist() if allowed[o]]
    assert searched.search("alpha sigma", 12, allowed).ordinals.tolist() == expected[:12]


def test_mask_that_allows_only_the_worst_is_still_filled(build: Build) -> None:
    """The case that over-fetching by a fixed factor loses."""
    texts = ["tea tea tea tea"] * 3000 + ["tea and a long tail of other words that lowers the score"] * 60
    searched = Searched(build(texts))
    allowed = np.arange(len(texts)) >= 3000
    assert len(searched.search("tea", 50, allowed)) == 50


def test_nothing_allowed_gives_nothing(build: Build) -> None:
    searched = Searched(build(TEXTS))
    assert len(searched.search("alpha", 5, np.zeros(300, dtype=bool))) == 0
    assert len(searched.search("alpha", 0)) == 0


def test_scores_of_given_chunks_equal_those_of_the_search(build: Build) -> None:
    """Fusion scores chunks that only another path found; a second opinion of the same path would break ties."""
    searched = Searched(build(TEXTS, parts=3))
    for text in ("alpha", "beta iota sigma", '"alpha beta" gamma'):
        found = searched.search(text, 300)
        full = np.zeros(300)
        full[found.ordinals] = found.scores
        wanted = np.array([5, 3, 299, 3, 0, 17])
        assert searched.path.scores(searched.ask(text), wanted).tolist() == full[wanted].tolist()
    assert searched.path.scores(searched.ask("alpha"), np.array([], dtype=np.int64)).tolist() == []


@pytest.mark.parametrize(
    "text",
    [
        'who is "waldo"?',
        "{0}",
        "a & b",
        "(foo",
        "https://x.y/z",
        ">>>",
        '36"',
        "don't",
        "-x",
        "foo:bar",
        "*",
        "a AND",
        "NOT",
        "[1 TO 2]",
        "x^2",
        "~1",
        "\\",
        '"',
        "''",
        "\x00",
        "\ud800",
        "",
        " ",
        "a" * 50_000,
        "+",
        "IN [a b]",
        "body:*",
        "/re(/",
    ],
)
def test_no_text_raises_or_matches_everything(build: Build, text: str) -> None:
    """Query syntax of any engine is just text here (lancedb#797, #1617, tantivy#2631 and their kin)."""
    searched = Searched(build(["nothing of the kind", "where is waldo", "foo bar baz", "a 36 inch screen"]))
    found = searched.search(text)
    assert len(found) < 4
    assert np.isfinite(found.scores).all()


def test_question_in_quotes_finds_what_it_names(build: Build) -> None:
    searched = Searched(build(["nothing of the kind", "where is waldo", "foo bar baz", "a 36 inch screen"]))
    assert searched.hits('who is "waldo"?') == [1]
    assert searched.hits("(foo") == [2]
    assert searched.hits('36"') == [3]


@pytest.mark.parametrize(
    ("text", "question"), [("東京都の天気は晴れです", "天気"), ("系统读取文件", "文件"), ("ระบบอ่านไฟล์", "ไฟล์")]
)
def test_scripts_without_spaces_are_found(build: Build, text: str, question: str) -> None:
    """lancedb#2168: the whole sentence was one token."""
    searched = Searched(build(["something else", text, "別の文書"], language=None))
    assert searched.hits(question)[0] == 1


def test_single_ideograph_is_found(build: Build) -> None:
    assert Searched(build(["日本茶", "珈琲"], language="ja")).hits("茶") == [0]


def test_phrase_ranks_first_and_excludes_nothing(build: Build) -> None:
    texts = ["keys rotate signing", "signing the keys rotate daily", "rotate the signing keys", "rotate"]
    searched = Searched(build(texts))
    assert searched.hits('"rotate the signing keys"')[0] == 2
    assert set(searched.hits('"rotate the signing keys"')) == {0, 1, 2, 3}


def test_identifier_outranks_its_parts(build: Build) -> None:
    texts = ["the sku of 12345 and ab, ab 12345 sku", "order SKU-12345-AB today please now", "12345"]
    assert Searched(build(texts), Bm25Settings(ident=1.0)).hits("sku-12345-ab")[0] == 1


def test_title_counts_by_its_weight(build: Build) -> None:
    built = build(["some other words", "tea with other words"], titles=["Tea", None])
    assert Searched(built, Bm25Settings(title=5.0)).hits("tea") == [0, 1]
    assert Searched(built, Bm25Settings(title=0.1)).hits("tea") == [1, 0]
    assert Searched(built, Bm25Settings(title=0.0)).hits("tea") == [1]


def test_mixed_index_answers_in_all_its_languages(build: Build) -> None:
    texts = ["the configurations of containers", "as configurações dos contêineres", "настройка контейнеров"]
    searched = Searched(build(texts * 20, language=["en", "pt", "ru"] * 20, parts=3))
    for text, best in (("container configuration", 0), ("configuração contêiner", 1), ("настройки контейнера", 2)):
        assert searched.hits(text)[0] % 3 == best


def test_endless_question_keeps_its_rarest_words(build: Build) -> None:
    common = [f"common{i}" for i in range(MAX_TERMS)]
    texts = [" ".join(common)] * 30 + ["needle " + " ".join(common)]
    searched = Searched(build(texts))
    assert searched.hits(" ".join(common) + " needle", 1) == [30]


def test_equal_chunks_among_others_that_hold_the_word_are_all_found(build: Build) -> None:
    """Two in five share the best score: the first look at those who hold the word finds fewer than are wanted."""
    built = build(["paid in cash" if number % 5 < 2 else "paid in cash at noon by card" for number in range(2000)])
    searched = Searched(built)
    path = searched.told_who_holds()
    found = path.search(searched.ask("paid"), 50)
    assert found.ordinals.tolist() == searched.search("paid", 50).ordinals.tolist()
    assert len(found) == 50


def test_equal_chunks_with_nothing_but_an_identifier_are_found(build: Build) -> None:
    """`is-a` is made of words that every text holds: no word of the question tells who has it."""
    built = build(["is-a"] * 400 + ["something else"] * 20, language=["en"] * 420)
    searched = Searched(built)
    question = searched.ask("is-a")
    assert (question.terms, question.idents) == ((), ("is-a",))
    path = searched.told_who_holds()
    assert path.search(question, 50).ordinals.tolist() == searched.search("is-a", 50).ordinals.tolist()


def test_of_many_equal_chunks_few_are_fetched(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a table share their score by the thousand; which of them come first must not take reading them all."""
    texts = ["paid in cash" if number % 3 else "not paid yet" for number in range(3000)] + ["invoice-77 paid"]
    built = build(texts, titles=[None] * 2999 + ["paid", "invoice-77"])
    searched = Searched(built)
    question = searched.ask("paid invoice-77")
    expected = searched.path.search(question, 50)
    path = searched.told_who_holds()
    fetched: list[int] = []
    fetch = path._fetch
    monkeypatch.setattr(path, "_fetch", lambda query, limit: fetched.append(limit) or fetch(query, limit))
    found = path.search(question, 50)
    assert found.ordinals.tolist() == expected.ordinals.tolist()
    assert found.scores.tolist() == expected.scores.tolist()
    assert sum(fetched) < 500
    odd = np.arange(3001) % 2 == 1
    assert path.search(question, 50, odd).ordinals.tolist() == searched.path.search(question, 50, odd).ordinals.tolist()


def test_empty_index_gives_nothing(build: Build) -> None:
    searched = Searched(build([]))
    assert len(searched.search("anything")) == 0


def test_universe_without_a_segment_gives_nothing(build: Build) -> None:
    """Chunks whose segment is empty; tantivy panics on a limit of 0, which no `except Exception` catches."""
    built = build([])
    universe = Universe(keys=np.arange(5, dtype=np.int64), tie=np.arange(5, dtype=np.int64))
    path = Bm25Path(built.lexical.index, universe)  # type: ignore[attr-defined]
    question = analyze_question("anything", {})
    assert len(path.search(question, 5)) == 0
    assert len(path.search(question, 5, np.ones(5, dtype=bool))) == 0
    assert path.scores(question, np.arange(5)).tolist() == [0.0] * 5


def test_asking_needs_no_heavy_import() -> None:
    """numba costs 0.5 s and the language model 0.7 s: a small index must answer without them."""
    script = (
        "import sys, clew.query.bm25, clew.query.tfidf\n"
        "from clew.indexer.lexical.questions import analyze_question\n"
        "analyze_question('o que é isto? Что это такое', {'en': 5, 'pt': 3, 'ru': 1})\n"
        "print(*sorted({'numba', 'py3langid', 'lance', 'lancedb', 'ray', 'pandas'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == ""
