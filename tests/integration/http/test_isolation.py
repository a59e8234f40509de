"""A key limited to one tenant's files cannot tell that there are others: every answer is that of an index of its files alone.

Without these a hit, a trail, the name of a link's target, a count or a gap between numbers could give another tenant away. The same
is asked of three collections: the whole, of which a key sees a part; this part alone; and the whole with all others in disguise, of
which nothing but the number of their documents and words is the same. A strict key is answered as the part alone answers, any other
one as before whatever the others are.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from mcp import Client as McpClient

import clew
from clew.connectors.objects import ObjectStore
from clew.daemon.collections import Collections
from clew.daemon.http.app import create_app
from clew.daemon.keys import KeyRing, Keys
from clew.daemon.mcp import create_server
from clew.query import calibration
from clew.query.abstention import function_for
from clew.query.answers import thresholds
from clew_client import Client
from clew_client.types import Calibration
from tests.integration.http.conftest import client_of, through, until
from tests.integration.http.two_tenants import NAMES, OWN, SHARED, Scene, scene

#: More of them, by the same tests: `make test-slow`. One process builds the three indexes of a seed.
SEEDS = [
    pytest.param(seed, marks=[pytest.mark.xdist_group(f"tenants {seed}"), *([pytest.mark.slow] if seed > 2 else [])])
    for seed in range(1, 13)
]
OPTIONS: list[dict[str, Any]] = [
    {"k": 200},
    {"k": 5, "expand": {"hops": 3, "fanout": 16, "direction": "both"}, "explain": True},
    {"k": 10, "offset": 7, "paths": ["bm25", "attributes"], "combine": "rrf", "over_fetch": 20, "highlights": True},
    {"k": 20, "where": "type:md -tag:nothing", "normalize": "zscore", "sentences": "off"},
    {
        "k": 200,
        "paths": ["dense"],
        "sentences": "off",
        "expand": {"hops": 2, "direction": "in", "seeds": 3},
        "normalize": "none",
    },
    {
        "k": 200,
        "paths": ["tfidf", "bm25"],
        "sentences": "off",
        "weights": {"tfidf": 2.0},
        "normalize": "l2",
        "intent": "off",
    },
    {"k": 20, "abstain": "on", "combine": "max", "normalize": "minmax-observed", "expand": {"min_similarity": 0.1}},
    {
        "k": 20,
        "abstain": "off",
        "sentences": "off",
        "combine": "mean",
        "expand": {"hops": 5, "fanout": 2, "budget": 10},
    },
]
#: What tells of the moment or of the whole service, not of any file.
MOMENTS = (
    "took_ms", "timings_ms", "instance", "snapshot", "published", "age_seconds", "newest", "next_try", "built",
)  # fmt: skip
#: Where an index lies is not told to limited keys at all; a test below says so.
PLACES = ("root", "place", "tables", "generation", "settings", "segments", "bytes")
#: What passages are named by; a test below says that they tell nothing.
HANDLES = ("chunk_key", "chunk_keys", "from")


class Asked:
    """A key to a part of a collection, an index of this part alone, and the collection with its other files in disguise."""

    def __init__(self, scene: Scene, apps: dict[str, TestClient], keys: dict[str, str]) -> None:
        self.scene, self.apps, self.keys = scene, apps, keys
        self.forbidden = {*OWN[scene.theirs], f"{scene.theirs}/", "common roles"}
        if not scene.allows(f"{scene.mine}/more.jsonl"):
            self.forbidden |= {f"{scene.mine}/more", "only-in-more"}
        self.whole = apps["whole"]
        self._alone: dict[str, Any] = {}  # asked once, for both kinds of keys

    def header(self, key: str) -> dict[str, str]:
        """What a request with a key says."""
        return {"Authorization": f"Bearer {self.keys[key]}"}

    def answer(self, app: str, key: str | None, method: str, path: str, **options: Any) -> tuple[int, set[str], Any]:
        """Status, names of headers, and what is said that is no moment and no handle."""
        headers = {**options.pop("headers", {}), **(self.header(key) if key else {})}
        found = self.apps[app].request(method, f"/v1/collections/{path}", headers=headers, **options)
        if app == "whole":
            said = json.dumps([path, options]) + self._alone.get(json.dumps([method, path, options]), ("",) * 4)[3]
            assert [word for word in self.forbidden if word in found.text and word not in said] == [], path
        events = found.headers["content-type"].startswith("text/event-stream")
        body = [told(json.loads(line[6:])) for line in found.text.splitlines() if line.startswith("data: ")]
        names = set(found.headers) - {"content-encoding"}  # of large answers alone, and ids are of several lengths
        return found.status_code, names, body if events else told(found.json())

    def alone(self, method: str, path: str, **options: Any) -> tuple[int, set[str], Any]:
        """What an index of the part alone answers."""
        question = json.dumps([method, path, options])
        if question not in self._alone:
            found = self.answer("alone", None, method, path, **options)
            self._alone[question] = (*found, json.dumps(found[2]))
        status, names, body, _ = self._alone[question]
        return status, names, body

    def is_alone(self, method: str, path: str, *, key: str = "strict", **options: Any) -> Any:
        """Ask with a key; the answer, once it is seen to be that of the part alone."""
        expected = self.alone(method, path, **options)
        mine = self.answer("whole", key, method, path, **options)
        self._same(mine, expected, f"{key} {method} {path} {options}")
        return mine[2]

    def is_free_of_others(self, method: str, path: str, **options: Any) -> Any:
        """Ask with a key that is not strict; the answer, once it is seen to be the same with all others in disguise."""
        self.alone(method, path, **options)
        mine = self.answer("whole", "limited", method, path, **options)
        self._same(mine, self.answer("disguised", "limited", method, path, **options), f"{method} {path} {options}")
        return mine[2]

    def _same(self, mine: tuple[int, set[str], Any], expected: tuple[int, set[str], Any], question: str) -> None:
        assert mine[:2] == expected[:2], question
        assert difference(levelled(mine[2], expected[2]), expected[2]) == "", question


def told(value: Any) -> Any:
    """An answer without moments and handles; cursors by the place that they lead to, claims by the order of their ids."""
    if isinstance(value, dict):
        kept = {name: told(part) for name, part in value.items() if name not in (*MOMENTS, *PLACES, *HANDLES, "upkeep")}
        if kept.get("next_cursor"):
            kept["next_cursor"] = json.loads(base64.urlsafe_b64decode(kept["next_cursor"] + "==="))[2]
        if kept.get("claims"):
            number = {row["id"]: place for place, row in enumerate(kept["claims"])}
            for row in kept["claims"]:
                row |= {"id": number[row["id"]], "contradicts": [number.get(one) for one in row["contradicts"]]}
        return kept
    if isinstance(value, list):
        return [told(part) for part in value]
    return re.sub(r"^Snapshot \d+", "Snapshot", value) if isinstance(value, str) else value


def levelled(mine: Any, expected: Any) -> Any:
    """An answer whose numbers are those expected where they are as good as equal: link weights are cosines in float32,
    computed many at a time, and scores sums of them."""
    if isinstance(mine, dict) and isinstance(expected, dict):
        return {name: levelled(part, expected.get(name)) for name, part in mine.items()}
    if isinstance(mine, list) and isinstance(expected, list) and len(mine) == len(expected):
        return [levelled(*parts) for parts in zip(mine, expected, strict=True)]
    alike = isinstance(mine, float) and isinstance(expected, float) and math.isclose(mine, expected, abs_tol=1e-5)
    return expected if alike else mine


def difference(mine: Any, expected: Any, at: str = "") -> str:
    """Where two answers first differ, and how; "" where they do not."""
    if isinstance(mine, dict) and isinstance(expected, dict) and mine.keys() == expected.keys():
        return next(filter(None, (difference(mine[name], expected[name], f"{at}.{name}") for name in mine)), "")
    if isinstance(mine, list) and isinstance(expected, list) and len(mine) == len(expected):
        return next(
            filter(None, (difference(*pair, f"{at}[{n}]") for n, pair in enumerate(zip(mine, expected, strict=True)))),
            "",
        )
    return "" if mine == expected else f"{at}: {str(mine)[:300]} instead of {str(expected)[:300]}"


@pytest.fixture(scope="module", params=SEEDS)
def asked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, session_cache: Path
) -> Iterator[Asked]:
    folder, made = tmp_path_factory.mktemp("tenants"), scene(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(session_cache))
        served = {}
        for name, others in (("whole", "as they are"), ("alone", "absent"), ("disguised", "in disguise")):
            root = folder / name / "shared"
            made.write(root, others=others)
            clew.index(str(root), embedder="hashing:32", workers=0, graph=True)
            if name != "alone":
                _fit(str(root))
            served[name] = Collections.of_root(str(root))
            served[name].start()
        until(lambda: all(one.ready for one in served.values()))
        store = ObjectStore.open(str(folder / "keys"))
        ring = Keys(store)
        keys = {
            "limited": ring.create(paths=made.paths, scope="full").key,
            "full": ring.create(scope="full").key,
            "strict": ring.create(paths=[f"{path}/" for path in made.paths], strict=True).key,
        }
        apps = {name: create_app(one, keys=None if name == "alone" else KeyRing(store)) for name, one in served.items()}
        with (
            client_of(apps["whole"]) as whole,
            client_of(apps["alone"]) as alone,
            client_of(apps["disguised"]) as other,
        ):
            yield Asked(made, {"whole": whole, "alone": alone, "disguised": other}, keys)
        for one in served.values():
            one.close()


def _fit(root: str) -> None:
    """Keep figures beside an index as if they were fitted to it: what a strict key is answered must not depend on them."""
    with clew.open(root) as index:
        place, generation = index._place, index._pinned.generation
        fitted = {
            "method": "questions",
            "questions": 1,
            "foreign": 0,
            "lost": 0.0,
            "accepted": 0.0,
            "snapshot": 1,
            "fitted": "",
        }
        function = function_for(generation.fingerprint).name
        calibration.keep(
            place, generation.id, Calibration.model_validate({**fitted, "function": function, "floor": 0.95})
        )
        thresholds.keep(place, generation.id, thresholds.Thresholds(aggregation=0.1, undecided=0.1, held_floor=0.9))


def questions(scene: Scene) -> list[str]:
    """Of own words, of words that both use, of words and names that only the others use."""
    own, other = OWN[scene.mine], OWN[scene.theirs]
    return [
        f"{SHARED[0]} {own[0]}",
        f"{own[1]} {SHARED[3]} report",
        f"{other[0]} {SHARED[1]}",
        f"{other[2]} {other[3]}",
        "people roles",
        "the plan",
        f"{scene.mine} audit.md",
        f"{scene.theirs} audit",
    ]


def contents(scene: Scene) -> list[str]:
    """Every list and document, with every option, own and forbidden ones."""
    mine, theirs = scene.mine, scene.theirs
    pages = [f"{name}.{'html' if number % 4 == 3 else 'md'}" for number, name in enumerate(NAMES)]
    return [
        "",
        "shared/status",
        "shared/files?limit=1000",
        "shared/files?limit=3",
        f"shared/files?limit=1000&where=tag:{SHARED[0]} OR path:{theirs}/**",
        "shared/files?limit=1000&where=state:failed,skipped",
        "shared/files?where=no such:thing",
        "shared/errors",
        "shared/errors?limit=1",
        "shared/links?limit=1000",
        "shared/links?limit=7",
        *(f"shared/links?limit=1000&state={state}" for state in ("resolved", "dangling", "external")),
        *(f"shared/links?limit=1000&path={mine}/{page}{more}" for page in ("plan.md", "ops/check.md", "facts/0.md")
          for more in ("", "&direction=in", "&direction=out&state=dangling")),
        *(f"shared/{what}path={path}" for what in ("show?", "part?", "links?", "links?direction=in&", "chunks/1?")
          for path in (f"{theirs}/plan.md", f"{mine}/no-such.md", "roles.md", "no-such.md", f"{mine}/more.jsonl", "../x", mine)),
        *(f"shared/{what}?path={tenant}/{file}.jsonl&record={record}" for what in ("show", "part") for tenant in (mine, theirs)
          for file in ("parts", "more") for record in (f"{tenant[0]}-1", "b-1", "both-1", "shared-1")),
        f"shared/show?path={mine}/parts.jsonl",
        *(f"shared/show?path={mine}/{page}" for page in ("broken.pdf", "empty.md", "copy.md", *pages)),
        "shared/facets",
        f"shared/facets?limit=200&where=tag:{SHARED[0]} OR path:{theirs}/**",
        f"shared/facets?below={theirs}",
        f"shared/facets?below={mine}&where=type:md",
        f"shared/part?path={mine}/plan.md&start=40&length=60",
        f"shared/part?path={mine}/plan.md&mark=report {OWN[theirs][0]}",
        "shared/snapshots?limit=0",
        "shared/nothing",
        "elsewhere/files",
        "elsewhere/status",
    ]  # fmt: skip


def graph_of(scene: Scene) -> list[str]:
    """Every list of the graph, with every option, and entities that only the others name."""
    return [
        "entities?limit=1000",
        "entities?limit=1",
        "entities?type=organisation",
        "relations?limit=1000",
        *(
            f"relations?entity={name}"
            for name in ("Harbour Authority", "Slag Council", "Keel Register", "Nobody At All")
        ),
        "claims?limit=1000",
        "claims?contradicted=true",
        "claims?status=disputed",
        "communities?limit=1000",
        "communities?level=0",
        "reports?limit=1000",
        "reports?level=0",
        "fanout?entity=Northgate Terminal&hops=3&cap=2",
        *(f"fanout?entity={name}" for name in ("Anvil Guild", "Mast Office", "Nobody At All")),
    ]


def asking(scene: Scene) -> list[dict[str, Any]]:
    """Every route, with every option."""
    return [
        {"question": "What is the Harbour Authority?"},
        {"question": "What does the Northgate Terminal cost?", "max_statements": 2},
        {"question": "What is the Slag Council?"},
        {"question": "What is the Keel Register?", "threshold": 0},
        {"question": "Which themes dominate this collection?"},
        {"question": "Which themes dominate this collection?", "route": "global", "level": 0, "max_communities": 3},
        {"question": "How does the Harbour Authority relate to the other offices?", "route": "drift", "max_follow_ups": 2},
        {"question": "Who requires Form 12?", "route": "mixed", "fanout": 2},
        {"question": f"safety training of the {'Anvil Guild' if scene.mine == 'alder' else 'Mast Office'}", "route": "local", "hops": 3},
    ]  # fmt: skip


def test_search_of_a_strict_key_is_that_of_its_files_alone(asked: Asked) -> None:
    for number, options in enumerate(OPTIONS):
        found = trails = 0
        for text in questions(asked.scene)[number % 2 :: 2]:
            result = asked.is_alone("POST", "shared/search", json={"text": text, **options})
            found += len(result["hits"])
            trails += sum(bool(hit["trail"]) for hit in result["hits"])
        assert found >= 20
        assert trails > 0 or "offset" in options


def test_search_of_a_limited_key_depends_on_the_words_of_others_alone(asked: Asked) -> None:
    """And differs from an index of its files alone by scores and order only: the same passages match."""
    for number, options in enumerate(OPTIONS):
        for text in questions(asked.scene)[(number + 1) % 2 :: 2]:
            question = {"text": text, **options}
            result = asked.is_free_of_others("POST", "shared/search", json=question)
            expected = asked.alone("POST", "shared/search", json=question)[2]
            assert (result["degraded"], result["intent"]) == (expected["degraded"], expected["intent"])
            sides = [
                {(hit["path"], hit["record"], hit["char_start"]): hit for hit in one["hits"]}
                for one in (result, expected)
            ]
            if options["k"] >= 200:
                assert sides[0].keys() == sides[1].keys()
            for place in sides[0].keys() & sides[1].keys():
                mine, alone = (
                    {name: hit[place][name] for name in ("text", "title", "heading", "url", "location", "record")}
                    | {"dense": hit[place]["sources"].get("dense", {}).get("raw")}
                    for hit in sides
                )
                assert mine == alone


def test_context_and_answers_are_those_of_the_files_alone(asked: Asked) -> None:
    """Route and reason, entities passed by, reports read, statements, citations, cost, as one answer and as events."""
    for text in questions(asked.scene)[::2]:
        for budget in (100, 100_000):  # the larger one holds the whole collection
            question = {"text": text, "max_tokens": budget}
            asked.is_alone("POST", "shared/context", json=question)
            asked.is_free_of_others("POST", "shared/context", json=question)
    stated = 0
    for question in asking(asked.scene):
        stated += len(asked.is_alone("POST", "shared/ask", json=question)["statements"])
        asked.is_free_of_others("POST", "shared/ask", json=question)
    assert stated > 5
    for route, path in (("global", "graph/global-search"), ("drift", "graph/drift-search"), ("auto", "ask")):
        question = {"question": "Which themes dominate here?", "route": route}
        for headers in ({}, {"Accept": "text/event-stream"}):
            asked.is_alone("POST", f"shared/{path}", json=question, headers=headers)
            asked.is_free_of_others("POST", f"shared/{path}", json=question, headers=headers)


@pytest.mark.parametrize("key", ["limited", "strict"])
def test_contents_and_graph_are_those_of_the_files_alone(asked: Asked, key: str) -> None:
    """Lists and their cursors, documents, what is missing and what is forbidden; names, types, aliases, weights, claims and what
    contradicts them, communities and reports."""
    for path in contents(asked.scene):
        asked.is_alone("GET", path, key=key)
    rows = {}
    for path in graph_of(asked.scene):
        found = asked.is_alone("GET", f"shared/graph/{path}", key=key)
        rows[path] = max((len(rows) for rows in found.values() if isinstance(rows, list)), default=0)
    assert rows["claims?limit=1000"] > 3
    assert rows["reports?limit=1000"] > 0
    whole = asked.answer("alone", None, "GET", "shared/graph/claims?contradicted=true")[2]["claims"]
    assert rows["claims?contradicted=true"] == len(whole)


def test_links_lead_where_they_do_among_the_own_files(asked: Asked) -> None:
    """Where another file is chosen in the whole collection (it claims the same address, its record has the same id, it lies nearer),
    a link is not dangling for who may not see it: it would say that the other file is there."""
    whole = {
        (row["source"], row["source_record"], row["href"]): row["target"]
        for row in asked.whole.get("/v1/collections/shared/links?limit=1000", headers=asked.header("full")).json()[
            "links"
        ]
    }
    mine = asked.is_alone("GET", "shared/links?limit=1000", key="limited")["links"]
    moved = [
        row for row in mine if row["target"] not in (None, whole[row["source"], row["source_record"], row["href"]])
    ]
    assert len(moved) >= 3
    assert all(asked.scene.allows(row["target"]) and row["weight"] is not None for row in moved)


def test_others_in_disguise_have_the_same_words(asked: Asked, session_cache: Path) -> None:
    """What the comparison with them rests on: the lexical statistics are the same, and little else is."""
    sides = []
    for app in ("whole", "disguised"):
        hit = asked.apps[app].post(
            "/v1/collections/shared/search",
            json={"text": " ".join(SHARED + OWN[asked.scene.theirs]), "k": 1000, "paths": ["bm25", "tfidf"], "normalize": "none"},
            headers=asked.header("full"),
        ).json()["hits"]  # fmt: skip
        sides.append(hit)
    scores = [
        {
            (hit["path"], hit["record"], hit["char_start"]): hit["sources"]["bm25"]["raw"]
            for hit in side
            if asked.scene.allows(hit["path"])
        }
        for side in sides
    ]
    assert scores[0].keys() == scores[1].keys()
    assert scores[0] == pytest.approx(scores[1])
    others = [{hit["path"] for hit in side if not asked.scene.allows(hit["path"])} for side in sides]
    assert len(others[0]) == len(others[1]) > 10
    assert not others[0] & others[1]


def test_assistant_with_a_limited_key_is_told_of_its_files_alone(asked: Asked) -> None:
    scene = asked.scene

    async def told_by(app: str, key: str | None) -> list[Any]:
        client = Client("http://localhost", collection="shared", api_key=key, transport=through(asked.apps[app]))
        said = []
        async with McpClient(create_server(client)) as assistant:
            for tool, arguments in (
                *(("search", {"query": text, "hops": 2}) for text in questions(scene)[:4]),
                ("context", {"question": "the plan", "max_tokens": 400}),
                ("ask", {"question": "What is the Harbour Authority?"}),
                ("ask", {"question": "Which themes dominate here?", "route": "global"}),
                ("follow_links", {"path": f"{scene.mine}/plan.md", "direction": "both"}),
                ("follow_links", {"path": f"{scene.theirs}/plan.md"}),
                ("read_file", {"path": f"{scene.mine}/plan.md"}),
                ("read_file", {"path": f"{scene.theirs}/plan.md"}),
                ("status", {}),
            ):
                answer = await assistant.call_tool(tool, arguments)
                said.append(
                    [answer.is_error, told(answer.structured_content), answer.is_error and answer.content[0].text]
                )  # type: ignore[union-attr]
        return said

    mine = asyncio.run(told_by("whole", asked.keys["strict"]))
    expected = asyncio.run(told_by("alone", None))
    assert [levelled(list(one), list(other)) for one, other in zip(mine, expected, strict=True)] == list(
        map(list, expected)
    )


def test_status_of_a_part_tells_nothing_of_the_place(asked: Asked) -> None:
    headers = asked.header("limited")
    assert asked.whole.get("/v1/collections/shared/snapshots", headers=headers).status_code == 403  # they count all
    status = asked.whole.get("/v1/collections/shared/status", headers=headers).json()
    assert {name: status[name] for name in PLACES} == {
        "root": "shared", "place": "", "tables": None, "generation": "", "settings": {}, "segments": 0, "bytes": None
    }  # fmt: skip
    assert status["upkeep"] is None


def test_numbers_of_passages_have_no_telling_order_and_open_own_ones_alone(asked: Asked) -> None:
    """A passage's handle works, says nothing of how many files stand before it, and nobody else's opens anything."""
    key = asked.header("limited")
    hits = asked.whole.post("/v1/collections/shared/search", json={"text": "report", "k": 50}, headers=key).json()[
        "hits"
    ]
    files: dict[str, int] = {}
    for hit in hits:
        answer = asked.whole.get(f"/v1/collections/shared/chunks/{hit['chunk_key']}", headers=key).json()
        assert (answer["path"], answer["chunk"]["text"]) == (hit["path"], hit["text"])
        files[hit["path"]] = hit["chunk_key"] >> 24
    assert len(set(files.values())) == len(files) > 5
    opened = [asked.whole.get(f"/v1/collections/shared/chunks/{number << 24}", headers=key) for number in range(1, 40)]
    assert {answer.status_code for answer in opened} == {404}


def test_pages_of_limited_lists_belong_to_their_key(asked: Asked) -> None:
    key = asked.header("limited")
    for field in ("links", "files"):
        rows, cursor = [], None
        while True:
            page = asked.whole.get(
                f"/v1/collections/shared/{field}", params={"limit": 9} | ({"cursor": cursor} if cursor else {}), headers=key
            ).json()  # fmt: skip
            rows += page[field]
            cursor = page["next_cursor"] or cursor
            if page["next_cursor"] is None:
                break
        expected = asked.alone("GET", f"shared/{field}?limit=1000")[2][field]
        assert levelled(told(rows), expected) == expected
        answer = asked.whole.get(
            f"/v1/collections/shared/{field}", params={"cursor": cursor}, headers=asked.header("strict")
        )
        assert (answer.status_code, answer.json()["type"]) == (400, "urn:clew:problem:cursor")


def test_etags_of_different_parts_differ(asked: Asked) -> None:
    tags = {
        asked.whole.get("/v1/collections/shared/errors", headers=asked.header(name)).headers["etag"]
        for name in ("limited", "strict")
    }
    assert len(tags) == 2
    assert all(re.fullmatch(r'W/"[0-9a-f]{24}"', tag) for tag in tags)


def test_ids_and_handles_of_a_limited_graph_cannot_be_tried_out(asked: Asked) -> None:
    """A claim's id is made of its passage's number; told as it is, the number of files before it could be found by trying."""
    path = "/v1/collections/shared/graph/claims?limit=1000"
    whole = asked.whole.get(path, headers=asked.header("full")).json()["claims"]
    headers = asked.header("limited")
    mine = asked.whole.get(path, headers=headers).json()["claims"]
    assert mine
    assert not {row["id"] for row in mine} & {row["id"] for row in whole}
    for row in mine:
        key = row["evidence"]["chunk_key"]
        assert key not in {other["evidence"]["chunk_key"] for other in whole}
        chunk = asked.whole.get(f"/v1/collections/shared/chunks/{key}", headers=headers).json()
        assert chunk["path"] == row["evidence"]["path"]


def test_tenants_contradict_each_other_which_neither_may_know_of(asked: Asked) -> None:
    path = "/v1/collections/shared/graph/claims?contradicted=true"
    counts = [len(asked.whole.get(path, headers=asked.header(key)).json()["claims"]) for key in ("full", "limited")]
    assert counts[0] > 0 == counts[1]


def test_what_takes_more_than_a_limited_key_is_refused_alike_whether_it_is_there_or_not(asked: Asked) -> None:
    headers = asked.header("limited")
    reports = asked.whole.get("/v1/collections/shared/graph/reports", headers=asked.header("full")).json()["reports"]
    for path in ("communities", "reports"):
        said = set()
        for one in (reports[0]["id"], "0" * 16):
            answer = asked.whole.delete(f"/v1/collections/shared/graph/{path}/{one}", headers=headers)
            said.add((answer.status_code, json.dumps(told(answer.json()))))
        assert len(said) == 1
        assert next(iter(said))[0] == 403
