"""A graph read by a language model. Deleted, a model could put into the graph what no page says, or be paid twice for the same page."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from clew.errors import LanguageModelError
from clew.indexer.graph.build import BuildOptions, Built, build_graph
from clew.indexer.graph.editing import documents_named, estimate
from clew.indexer.graph.model_reading import ModelReader
from clew.indexer.graph.reading import RuleReader
from clew.indexer.graph.report_author import ModelAuthor
from clew.indexer.llm.budget import Budget, Prices
from clew.indexer.llm.kept_replies import KeptReplies
from clew.indexer.llm.protocol import Request
from clew.indexer.llm.session import Session
from clew.indexer.place import Place
from clew.indexer.report import index
from clew.indexer.upkeep import upkeep_of
from clew.query.index import Index
from clew.query.knowledge import Knowledge
from clew.testing.language_models import ScriptedModel

PAGES = {
    "corvo.md": "# Corvo Marine\n\nCorvo Marine moulds hulls in Setúbal. It is said that Corvo Marine may close the old hall.\n",
    "gannet.md": "# Gannet\n\nThe hull of the Gannet comes from\nCorvo Marine. A Gannet hull costs 2940 euros.\n",
    "tavira.md": "# Tavira\n\nTavira is where the loft stands. The loft receives hulls of the Gannet on weekdays.\n",
}


def entity(name: str, type_: str = "", definition: str = "") -> dict[str, str]:
    return {"name": name, "type": type_, "definition": definition}


REPLIES: dict[str, dict[str, Any]] = {
    "moulds hulls": {
        "entities": [
            entity("Corvo Marine", "Organization", "Corvo Marine moulds hulls in Setúbal."),
            entity("Setúbal", "place"),
            entity("Lisbon", "place"),  # no page names it
            entity("Corvo", "organisation", "Corvo is a house of three hundred people."),
        ],
        "relations": [
            {"source": "Corvo Marine", "relation": "Moulds hulls in", "target": "Setúbal", "quote": "moulds hulls in Setúbal"},
            {"source": "Corvo Marine", "relation": "owns", "target": "Lisbon", "quote": "Corvo Marine moulds hulls"},
        ],
        "claims": [
            {
                "subject": "Corvo Marine", "predicate": "may close", "object": "the old hall", "kind": "state", "status": "unverified",
                "negated": False, "quote": "It is said that Corvo Marine may close the old hall.",
            },
            {
                "subject": "Corvo Marine", "predicate": "employs", "object": "three hundred people", "kind": "quantity",
                "status": "confirmed", "negated": False, "quote": "Corvo Marine employs three hundred people",
            },
        ],
    },
    "costs 2940": {
        "entities": [entity("Gannet", "product"), entity("Corvo Marine", "organisation")],
        "relations": [
            {
                "source": "Gannet", "relation": "has its hull from", "target": "Corvo Marine",
                "quote": "The hull of the\n  Gannet comes from Corvo Marine",
            }
        ],
        "claims": [
            {
                "subject": "Gannet", "predicate": "hull costs", "object": "2940 euros", "kind": "price", "status": "confirmed",
                "negated": False, "quote": "A Gannet hull costs 2940 euros.",
            }
        ],
    },
    "loft stands": {"entities": [entity("Tavira", "place"), entity("Gannet", "product")], "relations": [], "claims": []},
}  # fmt: skip


def reply(request: Request) -> str:
    asked = request.messages[-1].content
    if "<statements>" in asked:
        return json.dumps({"title": "Corvo Marine and the Gannet", "chosen": [1, 1, 99]})
    return next(json.dumps(said) for words, said in REPLIES.items() if words in asked)


@pytest.fixture(scope="session")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, indexed, without a graph; not to be changed."""
    root = tmp_path_factory.mktemp("graph-by-model") / "pages"
    root.mkdir()
    for name, text in PAGES.items():
        (root / name).write_text(text, "utf-8")
    index(str(root), embedder="none", workers=0)
    return root


