"""Selections under a budget, for any documents, hits and budgets; without these the rule of a case could pass for the rule."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from clew.query.context import Piece, Selection, fill, reading_order, window_tokens
from clew.query.tokens import Tokenizer, open_tokenizer

WORDS = Tokenizer(name="words", count=lambda texts: [len(text.split()) for text in texts])
SENTENCES = st.lists(
    st.lists(st.sampled_from(["a", "key", "is", "turned", "often;", "ключ", "меняют"]), min_size=1, max_size=9),
    min_size=1,
    max_size=9,
)


@dataclass(frozen=True, kw_only=True)
class _World:
    texts: list[str]
    hits: list[Piece]


@st.composite
def worlds(draw: st.DrawFn) -> _World:
    """Documents in chunks of one to four sentences that overlap or touch, and some of the chunks in any order."""
    texts, pieces, place = [], [], 0
    for document in range(draw(st.integers(1, 4))):
        text, spans = "", []
        for words in draw(SENTENCES):
            start = len(text)
            text += " ".join(words) + "."
            spans.append((start, len(text)))
            text += draw(st.sampled_from([" ", "\n\n"]))
        at = 0
        while at < len(spans):
            last = min(len(spans), at + draw(st.integers(1, 4)))
            following = last if last == len(spans) else max(at + 1, last - draw(st.integers(0, 1)))
            start, end = spans[at][0], spans[last - 1][1]
            after = len(text) if following == len(spans) else spans[following][0]
            tail = text[end : max(end, after)]
            pieces.append(Piece(place=place, document=document, start=start, end=end, text=text[start:end], tail=tail))
            place, at = place + 1, following
        texts.append(text)
        place += draw(st.integers(0, 1))
    hits = draw(st.permutations(pieces))
    return _World(texts=texts, hits=hits[: draw(st.integers(1, len(hits)))])


def _filled(world: _World, tokenizer: Tokenizer, budget: int, overhead: int = 0) -> tuple[Selection, list[int]]:
    selection = Selection(tokenizer, budget, overhead)
    return selection, fill(selection, world.hits, lambda piece: lambda text: {"key": 1.0} if "key" in text else {})


@settings(max_examples=40, deadline=None)
@given(
    world=worlds(), budget=st.integers(1, 120), overhead=st.integers(0, 9), name=st.sampled_from(["words", "chars/4"])
)
def test_passages_keep_the_budget_stand_once_and_are_the_documents_text(
    world: _World, budget: int, overhead: int, name: str
) -> None:
    tokenizer = WORDS if name == "words" else open_tokenizer(name)
    selection, taken = _filled(world, tokenizer, budget, overhead)
    runs = selection.runs
    assert sum(run.tokens for run in runs) == selection.tokens
    assert selection.tokens + overhead * len(runs) <= budget
    assert all(run.tokens == tokenizer.of(run.text) for run in runs)
    assert all(run.text == world.texts[run.pieces[0].document][run.start : run.end] for run in runs)
    spans = sorted((run.pieces[0].document, run.start, run.end) for run in runs)
    assert all(a[0] != b[0] or a[2] <= b[1] for a, b in pairwise(spans))
    assert len({run.text for run in runs}) == len(runs)
    assert taken == sorted(set(taken))


@settings(max_examples=40, deadline=None)
@given(world=worlds(), budget=st.integers(1, 80), more=st.integers(0, 60))
def test_larger_budget_keeps_every_hit_of_a_smaller_one(world: _World, budget: int, more: int) -> None:
    small, large = _filled(world, WORDS, budget)[1], _filled(world, WORDS, budget + more)[1]
    assert large[: len(small)] == small


@settings(max_examples=40, deadline=None)
@given(world=worlds())
def test_everything_fits_a_budget_that_is_large_enough(world: _World) -> None:
    selection, _ = _filled(world, WORDS, 10_000)
    assert all(selection.holds(hit) for hit in world.hits)


@given(st.lists(st.integers(0, 12), max_size=30), st.dictionaries(st.integers(0, 12), st.integers(0, 12)))
def test_reading_order_holds_every_document_once(documents: list[int], leads: dict[int, int]) -> None:
    order = reading_order(documents, leads)
    assert sorted(order) == sorted(set(documents))
    assert order[:1] == documents[:1]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.data(), st.integers(1, 300))
def test_windows_cost_no_less_than_their_seeds_and_no_more_than_everything(
    pieces: list[int], data: st.DataObject, window: int
) -> None:
    seeds = data.draw(st.lists(st.integers(0, len(pieces) - 1), min_size=1, max_size=6, unique=True))
    cost = window_tokens(pieces, seeds, window)
    assert sum(pieces[seed] for seed in seeds) <= cost <= sum(pieces)
    assert cost >= window_tokens(pieces, seeds[:1], window)
