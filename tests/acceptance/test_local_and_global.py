"""The worked example of local and global questions, from the command line: without it, a route could answer the wrong kind of question
with confidence, and a report could pass for a source.

What is expected is worked out here from who names whom, with plain SQL, and not with clew.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.commands import clew
from tests.examples.local_and_global import DOCUMENTS, NAMES, SUBJECTS, THEMES, write_documents

pytestmark = pytest.mark.acceptance

LOCAL = "o que os documentos dizem sobre a caução"
GLOBAL = "quais são os temas que dominam este acervo"
MIXED = "vistoria, no contexto geral"
FOREIGN = "como faço bolo de cenoura"

#: A row a simple path from the seed; `:cap` is a degree cap, by the rank that the graph gives each neighbour.
PATHS = """
WITH RECURSIVE hops(node, hop, trail) AS (
    SELECT :seed, 0, '|' || :seed || '|'
    UNION ALL
    SELECT edge.target, hops.hop + 1, hops.trail || edge.target || '|'
      FROM hops JOIN edge ON edge.source = hops.node
     WHERE hops.hop < :hops AND instr(hops.trail, '|' || edge.target || '|') = 0 AND (:cap IS NULL OR edge.rank <= :cap)
)
SELECT node, hop, trail FROM hops
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documents, indexed without a model, with their graph."""
    folder = tmp_path_factory.mktemp("local-and-global") / "acervo"
    write_documents(folder)
    assert clew("index", folder, "--embedder", "none", "--json").status == 0
    built = clew("graph", "build", folder, "--json").object
    assert (built["passages_read"], built["entities"]) == (len(DOCUMENTS), len(SUBJECTS))
    return folder


@pytest.fixture(scope="module")
def edges(root: Path) -> Iterator[sqlite3.Connection]:
    """The relations that clew stored, as a table of SQL: (source, target, weight, rank)."""
    rows = clew("graph", "relations", root, "--json").rows
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE edge (source TEXT, target TEXT, weight REAL, rank INTEGER)")
    base.executemany(
        "INSERT INTO edge VALUES (?, ?, ?, ?)",
        [
            (row["source_name"].capitalize(), row["target_name"].capitalize(), row["weight"], row["rank"])
            for row in rows
            if row["kind"] == "cooccurrence"
        ],
    )
    yield base
    base.close()


def test_relations_count_the_documents_that_name_both(edges: sqlite3.Connection) -> None:
    expected: dict[tuple[str, str], int] = defaultdict(int)
    for names in NAMES.values():
        for one, other in combinations(names, 2):
            expected[one, other] += 1
            expected[other, one] += 1
    found = {
        (source, target): weight for source, target, weight in edges.execute("SELECT source, target, weight FROM edge")
    }
    assert found == expected
    for subject in SUBJECTS:
        ranked = edges.execute("SELECT weight FROM edge WHERE source = ? ORDER BY rank", (subject,)).fetchall()
        assert ranked == sorted(ranked, reverse=True)


@pytest.mark.parametrize("seed", ["Contrato", "Vistoria", "Monitor"])
@pytest.mark.parametrize("cap", [2, 4])
def test_fan_out_counts_nodes_and_simple_paths(root: Path, edges: sqlite3.Connection, seed: str, cap: int) -> None:
    report = clew("graph", "fanout", root, seed, "--hops", "3", "--cap", str(cap), "--json").object
    assert report["complete"]
    for limit, nodes, paths in ((cap, "nodes", "paths"), (None, "nodes_without_cap", "paths_without_cap")):
        walked = edges.execute(PATHS, {"seed": seed, "hops": 3, "cap": limit}).fetchall()
        nearest: dict[str, int] = {}
        for node, hop, _ in sorted(walked, key=lambda row: row[1]):
            nearest.setdefault(node, hop)
        for hop in report["hops"]:
            assert hop[nodes] == sum(one == hop["hop"] for one in nearest.values())
            assert hop[paths] == sum(row[1] == hop["hop"] for row in walked)
    assert report["hops"][3]["paths_without_cap"] > report["hops"][3]["nodes_without_cap"]


def test_communities_lie_within_themes(root: Path) -> None:
    finest = clew("graph", "communities", root, "--level", "0", "--json").rows
    members = [frozenset(name.capitalize() for name in row["members"]) for row in finest]
    assert len(members) == len(THEMES)
    assert all(any(one <= theme for theme in THEMES) for one in members)
    assert len(frozenset().union(*members)) >= len(SUBJECTS) - 1


def test_a_local_question_is_answered_near_its_subject(root: Path, edges: sqlite3.Connection) -> None:
    answer = asked(root, LOCAL, "--hops", "2", "--fanout", "4")
    assert answer["route"] == "local"
    assert "Caução" in answer["reason"]
    assert answer["statements"][0]["text"] == "A caução é uma quantia que se devolve no regresso."
    walked = edges.execute(PATHS, {"seed": "Caução", "hops": 2, "cap": 4}).fetchall()
    nearest = {node: min(row[1] for row in walked if row[0] == node) for node, _, _ in walked}
    assert {one["name"].capitalize(): one["hop"] for one in answer["entities"]} == nearest
    trails = {row[2] for row in walked}
    for one in answer["entities"]:
        assert "|" + "|".join(name.capitalize() for name in one["trail"]) + "|" in trails
    hops = [one["hop"] for one in answer["entities"]]
    assert hops == sorted(hops)


def test_entities_answer_with_a_sentence_instead_of_a_passage(root: Path) -> None:
    answer = asked(root, LOCAL)
    ready = [one for one in answer["statements"] if {"entities", "neighbours"} & set(one["sources"])]
    assert len(ready) >= 3
    cost = answer["cost"]
    assert cost["context_chars"] < cost["passage_chars"]
    assert cost["chars_saved"] == cost["passage_chars"] - cost["context_chars"]


def test_a_global_question_is_answered_from_every_theme_by_weight(root: Path) -> None:
    answer = asked(root, GLOBAL, "--max-statements", "9")
    assert answer["route"] == "global"
    weights = [one["documents"] for one in answer["reports_used"]]
    assert weights == sorted(weights, reverse=True)
    reached = {
        theme for theme in THEMES for one in answer["statements"] if (one["subject"] or "").capitalize() in theme
    }
    assert reached == set(THEMES)


def test_a_mixed_question_reads_reports_as_a_map_and_cites_passages(root: Path) -> None:
    answer = asked(root, MIXED)
    assert answer["route"] == "mixed"
    assert answer["statements"][0]["citations"] == [1]
    assert answer["citations"][0]["path"] == "oficina/vistoria.md"
    led = [one for one in answer["statements"] if one["report"]]
    assert led
    assert {one["report"] for one in led} <= {one["id"] for one in answer["reports_used"]}
    assert {one["path"] for one in answer["citations"]} <= set(DOCUMENTS)


@pytest.mark.parametrize("route", ["auto", "local", "mixed", "global", "drift"])
def test_a_foreign_question_comes_back_empty(root: Path, route: str) -> None:
    for question in (FOREIGN, "resumo geral do acervo sobre equipamentos de escritório"):
        answer = asked(root, question, "--route", route)
        assert (answer["route"], answer["answer"], answer["citations"]) == ("none", "", [])
        assert answer["abstained"]
        assert answer["reason"]


def test_cases_tell_where_the_graph_is_not_worth_its_price(root: Path, tmp_path: Path) -> None:
    cases = tmp_path / "cases.yaml"
    cases.write_text(
        "cases:\n"
        f"  - {{question: '{LOCAL}', route: local, evidence: [aluguer/caucao.md]}}\n"
        f"  - {{question: '{MIXED}', route: mixed, evidence: [oficina/vistoria.md], community: Vistoria}}\n"
        f"  - {{question: '{GLOBAL}', route: global, community: Roteiro}}\n"
        f"  - {{question: '{FOREIGN}', route: none}}\n",
        "utf-8",
    )
    report = clew("graph", "eval", root, cases, "--json").object
    assert (report["cases"], report["macro_accuracy"], report["negatives_empty"], report["lost"]) == (4, 1.0, 1.0, 0.0)
    assert report["negatives_empty_by_route"] == {"local": 1.0, "mixed": 1.0, "global": 1.0, "drift": 1.0}
    by_route = {row["route"]: row for row in report["routes"]}
    assert by_route["local"]["coverage"] == by_route["mixed"]["coverage"] == 1.0
    assert by_route["mixed"]["community_correct"] == by_route["global"]["community_correct"] == 1.0
    assert by_route["none"]["empty"] == by_route["none"]["routed"] == 1
    assert any("fits into" in line for line in report["advice"])
    assert clew("graph", "eval", root, cases, "--min", "1.01").status == 1
    told = clew("graph", "eval", root, cases)
    assert told.status == 0
    assert "4 cases" in told.out
    fitted = clew("graph", "calibrate", root, cases, "--dry-run", "--json").object
    assert fitted["after"] >= fitted["before"]
    assert not fitted["stored"]


@pytest.mark.parametrize("content", ["cases: [{question: x, route: sideways}]", "- 1", "cases: [", "cases: []"])
def test_cases_that_are_none_get_one_sentence(root: Path, tmp_path: Path, content: str) -> None:
    cases = tmp_path / "cases.yaml"
    cases.write_text(content, "utf-8")
    done = clew("graph", "eval", root, cases)
    assert done.status == 2
    assert str(cases) in done.sentence


def test_people_see_an_answer_with_its_sources(root: Path) -> None:
    done = clew("ask", root, LOCAL, "--explain")
    assert done.status == 0
    assert done.out.startswith("local: ")
    assert "[1] aluguer/caucao.md" in done.out
    assert "nothing found" in clew("ask", root, FOREIGN).out
    assert clew("ask", root, LOCAL, "--route", "sideways").status == 2
    assert clew("ask", root, LOCAL, "--hops", "9").status == 2


def asked(root: Path, question: str, *options: str) -> dict[str, Any]:
    """An answer whose every citation stands where it says, and none of which is a report."""
    answer = clew("ask", root, question, *options, "--json").object
    assert answer["citations_resolve"]
    texts = {one["n"]: one["text"] for one in answer["citations"]}
    for statement in answer["statements"]:
        assert statement["citations"]
        assert all(statement["text"].split() == texts[n].split() for n in statement["citations"])
    for cited in answer["citations"]:
        title, text = DOCUMENTS[cited["path"]]
        assert " ".join(cited["text"].split()) in " ".join(f"{title} {text}".split())
    return answer
