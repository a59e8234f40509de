"""Filters and pages over a real index against brute force; without these a filter could lose hits, or a page repeat them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clew
from clew_client.types import PATHS, Hit

pytestmark = pytest.mark.xdist_group("index properties")  # one index of a thousand files for all of them

FILES = 1000
FOLDERS = 20
ALL = 10_000  # candidates: more than there are chunks
QUESTIONS = (
    "mooring chain of the northern buoy",
    "gauge",
    "anchor 0417 in harbour",
    '"slack water" at the reef',
    "quixotic lantern",
    "folder17",
)
WORDS = (
    *("tide", "ebb", "flood", "slack", "water", "mooring", "anchor", "buoy", "chain", "rope", "gauge", "wave", "swell"),
    *("current", "harbour", "pilot", "quay", "crane", "valve", "pump", "oil", "rudder", "keel", "lantern", "reef"),
    *("northern", "southern", "old", "new", "of", "the", "at", "in"),
)
Place = tuple[str, int]  # of a chunk: path and char_start


class Collection:
    """The index, and of every file the number by which filters choose it."""

    def __init__(self, index: clew.Index, share: Mapping[str, int]) -> None:
        self.index = index
        self.share = share  # path → 1 … FILES, each once
        self.ranking = cache(self._ranking)

    def chosen(self, most: int) -> set[str]:
        """The files that `meta.share:<=most` lets through."""
        return {path for path, share in self.share.items() if share <= most}

    def _ranking(self, text: str, paths: tuple[str, ...], intent: str, normalize: str) -> list[Hit]:
        """Every hit that a question has without a filter, page by page."""
        hits: list[Hit] = []
        options: dict[str, Any] = {
            "paths": paths,
            "intent": intent,
            "normalize": normalize,
            "over_fetch": ALL,
            "hops": 0,
        }
        while True:
            page = self.index.search(text, k=1000, offset=len(hits), **options).hits
            hits += page
            if len(page) < 1000:
                return hits


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """A thousand short documents of one to four passages each; many are equal, so that there are ties."""
    dice = random.Random(7)
    root = tmp_path_factory.mktemp("thousand")
    shares = dice.sample(range(1, FILES + 1), FILES)
    share: dict[str, int] = {}
    for number in range(FILES):
        path = f"folder{number % FOLDERS:02}/{dice.choice(WORDS)}-{number:04}.md"
        share[path] = shares[number]
        sections = dice.choice((1, 1, 2, 4))
        seed = dice.randrange(600)  # fewer texts than documents
        text = "".join(f"## Part {part}\n\n{prose(seed + part)}\n\n" for part in range(sections))
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(f"---\nshare: {share[path]}\n---\n\n{text}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        clew.index(str(root), embedder="hashing:32", workers=0)
        index = clew.open(str(root))
        assert index.search("gauge").hits  # loads what the cache holds
    return Collection(index, share)


def prose(seed: int) -> str:
    """Forty words or so, the same for the same seed."""
    dice = random.Random(seed)
    return " ".join(dice.choices(WORDS, k=dice.randint(34, 60))).capitalize() + "."


def place(hit: Hit) -> Place:
    """Which chunk a hit is."""
    return hit.path, hit.char_start


def brute_force(collection: Collection, text: str, path: str) -> list[Hit]:
    """All hits of a path, best first, from a search without any filter."""
    return collection.ranking(text, (path,), "on", "minmax")


#: How many of the thousand files pass: 0.1 % to 100 %.
selectivities = st.sampled_from((1, 2, 3, 5, 10, 30, 100, 300, 999, 1000))
questions = st.sampled_from(QUESTIONS)
quick = settings(max_examples=25, deadline=None)


@pytest.mark.parametrize("path", PATHS)
@quick
@given(text=questions, most=selectivities, k=st.integers(1, 60), over_fetch=st.sampled_from((1, 5, 200, ALL)))
def test_filtered_path_gives_the_first_of_the_filtered_ranking(
    collection: Collection, path: str, text: str, most: int, k: int, over_fetch: int
) -> None:
    """Whenever k chunks pass and have a score, k come back: those of brute force, with their scores, in its order."""
    chosen = collection.chosen(most)
    wanted = [hit for hit in brute_force(collection, text, path) if hit.path in chosen][:k]
    found = collection.index.search(
        text, k=k, paths=[path], where=f"meta.share:<={most}", over_fetch=over_fetch, hops=0
    ).hits
    assert [place(hit) for hit in found] == [place(hit) for hit in wanted]
    assert [hit.sources[path].raw for hit in found] == [hit.sources[path].raw for hit in wanted]


@quick
@given(text=questions, most=selectivities, k=st.integers(1, 60), intent=st.sampled_from(("on", "off")))
def test_filtered_fusion_gives_the_first_of_the_filtered_ranking(
    collection: Collection, text: str, most: int, k: int, intent: str
) -> None:
    """All paths fused on scales that a filter does not move: exactly the unfiltered ranking, filtered."""
    chosen = collection.chosen(most)
    # A path that finds nothing at all has no say in the sum, filtered or not.
    names = tuple(name for name in PATHS if any(hit.path in chosen for hit in brute_force(collection, text, name)))
    everyone = [hit for hit in collection.ranking(text, names, intent, "none") if hit.path in chosen]
    found = collection.index.search(
        text, k=k, where=f"meta.share:<={most}", paths=names, over_fetch=ALL, hops=0, normalize="none", intent=intent
    ).hits
    assert [(place(hit), hit.score) for hit in found] == [(place(hit), hit.score) for hit in everyone[:k]]


@quick
@given(text=questions, most=selectivities, k=st.integers(1, 60), over_fetch=st.sampled_from((200, ALL)))
def test_filtered_default_fusion_scores_as_brute_force_does(
    collection: Collection, text: str, most: int, k: int, over_fetch: int
) -> None:
    """The default scales: each path's best *allowed* chunk is 1. Scores are recomputed from the paths' own rankings."""
    chosen = collection.chosen(most)
    result = collection.index.search(
        text, k=k, where=f"meta.share:<={most}", over_fetch=over_fetch, hops=0, explain=True
    )
    available = sum(path in chosen for path, _ in _all_places(collection))
    assert len(result.hits) == min(k, available)  # dense knows every chunk
    reference = _reference(collection, text, chosen, result.hits)
    for hit in result.hits:
        assert hit.explain is not None
        bonus = hit.explain.get("title_phrase", 0) + hit.explain.get("coverage", 0)
        assert hit.score == pytest.approx(reference[place(hit)] + bonus, abs=2e-6)
    assert [hit.score for hit in result.hits] == sorted((hit.score for hit in result.hits), reverse=True)


def _all_places(collection: Collection) -> list[Place]:
    return [place(hit) for hit in brute_force(collection, "gauge", "dense")]


def _reference(collection: Collection, text: str, chosen: set[str], hits: tuple[Hit, ...]) -> dict[Place, float]:
    """Σ weight · raw / best over Σ weight, for every allowed chunk; names are on the scale that the hits tell."""
    weights = {name: source.weight for hit in hits for name, source in hit.sources.items()}
    scores: dict[Place, float] = dict.fromkeys((p for p in _all_places(collection) if p[0] in chosen), 0.0)
    for name, weight in weights.items():
        everyone = brute_force(collection, text, name)
        if name == "bm25":  # beside another path it counts neighbouring words, too
            everyone = [
                hit for hit in collection.ranking(text, ("bm25", "attributes"), "off", "none") if name in hit.sources
            ]
        allowed = [hit for hit in everyone if hit.path in chosen]
        best = max((hit.sources[name].raw for hit in allowed), default=0.0)
        if name == "attributes":
            best = max(
                (one.raw / one.normalized for hit in hits if (one := hit.sources[name]).normalized > 0), default=0.0
            )
            documents = {hit.path: hit.sources[name].raw for hit in allowed}
            raw = {p: documents.get(p[0], 0.0) for p in scores}
        else:
            raw = {place(hit): hit.sources[name].raw for hit in allowed}
        for at, value in raw.items():
            if best > 0:
                scores[at] += weight * min(1.0, max(0.0, value / best)) / sum(weights.values())
    return scores


@pytest.mark.parametrize("paths", [list(PATHS), ["dense"], ["bm25", "tfidf"], ["attributes"]], ids="+".join)
@settings(max_examples=15, deadline=None)
@given(
    text=questions,
    over_fetch=st.sampled_from((1, 3, 20)),
    most=st.sampled_from((10, 100, 1000)),
    sizes=st.lists(st.integers(1, 40), min_size=2, max_size=5),
    hops=st.sampled_from((0, 1)),
)
def test_pages_are_parts_of_one_list_beyond_the_candidates_too(
    collection: Collection, paths: list[str], text: str, over_fetch: int, most: int, sizes: list[int], hops: int
) -> None:
    """However a list is cut into pages, and however few candidates are fetched at first: one order, no chunk twice."""
    options: dict[str, Any] = {"paths": paths, "over_fetch": over_fetch, "where": f"meta.share:<={most}", "hops": hops}
    whole = collection.index.search(text, k=sum(sizes), **options).hits
    places = [place(hit) for hit in whole]
    assert len(set(places)) == len(places)
    assert [hit.score for hit in whole] == sorted((hit.score for hit in whole), reverse=True)
    if "dense" in paths:
        chosen = collection.chosen(most)
        assert len(whole) == min(sum(sizes), sum(path in chosen for path, _ in _all_places(collection)))
    offset = 0
    for size in sizes:
        page = collection.index.search(text, k=size, offset=offset, **options).hits
        assert [(place(hit), hit.score, hit.rank) for hit in page] == [
            (place(hit), hit.score, hit.rank) for hit in whole[offset : offset + size]
        ]
        offset += size


@pytest.mark.parametrize(
    ("where", "passes"),
    [
        ("path:folder07/**", lambda path: path.startswith("folder07/")),
        ("-path:folder07/**", lambda path: not path.startswith("folder07/")),
        ("path:folder07/** OR path:folder11/**", lambda path: path[:8] in ("folder07", "folder11")),
        ("name:buoy-*", lambda path: path.split("/")[1].startswith("buoy-")),
    ],
)
@pytest.mark.parametrize("path", PATHS)
def test_filters_by_name_give_the_first_of_the_filtered_ranking(
    collection: Collection, path: str, where: str, passes: Callable[[str], bool]
) -> None:
    """Folders are runs of keys, for which the lexical path takes another way than for scattered files."""
    for text in QUESTIONS[:2]:
        wanted = [place(hit) for hit in brute_force(collection, text, path) if passes(hit.path)]
        found = collection.index.search(text, k=50, paths=[path], where=where, hops=0).hits
        assert [place(hit) for hit in found] == wanted[:50]


def test_collection_has_what_the_properties_need(collection: Collection, tmp_path: Path) -> None:
    """Enough chunks, ties and misses: were all of them found by every question, the tests above would show little."""
    everyone = brute_force(collection, "gauge", "dense")
    assert 1500 < len(everyone) < 3000
    lexical = brute_force(collection, "gauge", "bm25")
    assert 0 < len(lexical) < len(everyone)
    scores = [hit.sources["bm25"].raw for hit in lexical]
    assert len(set(scores)) < len(scores) - 100
    assert 0 < len(brute_force(collection, "quixotic lantern", "attributes")) < 100
    assert len(brute_force(collection, "folder17", "attributes")) == FILES
