"""`clew eval`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from clew.cli.inspecting import opened
from clew.cli.options import AsJson, AsOf, IndexPlace, Root, SnapshotNumber, StorageOptions
from clew.cli.output import print_json, print_text, progress
from clew.cli.searching import _names, _weights


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("eval", epilog="Example: clew eval ./corpus.jsonl.gz --queries queries.jsonl --qrels qrels.tsv")(
        evaluate
    )


def evaluate(
    root: Root,
    queries: Annotated[str, typer.Option("--queries", metavar="F", help="JSON lines with _id and text.")],
    qrels: Annotated[str, typer.Option("--qrels", metavar="F", help="Tab-separated: query-id, corpus-id, score.")],
    k: Annotated[int, typer.Option("-k", "--k", help="Ignored: 100 distinct documents are always fetched.")] = 10,
    where: Annotated[str | None, typer.Option("--where", metavar="W", help="A filter.")] = None,
    paths: Annotated[
        str | None, typer.Option("--paths", metavar="LIST", help="Of dense,bm25,tfidf,attributes.")
    ] = None,
    weights: Annotated[str | None, typer.Option("--weights", metavar="LIST", help="dense=1,bm25=0.5")] = None,
    over_fetch: Annotated[
        int | None, typer.Option("--over-fetch", metavar="N", help="Candidates of each path.")
    ] = None,
    normalize: Annotated[str | None, typer.Option("--normalize", metavar="NAME", help="As in search.")] = None,
    combine: Annotated[str | None, typer.Option("--combine", metavar="NAME", help="As in search.")] = None,
    hops: Annotated[int | None, typer.Option("--hops", help="As in search.")] = None,
    fanout: Annotated[int | None, typer.Option("--fanout", help="As in search.")] = None,
    min_similarity: Annotated[float | None, typer.Option("--min-similarity", metavar="X", help="As in search.")] = None,
    intent: Annotated[str | None, typer.Option("--intent", metavar="on|off", help="As in search.")] = None,
    minimum: Annotated[
        list[str] | None,
        typer.Option("--min", metavar="METRIC=X", help="Exit with 1 below, as in ndcg@10=0.7; repeatable."),
    ] = None,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    snapshot: SnapshotNumber = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> int:
    """Evaluate the search on judged questions (BEIR's files), each path alone and all together."""
    options: dict[str, Any] = {
        "where": where,
        "paths": _names(paths),
        "weights": _weights(weights),
        "over_fetch": over_fetch,
        "normalize": normalize,
        "combine": combine,
        "hops": hops,
        "fanout": fanout,
        "min_similarity": min_similarity,
        "intent": intent,
    }
    from clew.query.evaluation import below_minimum, minimums

    floors = minimums(minimum or [])
    index = opened(root, place, storage_option, snapshot, as_of)
    report = index.evaluate(
        queries, qrels, progress=progress(), **{name: value for name, value in options.items() if value is not None}
    )
    missed = below_minimum(report, floors)
    if as_json:
        print_json(report)
    else:
        _print(report)
        for line in missed:
            print_text(line)
    return 1 if missed else 0


def _print(report: Any) -> None:
    rows = {"all paths": report.metrics(), "without expansion": report.without_expansion}
    rows |= {f"{name} alone": metrics for name, metrics in report.by_path.items()}
    names = list(report.metrics())
    print_text(f"{report.queries} questions" + " " * 12 + "".join(f"{name:>12}" for name in names))
    for label, metrics in rows.items():
        if metrics:
            print_text(f"{label:<24}" + "".join(f"{metrics[name]:>12.4f}" for name in names))
    low, high = report.ci95["ndcg@10"]
    print_text(f"ndcg@10 within {low:.4f}–{high:.4f} (95 %, bootstrap over questions); latency {report.latency_ms} ms")
