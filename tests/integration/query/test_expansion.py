"""Following links through the whole of the product; without these it could be switched off and nobody would notice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import clew
from clew.examples import judgements, questions
from clew.query.restriction import Restriction
from clew.query.spreading import HEAD
from clew_client.types import Hit, LinkRow

pytestmark = pytest.mark.xdist_group("embedded")  # one process embeds the handbook, once

LINKED = [
    row
    for row in map(json.loads, questions().read_text("utf-8").splitlines())
    if row["metadata"]["kind"] == "linked" and row["metadata"]["language"] == "en"
]


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The questions whose answer lies behind a link, as a file."""
    file = tmp_path_factory.mktemp("questions") / "linked.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in LINKED), "utf-8")
    return str(file)


def test_linked_questions_are_answered_better_with_links(embedded: clew.Index, linked: str) -> None:
    """Default weights: the answers behind a link rise into the first five."""
    report = embedded.evaluate(linked, str(judgements()), by_path=False, by_fusion=False)
    assert report.queries == len(LINKED) == 9
    without = report.without_expansion
    assert report.metrics()["ndcg@10"] >= without["ndcg@10"] + 0.03
    assert report.metrics()["recall@5"] > without["recall@5"]


def test_other_questions_lose_nothing_by_links(embedded: clew.Index) -> None:
    """Over all judged questions, most of which need no link, following them does no harm."""
    report = embedded.evaluate(str(questions()), str(judgements()), by_path=False, by_fusion=False)
    assert report.queries == 46
    assert report.metrics()["ndcg@10"] >= report.without_expansion["ndcg@10"]
    assert report.metrics()["ndcg@10"] > 0.75
    assert report.metrics()["recall@100"] == 1.0


def test_page_behind_a_link_is_found_by_its_trail(embedded: clew.Index) -> None:
    """What the barnacle incident says was built in everywhere, and what that part costs, stand in two documents."""
    text = "what does the part cost that every southern Gannet got because of barnacles"
    hits = embedded.search(text, k=10).hits
    price = [hit for hit in hits if hit.path == "products/price-list.xlsx"]
    assert price
    flat = [hit.path for hit in embedded.search(text, k=10, hops=0).hits]
    assert "products/price-list.xlsx" not in flat[: price[0].rank]


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_every_step_of_a_trail_is_a_link_that_is_written(embedded: clew.Index, hops: int) -> None:
    """From the seed to the hit each step is a resolved link of `links()`, and each begins where the last one ended."""
    rows = {(row.source, row.target, row.href, row.anchor) for row in embedded.links(state="resolved")}
    walked = 0
    for question in LINKED:
        hits = embedded.search(question["text"], k=60, hops=hops).hits
        for hit in hits:
            assert len(hit.trail) <= hops + (hit.rank > HEAD)  # behind the first hits, one link farther
            for step, end in zip(hit.trail, ends(hit), strict=True):
                source, target = (step.path, end) if step.direction == "out" else (end, step.path)
                assert (source, target, step.href, step.anchor) in rows
                walked += 1
        assert len({(hit.path, hit.record, hit.char_start) for hit in hits}) == len(hits)
    assert walked > 50
    if hops > 1:
        assert any(len(hit.trail) > 1 for hit in embedded.search(LINKED[0]["text"], k=100, hops=hops).hits)


def test_weights_of_steps_are_those_of_the_links(embedded: clew.Index) -> None:
    """The weight in a trail is the edge's own, and `min_similarity` keeps lighter edges out of every trail."""
    weights: dict[tuple[str, str | None, str, str], list[float]] = {}
    for row in embedded.links(state="resolved"):
        weights.setdefault(key(row), []).append(row.weight or 0.0)
    seen = [
        (hit, floor)
        for question in LINKED[:4]
        for floor in (None, 0.3)
        for hit in embedded.search(question["text"], k=40, hops=1, min_similarity=floor).hits
        if hit.trail
    ]
    assert {floor for _, floor in seen} == {None, 0.3}
    for hit, floor in seen:
        for step, end in zip(hit.trail, ends(hit), strict=True):
            source, target = (step.path, end) if step.direction == "out" else (end, step.path)
            assert any(abs(step.weight - one) < 2e-6 for one in weights[source, target, step.href, step.anchor])
            assert floor is None or step.weight >= floor


def ends(hit: Hit) -> list[str]:
    """Where each step of a trail ends: where the next one begins, the last one at the hit."""
    return [*(step.path for step in hit.trail[1:]), hit.path] if hit.trail else []


def key(row: LinkRow) -> tuple[str, str | None, str, str]:
    """What tells a written link from another."""
    return row.source, row.target, row.href, row.anchor


