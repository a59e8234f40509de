"""A key limited to one tenant's files cannot tell that there are others: every answer is that of an index of its files alone.

Without these a hit, a trail, the name of a link's target, a count or a gap between numbers could give another tenant away.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import clew
from clew.connectors.objects import ObjectStore
from clew.daemon.collections import Collections
from clew.daemon.http.app import create_app
from clew.daemon.keys import KeyRing, Keys
from tests.integration.http.conftest import client_of, until
from tests.integration.http.two_tenants import NAMES, OWN, SHARED, TENANTS, write_collection

THEIRS, MINE = TENANTS  # theirs come first, so that a number which counts files shows them
QUESTIONS = [
    f"{SHARED[0]} {OWN[MINE][0]}",
    f"{OWN[MINE][1]} {SHARED[3]} report",
    f"{OWN[THEIRS][0]} {SHARED[1]}",  # a word that only the other tenant uses
    f"{OWN[THEIRS][2]} {OWN[THEIRS][3]}",
    "people roles",
    "the plan",
    f"{MINE} audit.md",
    f"{THEIRS} audit",
]
OPTIONS: list[dict[str, Any]] = [
    {"k": 200},
    {"k": 5, "expand": {"hops": 3, "fanout": 16, "direction": "both"}, "explain": True},
    {"k": 10, "offset": 7, "paths": ["bm25", "attributes"], "combine": "rrf"},
    {"k": 20, "where": "type:md -tag:nothing", "normalize": "zscore"},
    {"k": 200, "paths": ["dense"], "expand": {"hops": 2, "direction": "in"}, "normalize": "none"},
    {"k": 200, "paths": ["tfidf", "bm25"], "weights": {"tfidf": 2.0}, "normalize": "l2", "intent": "off"},
]


class Asked:
    """One tenant's key to the whole collection, and an index of the tenant's files alone."""

    def __init__(self, whole: TestClient, alone: TestClient, keys: dict[str, str]) -> None:
        self.whole, self.alone, self._keys = whole, alone, keys
        self._expected: dict[str, Any] = {}  # asked once, for both kinds of keys

    def both(self, method: str, path: str, *, key: str = "limited", **options: Any) -> tuple[Any, Any]:
        """What each answers."""
        headers = {"Authorization": f"Bearer {self._keys[key]}"}
        mine = self.whole.request(method, f"/v1/collections/{path}", headers=headers, **options)
        question = json.dumps([method, path, options], sort_keys=True)
        expected = self._expected.get(question)
        if expected is None:
            expected = self._expected[question] = self.alone.request(method, f"/v1/collections/{path}", **options)
        assert mine.status_code == expected.status_code, (mine.text, expected.text)
        for word in (*OWN[THEIRS], f'"{THEIRS}/'):
            assert word not in mine.text or word in expected.text or word in json.dumps(options), word
        wanted = told(expected.json())
        return levelled(told(mine.json()), wanted), wanted

    def whole_of(self, method: str, path: str) -> Any:
        """What a key without limits is told."""
        headers = {"Authorization": f"Bearer {self._keys['full']}"}
        return self.whole.request(method, f"/v1/collections/{path}", headers=headers).json()


#: What tells of the moment or of the whole service, not of any file.
MOMENTS = (
    "took_ms",
    "timings_ms",
    "instance",
    "snapshot",
    "published",
    "age_seconds",
    "newest",
    "next_cursor",
    "next_try",
    "built",
)
#: Where an index lies is not told to limited keys at all; a test below says so.
PLACES = ("root", "place", "tables", "generation", "settings", "segments", "bytes")


#: What passages are named by; a test below says that they tell nothing.
HANDLES = ("chunk_key", "chunk_keys", "from")


def told(value: Any) -> Any:
    """An answer without moments and handles."""
    if isinstance(value, dict):
        kept = {name: told(part) for name, part in value.items() if name not in (*MOMENTS, *PLACES, *HANDLES)}
        return {name: part for name, part in kept.items() if name != "upkeep"}
    if isinstance(value, list):
        return [told(part) for part in value]
    return value


def levelled(mine: Any, expected: Any) -> Any:
    """An answer whose numbers are those expected where they are as good as equal: link weights are cosines in float32,
    computed many at a time, and scores sums of them."""
    if isinstance(mine, dict) and isinstance(expected, dict):
        return {name: levelled(part, expected.get(name)) for name, part in mine.items()}
    if isinstance(mine, list) and isinstance(expected, list) and len(mine) == len(expected):
        return [levelled(*parts) for parts in zip(mine, expected, strict=True)]
    alike = isinstance(mine, float) and isinstance(expected, float) and math.isclose(mine, expected, abs_tol=1e-5)
    return expected if alike else mine


@pytest.fixture(scope="module", params=[1])
def asked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, session_cache: Path
) -> Iterator[Asked]:
    folder = tmp_path_factory.mktemp("tenants")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(session_cache))
        served = {}
        for name, tenants in (("whole", TENANTS), ("alone", (MINE,))):
            root = folder / name / "shared"
            write_collection(root, seed=request.param, tenants=tenants)
            clew.index(str(root), embedder="hashing:32", workers=0, graph=True)
            served[name] = Collections.of_root(str(root))
            served[name].start()
        until(lambda: all(one.ready for one in served.values()))
        store = ObjectStore.open(str(folder / "keys"))
        made = Keys(store)
        keys = {
            "limited": made.create(paths=[MINE], scope="full").key,
            "full": made.create(scope="full").key,
            "strict": made.create(paths=[f"{MINE}/"], strict=True).key,
        }
        apps = (create_app(served["whole"], keys=KeyRing(store)), create_app(served["alone"]))
        with client_of(apps[0]) as whole, client_of(apps[1]) as alone:
            yield Asked(whole, alone, keys)
        for one in served.values():
            one.close()


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options))
def test_strict_search_is_that_of_an_index_of_the_files_alone(asked: Asked, options: dict[str, Any]) -> None:
    found = trails = 0
    for text in QUESTIONS if "explain" in options else QUESTIONS[::2]:
        mine, expected = asked.both("POST", "shared/search", key="strict", json={"text": text, **options})
        assert mine == expected
        found += len(mine["hits"])
        trails += sum(bool(hit["trail"]) for hit in mine["hits"])
    assert found > 20
    assert trails > 0 or "offset" in options


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options))
def test_search_differs_by_lexical_statistics_alone(asked: Asked, options: dict[str, Any]) -> None:
    """Which passages match does not differ, nor anything that is told of one but scores."""
    for text in QUESTIONS[1::2]:
        mine, expected = asked.both("POST", "shared/search", json={"text": text, **options})
        assert (mine["degraded"], mine["intent"]) == (expected["degraded"], expected["intent"])
        passages = [
            {(hit["path"], hit["record"], hit["char_start"]): hit for hit in side["hits"]} for side in (mine, expected)
        ]
        if options["k"] >= 200:
            assert passages[0].keys() == passages[1].keys()
        for place in passages[0].keys() & passages[1].keys():
            sides = [
                {name: hit[place][name] for name in ("text", "title", "heading", "url", "location", "record")}
                for hit in passages
            ]
            assert sides[0] == sides[1]
            dense = [hit[place]["sources"].get("dense", {}).get("raw") for hit in passages]
            assert dense[0] == dense[1]


@pytest.mark.parametrize("text", QUESTIONS)
def test_context_is_made_of_own_files(asked: Asked, text: str) -> None:
    for budget in (100, 100_000):  # the larger one holds the whole collection
        mine, expected = asked.both("POST", "shared/context", key="strict", json={"text": text, "max_tokens": budget})
        assert mine == expected


@pytest.mark.parametrize(
    "path",
    [
        "shared/files?limit=1000",
        f"shared/files?limit=1000&where=tag:{SHARED[0]} OR path:{THEIRS}/**",
        "shared/files?limit=1000&where=state:failed,skipped",
        "shared/errors",
        "shared/links?limit=1000",
        "shared/links?limit=1000&state=resolved",
        "shared/links?limit=1000&state=dangling",
        "shared/links?limit=1000&state=external",
        f"shared/links?limit=1000&path={MINE}/plan.md",
        f"shared/links?limit=1000&path={MINE}/plan.md&direction=in",
        f"shared/links?limit=1000&path={MINE}/plan.md&direction=out&state=dangling",
        f"shared/links?path={THEIRS}/plan.md",
        f"shared/links?path={MINE}/no-such-file.md",
        f"shared/show?path={THEIRS}/plan.md",
        f"shared/show?path={THEIRS}/parts.jsonl&record=b-1",
        f"shared/show?path={MINE}/parts.jsonl",
        f"shared/show?path={MINE}/parts.jsonl&record=a-1",
        f"shared/show?path={MINE}/parts.jsonl&record=b-1",
        f"shared/show?path={MINE}/broken.pdf",
        *(f"shared/show?path={MINE}/{name}.{'html' if number % 4 == 3 else 'md'}" for number, name in enumerate(NAMES)),
        "shared/facets",
        f"shared/facets?limit=200&where=tag:{SHARED[0]} OR path:{THEIRS}/**",
        f"shared/facets?below={THEIRS}",
        f"shared/facets?below={MINE}&where=type:md",
        f"shared/part?path={THEIRS}/plan.md",
        f"shared/part?path={MINE}/plan.md&start=40&length=60",
        f"shared/part?path={MINE}/parts.jsonl&record=a-1",
        f"shared/part?path={MINE}/parts.jsonl&record=b-1",
        "shared/status",
        "",
    ],
)
def test_contents_are_those_of_an_index_of_the_files_alone(asked: Asked, path: str) -> None:
    mine, expected = asked.both("GET", path)
    assert mine == expected


def test_status_of_a_part_tells_nothing_of_the_place(asked: Asked) -> None:
    headers = {"Authorization": f"Bearer {asked._keys['limited']}"}
    assert asked.whole.get("/v1/collections/shared/snapshots", headers=headers).status_code == 403  # they count all
    status = asked.whole.get("/v1/collections/shared/status", headers=headers).json()
    assert {name: status[name] for name in PLACES} == {
        "root": "shared", "place": "", "tables": None, "generation": "", "settings": {}, "segments": 0, "bytes": None
    }  # fmt: skip
    assert status["upkeep"] is None


def test_numbers_of_passages_have_no_telling_order_and_open_own_ones_alone(asked: Asked) -> None:
    """A passage's handle works, says nothing of how many files stand before it, and nobody else's opens anything."""
    key = {"Authorization": f"Bearer {asked._keys['limited']}"}
    hits = asked.whole.post("/v1/collections/shared/search", json={"text": "report", "k": 50}, headers=key).json()[
        "hits"
    ]
    files: dict[str, int] = {}
    for hit in hits:
        answer = asked.whole.get(f"/v1/collections/shared/chunks/{hit['chunk_key']}", headers=key).json()
        assert (answer["path"], answer["chunk"]["text"]) == (hit["path"], hit["text"])
        files[hit["path"]] = hit["chunk_key"] >> 24
    assert len(set(files.values())) == len(files) > 5
    assert min(files.values()) > 1000  # real ones begin at 1
    opened = [asked.whole.get(f"/v1/collections/shared/chunks/{number << 24}", headers=key) for number in range(1, 40)]
    assert {answer.status_code for answer in opened} == {404}


def test_pages_of_limited_lists_belong_to_their_key(asked: Asked) -> None:
    key = {"Authorization": f"Bearer {asked._keys['limited']}"}
    rows, cursor = [], None
    while True:
        page = asked.whole.get(
            "/v1/collections/shared/links", params={"limit": 9} | ({"cursor": cursor} if cursor else {}), headers=key
        ).json()
        rows += page["links"]
        cursor = page["next_cursor"] or cursor
        if page["next_cursor"] is None:
            break
    expected = asked.both("GET", "shared/links?limit=1000")[1]["links"]
    assert levelled(told(rows), expected) == expected
    strict = {"Authorization": f"Bearer {asked._keys['strict']}"}
    answer = asked.whole.get("/v1/collections/shared/links", params={"cursor": cursor}, headers=strict)
    assert (answer.status_code, answer.json()["type"]) == (400, "urn:clew:problem:cursor")


def test_etags_of_different_parts_differ(asked: Asked) -> None:
    tags = {
        asked.whole.get(
            "/v1/collections/shared/errors", headers={"Authorization": f"Bearer {asked._keys[name]}"}
        ).headers["etag"]
        for name in ("limited", "strict")
    }
    assert len(tags) == 2
    assert all(re.fullmatch(r'W/"[0-9a-f]{24}"', tag) for tag in tags)


@pytest.mark.parametrize("key", ["limited", "strict"])
def test_graph_is_that_of_an_index_of_the_files_alone(asked: Asked, key: str) -> None:
    """Names, types, aliases, weights, claims and what contradicts them, communities and reports: nothing of the other's."""
    told_of: dict[str, int] = {}
    for path in (
        "entities?limit=1000",
        "entities?type=organisation",
        "relations?limit=1000",
        "relations?entity=Harbour Authority",
        "relations?entity=Slag Council",
        "claims?limit=1000",
        "claims?contradicted=true",
        "claims?status=disputed",
        "communities?limit=1000",
        "communities?level=0",
        "reports?limit=1000",
        "fanout?entity=Northgate Terminal&hops=3&cap=2",
        "fanout?entity=Anvil Guild",
    ):
        mine, expected = (named_by_place(side) for side in asked.both("GET", f"shared/graph/{path}", key=key))
        assert mine == expected, path
        told_of[path] = max((len(rows) for rows in mine.values() if isinstance(rows, list)), default=0)
    assert told_of["claims?limit=1000"] > 3
    assert told_of["reports?limit=1000"] > 0
    whole = asked.whole_of("GET", "shared/graph/claims?contradicted=true")["claims"]
    assert whole, "the tenants contradict each other, which neither may know of"
    assert told_of["claims?contradicted=true"] == 0


