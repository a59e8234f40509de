"""`clew search`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from clew.cli.inspecting import opened
from clew.cli.options import AsJson, AsOf, IndexPlace, Root, SnapshotNumber, StorageOptions
from clew.cli.output import one_line, plain, print_json, print_text, say
from clew_client.types import Highlights, Hit, SearchResult


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("search", epilog="Example: clew search ./handbook 'rotate a signing key' --where 'type:md'")(search)


def search(
    root: Root,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The question.")],
    k: Annotated[int, typer.Option("-k", "--k", help="How many hits.")] = 10,
    where: Annotated[str | None, typer.Option("--where", metavar="W", help="A filter: 'type:pdf path:ops/**'.")] = None,
    paths: Annotated[
        str | None, typer.Option("--paths", metavar="LIST", help="Of dense,bm25,tfidf,attributes; all by default.")
    ] = None,
    weights: Annotated[str | None, typer.Option("--weights", metavar="LIST", help="dense=1,bm25=0.5")] = None,
    offset: Annotated[int, typer.Option("--offset", help="Skip the first hits.")] = 0,
    over_fetch: Annotated[
        int | None, typer.Option("--over-fetch", metavar="N", help="Candidates of each path.")
    ] = None,
    normalize: Annotated[
        str | None, typer.Option("--normalize", metavar="NAME", help="minmax, minmax-observed, l2, zscore or none.")
    ] = None,
    combine: Annotated[str | None, typer.Option("--combine", metavar="NAME", help="sum, max, mean or rrf.")] = None,
    hops: Annotated[
        int | None,
        typer.Option("--hops", help="How far links are followed, one more behind the twentieth hit; 0: not at all."),
    ] = None,
    fanout: Annotated[int | None, typer.Option("--fanout", help="How many links of one passage are followed.")] = None,
    min_similarity: Annotated[
        float | None, typer.Option("--min-similarity", metavar="X", help="Leave out links of a lower weight.")
    ] = None,
    intent: Annotated[
        str | None, typer.Option("--intent", metavar="on|off", help="Adjust weights to the question.")
    ] = None,
    sentences: Annotated[
        str | None, typer.Option("--sentences", metavar="on|off", help="Weigh the best sentences of the first hits.")
    ] = None,
    abstain: Annotated[
        str | None,
        typer.Option(
            "--abstain",
            metavar="on|mark|off",
            help="Where nothing seems to answer: on: the nearest misses aside; mark: say so; off: do not judge.",
        ),
    ] = None,
    timeout: Annotated[float | None, typer.Option("--timeout", metavar="S", help="Seconds a path may take.")] = None,
    rerank: Annotated[
        str | None, typer.Option("--rerank", metavar="NAME", help="A reranker that reads the first hits again.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show how each score came about.")] = False,
    highlight: Annotated[
        bool, typer.Option("--highlight", help="Mark the question's words; in JSON: say where they stand.")
    ] = False,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    snapshot: SnapshotNumber = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """Search on four paths at once, and follow the links of the best hits."""
    options: dict[str, Any] = {
        "k": k,
        "offset": offset,
        "where": where,
        "paths": _names(paths),
        "weights": _weights(weights),
        "over_fetch": over_fetch,
        "normalize": normalize,
        "combine": combine,
        "intent": intent,
        "sentences": sentences,
        "abstain": abstain,
        "timeout": timeout,
        "rerank": rerank,
        "explain": explain or None,
        "highlights": highlight or None,
        "hops": hops,
        "fanout": fanout,
        "min_similarity": min_similarity,
    }
    index = opened(root, place, storage_option, snapshot, as_of)
    result = index.search(text, **{name: value for name, value in options.items() if value is not None})
    if as_json:
        print_json(result)
    else:
        print_result(result, explain=explain)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _weights(text: str | None) -> dict[str, float] | None:
    from clew.errors import OptionError

    if text is None:
        return None
    weights = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            weights[name.strip()] = float(value)
        except ValueError:
            raise OptionError(f"--weights {part}: expected NAME=NUMBER, as in dense=1,bm25=0.5.") from None
    return weights


def print_result(result: SearchResult, *, explain: bool = False) -> None:
    """Hits as people read them."""
    for name, reason in result.degraded.items():
        say(f"degraded: {name}: {reason}")
    misses = result.nearest or (result.hits if result.abstained else ())
    if misses:
        print_text(f"nothing found: {result.reason}")
        print_text("The nearest misses:")
    elif not result.hits:
        print_text("nothing found")
    for hit in misses or result.hits:
        _print_hit(hit, explain=explain)
    if explain and result.confidence is not None:
        signals = ", ".join(f"{name} {value:.3f}" for name, value in (result.signals or {}).items())
        print_text(f"confidence {result.confidence:.3f} (floor {result.floor:.3f}): {signals}")


def _print_hit(hit: Hit, *, explain: bool) -> None:
    from rich.text import Text

    from clew.cli.excerpts import excerpt

    width = _width()
    marks = hit.highlights or Highlights()
    where = one_line(hit.path) + (f" [{hit.record}]" if hit.record is not None else "") + _place(hit)
    title = _marked(hit.title or hit.path, marks.title if hit.title else (), "bold cyan")
    _rich(Text.assemble((f"{hit.rank:>2}. ", "bold"), *title, f"  {hit.score:.3f}"))
    heading = [("  › ", "green"), *_marked(hit.heading, marks.heading, "green")] if hit.heading else []
    _rich(Text.assemble((f"    {where}", "green"), *(heading if hit.heading != hit.title else ())))
    for line in excerpt(hit.text, marks.text, width - 4):
        _rich(Text.assemble("    ", *(_styled(plain(text), marked, "") for text, marked in line)))
    for step in hit.trail:
        arrow = "→" if step.direction == "out" else "←"
        _rich(
            Text(
                f"    {arrow} from {one_line(step.path)} by “{one_line(step.anchor or step.href)}” ({step.weight:.2f})",
                style="dim",
            )
        )
    if explain:
        for name, source in hit.sources.items():
            rank = f"#{source.rank}" if source.rank else "-"
            print_text(
                f"    {name:<10} raw {source.raw:9.4f}  normalised {source.normalized:.4f}  weight {source.weight:.2f}  {rank}"
            )
        for name, value in (hit.explain or {}).items():
            print_text(f"    {name}: {_told(value)}")
    print_text()


def _marked(text: str, spans: Sequence[tuple[int, int]], style: str) -> list[tuple[str, str]]:
    """A text on one line, in parts with their styles."""
    from clew.cli.excerpts import pieces

    return [_styled(one_line(part), marked, style) for part, marked in pieces(text, spans)]


def _styled(text: str, marked: bool, style: str) -> tuple[str, str]:
    """A part of a line with its style; a marked one is `*so*` where there are no styles."""
    if not marked:
        return text, style
    return (text, f"{style} bold underline") if sys.stdout.isatty() else (f"*{text}*", style)


def _told(value: Any) -> str:
    """A figure of an explanation, or several."""
    if isinstance(value, dict):
        return ", ".join(
            f"{name} ({_told(each)})" if isinstance(each, dict) else f"{name} {_told(each)}"
            for name, each in value.items()
        )
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _place(hit: Hit) -> str:
    if hit.location is None:
        return ""
    for unit, value in hit.location.model_dump(exclude_none=True).items():
        return f":{value}" if unit == "line" else f" ({unit} {value})"
    return ""


def _width() -> int:
    """Columns of an excerpt; a terminal that does not know how many it has says 0."""
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return min(max(columns or 100, 20), 100)


def _rich(text: Any) -> None:
    """Colours on a terminal, plain text elsewhere."""
    if sys.stdout.isatty():
        from rich.console import Console

        Console(highlight=False, soft_wrap=True).print(text)
    else:
        print_text(text.plain)