@pytest.mark.parametrize("k", [1, 4, 25])
def test_the_first_hits_do_not_depend_on_how_many_are_asked_for(index: clew.Index, k: int) -> None:
    """Half of the hits of twice as many, with their scores and trails; also where links led to them."""
    trails = 0
    for question in LINKED[:5]:
        few, many = (index.search(question["text"], k=count, hops=2).hits for count in (k, 2 * k))
        assert len(few) == k
        assert [(seen(hit), hit.score) for hit in few] == [(seen(hit), hit.score) for hit in many[:k]]
        trails += sum(bool(hit.trail) for hit in few)
    assert trails > 0 or k == 1


def seen(hit: Hit) -> tuple[object, ...]:
    """What a reader sees of a hit, numbers aside."""
    steps = [(step.path, step.href, step.anchor, step.direction) for step in hit.trail]
    return hit.rank, hit.path, hit.char_start, hit.char_end, steps


def outside(hits: tuple[Hit, ...], folders: tuple[str, ...]) -> set[str]:
    """Paths of hits and of steps that do not begin with one of these."""
    paths = {hit.path for hit in hits} | {step.path for hit in hits for step in hit.trail}
    return {path for path in paths if not path.startswith(folders)}


@pytest.mark.parametrize("hops", [1, 3])
@pytest.mark.parametrize("folders", [("ops/",), ("products/", "quality/"), ("people/",)], ids="+".join)
def test_nothing_outside_the_filter_is_a_hit_or_a_step(
    embedded: clew.Index, folders: tuple[str, ...], hops: int
) -> None:
    """The walk neither ends in a forbidden document nor passes through one; as a filter and as a key's paths."""
    limited = embedded.restricted(Restriction.of(folders))
    where = " OR ".join(f"path:{folder}**" for folder in folders)
    inside = sum(row.chunk_count for row in embedded.files(where))
    trails = 0
    for question in LINKED:
        filtered = embedded.search(question["text"], k=100, hops=hops, where=where).hits
        assert outside(filtered, folders) == set()
        assert len(filtered) == min(100, inside)
        own = limited.search(question["text"], k=100, hops=hops).hits
        assert outside(own, folders) == set()
        assert {(hit.path, hit.char_start) for hit in own} == {(hit.path, hit.char_start) for hit in filtered}
        trails += sum(bool(hit.trail) for hit in own)
    assert trails > 0


def test_forbidden_documents_cannot_be_told_from_absent_ones(root: Path, tmp_path: Path) -> None:
    """What a key may not see changes nothing in which passages are near to its question, nor in their scores."""
    text = "which people have to join the call when a signing key is rotated"
    whole = tmp_path / "whole"
    part = tmp_path / "part"
    for folder, keep in ((whole, ("ops/", "people/")), (part, ("ops/",))):
        for file in root.rglob("*.md"):
            path = file.relative_to(root)
            if path.as_posix().startswith(keep):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(file.read_bytes())
        clew.index(str(folder), embedder="hashing:32", workers=0)
    with clew.open(str(whole)) as seen, clew.open(str(part)) as alone:
        mine = seen.restricted(Restriction.of(["ops"], strict=True)).search(text, k=100, hops=2).hits
        theirs = alone.search(text, k=100, hops=2).hits
    assert len(mine) > 10
    assert [(hit.path, hit.char_start) for hit in mine] == [(hit.path, hit.char_start) for hit in theirs]
    # Weights of links are cosines in float32, computed many at a time.
    assert [hit.score for hit in mine] == pytest.approx([hit.score for hit in theirs], abs=1e-6)


def test_an_index_that_grew_follows_links_as_one_built_at_once(root: Path, tmp_path: Path) -> None:
    """Chunks that came last have the highest keys, and links to what was missing were broken at first: neither is seen."""
    grown, whole = tmp_path / "grown", tmp_path / "whole"
    for round_ in (("people/",), ("ops/",), ("quality/",)):
        for file in root.rglob("*.md"):
            path = file.relative_to(root)
            if path.as_posix().startswith(round_):
                for folder in (grown, whole):
                    (folder / path).parent.mkdir(parents=True, exist_ok=True)
                    (folder / path).write_bytes(file.read_bytes())
        clew.index(str(grown), embedder="hashing:32", workers=0)
    clew.index(str(whole), embedder="hashing:32", workers=0)
    trails = 0
    with clew.open(str(grown)) as one, clew.open(str(whole)) as other:
        for question in LINKED:
            mine, theirs = (index.search(question["text"], k=50, hops=2).hits for index in (one, other))
            assert len({hit.chunk_key for hit in mine}) == len(mine) > 30
            assert [seen(hit) for hit in mine] == [seen(hit) for hit in theirs]
            # Weights of links are cosines in float32, computed many at a time.
            assert [hit.score for hit in mine] == pytest.approx([hit.score for hit in theirs], abs=1e-6)
            trails += sum(bool(hit.trail) for hit in mine)
        keys = [{(hit.path, hit.chunk_key) for hit in index.search("key", k=50).hits} for index in (one, other)]
    assert trails > 0
    assert keys[0] != keys[1]  # the two did number their chunks differently