def named_by_place(answer: dict[str, Any]) -> dict[str, Any]:
    """Claims by the order of their ids: what an id is says nothing, and those of a part differ from those of the whole."""
    ids = [row["id"] for row in answer.get("claims", ())]
    if not ids:
        return answer
    number = {one: place for place, one in enumerate(ids)}
    rows = [
        {**row, "id": number[row["id"]], "contradicts": [number[one] for one in row["contradicts"]]}
        for row in answer["claims"]
    ]
    return {**answer, "claims": rows}


def test_ids_and_handles_of_a_limited_graph_cannot_be_tried_out(asked: Asked) -> None:
    """A claim's id is made of its passage's number; told as it is, the number of files before it could be found by trying."""
    whole = asked.whole_of("GET", "shared/graph/claims?limit=1000")["claims"]
    headers = {"Authorization": f"Bearer {asked._keys['limited']}"}
    mine = asked.whole.get("/v1/collections/shared/graph/claims?limit=1000", headers=headers).json()["claims"]
    assert not {row["id"] for row in mine} & {row["id"] for row in whole}
    for row in mine:
        key = row["evidence"]["chunk_key"]
        assert key not in {other["evidence"]["chunk_key"] for other in whole}
        chunk = asked.whole.get(f"/v1/collections/shared/chunks/{key}", headers=headers).json()
        assert chunk["path"] == row["evidence"]["path"]