@pytest.fixture
def root(indexed: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    copy = tmp_path / "pages"
    shutil.copytree(indexed, copy)
    return copy


def build(root: Path, session: Session | None = None, **options: Any) -> Built:
    if session is not None:
        options |= {"reader": ModelReader(session=session), "author": ModelAuthor(session=session)}
    with upkeep_of(Place.open(str(root / ".clew"))) as upkeep:
        return build_graph(upkeep.writer, BuildOptions(min_size=2, **options))


def graph_of(root: Path) -> Knowledge:
    return Index.open(str(root)).knowledge


def test_only_what_a_passage_holds_enters_the_graph(root: Path) -> None:
    session = Session(ScriptedModel(reply))
    reader = ModelReader(session=session)
    build(root, reader=reader)
    graph = graph_of(root)
    entities = {row["name"]: row for row in graph.entities.to_pylist()}
    assert "Lisbon" not in entities
    assert {"Corvo Marine", "Setúbal", "Gannet", "Tavira"} <= set(entities)
    assert entities["Corvo Marine"]["type"] == "organisation"
    assert entities["Corvo Marine"]["answer"] == "Corvo Marine moulds hulls in Setúbal."
    claims = {row["predicate"]: row for row in graph.claims.to_pylist()}
    assert "employs" not in claims
    assert claims["may close"]["status"] == "unverified"
    assert claims["hull costs"]["statement"] == "A Gannet hull costs 2940 euros."
    # White space aside, a quote stands in its passage letter by letter.
    assert claims["has its hull from"]["statement"] == "The hull of the Gannet comes from Corvo Marine"
    assert dict(reader.dropped) == {"entities": 1, "definitions": 1, "relations": 1, "claims": 1}
    for row in claims.values():
        source = graph.resolve([(row["chunk_key"], row["start"], row["end"])])[0]
        assert source is not None
        assert source.text == row["statement"]


def test_relations_carry_their_predicate(root: Path) -> None:
    build(root, Session(ScriptedModel(reply)))
    graph = graph_of(root)
    names = dict(zip(graph.keys.tolist(), graph.entities["name"].to_pylist(), strict=True))
    stated = {
        (names[row["source"]], row["kind"], names[row["target"]]): row
        for row in graph.relations.to_pylist()
        if row["kind"] not in ("cooccurrence", "hyperlink")
    }
    assert set(stated) == {
        ("Corvo Marine", "moulds hulls in", "Setúbal"), ("Gannet", "has its hull from", "Corvo Marine"),
    }  # fmt: skip
    assert all((row["weight"], row["rank"]) == (1.0, 1) for row in stated.values())


def test_a_page_is_paid_for_once(root: Path) -> None:
    first = Session(ScriptedModel(reply))
    assert build(root, first).passages_read == 3
    again = Session(ScriptedModel(reply))
    built = build(root, again)
    assert (again.spent.calls, built.passages_read, built.published) == (0, 0, False)
    # An update by whoever knows of no model keeps what the model read, and reads with the rules what is new.
    (root / "new.md").write_text("# Sandpiper\n\nThe Sandpiper is a buoy for harbours.\n", "utf-8")
    index(str(root), workers=0)
    assert build(root).passages_read == 1
    assert {row["predicate"] for row in graph_of(root).claims.to_pylist()} >= {"may close", "is a"}
    assert build(root, reader=RuleReader()).passages_read == 3


def test_a_budget_leaves_a_whole_graph_and_the_rest_for_later(root: Path) -> None:
    alone = Session(ScriptedModel(reply))
    with upkeep_of(Place.open(str(root / ".clew"))) as upkeep:
        forecast = estimate(upkeep.writer, BuildOptions(reader=ModelReader(session=alone)))
    assert alone.spent.calls == 0
    assert (forecast.calls, forecast.to_read) == (3, 3)
    bound = (forecast.tokens_in + forecast.tokens_out) // 3 + 500
    session = Session(ScriptedModel(reply), budget=Budget(tokens=bound))
    built = build(root, session)
    assert 0 < session.spent.calls < 3
    assert session.spent.tokens <= bound
    assert built.stopped is not None
    assert built.passages_left == 3 - session.spent.calls
    assert built.passages_read == 3  # the rules read the rest
    assert {"Gannet", "Tavira", "Corvo Marine"} <= set(graph_of(root).entities["name"].to_pylist())
    rest = Session(ScriptedModel(reply))
    build(root, rest)
    whole = root.parent / "whole"
    shutil.copytree(root, whole)
    shutil.rmtree(whole / ".clew")
    index(str(whole), embedder="none", workers=0)
    build(whole, Session(ScriptedModel(reply)))
    assert _said(root) == _said(whole)


def _said(root: Path) -> dict[str, Any]:
    graph = graph_of(root)
    return {
        "entities": [(row["name"], row["type"], row["answer"]) for row in graph.entities.to_pylist()],
        "claims": sorted((row["subject"], row["predicate"], row["object"]) for row in graph.claims.to_pylist()),
        "reports": sorted((row["title"], row["author"]) for row in graph.reports.to_pylist()),
    }


@pytest.mark.parametrize("at_once", [1, 8])
def test_a_malformed_reply_costs_its_page_alone(root: Path, at_once: int) -> None:
    def broken(request: Request) -> str:
        return "I would rather not." if "costs 2940" in request.messages[1].content else reply(request)

    session = Session(ScriptedModel(broken), at_once=at_once)
    built = build(root, session)
    assert (session.spent.malformed, built.passages_left, built.stopped) == (1, 1, None)
    assert {"may close"} <= {row["predicate"] for row in graph_of(root).claims.to_pylist()}
    assert "Gannet" in graph_of(root).entities["name"].to_pylist()  # by the rules
    assert build(root, Session(ScriptedModel(reply))).passages_left == 0
    assert "hull costs" in {row["predicate"] for row in graph_of(root).claims.to_pylist()}


def test_a_service_that_is_down_leaves_what_was_there(root: Path) -> None:
    build(root, Session(ScriptedModel(reply)))
    before = _said(root)
    down = Session(ScriptedModel(lambda _: LanguageModelError("down"), name="another"))
    built = build(root, down)
    assert built.stopped == "down"
    assert _said(root) == before


@pytest.mark.parametrize("at_once", [1, 8])
def test_reports_hold_only_spans_of_passages(root: Path, at_once: int) -> None:
    build(root, Session(ScriptedModel(reply), at_once=at_once))
    graph = graph_of(root)
    rows = graph.reports.to_pylist()
    assert any(row["summary"] for row in rows)
    for row in rows:
        if row["summary"]:
            assert row["author"].startswith("scripted")
            assert row["title"] == "Corvo Marine and the Gannet"
            assert len(row["summary"]) == 1  # the model chose one, twice, and one that is not there
        for one in row["summary"]:
            source = graph.resolve([(one["chunk_key"], one["start"], one["end"])])[0]
            assert source is not None
            assert source.text.split() == one["statement"].split()


def test_documents_are_read_on_demand(root: Path) -> None:
    build(root)
    session = Session(ScriptedModel(reply), prices=Prices(tokens_in=1, tokens_out=1))
    with upkeep_of(Place.open(str(root / ".clew"))) as upkeep:
        chosen = documents_named(upkeep.writer, ["gannet.md"])
        build_graph(upkeep.writer, BuildOptions(reader=ModelReader(session=session), documents=chosen))
    assert session.spent.calls == 1
    assert "hull costs" in {row["predicate"] for row in graph_of(root).claims.to_pylist()}


def test_replies_are_kept_between_builds(root: Path, tmp_path: Path) -> None:
    replies = KeptReplies(tmp_path / "replies.sqlite")
    build(root, Session(ScriptedModel(reply), replies=replies))
    shutil.rmtree(root / ".clew")
    index(str(root), embedder="none", workers=0)
    session = Session(ScriptedModel(reply), replies=replies)
    build(root, session)
    assert session.spent.calls == 0
    assert session.spent.cached > 3
