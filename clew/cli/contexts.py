"""`clew context`."""

from __future__ import annotations

import textwrap
from typing import Annotated, Any

import typer

from clew.cli.inspecting import opened
from clew.cli.options import AsJson, AsOf, IndexPlace, Root, SnapshotNumber, StorageOptions
from clew.cli.output import counted, print_json, print_text, say
from clew.cli.searching import _names, _weights
from clew_client.types import ContextResult


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("context", epilog="Example: clew context ./handbook 'rotate a signing key' --max-tokens 2000")(context)


def context(
    root: Root,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The question.")],
    max_tokens: Annotated[int, typer.Option("--max-tokens", metavar="N", help="Tokens of all passages together.")],
    tokenizer: Annotated[
        str,
        typer.Option(
            "--tokenizer",
            metavar="NAME",
            help="What counts: minilm, wordllama, chars/4, tiktoken:ENCODING, file:tokenizer.json.",
        ),
    ] = "minilm",
    overhead: Annotated[
        int | None,
        typer.Option("--overhead", metavar="N", help="Tokens to leave free for what you write around each passage."),
    ] = None,
    k: Annotated[int | None, typer.Option("-k", "--k", help="At most so many hits; 50.")] = None,
    where: Annotated[str | None, typer.Option("--where", metavar="W", help="A filter: 'type:pdf path:ops/**'.")] = None,
    paths: Annotated[
        str | None, typer.Option("--paths", metavar="LIST", help="Of dense,bm25,tfidf,attributes; all by default.")
    ] = None,
    weights: Annotated[str | None, typer.Option("--weights", metavar="LIST", help="dense=1,bm25=0.5")] = None,
    hops: Annotated[int | None, typer.Option("--hops", help="How far links are followed; 0: not at all.")] = None,
    fanout: Annotated[int | None, typer.Option("--fanout", help="How many links of one passage are followed.")] = None,
    min_similarity: Annotated[
        float | None, typer.Option("--min-similarity", metavar="X", help="Leave out links of a lower weight.")
    ] = None,
    intent: Annotated[str | None, typer.Option("--intent", metavar="on|off", help="As in search.")] = None,
    abstain: Annotated[
        str | None,
        typer.Option("--abstain", metavar="on|mark|off", help="on: no passages where nothing seems to answer."),
    ] = None,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    snapshot: SnapshotNumber = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """Passages to hand to a model, within a budget of tokens."""
    options: dict[str, Any] = {
        "overhead": overhead,
        "k": k,
        "where": where,
        "paths": _names(paths),
        "weights": _weights(weights),
        "hops": hops,
        "fanout": fanout,
        "min_similarity": min_similarity,
        "intent": intent,
        "abstain": abstain,
    }
    index = opened(root, place, storage_option, snapshot, as_of)
    given = {name: value for name, value in options.items() if value is not None}
    result = index.context(text, max_tokens=max_tokens, tokenizer=tokenizer, **given)
    if as_json:
        print_json(result)
    else:
        _print(result)


def _print(result: ContextResult) -> None:
    """The passages as a model gets them on stdout, figures on stderr."""
    for name, reason in result.degraded.items():
        say(f"degraded: {name}: {reason}")
    if result.abstained:
        say(f"nothing seems to answer this: {result.reason}")
    print_text(result.render() if result.passages else "nothing found")
    what = "the whole collection" if result.whole_collection else counted(len(result.passages), "passage")
    saved = f"; parent windows would take {result.parent_window_tokens:,}" if not result.whole_collection else ""
    say(textwrap.shorten(f"{what}, {result.tokens:,} tokens ({result.tokenizer}){saved}", 200))