ASKED: list[dict[str, Any]] = [
    {"question": "What is the Harbour Authority?"},
    {"question": "What does the Northgate Terminal cost?"},
    {"question": "What is the Slag Council?"},
    {"question": "What is the Keel Register?"},
    {"question": "Which themes dominate this collection?"},
    {"question": "Which themes dominate this collection?", "route": "global"},
    {"question": "How does the Harbour Authority relate to the other offices?", "route": "drift"},
    {"question": "Who requires Form 12?", "route": "mixed"},
    {"question": "safety training of the Anvil Guild", "route": "local", "hops": 3},
]


@pytest.mark.parametrize("question", ASKED, ids=lambda asked: f"{asked.get('route', 'auto')} {asked['question']}")
def test_answers_are_those_of_an_index_of_the_files_alone(asked: Asked, question: dict[str, Any]) -> None:
    """Route and reason, entities passed by, reports read, statements, citations, cost: all of it."""
    mine, expected = asked.both("POST", "shared/ask", key="strict", json=question)
    assert mine == expected
    paths = {citation["path"].partition("/")[0] for citation in mine["citations"]}
    assert paths <= {MINE}
    # Without lexical statistics of its own a key may be given other passages, never others' words; the helper looks.
    limited, _ = asked.both("POST", "shared/ask", key="limited", json=question)
    assert {citation["path"].partition("/")[0] for citation in limited["citations"]} <= {MINE}
