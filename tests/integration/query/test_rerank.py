"""Reranking: without these, a model that is named could be ignored, or one that fails take the answer with it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import clew
from clew.errors import OptionError
from clew.query import rerank
from clew_client.types import Hit, SearchRequest

pytestmark = pytest.mark.xdist_group("embedded")  # one process embeds the handbook, once

QUESTION = "how do I rotate a signing key"


class Shortest:
    """Likes short passages: easy to tell from any other order."""

    fingerprint = "shortest-1"

    def score(self, question: str, passages: Sequence[str]) -> Sequence[float]:
        assert question == QUESTION
        return [-float(len(passage)) for passage in passages]


class Broken(Shortest):
    def score(self, question: str, passages: Sequence[str]) -> Sequence[float]:
        return [float("nan")] * len(passages)


def hits(index: clew.Index, name: str | None, k: int = 60, offset: int = 0) -> tuple[Hit, ...]:
    return index.answer(SearchRequest(text=QUESTION, k=k, offset=offset, rerank=name, explain=True)).hits


def test_a_named_reranker_orders_the_first_hits(index: clew.Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """All its doing is in the scores, behind its depth nothing moves, and pages agree."""
    rerank.register("shortest", Shortest)
    monkeypatch.setattr(rerank, "WEIGHT", 1e6)  # nothing else counts
    plain, again = hits(index, None), hits(index, "shortest")
    depth = rerank.DEPTH
    assert {hit.chunk_key for hit in again[:depth]} == {hit.chunk_key for hit in plain[:depth]}
    lengths = [len(hit.text) for hit in again[:depth]]
    assert lengths == sorted(lengths)
    assert lengths != [len(hit.text) for hit in plain[:depth]]
    assert [hit.chunk_key for hit in again[depth:]] == [hit.chunk_key for hit in plain[depth:]]
    before = {hit.chunk_key: hit.score for hit in plain}
    for hit in again[:depth]:
        assert hit.explain is not None
        assert hit.score == pytest.approx(before[hit.chunk_key] + hit.explain["rerank"], abs=1e-3)
    assert [hit.chunk_key for hit in hits(index, "shortest", k=7, offset=5)] == [hit.chunk_key for hit in again[5:12]]


def test_a_reranker_that_fails_is_left_out_and_said(index: clew.Index) -> None:
    rerank.register("broken", Broken)
    request = SearchRequest(text=QUESTION, rerank="broken")
    result = index.answer(request)
    assert "shortest-1" in result.degraded["rerank"]
    plain = index.answer(request.model_copy(update={"rerank": None}))
    assert [hit.chunk_key for hit in result.hits] == [hit.chunk_key for hit in plain.hits]


def test_an_unknown_name_is_an_error_that_lists_the_known(index: clew.Index) -> None:
    rerank.register("shortest", Shortest)
    with pytest.raises(OptionError, match=r"no reranker 'os:system'; there are: .*shortest"):
        index.answer(SearchRequest(text=QUESTION, rerank="os:system"))


def test_one_that_likes_all_alike_changes_nothing() -> None:
    class Indifferent(Shortest):
        def score(self, question: str, passages: Sequence[str]) -> Sequence[float]:
            return [3.0] * len(passages)

    assert rerank.bonuses(Indifferent(), QUESTION, ["a", "bb"]).tolist() == [0.0, 0.0]
    assert rerank.bonuses(Shortest(), QUESTION, ["aaa", "b", "aa"]).tolist() == [0.0, 1.0, 0.5]
