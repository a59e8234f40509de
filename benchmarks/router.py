"""The router: on the cases of the handbook, on questions to transcripts, and on questions that a collection does not hold.

    python -m benchmarks.router cases [--half 0|1]    # tests/data/router on the example handbook, macro over kinds
    python -m benchmarks.router cases --folder tests/data/router/fresh    # those of another folder
    python -m benchmarks.router transcripts           # graphrag-microsoft: over many transcripts global, over one local
    python -m benchmarks.router foreign               # XQuAD English: own questions lost, those of other collections answered
    python -m benchmarks.router statements            # Kubernetes' documentation: what reports and answers say stands in the passages

`--half`: of each kind the cases with even (0) or odd (1) numbers. The rules of the first version were committed before any case was read;
after that the odd ones were, and later the even ones, too: what tells how the rules do on questions that nobody read are those in `fresh`.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import clew
from benchmarks.datasets import collection
from clew import examples
from clew.indexer.equipment import Equipment
from clew.indexer.graph.build import BuildOptions, build_graph
from clew.indexer.place import Place
from clew.indexer.upkeep import upkeep_of
from clew.query.answers.asking import Asker
from clew.query.answers.cases import read_cases
from clew_client.answers import AskRequest, RouteName

CASES = Path(__file__).resolve().parents[1] / "tests" / "data" / "router"
EMBEDDER = "minilm"


def opened(root: str, folder: str, embedder: str = EMBEDDER) -> Asker:
    """An index with its graph, built in a folder of its own."""
    place = str(Path(folder) / "index")
    clew.index(root, index=place, embedder=embedder)
    with upkeep_of(Place.open(place)) as upkeep:
        build_graph(upkeep.writer, BuildOptions(), None if embedder == "none" else Equipment().embedder(embedder))
    index = clew.open(root, index=place)
    return index._asker(logged=False)


def routed(asker: Asker, question: str, route: RouteName | str = "auto") -> RouteName:
    """The route of a question; nothing is answered."""
    request = AskRequest(question=question, route=route)
    return asker.decide(asker.inquire(question), request)[0].route


def cases(half: int | None, place: Path = CASES) -> None:
    """Macro accuracy over kinds, and which kinds go where."""
    chosen = [case for case in read_cases(str(place)) if case.collection == "handbook"]
    chosen = [case for case in chosen if half is None or int(case.id.rpartition("-")[2]) % 2 == half]
    went: dict[str, Counter[str]] = defaultdict(Counter)
    right: dict[str, list[bool]] = defaultdict(list)
    by_language: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory() as folder:
        asker = opened(str(examples.handbook()), folder)
        for case in chosen:
            route = routed(asker, case.question)
            went[case.kind][route] += 1
            right[case.kind].append(route == case.route)
            by_language[case.language or ""][case.kind].append(route == case.route)
    for kind, routes in went.items():
        print(f"{kind:<9} {_mean(right[kind]):.3f}  {dict(routes)}")
    for language, kinds in by_language.items():
        print(f"{language}: macro {_mean([_mean(found) for found in kinds.values()]):.3f}")
    print(f"{len(chosen)} cases: macro {_mean([_mean(found) for found in right.values()]):.3f}")


def transcripts() -> None:
    """Routes of the questions over many transcripts (global) and over one (local)."""
    home = collection("graphrag-microsoft")
    shares = []
    for folder, files in (
        ("MSFT", {"MSFT-Multi-Transcript-Questions.csv": "global", "MSFT-Single-Transcript-Questions.csv": "local"}),
        ("Kevin-Scott-Podcast-Transcripts", {"Kevin-Scott-Questions.csv": "global"}),
    ):
        with tempfile.TemporaryDirectory() as work:
            asker = opened(str(home / folder), work)
            for name, expected in files.items():
                with (home / name).open(encoding="utf-8-sig", newline="") as file:
                    questions = [row["question_text"].strip() for row in csv.DictReader(file)]
                went = Counter(routed(asker, one) for one in questions if one)
                shares.append(went[expected] / went.total())  # type: ignore[index]
                print(f"{name}: {shares[-1]:.3f} {expected}, {dict(went)}")
    print(f"macro {_mean(shares):.3f}")


def foreign(own: int, others: int) -> None:
    """How many own questions come back empty, and how many of other collections do, on each route."""
    home = collection("xquad-en")
    chance = random.Random(5)
    asked = chance.sample(_questions(home), own)
    strangers = [
        one
        for name in ("hotpotqa-train500-linked", "k8s-questions", "scifact")
        for one in chance.sample(_questions(collection(name)), others)
    ]
    with tempfile.TemporaryDirectory() as folder:
        asker = opened(str(home / "corpus.jsonl.gz"), folder)
        print(f"own lost {_empty(asker, asked):.3f}, foreign empty {_empty(asker, strangers):.3f}")
        for route in ("local", "mixed", "global", "drift"):
            print(
                f"{route}: own lost {_empty(asker, asked, route):.3f}, foreign empty {_empty(asker, strangers, route):.3f}"
            )


#: Asked of Kubernetes' documentation: of every route and language.
ASKED = (
    "What does restartPolicy: OnFailure do?",
    "default port range for a NodePort service",
    "Which themes dominate this documentation?",
    "What problems come up again and again across the pages?",
    "Give me an overview of network policies and what surrounds them",
    "What's the deal with admission webhooks, and how do they fit in with the rest?",
    "Should we use a StatefulSet or a Deployment for a database?",
    "Tell me about taints and tolerations, the long version",
    "O que faz o kube-scheduler?",
    "Для чего нужен etcd?",
)


def statements() -> None:
    """Whether what all reports and ten answers say stands in the passage that it is said to stand in, read from the table of passages anew.

    Nothing is edited but white space, so that is how a statement has to stand there; what a citation quotes, to the letter.
    """
    with tempfile.TemporaryDirectory() as folder:
        asker = opened(str(collection("docs-kubernetes") / "files"), folder, embedder="none")
        pinned = asker.inquire(ASKED[0]).pinned
        chunks = pinned.tables["chunks"].read(["chunk_key", "text"])
        text_of = dict(zip(chunks["chunk_key"].to_pylist(), chunks["text"].to_pylist(), strict=True))
        reports = pinned.tables["reports"].read()
        said = [(one["chunk_key"], one["statement"]) for row in reports.to_pylist() for one in row["summary"]]
        print(f"{reports.num_rows} reports: {_standing(said, text_of)} statements stand in their passage")
        routes: Counter[str] = Counter()
        quoted, told, alone = [], [], 0
        for question in ASKED:
            answer = asker.ask(AskRequest(question=question))
            routes[answer.route] += 1
            by_number = {one.n: one for one in answer.citations}
            quoted += [(one.chunk_key, one.text) for one in answer.citations]
            told += [(by_number[n].chunk_key, one.text) for one in answer.statements for n in one.citations]
            alone += sum(not one.citations for one in answer.statements)
        print(
            f"{len(ASKED)} answers ({dict(routes)}): {_standing(told, text_of)} statements and "
            f"{sum(text in text_of.get(key, '') for key, text in quoted)} of {len(quoted)} quotations, to the letter; {alone} without a citation"
        )


def _standing(said: Sequence[tuple[int, str]], text_of: Mapping[int, str]) -> str:
    """How many stand in their passage, but for white space."""
    there = sum(" ".join(text.split()) in " ".join(text_of.get(key, "").split()) for key, text in said)
    return f"{there} of {len(said)}"


def _questions(home: Path) -> list[str]:
    return [json.loads(line)["text"] for line in (home / "queries.jsonl").read_text("utf-8").splitlines()]


def _empty(asker: Asker, questions: Sequence[str], route: str = "auto") -> float:
    return _mean([routed(asker, one, route) == "none" for one in questions])


def _mean(values: Sequence[float | bool]) -> float:
    return sum(values) / len(values) if values else 0.0


def main() -> None:
    """Measure one of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["cases", "transcripts", "foreign", "statements"])
    parser.add_argument("--half", type=int, choices=[0, 1])
    parser.add_argument("--folder", type=Path, default=CASES, help="where the cases lie")
    parser.add_argument("--own", type=int, default=80)
    parser.add_argument("--others", type=int, default=40, help="questions of each other collection")
    given = parser.parse_args()
    if given.what == "cases":
        cases(given.half, given.folder)
    elif given.what == "transcripts":
        transcripts()
    elif given.what == "statements":
        statements()
    else:
        foreign(given.own, given.others)


if __name__ == "__main__":
    main()
