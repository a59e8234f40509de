"""Whether the search knows when nothing answers: judged collections, asked what they answer and what they do not.

    python -m benchmarks.abstention [SET …] [--embedder minilm] [--own 300] [--foreign 100] [--documents N] [--fit]

Three kinds of questions are asked of every collection: its own; those of the other collections; and its own with the
documents that answer them taken away. For the ways to tell (the fused score of the best hit, its cosine, words alone, and
clew's confidence): the share of the latter two that would still be answered where a twentieth of the own ones is refused.
Then the floors that come with clew, and those that `clew eval --calibrate` fits without questions and with half of
them: what is refused and answered there (with half of them: measured on the other half).

Coefficients were fitted by `--fit` on the sets marked *tuned*, with foreign questions of one another alone. What was
measured of a set is kept (`XDG_CACHE_HOME`) until the code that ranks changes; `--anew` measures again. `--documents` takes
so many of a set, all that answer its own questions among them: for an embedder that takes minutes for all of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import clew
from benchmarks.datasets import cache, is_there, results
from benchmarks.judged import SETS, JudgedSet
from clew.query.abstention import WORDS, Function, Signals, function_for
from clew.query.calibration import LOST, floor_by_itself, foreign_questions, judged_floor, own_questions
from clew.query.index import search_request

TUNED = ("scifact-train", "hotpotqa-train500-linked", "musique-train100-linked")
TWINS = (
    {"scifact", "scifact-train"},
    {"xquad-en", "xquad-ru"},
)  # the same documents: no foreign questions of each other
REMOVED = 0.5  # weight of questions without their documents, beside foreign ones, in the fit
RIDGE = 1e-5  # small, for cosines of e5 vary by .03 and need a coefficient of 40: with 1e-3 they count for nothing
CODE = ("search", "fusion", "expansion", "residual", "coverage", "bm25", "tfidf", "attributes", "abstention")

Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question and what was seen of its best hits."""

    kind: str  # own | foreign | removed; sentence | packaged: what a floor is fitted with where there are no questions
    origin: str  # the set that it is of
    query: str
    fused: float
    signals: Signals


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One collection, asked everything."""

    name: str
    fingerprint: str | None
    asked: list[Asked]

    def of(self, kind: str, origins: Sequence[str] | None = None) -> list[Asked]:
        """The questions of a kind."""
        return [one for one in self.asked if one.kind == kind and (origins is None or one.origin in origins)]


# --- asking ---------------------------------------------------------------------------------------


def sample(what: JudgedSet, count: int, salt: str) -> list[tuple[str, str, list[str]]]:
    """(id, text, relevant documents) of questions, the same ones every time."""
    judged = what.judged()
    ids = sorted(judged.queries)
    random.Random(f"{what.name}/{salt}").shuffle(ids)
    return [(one, judged.queries[one], sorted(judged.relevant[one])) for one in sorted(ids[:count])]


def some_documents(what: JudgedSet, count: int, own: int) -> set[str]:
    """Those that answer its own questions, and others drawn, `count` in all where the former are not more."""
    chosen = {one for _, _, relevant in sample(what, own, "own") for one in relevant}
    others = [one for one in what.documents() if one not in chosen]
    random.Random(f"{what.name}/documents").shuffle(others)
    return chosen.union(others[: max(0, count - len(chosen))])


def measure(
    what: JudgedSet, others: Sequence[JudgedSet], embedder: str, own: int, foreign: int, documents: int | None = None
) -> Measured:
    """Index a collection and ask it everything."""
    with what.indexed(embedder, only=None if documents is None else some_documents(what, documents, own)) as index:
        index.search("warm")
        asked = list(_ask(index, what, others, own, foreign))
        fingerprint = index._pinned.generation.fingerprint
    return Measured(name=what.name, fingerprint=fingerprint, asked=asked)


def _ask(index: clew.Index, what: JudgedSet, others: Sequence[JudgedSet], own: int, foreign: int) -> Iterator[Asked]:
    searcher, pinned = index._ready(), index._pinned
    documents = pinned.catalog.document_of
    names = np.array(_names(index), dtype=object)
    base = search_request("a question")

    def ask(kind: str, origin: str, query: str, text: str, without: NDArray[np.bool_] | None = None) -> Asked:
        found = searcher.find(base.model_copy(update={"text": text[:10_000]}), without=without)
        best = float(found.scores[0]) if len(found.scores) else 0.0
        return Asked(kind=kind, origin=origin, query=query, fused=best, signals=searcher.signals(found))

    for query, text, relevant in sample(what, own, "own"):
        yield ask("own", what.name, query, text)
        yield ask("removed", what.name, query, text, np.isin(names, relevant)[documents])
    for text in own_questions(pinned):
        yield ask("sentence", what.name, "", text)
    for text in foreign_questions(pinned.languages):
        yield ask("packaged", what.name, "", text)
    for other in others:
        for query, text, _ in sample(other, foreign, what.name):
            yield ask("foreign", other.name, query, text)


def _names(index: clew.Index) -> list[str]:
    """What judgements call the documents, by row of the catalog."""
    catalog = index._pinned.catalog
    paths = catalog.files["path"].to_pylist()
    records = catalog.documents["record"].to_pylist()
    return [record or paths[row] for record, row in zip(records, catalog.file_row.tolist(), strict=True)]


def kept(name: str, arguments: argparse.Namespace) -> Measured:
    """What was measured of a set, if nothing has changed since; else measured now."""
    house = Path(clew.__file__).parent / "query"
    code = b"".join((house / f"{module}.py").read_bytes() for module in CODE)
    sets = [one for one in SETS.values() if is_there(one.source)]
    asked = f"{arguments.own}/{arguments.foreign}/{arguments.documents}/{[one.name for one in sets]}".encode()
    state = hashlib.sha256(code + asked).hexdigest()[:12]
    file = cache() / "abstention" / f"{name}-{arguments.embedder.replace('/', '-')}.json"
    if file.is_file() and not arguments.anew:
        stored = json.loads(file.read_text("utf-8"))
        if stored.pop("state") == state or arguments.stale:
            rows = [Asked(**{**row, "signals": Signals(**row["signals"])}) for row in stored.pop("asked")]
            return Measured(**stored, asked=rows)
    twins = {name}.union(*(twin for twin in TWINS if name in twin))
    others = [one for one in sets if one.name not in twins]
    asking = (arguments.embedder, arguments.own, arguments.foreign, arguments.documents)
    measured = measure(SETS[name], others, *asking)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"state": state, **asdict(measured)}), "utf-8")
    return measured


# --- telling --------------------------------------------------------------------------------------


def confidences(function: Function, asked: Sequence[Asked]) -> Values:
    """Of questions."""
    return np.array([function.confidence(one.signals) for one in asked])


def shares(own: Values, foreign: Values, removed: Values) -> dict[str, float]:
    """What would still be answered where LOST of the own questions is refused."""
    floor = np.quantile(own, LOST, method="lower")
    return {"foreign": float((foreign >= floor).mean()), "removed": float((removed >= floor).mean())}


def at(floor: float, own: Values, foreign: Values, removed: Values) -> dict[str, float]:
    """What is refused and answered at a floor."""
    return {
        "floor": round(floor, 4),
        "lost": float((own < floor).mean()),
        "foreign": float((foreign >= floor).mean()),
        "removed": float((removed >= floor).mean()),
    }


def figures(measured: Measured) -> dict[str, Any]:
    """All figures of one set."""
    kinds = [measured.of(kind) for kind in ("own", "foreign", "removed")]
    function = function_for(measured.fingerprint)
    if measured.of("own")[0].signals.cosine is None:
        function = WORDS
    own, foreign, removed = (confidences(function, asked) for asked in kinds)
    sentences, packaged = (confidences(function, measured.of(kind)) for kind in ("sentence", "packaged"))
    half = np.array([random.Random(one.query).random() < 0.5 for one in kinds[0]])
    by_half = judged_floor(own[half].tolist())
    ways = {
        "fused": [np.array([one.fused for one in asked]) for asked in kinds],
        "cosine": [np.array([one.signals.cosine or 0.0 for one in asked]) for asked in kinds],
        "words": [confidences(WORDS, asked) for asked in kinds],
        "confidence": [own, foreign, removed],
    }
    return {
        "function": function.name,
        "questions": {kind: len(asked) for kind, asked in zip(("own", "foreign", "removed"), kinds, strict=True)},
        "ways": {name: shares(*values) for name, values in ways.items()},
        "default": at(function.floor, own, foreign, removed),
        "self": at(floor_by_itself(sentences.tolist(), packaged.tolist(), function), own, foreign, removed),
        "half": at(by_half, own[~half], foreign, removed[~half]),
        "answered": {
            other: float((confidences(function, measured.of("foreign", [other])) >= np.quantile(own, LOST)).mean())
            for other in sorted({one.origin for one in kinds[1]})
        },
    }


# --- fitting --------------------------------------------------------------------------------------


def fit(sets: Sequence[Measured], *, cosine: bool) -> Function:
    """Logistic regression by Newton's method; every set and kind weighs the same, REMOVED aside."""
    rows, answers, weights = [], [], []
    for one in sets:
        for kind, weight in (("own", 1.0), ("foreign", 1.0), ("removed", REMOVED)):
            asked = one.of(kind, TUNED)
            for question in asked:
                signals = question.signals
                rows.append([signals.cosine or 0.0 if cosine else 0.0, signals.coverage, signals.pairs, 1.0])
                answers.append(float(kind == "own"))
                weights.append(weight / len(asked))
    x, y, w = np.array(rows), np.array(answers), np.array(weights) / np.sum(weights)
    ridge = np.diag([RIDGE, RIDGE, RIDGE, 0.0])
    b = np.zeros(4)
    for _ in range(100):
        p = 1 / (1 + np.exp(-x @ b))
        step = np.linalg.solve((x * (w * p * (1 - p))[:, None]).T @ x + ridge, x.T @ (w * (p - y)) + ridge @ b)
        b -= step
    by_cosine, by_coverage, by_pairs, bias = b.tolist()
    fitted = Function(
        name="fitted", bias=bias, cosine=by_cosine, coverage=by_coverage, pairs=by_pairs, floor=0.0, margin=0.0
    )
    surer = [_low(fitted, one.of("sentence")) - _low(fitted, one.of("own")) for one in sets]
    # The floor refuses, averaged over the sets, LOST of their own questions.
    levels = np.sort(np.concatenate([confidences(fitted, one.of("own")) for one in sets]))
    lost = np.mean([[(confidences(fitted, one.of("own")) < level).mean() for level in levels] for one in sets], axis=0)
    return replace(fitted, floor=float(levels[np.flatnonzero(lost <= LOST)[-1]]), margin=max(surer))


