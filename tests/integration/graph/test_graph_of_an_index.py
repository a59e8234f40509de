"""The graph as part of an index: without these, a deleted page could live on in a report, or two builds differ."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clew.errors import NoGraphError, OptionError
from clew.indexer.compaction import compact
from clew.indexer.garbage import Retention, sweep
from clew.indexer.graph.build import BuildOptions, Built, build_graph
from clew.indexer.graph.editing import delete_report, documents_named, estimate, undo_merge
from clew.indexer.graph.schemas import graph_schemas
from clew.indexer.place import Place
from clew.indexer.progress import Progress, Silence
from clew.indexer.purge import purge
from clew.indexer.report import index
from clew.indexer.tables import TableChange
from clew.indexer.upkeep import upkeep_of
from clew.query.index import Index
from clew.query.knowledge import Knowledge
from clew.query.restriction import Restriction
from tests.examples.graph_pages import PAGES, write_pages


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, indexed, with their graph; not to be changed."""
    root = tmp_path_factory.mktemp("graph") / "pages"
    write_pages(root)
    index(str(root), embedder="hashing:32", workers=0)
    build(root)
    return root


@pytest.fixture
def root(built_once: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    copy = tmp_path / "pages"
    shutil.copytree(built_once, copy, symlinks=True)
    return copy


def place_of(root: Path) -> Place:
    return Place.open(str(root / ".clew"))


class Stages(Silence):
    """What who watches sees: stages with what was done of what was to do, in order."""

    def __init__(self) -> None:
        self.done: list[tuple[str, int | None, int]] = []

    def begin(self, stage: str, total: int | None, unit: str) -> None:
        self.done.append((stage, total, 0))

    def advance(self, amount: int) -> None:
        stage, total, done = self.done[-1]
        self.done[-1] = (stage, total, done + amount)


def build(root: Path, progress: Progress | None = None, **options: Any) -> Built:
    from clew.indexer.equipment import Equipment

    with upkeep_of(place_of(root)) as upkeep:
        return build_graph(upkeep.writer, BuildOptions(**options), Equipment().embedder("hashing:32"), progress)


def update(root: Path) -> Built:
    index(str(root), workers=0)
    return build(root)


def graph_of(root: Path) -> Knowledge:
    return Index.open(str(root)).knowledge


def content(root: Path, *, communities: bool = True) -> dict[str, Any]:
    """Everything the graph says, by paths and names instead of keys that a fresh build hands out anew."""
    graph = graph_of(root)
    pinned = graph.pinned
    names = dict(zip(graph.keys.tolist(), graph.entities["name"].to_pylist(), strict=True))

    def passage(key: int | None) -> Any:
        found = None if key is None else graph.resolve([(key, 0, 1 << 30)])[0]
        return (found.path, found.text) if found else ("", "")

    said: dict[str, Any] = {
        "entities": [
            (row["name"], row["type"], sorted(row["aliases"]), row["documents"], row["mentions"], row["answer"])
            for row in graph.entities.to_pylist()
        ],
        "mentions": sorted(
            (row["name"], row["kind"], passage(row["chunk_key"]))
            for row in pinned.tables["mentions"].read().to_pylist()
        ),
        "relations": sorted(
            (names[r["source"]], names[r["target"]], r["kind"], r["weight"], r["rank"])
            for r in graph.relations.to_pylist()
        ),
        "claims": sorted(
            (r["subject"], r["predicate"], r["object"], r["status"], r["negated"]) for r in graph.claims.to_pylist()
        ),
    }
    if communities:
        said["reports"] = sorted(
            (row["level"], row["title"], row["documents"], [one["statement"] for one in row["summary"]])
            for row in graph.reports.to_pylist()
        )
    return said


def assert_whole(graph: Knowledge) -> None:
    """Nothing names what is not there."""
    keys = set(graph.keys.tolist())
    tables = graph.pinned.tables
    relations = tables["relations"].read()
    assert {*relations["source"].to_pylist(), *relations["target"].to_pylist()} <= keys
    assert {key for members in tables["communities"].read()["members"].to_pylist() for key in members} <= keys
    assert set(tables["aliases"].read()["entity_key"].to_pylist()) <= keys
    for name in ("mentions", "claims", "readings"):
        assert graph.live(tables[name].read(["chunk_key"])["chunk_key"].to_numpy()).all(), name
    for row in tables["reports"].read().to_pylist():
        assert {one["entity_key"] for one in row["summary"]} <= keys
        assert graph.live(np.array(row["evidence"], dtype=np.int64)).all()
    refs = graph.pinned.snapshot.tables
    assert all(refs[name].rows == tables[name].rows for name in graph_schemas(None))


def test_subjects_themes_and_answers_of_the_worked_example(built_once: Path) -> None:
    graph = graph_of(built_once)
    assert set(graph.entities["name"].to_pylist()) == {title for title, _ in PAGES.values()}
    finest = [row for row in graph.communities.to_pylist() if row["level"] == 0]
    names = dict(zip(graph.keys.tolist(), graph.entities["name"].to_pylist(), strict=True))
    themes: dict[str, set[str]] = {}
    for path, (title, _) in PAGES.items():
        themes.setdefault(path.split("/")[0], set()).add(title)
    assert sorted(sorted(names[key] for key in row["members"]) for row in finest) == sorted(
        sorted(one) for one in themes.values()
    )
    answers = graph.answers(range(len(graph.keys)))
    for name, answer in zip(graph.entities["name"].to_pylist(), answers, strict=True):
        assert answer is not None
        assert name.lower() in answer.text.lower()
    assert_whole(graph)


def test_every_statement_of_every_report_stands_in_its_source(built_once: Path) -> None:
    graph = graph_of(built_once)
    shown = Index.open(str(built_once))
    for row in graph.reports.to_pylist():
        assert row["summary"]
        for one in row["summary"]:
            (place,) = graph.resolve([(one["chunk_key"], one["start"], one["end"])])
            assert place is not None
            assert " ".join(place.text.split()) == one["statement"]
            assert (shown.show(place.path).text or "")[place.char_start : place.char_end] == place.text


def test_second_build_of_the_same_reads_and_publishes_nothing(root: Path) -> None:
    done = build(root)
    assert (done.passages_read, done.published) == (0, False)


def test_update_gives_what_a_fresh_build_gives_whose_stages_are_seen(root: Path, tmp_path: Path) -> None:
    (root / "energia/bateria.md").write_text(
        "# Bateria\n\nA bateria é um reservatório que alimenta o inversor. O medidor a vigia.\n"
    )
    (root / "pessoas/ferias.md").unlink()
    (root / "transporte/rota.md").rename(root / "transporte/percurso.md")
    (root / "energia/gerador.md").write_text(
        "# Gerador\n\nO gerador é uma máquina que carrega a bateria quando falta o painel solar.\n"
    )
    done = update(root)
    assert 2 <= done.passages_read < len(PAGES) / 2
    assert_whole(graph_of(root))
    fresh = tmp_path / "fresh"
    shutil.copytree(root, fresh, ignore=shutil.ignore_patterns(".clew"))
    index(str(fresh), embedder="hashing:32", workers=0)
    watched = Stages()
    built = build(fresh, watched)
    assert content(root, communities=False) == content(fresh, communities=False)
    ended = [one for one in watched.done if one[1] == one[2]]  # an outer stage begins again behind one within it
    assert list(dict.fromkeys(stage for stage, _, _ in ended)) == [
        "Reading for the graph", "Resolving names", "Embedding names", "Relating entities", "Grouping entities", "Writing reports",
    ]  # fmt: skip
    assert ("Writing reports", built.reports_made, built.reports_made) in ended


def test_deleted_page_is_gone_before_the_graph_is_built_again(root: Path) -> None:
    (root / "pessoas/ferias.md").unlink()
    index(str(root), workers=0)
    graph = graph_of(root)
    assert not any(
        "descanso de trinta dias" in one["statement"] for row in graph.reports.to_pylist() for one in row["summary"]
    )
    (ferias,) = graph.named("férias")
    assert graph.answers([ferias]) == [None]
    assert all(found is not None for found in graph.resolve([(int(key), 0, 9) for key in graph.passages_of(ferias)]))


def test_only_touched_communities_are_reported_again(root: Path) -> None:
    before = {row["community_key"]: row["built_ns"] for row in graph_of(root).reports.to_pylist()}
    with (root / "energia/medidor.md").open("a", encoding="utf-8") as file:
        file.write("\nO medidor é um aparelho lacrado que a empresa troca.\n")
    update(root)
    after = {row["community_key"]: row for row in graph_of(root).reports.to_pylist()}
    assert set(after) == set(before)
    kept = {row["title"] for key, row in after.items() if row["built_ns"] == before[key]}
    assert not any("Medidor" in title for title in kept)
    assert any("Férias" in title for title in kept)


def test_purged_text_is_in_no_table_of_the_graph(root: Path) -> None:
    place = place_of(root)
    with upkeep_of(place) as upkeep:
        purge(upkeep, "pessoas/ferias.md")
    assert_whole(graph_of(root))
    for file in (root / ".clew").rglob("*"):
        if file.is_file():
            assert b"descanso de trinta dias" not in file.read_bytes(), file


def test_killed_before_it_is_published_a_build_leaves_nothing(root: Path) -> None:
    with (root / "energia/medidor.md").open("a", encoding="utf-8") as file:
        file.write("\nO lacre é uma peça que protege o medidor.\n")
    index(str(root), workers=0)
    before = graph_of(root).pinned.snapshot
    code = (
        "import sys; from clew.indexer import faults; from clew.indexer.place import Place\n"
        "from clew.indexer.upkeep import upkeep_of; from clew.indexer.graph.build import build_graph\n"
        "with upkeep_of(Place.open(sys.argv[1])) as upkeep:\n"
        "    faults.arm('publish.before-put'); build_graph(upkeep.writer)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(root / ".clew")], capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    after = graph_of(root).pinned
    assert after.snapshot == before
    assert {name: after.tables[name].rows for name in graph_schemas(None)} == {
        name: before.tables[name].rows for name in graph_schemas(None)
    }
    build(root)
    graph = graph_of(root)
    assert graph.named("lacre")
    assert_whole(graph)


@pytest.mark.slow
def test_same_graph_for_any_number_of_processes_and_any_hash_seed(built_once: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from clew.indexer.graph import passages; passages.WORTH_PROCESSES = 1\n"
        "from clew.indexer.place import Place; from clew.indexer.upkeep import upkeep_of\n"
        "from clew.indexer.graph.build import build_graph, BuildOptions\n"
        "with upkeep_of(Place.open(sys.argv[1])) as upkeep:\n"  # nor does a program of somebody else guard its lines
        "    build_graph(upkeep.writer, BuildOptions(workers=int(sys.argv[2])))\n"
    )
    script = tmp_path / "build.py"
    script.write_text(code)
    found = []
    for workers, seed in ((0, "0"), (3, "1"), (2, "77")):
        copy = tmp_path / f"copy-{workers}"
        write_pages(copy)
        write_homonyms(copy)
        index(str(copy), embedder="none", workers=0)
        subprocess.run(
            [sys.executable, str(script), str(copy / ".clew"), str(workers)],
            check=True,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
        )
        tables = graph_of(copy).pinned.tables
        found.append(
            {
                name: list(tables[name].read().drop_columns(["built_ns"] if name == "reports" else []).to_pylist())
                for name in graph_schemas(None)
            }
        )
    assert found[0] == found[1] == found[2]


def test_undone_merge_stays_undone(root: Path) -> None:
    graph = graph_of(root)
    row = next(row for row in graph.aliases.to_pylist() if row["name"] == "frota")
    assert row["how"] == "normalised"
    with upkeep_of(place_of(root)) as upkeep:
        undo_merge(upkeep.writer, row["form_key"], None)
    assert len(graph_of(root).named("frota")) == 2
    (root / "nova.md").write_text("# Nova\n\nUma página nova.\n")
    update(root)
    assert len(graph_of(root).named("frota")) == 2
    with upkeep_of(place_of(root)) as upkeep, pytest.raises(OptionError, match="no merge"):
        undo_merge(upkeep.writer, 12345, None)


def test_on_demand_only_the_named_documents_are_read(tmp_path: Path) -> None:
    root = tmp_path / "pages"
    write_pages(root)
    index(str(root), embedder="none", workers=0)
    with pytest.raises(NoGraphError, match="clew graph build"):
        graph_of(root)
    with upkeep_of(place_of(root)) as upkeep:
        chosen = documents_named(upkeep.writer, ["energia/bateria.md", "energia/painel.md"])
        assert estimate(upkeep.writer, BuildOptions(documents=chosen)).to_read == 2
        done = build_graph(upkeep.writer, BuildOptions(documents=chosen))
        with pytest.raises(OptionError, match="at most 50"):
            documents_named(upkeep.writer, ["x"] * 51)
    assert (done.passages_read, done.passages_unread) == (2, len(PAGES) - 2)
    assert set(graph_of(root).entities["name"].to_pylist()) >= {"Bateria", "Painel solar"}
    assert not graph_of(root).named("Férias")


def test_whoever_may_see_some_files_learns_nothing_of_the_others(built_once: Path) -> None:
    part = Index.open(str(built_once)).restricted(Restriction.of(["transporte"]))
    graph = part.knowledge
    names = set(graph.entities["name"].to_pylist())
    assert {"Coleta", "Rota", "Frota"} <= names
    assert not names & {"Férias", "Bateria", "Banco de horas"}
    (frota,) = graph.named("Frota")
    assert graph.entities["documents"][frota].as_py() == 2
    assert set(graph.adjacency().targets.tolist()) <= set(range(len(graph.keys)))
    assert all(one["subject"] in names for row in graph.reports.to_pylist() for one in row["summary"])
    paths = {graph.resolve([(key, 0, 1)])[0].path.split("/")[0] for key in graph.claims["chunk_key"].to_pylist()}  # type: ignore[union-attr]
    assert paths == {"transporte"}


def test_compaction_and_sweep_leave_the_graph_as_it_is(root: Path) -> None:
    before = content(root)
    place = place_of(root)
    with upkeep_of(place) as upkeep:
        compact(upkeep.writer, full=True)
        sweep(upkeep, Retention(superseded=0, older_than=0))
    assert content(root) == before


def test_earlier_snapshot_shows_the_earlier_graph(root: Path) -> None:
    number = graph_of(root).pinned.snapshot.number
    (root / "pessoas/ferias.md").unlink()
    update(root)
    assert not graph_of(root).named("Férias") or graph_of(root).answers(graph_of(root).named("Férias")) == [None]
    assert Index.open(str(root), snapshot=number).knowledge.named("Férias")


def test_deleted_report_is_gone(root: Path) -> None:
    key = graph_of(root).reports["community_key"][0].as_py()
    with upkeep_of(place_of(root)) as upkeep:
        delete_report(upkeep.writer, key)
        with pytest.raises(OptionError, match="no community"):
            delete_report(upkeep.writer, key)
    assert key not in graph_of(root).reports["community_key"].to_pylist()


def test_indexing_keeps_the_graph_up_where_it_is_told_to(root: Path) -> None:
    (root / "energia/gerador.md").write_text("# Gerador\n\nO gerador é uma máquina que carrega a bateria.\n")
    index(str(root), workers=0, graph=True)
    assert graph_of(root).named("Gerador")


def test_vectors_of_names_come_with_the_embedder_and_stay(root: Path) -> None:
    matrix, filled = graph_of(root).vectors
    assert filled.all()
    assert np.allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-3)
    vectors, there = graph_of(root).report_vectors
    assert there.all()
    assert len(vectors) == graph_of(root).reports.num_rows


HOMONYMS = {
    "projects/mercury.md": "# Mercury\n\nMercury is a project that moves the Tide Register to Faro. Its sponsor is the Loft Council.\n",
    "projects/steps.md": "# Steps\n\nNext, Mercury moves the Tide Register. The Loft Council meets on Mercury.\n",
    "purchasing/mercury.md": "# Mercury\n\nMercury is a supplier of resin. Its papers are kept by Olive Brandt in Setúbal.\n",
    "purchasing/resin.md": "# Resin\n\nWe buy resin from Mercury, and Olive Brandt checks each drum.\n",
    "clinic/team.md": "# Team\n\nAna Prado is a nurse at the Ria Clinic. She works with Duarte Melo.\n",
    "yard/team.md": "# Yard\n\nAna Prado is an engineer. She keeps the Halyard Crane.\n",
    "tools/helm.md": "# Helm\n\nHelm is a tool that packs charts for the Quay Cluster.\n",
    "tools/more.md": "# More\n\nHelm is a project of the Quay Cluster group.\n",
}


def write_homonyms(root: Path) -> None:
    for path, text in HOMONYMS.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def homonyms(root: Path) -> dict[str, list[list[str]]]:
    """By name, the documents of each entity of that name."""
    graph = graph_of(root)
    found: dict[str, list[list[str]]] = {}
    for name in ("Mercury", "Ana Prado", "Helm"):
        for one in graph.named(name):
            places = graph.resolve([(int(key), 0, 1) for key in graph.passages_of(one)])
            found.setdefault(name, []).append(sorted({place.path for place in places if place is not None}))
        found[name].sort()
    return found


def test_two_things_of_one_name_are_two_entities_and_one_of_two_descriptions_is_one(tmp_path: Path) -> None:
    root = tmp_path / "pages"
    write_homonyms(root)
    (root / "purchasing" / "resin.md").unlink()
    index(str(root), embedder="hashing:32", workers=0)
    build(root)
    (root / "purchasing" / "resin.md").write_text(HOMONYMS["purchasing/resin.md"])
    update(root)
    apart = {
        "Mercury": [["projects/mercury.md", "projects/steps.md"], ["purchasing/mercury.md", "purchasing/resin.md"]],
        "Ana Prado": [["clinic/team.md"], ["yard/team.md"]],
        "Helm": [["tools/helm.md", "tools/more.md"]],
    }
    assert homonyms(root) == apart
    assert_whole(graph_of(root))
    graph = graph_of(root)
    answers = {answer.text for answer in graph.answers(graph.named("Mercury")) if answer is not None}
    assert {text.partition(" that ")[0].partition(" of ")[0] for text in answers} == {
        "Mercury is a project",
        "Mercury is a supplier",
    }
    fresh = tmp_path / "fresh"
    shutil.copytree(root, fresh, ignore=shutil.ignore_patterns(".clew"))
    index(str(fresh), embedder="hashing:32", workers=0)
    build(fresh)
    assert content(root, communities=False) == content(fresh, communities=False)
    assert Index.open(str(root)).check(deep=True).findings == ()
    # Whoever sees one of them sees one.
    part = Index.open(str(root)).restricted(Restriction.of(["purchasing"])).knowledge
    assert len(part.named("Mercury")) == 1
    told = next(row for row in graph.aliases.to_pylist() if row["how"] == "homonym" and row["name"] == "Mercury")
    assert "supplier" in told["reason"]
    assert "project" in told["reason"]
    with upkeep_of(place_of(root)) as upkeep:
        undo_merge(upkeep.writer, told["form_key"], None)
    joined = {
        "Mercury": [sorted(path for home in apart["Mercury"] for path in home)],
        "Ana Prado": apart["Ana Prado"],
        "Helm": apart["Helm"],
    }
    assert homonyms(root) == joined
    (root / "nova.md").write_text("# Nova\n\nUma página nova.\n")
    update(root)
    assert homonyms(root) == joined
    assert_whole(graph_of(root))
    # Where the second definition is gone, nothing is left to tell apart.
    (root / "yard" / "team.md").unlink()
    update(root)
    assert homonyms(root)["Ana Prado"] == [["clinic/team.md"]]
    assert_whole(graph_of(root))


def test_contradictions_are_shown_both_ways(tmp_path: Path) -> None:
    root = tmp_path / "pages"
    root.mkdir()
    (root / "one.md").write_text(
        "# Tide Gate\n\nThe Tide Gate supports remote control. The Tide Gate costs 450 euros.\n"
    )
    (root / "two.md").write_text(
        "# News\n\nThe Tide Gate does not support remote control. The Tide Gate costs 500 euros.\n"
    )
    index(str(root), embedder="none", workers=0)
    with upkeep_of(place_of(root)) as upkeep:
        build_graph(upkeep.writer)
    claims = {row["claim_key"]: row for row in graph_of(root).claims.to_pylist()}
    against = {
        (row["object"], row["negated"]): [claims[key]["object"] for key in row["contradicts"]]
        for row in claims.values()
    }
    assert against["450 euros", False] == ["500 euros"]
    assert against["500 euros", False] == ["450 euros"]
    assert against["remote control", True] == ["remote control"]


def test_a_whole_graph_passes_the_check_and_so_does_one_that_waits_for_a_build(root: Path) -> None:
    assert Index.open(str(root)).check(deep=True).findings == ()
    (root / "energia" / "bateria.md").unlink()
    index(str(root), workers=0)
    assert Index.open(str(root)).check(deep=True).findings == ()


def test_a_graph_that_names_what_is_not_there_is_found(root: Path) -> None:
    said = {
        ("entities", "entity_key"): "unknown entity",
        ("communities", "community_key"): "community that is not there",
        ("readings", "chunk_key"): "that were not read",
    }
    with upkeep_of(place_of(root)) as upkeep:
        for table, key in said:
            rows = upkeep.writer.tables[table].read_with_addresses([key])
            upkeep.writer.tables[table].commit(TableChange(delete=rows["_rowaddr"].to_numpy()[:1]))
        upkeep.writer.publish()
    report = Index.open(str(root)).check()
    assert not report.ok
    found = " ".join(finding.message for finding in report.findings if finding.check == "graph")
    assert all(message in found for message in said.values()), found


def test_a_quote_that_does_not_stand_in_its_passage_is_found(root: Path) -> None:
    with upkeep_of(place_of(root)) as upkeep:
        table = upkeep.writer.tables["claims"]
        rows = table.take_addresses(
            table.read_with_addresses(["claim_key"])["_rowaddr"].to_numpy()[:1], table.schema.names
        )
        false = rows.set_column(
            rows.schema.get_field_index("statement"), table.schema.field("statement"), [["Nobody said so."]]
        )
        address = table.read_with_addresses(["claim_key"])["_rowaddr"].to_numpy()[:1]
        table.commit(TableChange(delete=address, append=table.write(false.cast(table.schema))))
        upkeep.writer.publish()
    report = Index.open(str(root)).check(deep=True)
    assert [finding.check for finding in report.findings] == ["quotes"]
    assert "Nobody said so." in report.findings[0].message
