"""How well clew finds: judged public collections, each path alone, fused, and with links followed: `make bench-quality`.

    python -m benchmarks.quality [SET …] [--embedder minilm] [--limit N]

The settings are the defaults, whatever the set. They were tuned on SciFact *train*, hotpotqa-train500 and musique-train100
alone: figures of the latter two are marked. The links of the `-linked` sets were derived from mentions of titles; they are not
Wikipedia's own.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import clew
from benchmarks.datasets import collection, results


@dataclass(frozen=True, kw_only=True)
class Collection:
    """A judged collection: what of its folder is the root, and what is to be known beside its figures."""

    root: str  # relative to its folder
    include: tuple[str, ...] = ()
    note: str = ""


SETS = {
    "scifact": Collection(root="corpus.jsonl.gz", note="test questions"),
    "hotpotqa-train500-linked": Collection(root=".", include=("/pages/",), note="tuned on; derived links"),
    "musique-train100-linked": Collection(root=".", include=("/pages/",), note="tuned on; derived links"),
    "k8s-questions": Collection(root="corpus.jsonl.gz", note="weak labels, original links"),
    "cacm": Collection(root="corpus.jsonl.gz", note="original citations"),
    "cranfield": Collection(root="corpus.jsonl.gz"),
    "xquad-en": Collection(root="corpus.jsonl.gz"),
    "xquad-ru": Collection(root="corpus.jsonl.gz", note="Russian; the default embedder is English"),
    "faquad-pt": Collection(root="corpus.jsonl.gz", note="Portuguese; the default embedder is English"),
}


def measure(name: str, embedder: str, folder: Path) -> dict[str, Any]:
    """Index one collection below `folder` and evaluate it."""
    what, source = SETS[name], collection(name)
    root, place = str(source / what.root), str(folder / name)
    selection = {"include": what.include} if what.include else None
    began = time.perf_counter()
    built = clew.index(root, index=place, embedder=embedder, selection=selection)
    indexed = time.perf_counter() - began
    with clew.open(root, index=place) as index:
        report = index.evaluate(str(source / "queries.jsonl"), str(source / "qrels.tsv"))
    figures = report.model_dump(by_alias=True, exclude={"per_query"})
    return {"note": what.note, "embedder": embedder, "chunks": built.chunks.total, "links": built.links.resolved,
            "index_seconds": indexed, **figures}  # fmt: skip


def main() -> None:
    """Measure the sets asked for, print a row for each, and write `benchmarks/results/quality.json`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}; all by default")
    parser.add_argument("--embedder", default="minilm")
    chosen = parser.parse_args()
    if unknown := set(chosen.sets) - set(SETS):
        parser.error(f"there is no set {', '.join(sorted(unknown))}; there are {', '.join(SETS)}")
    names = chosen.sets or list(SETS)
    for name in names:
        collection(name)  # fail before an hour of work, not after
    done: dict[str, Any] = {}
    print(f"{'nDCG@10':<26}{'dense':>8}{'bm25':>8}{'tfidf':>8}{'fused':>8}{'+links':>8}{'R@100':>8}   note")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            done[name] = figures = measure(name, chosen.embedder, Path(folder))
            alone = [
                figures["by_path"].get(path, {}).get("ndcg@10", float("nan")) for path in ("dense", "bm25", "tfidf")
            ]
            row = [*alone, figures["without_expansion"]["ndcg@10"], figures["ndcg@10"], figures["recall@100"]]
            print(f"{name:<26}" + "".join(f"{value:>8.3f}" for value in row) + f"   {figures['note']}", flush=True)
            results("quality").write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n", "utf-8")
    best = ", ".join(f"{name} {figures['ndcg@10']:.3f}" for name, figures in done.items())
    print(f"bench-quality: {len(done)} sets, nDCG@10 {best}")


if __name__ == "__main__":
    main()
