"""Passages for a model from the handbook; without these citations could point nowhere and a filter could leak."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

import clew
from clew.errors import OptionError, WhereError
from clew.query.tokens import open_tokenizer
from clew_client.types import ContextResult, Passage
from tests.acceptance.commands import clew as command

pytestmark = pytest.mark.xdist_group("embedded")  # one process embeds the handbook, once

QUESTIONS = (
    "how do I rotate a signing key",
    "who is on call and how are they escalated to",
    "сроки ключей подписи",
    "HP-350",
)


def _resolves(index: clew.Index, passage: Passage) -> bool:
    text = index.show(passage.path, passage.record).text
    return text[passage.char_start : passage.char_end] == passage.text


def _overlaps(passages: Sequence[Passage]) -> bool:
    spans = sorted((one.path, one.record or "", one.char_start, one.char_end) for one in passages)
    return any(a[:2] == b[:2] and a[3] > b[2] for a, b in pairwise(spans))


@pytest.mark.parametrize("question", QUESTIONS)
def test_passages_keep_the_budget_resolve_and_stand_once(embedded: clew.Index, question: str) -> None:
    tokenizer = open_tokenizer("minilm")
    covered = 0
    for budget in (20, 100, 400, 1500):
        context = embedded.context(question, max_tokens=budget)
        assert 0 < context.tokens == sum(one.tokens for one in context.passages) <= budget
        assert context.tokens <= context.parent_window_tokens
        assert [one.tokens for one in context.passages] == tokenizer.count([one.text for one in context.passages])
        assert all(_resolves(embedded, one) for one in context.passages)
        assert not _overlaps(context.passages)
        assert len({one.text for one in context.passages}) == len(context.passages)
        assert context.tokens >= covered
        covered = context.tokens


def test_passages_are_the_best_hits_of_the_search(embedded: clew.Index) -> None:
    hits = embedded.search(QUESTIONS[0], k=50).hits
    context = embedded.context(QUESTIONS[0], max_tokens=1200)
    ranks = {hit.chunk_key: hit.rank for hit in hits}
    held = [ranks[key] for one in context.passages for key in one.chunk_keys]
    assert sorted(held) == list(range(1, len(held) + 1))
    assert context.passages[0].rank == 1
    assert [one.rank for one in context.passages] == [
        min(ranks[key] for key in one.chunk_keys) for one in context.passages
    ]


def test_what_a_link_led_to_is_a_support_and_stands_behind_where_it_was_found(embedded: clew.Index) -> None:
    question = "what does the part cost that every southern Gannet got because of barnacles"
    context = embedded.context(question, max_tokens=3000)
    roles = {one.role for one in context.passages}
    assert roles == {"seed", "support"}
    paths = [one.path for one in context.passages]
    for one in context.passages:
        assert bool(one.trail) == (one.role == "support")
        if one.trail:
            assert one.trail[-1].path in paths
    assert all(one.role == "seed" for one in embedded.context(question, max_tokens=3000, hops=0).passages)


def test_passages_respect_the_filter(embedded: clew.Index) -> None:
    context = embedded.context("who is on call", max_tokens=2000, where="path:ops/**")
    assert context.passages
    assert all(one.path.startswith("ops/") for one in context.passages)
    with pytest.raises(WhereError):
        embedded.context("who is on call", max_tokens=2000, where="nofield:(")


def test_collection_that_fits_is_sent_whole(embedded: clew.Index) -> None:
    context = embedded.context("anything at all", max_tokens=1500, where="path:ops/incidents/**")
    assert context.whole_collection
    files = [row.path for row in embedded.files("path:ops/incidents/**")]
    assert [one.path for one in context.passages] == files
    assert all(_resolves(embedded, one) for one in context.passages)
    assert all(one.text.strip() == embedded.show(one.path).text.strip() for one in context.passages)
    assert context.tokens == context.parent_window_tokens <= 1500
    assert not embedded.context(
        "anything at all", max_tokens=context.tokens - 1, where="path:ops/incidents/**"
    ).whole_collection


def test_budget_is_counted_by_the_tokenizer_that_is_named(embedded: clew.Index) -> None:
    quarter = embedded.context(QUESTIONS[2], max_tokens=300, tokenizer="chars/4")
    assert quarter.tokenizer == "chars/4"
    assert quarter.tokens == sum(-(-len(one.text) // 4) for one in quarter.passages) <= 300
    pieces = embedded.context(QUESTIONS[2], max_tokens=300)
    assert sum(len(one.text) for one in pieces.passages) < sum(len(one.text) for one in quarter.passages)
    with pytest.raises(OptionError, match="tokenizer"):
        embedded.context("x", max_tokens=10, tokenizer="gpt")
    with pytest.raises(OptionError, match="max_tokens"):
        embedded.context("x", max_tokens=0)
    with pytest.raises(OptionError, match="empty"):
        embedded.context(" ", max_tokens=100_000)


def test_text_of_a_context_stays_within_the_budget_with_its_overhead(embedded: clew.Index) -> None:
    context = embedded.context(QUESTIONS[1], max_tokens=600, overhead=40)
    assert open_tokenizer("minilm").of(context.render()) <= 600
    assert context.render().startswith(f"[1] {context.passages[0].path}")


def test_command_prints_one_object(root: Path) -> None:
    context = ContextResult.model_validate(
        command("context", root, QUESTIONS[0], "--max-tokens", "300", "--json").object
    )
    assert context.passages
    assert context.tokens <= context.max_tokens == 300
    refused = command("context", root, QUESTIONS[0], "--max-tokens", "300", "--tokenizer", "gpt")
    assert refused.status == 2
    assert "there are minilm" in refused.sentence