def _low(function: Function, asked: Sequence[Asked]) -> float:
    """The 5 % quantile of the confidences, in logits."""
    low = judged_floor(confidences(function, asked).tolist())
    return float(np.log(low / (1 - low)))


# --- telling of it --------------------------------------------------------------------------------


def main() -> None:
    """Measure, print a table, and write `benchmarks/results/abstention.json`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}; all by default")
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument("--own", type=int, default=300, help="own questions of a set, at most")
    parser.add_argument("--foreign", type=int, default=100, help="questions of each other set, at most")
    parser.add_argument("--documents", type=int, help="of a set, at most, beside those that answer its questions")
    parser.add_argument("--fit", action="store_true", help="fit coefficients on the tuned sets, and print them")
    parser.add_argument("--anew", action="store_true", help="measure again what is kept")
    parser.add_argument("--stale", action="store_true", help="take what is kept whatever has changed since")
    arguments = parser.parse_args()
    if unknown := set(arguments.sets) - set(SETS):
        parser.error(f"there is no set {', '.join(sorted(unknown))}; there are {', '.join(SETS)}")
    names = [one for one in arguments.sets or SETS if is_there(SETS[one].source)]
    done: dict[str, Any] = {}
    sets = []
    print(f"{'answered at 5 % lost':<26}{'fused':>14}{'cosine':>14}{'words':>14}{'confidence':>14}", end="")
    print(f"{'default floor':>22}{'without questions':>22}{'half of them':>22}")
    for name in names:
        measured = kept(name, arguments)
        sets.append(measured)
        done[name] = row = figures(measured)
        cells = "".join(f"{way['foreign']:>8.3f} {way['removed']:>5.2f}" for way in row["ways"].values())
        for floor in ("default", "self", "half"):
            one = row[floor]
            cells += f"{one['lost']:>10.3f} {one['foreign']:>5.3f} {one['removed']:>5.2f}"
        print(f"{name:<26}{cells}  {SETS[name].note}", flush=True)
    if arguments.fit:
        tuned = [one for one in sets if one.name in TUNED]
        for cosine in (True, False):
            print(fit(tuned, cosine=cosine))
    suffix = "" if arguments.embedder == "minilm" else f"_{arguments.embedder}"
    results(f"abstention{suffix}").write_text(json.dumps(done, indent=1) + "\n", "utf-8")
    reported = [row for name, row in done.items() if name not in TUNED]
    if reported:
        worst = max(row["ways"]["confidence"]["foreign"] for row in reported)
        print(f"abstention: {len(done)} sets; at 5 % lost at most {worst:.1%} of foreign questions are answered")


if __name__ == "__main__":
    main()
