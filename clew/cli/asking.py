"""`clew ask`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from clew.cli.inspecting import opened
from clew.cli.options import AsJson, AsOf, IndexPlace, Root, SnapshotNumber, StorageOptions
from clew.cli.output import print_json, print_text, say
from clew_client.answers import Answer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ask", epilog="Example: clew ask ./handbook 'which themes dominate this collection'")(ask)


def ask(
    root: Root,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="In a sentence, in any language.")],
    route: Annotated[
        str | None, typer.Option("--route", metavar="NAME", help="auto, local, mixed, global or drift.")
    ] = None,
    level: Annotated[int | None, typer.Option("--level", help="Of the reports; 0 is the finest.")] = None,
    max_communities: Annotated[
        int | None, typer.Option("--max-communities", metavar="N", help="Reports read at most.")
    ] = None,
    max_follow_ups: Annotated[
        int | None, typer.Option("--max-follow-ups", metavar="N", help="Follow-up questions of a drift answer.")
    ] = None,
    max_statements: Annotated[
        int | None, typer.Option("--max-statements", metavar="N", help="Statements of the answer, at most.")
    ] = None,
    hops: Annotated[int | None, typer.Option("--hops", help="How far relations are followed; 0 to 3.")] = None,
    fanout: Annotated[int | None, typer.Option("--fanout", help="Relations of one entity that are followed.")] = None,
    llm: Annotated[
        str | None, typer.Option("--llm", metavar="URL", help="A language model's service; with --model.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="M", help="A language model that words the answer: NAME, or NAME@URL."),
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="B", help="For the model: 20ktokens, 0.10, 30s, or several.")
    ] = None,
    price_in: Annotated[float | None, typer.Option("--price-in", help="Of a million tokens in.")] = None,
    price_out: Annotated[float | None, typer.Option("--price-out", help="Of a million tokens out.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show what the route was decided by.")] = False,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    snapshot: SnapshotNumber = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question on the route that suits it, every statement with its source."""
    from clew.errors import OptionError

    options: dict[str, Any] = {
        "route": route,
        "level": level,
        "max_communities": max_communities,
        "max_follow_ups": max_follow_ups,
        "max_statements": max_statements,
        "hops": hops,
        "fanout": fanout,
    }
    index = opened(root, place, storage_option, snapshot, as_of)
    chosen = {name: value for name, value in options.items() if value is not None}
    if llm is None and model is None:
        if budget or price_in is not None or price_out is not None:
            raise OptionError("--budget and --price-… are for an answer by a language model: give --model.")
        answer = index.ask(question, **chosen)
    else:
        from clew.cli.models import open_session

        session = open_session(f"{model}@{llm}" if model and llm else model, budget, price_in, price_out)
        try:
            answer = index.ask(question, session=session, **chosen)
        finally:
            session.close()
    if as_json:
        print_json(answer)
    else:
        print_answer(answer, explain=explain)


def print_answer(answer: Answer, *, explain: bool = False) -> None:
    """An answer as people read it."""
    for name, reason in answer.degraded.items():
        say(f"degraded: {name}: {reason}")
    print_text(f"{answer.route}: {answer.reason}")
    print_text()
    if answer.abstained:
        print_text("nothing found")
    else:
        print_text(answer.answer)
    if answer.follow_ups:
        print_text()
    for one in answer.follow_ups:
        print_text(f"asked further: {one.question}")
        print_text("\n".join(f"    {line}" for line in one.answer.splitlines()) or "    nothing found")
    if answer.citations:
        print_text()
    for cited in answer.citations:
        record = f"[{cited.record}]" if cited.record is not None else ""
        print_text(f"[{cited.n}] {cited.path}{record}  (characters {cited.char_start:,} to {cited.char_end:,})")
    if any(used.statements for used in answer.reports_used):
        print_text()
        print_text(f"maps read ({answer.communities_considered} reports of level {answer.level}):")
        for used in answer.reports_used:
            if used.statements:
                print_text(f"    {used.title} ({used.documents:,} documents)")
    if explain:
        print_text()
        for name, value in answer.signals.items():
            print_text(f"{name}: {value}")
        for entity in answer.entities:
            print_text(f"hop {entity.hop}  {' > '.join(entity.trail)}")
        print_text(
            f"{answer.cost.context_chars:,} characters of statements instead of {answer.cost.passage_chars:,} of passages"
        )
