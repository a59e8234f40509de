"""`clew graph` as scripts meet it: without these, a field could vanish that somebody reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.commands import clew
from tests.examples.graph_pages import PAGES, write_pages
from tests.integration.llm.chat_service import Chat, chat_service

pytestmark = pytest.mark.acceptance


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Portuguese pages, indexed, with their graph."""
    folder = tmp_path_factory.mktemp("graph-commands") / "pages"
    write_pages(folder)
    assert clew("index", folder, "--embedder", "none", "--json").status == 0
    refused = clew("graph", "entities", folder)
    assert refused.status == 2
    assert "clew graph build" in refused.sentence
    built = clew("graph", "build", folder, "--json").object
    assert (built["passages_read"], built["entities"], built["published"]) == (len(PAGES), len(PAGES), True)
    return folder


def test_entities_have_answers_with_places(root: Path) -> None:
    rows = clew("graph", "entities", root, "--json").rows
    assert {row["name"] for row in rows} == {title for title, _ in PAGES.values()}
    battery = next(row for row in rows if row["name"] == "Bateria")
    assert battery["answer"]["path"] == "energia/bateria.md"
    shown = clew("show", root, battery["answer"]["path"], "--json").object
    assert shown["text"][battery["answer"]["char_start"] : battery["answer"]["char_end"]] == battery["answer"]["text"]


def test_relations_are_ranked(root: Path) -> None:
    rows = clew("graph", "relations", root, "--entity", "frota", "--json").rows
    assert [row["rank"] for row in rows] == list(range(1, len(rows) + 1))
    assert all(row["source_name"] == "Frota" for row in rows)
    assert rows[0]["weight"] >= rows[-1]["weight"]
    for place in [row["evidence"] for row in rows if row["evidence"]]:
        text = clew("show", root, place["path"], "--json").object["text"]
        assert place["char_end"] <= len(text)
        assert text[place["char_start"] : place["char_end"]] == place["text"]


def test_claims_communities_and_reports(root: Path) -> None:
    claims = clew("graph", "claims", root, "--json").rows
    assert {"definition", "requirement"} <= {row["kind"] for row in claims}
    assert all(row["evidence"]["text"] for row in claims)
    assert clew("graph", "claims", root, "--contradicted", "--json").rows == []
    communities = clew("graph", "communities", root, "--level", "0", "--json").rows
    assert sorted(row["size"] for row in communities) == [3, 4, 4]
    reports = clew("graph", "reports", root, "--json").rows
    assert all(one["source"]["text"].split() == one["statement"].split() for row in reports for one in row["summary"])
    assert {row["id"] for row in communities} <= {row["id"] for row in reports}
    places = [one for row in reports for one in row["evidence"]]
    assert all(len(one["text"]) == one["char_end"] - one["char_start"] for one in places)


def test_fanout_counts_nodes_and_simple_paths(root: Path) -> None:
    report = clew("graph", "fanout", root, "Frota", "--hops", "3", "--cap", "2", "--json").object
    assert report["hops"][0] == {"hop": 0, "nodes": 1, "paths": 1, "nodes_without_cap": 1, "paths_without_cap": 1}
    assert report["hops"][1]["nodes"] == report["hops"][1]["paths"] == 2
    assert report["complete"]
    assert report["edges_scanned"] < report["edges_scanned_without_cap"]
    assert clew("graph", "fanout", root, "Nada", "--hops", "2").status == 2


def test_merges_say_why(root: Path) -> None:
    rows = clew("graph", "merges", root, "--json").rows
    assert rows
    assert all(row["reason"] and not row["undone"] for row in rows)


@pytest.mark.parametrize(
    "arguments",
    [
        ("build", "--method", "louvain"),
        ("build", "--fields", "smell"),
        ("build", "--extractor", "magic"),
        ("merges", "--undo", "zz"),
    ],
)
def test_wrong_requests_get_one_sentence(root: Path, arguments: tuple[str, ...]) -> None:
    done = clew("graph", arguments[0], root, *arguments[1:])
    assert done.status == 2
    assert done.sentence


def test_people_see_text(root: Path) -> None:
    for command in ("entities", "relations", "claims", "communities", "reports", "merges"):
        done = clew("graph", command, root, "--limit", "3")
        assert done.status == 0
        assert done.out.strip()


def test_a_language_model_is_estimated_then_asked_and_its_cost_is_told(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def reply(body: dict[str, Any]) -> str:
        reports = "<statements>" in body["messages"][-1]["content"]
        return json.dumps(
            {"title": "Bateria", "chosen": [1]} if reports else {"entities": [], "relations": [], "claims": []}
        )

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    chat = Chat(reply=reply)
    with chat_service(chat) as url:
        ask = ("graph", "build", root, "--extractor", "llm", "--model", f"small@{url}", "--json")
        plan = clew(*ask, "--estimate", "--price-in", "1", "--price-out", "2").object
        assert chat.requests == []
        assert (plan["model_calls"], plan["money"] > 0) == (len(PAGES), True)
        built = clew(*ask, "--budget", "1mtokens").object
        assert built["passages_read"] == len(PAGES)
        assert built["cost"]["calls"] == len(chat.requests) > len(PAGES)
        assert clew(*ask).object["cost"]["calls"] == 0
        refused = clew(*ask, "--budget", "2.50")
    assert (refused.status, "prices" in refused.sentence) == (2, True)
    kept = clew("graph", "build", root, "--json").object
    assert (kept["passages_read"], kept["cost"]) == (0, None)
    assert clew("graph", "build", root, "--extractor", "rules", "--json").object["passages_read"] == len(PAGES)


def test_a_model_that_is_not_named_is_asked_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLEW_LLM_MODEL", raising=False)
    assert "--model" in clew("graph", "build", root, "--extractor", "llm").sentence
    assert "rules" in clew("graph", "build", root, "--extractor", "magic").sentence
