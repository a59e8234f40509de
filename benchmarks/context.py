"""What contexts cost: passages against parent windows at equal recall, and what links spare.

    python -m benchmarks.context [SET …] [--limit N]

For every question the hits are taken by rank until the documents that answer it are there (all of them, where there are
several). What was taken then costs so many tokens as passages (`clew context`), and so many as parent windows: the files
around the same hits, each cut to 1,024 tokens around its hit, overlaps counted once. Recall is the same by construction.
Then the budget that a share of the questions is satisfied with, and the same for the first five and ten hits whatever
they are. Tokens are those of all-MiniLM-L6-v2.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import clew
from benchmarks.datasets import is_there, results
from benchmarks.judged import SETS
from clew.query.context import ContextBuilder
from clew.query.tokens import open_tokenizer
from clew_client.types import ContextRequest, ContextResult, ExpandOptions

DEFAULT = ("k8s-questions", "hotpotqa-train500-linked", "musique-train100-linked")
DEPTH = 100  # hits that are looked through
ROOM = 60_000  # tokens: more than DEPTH hits take, less than a collection
SHARES = (0.5, 0.7, 0.8, 0.9)
FIRST = (5, 10)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """One question."""

    passages: float  # tokens until everything that answers it is there; inf: not among DEPTH hits
    windows: float


class Asked:
    """One question, searched once, whose first hits are made into contexts."""

    def __init__(self, index: clew.Index, text: str, hops: int) -> None:
        expand = ExpandOptions(hops=hops)
        self.request = ContextRequest(text=text, k=DEPTH, max_tokens=ROOM, expand=expand, abstain="off")
        searcher, self.index = index._ready(), index
        self.found = searcher.find(self.request)
        self.builder = ContextBuilder(index._pinned, searcher)

    def rank_of_all(self, wanted: set[str]) -> int | None:
        """The rank at which the last of the documents has come."""
        missing = set(wanted)
        for rank, ordinal in enumerate(self.found.ordinals[:DEPTH], 1):
            missing.difference_update(self.index._pinned.catalog.documents_of(np.array([ordinal]), 1))
            if not missing:
                return rank
        return None

    def context(self, k: int) -> ContextResult:
        """Of the first k hits."""
        return self.builder.build(self.request.model_copy(update={"k": k}), open_tokenizer(), self.found)


def costs(asked: Sequence[tuple[Asked, set[str]]]) -> list[Cost]:
    """Of every question."""
    found = []
    for one, wanted in asked:
        rank = one.rank_of_all(wanted)
        context = None if rank is None else one.context(rank)
        found.append(
            Cost(passages=np.inf, windows=np.inf)
            if context is None
            else Cost(passages=context.tokens, windows=context.parent_window_tokens)
        )
    return found


def summary(found: Sequence[Cost]) -> dict[str, Any]:
    """Means over the questions that were answered, and the budgets that shares of all questions need."""
    passages = np.array([one.passages for one in found])
    windows = np.array([one.windows for one in found])
    reached = np.isfinite(passages)
    budgets = {
        str(share): {
            "passages": float(np.quantile(passages, share, method="higher")),
            "windows": float(np.quantile(windows, share, method="higher")),
        }
        for share in SHARES
        if reached.mean() >= share + 1 / len(found)
    }
    return {
        "questions": len(found),
        "reached": float(reached.mean()),
        "passages": float(passages[reached].mean()),
        "windows": float(windows[reached].mean()),
        "fewer": float(1 - passages[reached].sum() / windows[reached].sum()),
        "budgets": budgets,
    }


def first_hits(asked: Sequence[tuple[Asked, set[str]]], k: int) -> dict[str, float]:
    """What the first k hits cost, and how many questions they answer."""
    contexts = [(one.context(k), wanted) for one, wanted in asked]
    passages = sum(context.tokens for context, _ in contexts)
    windows = sum(context.parent_window_tokens for context, _ in contexts)
    answered = sum(
        wanted <= {one.path if one.record is None else one.record for one in context.passages}
        for context, wanted in contexts
    )
    n = len(contexts)
    return {
        "recall": answered / n,
        "passages": passages / n,
        "windows": windows / n,
        "fewer": 1 - passages / windows,
    }


def measure(name: str, limit: int | None) -> dict[str, Any]:
    """One collection."""
    what = SETS[name]
    judged = what.judged()
    ids = sorted(judged.queries)
    if limit is not None and limit < len(ids):
        ids = sorted(random.Random(name).sample(ids, limit))
    with what.indexed("minilm") as index:
        asked = {
            hops: [(Asked(index, judged.queries[one], hops), set(judged.relevant[one])) for one in ids]
            for hops in (1, 0)
        }
        return {
            "note": what.note,
            "with_links": summary(costs(asked[1])),
            "without_links": summary(costs(asked[0])),
            "first": {str(k): first_hits(asked[1], k) for k in FIRST},
        }


def main() -> None:
    """Measure, print, and write `benchmarks/results/context.json`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"{', '.join(DEFAULT)} by default")
    parser.add_argument("--limit", type=int, help="questions of a set, at most")
    arguments = parser.parse_args()
    if unknown := set(arguments.sets) - set(SETS):
        parser.error(f"there is no set {', '.join(sorted(unknown))}; there are {', '.join(SETS)}")
    done: dict[str, Any] = {}
    for name in arguments.sets or DEFAULT:
        if not is_there(SETS[name].source):
            print(f"{name}: not there, left out")
            continue
        done[name] = row = measure(name, arguments.limit)
        print(f"\n{name} ({row['note']})")
        for label in ("with_links", "without_links"):
            one = row[label]
            budgets = "  ".join(
                f"{share}: {budget['passages']:.0f} / {budget['windows']:.0f}"
                for share, budget in one["budgets"].items()
            )
            print(
                f"  {label:<14} reached {one['reached']:.3f}, tokens until then {one['passages']:.0f} as passages, "
                f"{one['windows']:.0f} as windows ({one['fewer']:.1%} fewer); budget for a share of questions  {budgets}"
            )
        for k, one in row["first"].items():
            print(
                f"  first {k:>2} hits    recall {one['recall']:.3f}, {one['passages']:.0f} as passages, "
                f"{one['windows']:.0f} as windows ({one['fewer']:.1%} fewer)",
                flush=True,
            )
        results("context").write_text(json.dumps(done, indent=1) + "\n", "utf-8")
    print(
        "context: " + ", ".join(f"{name} {one['with_links']['fewer']:.1%} fewer tokens" for name, one in done.items())
    )


if __name__ == "__main__":
    main()
