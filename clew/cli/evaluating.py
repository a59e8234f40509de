"""`clew eval`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clew.cli.inspecting import opened
from clew.cli.options import AsJson, AsOf, IndexPlace, Root, SnapshotNumber, StorageOptions
from clew.cli.output import print_json, print_text, progress
from clew.cli.searching import _names, _weights
from clew.errors import OptionError

if TYPE_CHECKING:
    from clew_client.types import Calibration, EvaluationReport


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("eval", epilog="Example: clew eval ./corpus.jsonl.gz --queries queries.jsonl --qrels qrels.tsv")(
        evaluate
    )


def evaluate(
    root: Root,
    queries: Annotated[str | None, typer.Option("--queries", metavar="F", help="JSON lines with _id and text.")] = None,
    qrels: Annotated[
        str | None, typer.Option("--qrels", metavar="F", help="Tab-separated: query-id, corpus-id, score.")
    ] = None,
    k: Annotated[
        int,
        typer.Option(
            "-k", "--k", help="Of the search whose latency is measured; 100 distinct documents are always fetched."
        ),
    ] = 10,
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
    sentences: Annotated[str | None, typer.Option("--sentences", metavar="on|off", help="As in search.")] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="NAME",
            help="Resample groups of questions for the intervals: those with the same value in this field of the questions "
            "file, or `documents`, those answered by the same document.",
        ),
    ] = None,
    per_question: Annotated[
        str | None,
        typer.Option(
            "--per-question", metavar="FILE", help="Write every question with its measures and ranks (JSON lines)."
        ),
    ] = None,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE.svg", help="Draw nDCG@10 of every setting with its interval.")
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Fit the confidence below which nothing counts as found, and keep it with the index; without --queries "
            "by the index's own sentences.",
        ),
    ] = False,
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
        "k": k,
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
        "sentences": sentences,
    }
    from clew.query.evaluation import answer_all, below_minimum, minimums, read_judged

    floors = minimums(minimum or [])
    if plot and not plot.endswith(".svg"):
        raise OptionError(f"--plot {plot}: the picture is an SVG; give the file a name that ends in .svg.")
    for name in (per_question, plot):
        if name and not Path(name).absolute().parent.is_dir():
            raise OptionError(f"Writing {name}: there is no folder {Path(name).parent}.")
    index = opened(root, place, storage_option, snapshot, as_of)
    given = {name: value for name, value in options.items() if value is not None}
    if calibrate and queries is None and qrels is None:
        fitted = index.calibrate(progress=progress(), **given)
        if as_json:
            print_json(fitted)
        else:
            _print_calibration(fitted)
        return 0
    if queries is None or qrels is None:
        raise OptionError(
            "Give the questions with --queries and their judgements with --qrels (try `clew eval --help`)."
        )
    found = answer_all(index, read_judged(queries, qrels), cluster=cluster, progress=progress(), **given)
    report = found.report()
    if calibrate:
        asked = list(read_judged(queries, qrels).queries.values())
        report = report.model_copy(update={"calibration": index.calibrate(asked, progress=progress(), **given)})
    if per_question:
        import orjson

        _write(per_question, b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in found.rows()))
    if plot:
        from clew.query.charts import of_report

        _write(plot, of_report(report, f"{root}: {report.queries} questions").encode())
    missed = below_minimum(report, floors)
    if as_json:
        print_json(report)
    else:
        _print(report)
        for line in missed:
            print_text(line)
    return 1 if missed else 0


def _print_calibration(fitted: Calibration) -> None:
    by = "questions" if fitted.method == "questions" else "questions made of its own sentences"
    print_text(
        f"nothing counts as found below a confidence of {fitted.floor:.3f} ({fitted.function}): {fitted.lost:.1%} of "
        f"{fitted.questions} {by} and {1 - fitted.accepted:.1%} of {fitted.foreign} foreign ones are below"
    )


def _write(name: str, data: bytes) -> None:
    try:
        Path(name).write_bytes(data)
    except OSError as error:
        raise OptionError(f"Writing {name}: {error.strerror}.") from error


def _print(report: EvaluationReport) -> None:
    rows = {"all paths": report.metrics(), "without expansion": report.without_expansion}
    rows |= {f"{name} alone": metrics for name, metrics in report.by_path.items()}
    rows |= {f"fused by {name}": metrics for name, metrics in report.by_fusion.items()}
    names = list(report.metrics())
    print_text(f"{f'{report.queries} questions':<26}" + "".join(f"{name:>12}" for name in names))
    for label, metrics in rows.items():
        if metrics:
            print_text(f"{label:<26}" + "".join(f"{metrics[name]:>12.4f}" for name in names))
    low, high = report.ci95["ndcg@10"]
    over = "questions" if report.clusters is None else f"{report.clusters} groups of questions"
    print_text(f"ndcg@10 within {low:.4f}–{high:.4f} (95 %, bootstrap over {over})")
    for compared in report.comparisons.values():
        for metric in ("ndcg@10", "recall@100"):
            one = compared[metric]
            print_text(
                f"{metric}: {one.of} over {one.over} {one.difference:+.4f} ({one.low:+.4f} to {one.high:+.4f}, p = {one.p:.4f})"
            )
    if report.calibration is not None:
        _print_calibration(report.calibration)
    print_text("latency " + ", ".join(f"{name} {value:.1f} ms" for name, value in report.latency_ms.items()))
