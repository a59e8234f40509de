"""`clew graph …`: entities, relations, claims, communities and reports: build them, look at them, correct them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from clew.cli.indexing import seconds
from clew.cli.models import AtOnce, BudgetOption, Model, PriceIn, PriceOut, open_session
from clew.cli.options import AsJson, AsOf, IndexPlace, Root, SnapshotNumber, StorageOptions
from clew.cli.output import print_json, print_json_lines, print_text, progress, say

if TYPE_CHECKING:
    from clew.indexer.embedders.protocol import Embedder
    from clew.indexer.graph.build import Built
    from clew.indexer.graph.model_reading import ModelReader
    from clew.indexer.place import Place
    from clew.indexer.writer import Writer
    from clew.query.knowledge import Knowledge
    from clew_client.graph import EvidenceRow, GraphReport, ModelCost
    from clew_client.routing import RouteReport

T = TypeVar("T")
Wait = Annotated[str, typer.Option("--wait", metavar="TIME", help="How long to wait for another writer: 60s, 5m.")]
Delete = Annotated[str | None, typer.Option("--delete", metavar="ID", help="Remove this one; a build makes it again.")]
Cases = Annotated[
    str, typer.Argument(metavar="CASES.yaml", help="Questions with their routes; or a folder of such files.")
]
Level = Annotated[int | None, typer.Option("--level", min=0, help="Only this level; 0 is the finest.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Show at most so many.")]

app = typer.Typer(
    help="Entities, what is claimed of them, and what they form together.",
    epilog="Example: clew graph build ./handbook, then clew graph entities ./handbook",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    app.command("build", epilog="Example: clew graph build ./handbook")(build)
    app.command("entities", epilog="Example: clew graph entities ./handbook --limit 20")(entities)
    app.command("relations", epilog="Example: clew graph relations ./handbook --entity Backup")(relations)
    app.command("claims", epilog="Example: clew graph claims ./handbook --contradicted")(claims)
    app.command("communities", epilog="Example: clew graph communities ./handbook --level 0")(communities)
    app.command("reports", epilog="Example: clew graph reports ./handbook")(reports)
    app.command("fanout", epilog="Example: clew graph fanout ./handbook Backup --hops 2 --cap 4")(fanout)
    app.command("eval", epilog="Example: clew graph eval ./handbook cases.yaml")(evaluate)
    app.command("calibrate", epilog="Example: clew graph calibrate ./handbook cases.yaml")(calibrate)
    app.command("merges", epilog="Example: clew graph merges ./handbook --undo 00f3a1b2c3d4e5f6")(merges)
    parent.add_typer(app, name="graph")


def build(
    root: Root,
    extractor: Annotated[
        str | None,
        typer.Option("--extractor", help="rules or llm; else rules for what is new, and what a model read stays."),
    ] = None,
    documents: Annotated[
        list[str] | None,
        typer.Option("--documents", metavar="ID", help="Read these alone (path or record id), up to 50; repeatable."),
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option("--fields", metavar="F", help="Read these alone: title, headings, anchors, text; repeatable."),
    ] = None,
    min_size: Annotated[int | None, typer.Option("--min-size", min=1, help="Smallest community (3).")] = None,
    max_levels: Annotated[int | None, typer.Option("--max-levels", min=1, max=10, help="Levels at most (3).")] = None,
    method: Annotated[str | None, typer.Option("--method", help="leiden or components.")] = None,
    model: Model = None,
    budget: BudgetOption = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    at_once: AtOnce = 4,
    estimate: Annotated[bool, typer.Option("--estimate", help="Only tell what would be read.")] = False,
    workers: Annotated[int | None, typer.Option("--workers", min=0, help="Reading processes; 0: this one.")] = None,
    wait: Wait = "60s",
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Build the graph, or bring it up to date: only what changed is read."""
    from clew.errors import OptionError
    from clew.indexer.graph.build import BuildOptions, build_graph
    from clew.indexer.graph.editing import documents_named
    from clew.indexer.graph.editing import estimate as plan
    from clew.indexer.graph.model_reading import ModelReader
    from clew.indexer.graph.reading import FIELDS, RuleReader
    from clew.indexer.graph.report_author import ModelAuthor
    from clew.indexer.underway import noted
    from clew.indexer.upkeep import upkeep_of
    from clew_client.graph import GraphEstimate

    if extractor not in (None, "rules", "llm"):
        raise OptionError(f"--extractor {extractor}: passages are read by 'rules' or by 'llm'.")
    if extractor != "llm" and (model or budget):
        raise OptionError("--model and --budget are for --extractor llm.")
    if method not in (None, "leiden", "components"):
        raise OptionError(f"--method {method}: communities are found by 'leiden' or 'components'.")
    unknown = sorted(set(fields or ()) - set(FIELDS))
    if unknown:
        raise OptionError(f"--fields {unknown[0]}: passages have {', '.join(FIELDS)}.")
    opened = _place(root, place, storage_option)
    wanted = tuple(fields) if fields else FIELDS
    reader: ModelReader | RuleReader | None = RuleReader(fields=wanted) if extractor == "rules" or fields else None
    session = None
    if extractor == "llm":
        session = open_session(model, budget, price_in, price_out, at_once)
        reader = ModelReader(session=session, fields=wanted)
    with upkeep_of(opened, wait=seconds(wait), say=say) as upkeep:
        options = BuildOptions(
            reader=reader,
            author=ModelAuthor(session=session) if session is not None else None,
            method=method,  # type: ignore[arg-type]
            min_size=min_size,
            max_levels=max_levels,
            documents=documents_named(upkeep.writer, documents) if documents else None,
            workers=workers,
        )
        if estimate:
            found = plan(upkeep.writer, options)
            told = GraphEstimate(
                passages=found.passages, passages_to_read=found.to_read, characters=found.characters, model_calls=found.calls,
                tokens_in=found.tokens_in, tokens_out=found.tokens_out, money=found.money,
            )  # fmt: skip
            if as_json:
                print_json(told)
            else:
                print_text(f"{told.passages_to_read:,} of {told.passages:,} passages, {told.characters:,} characters")
                if session is not None:
                    price = "" if told.money is None else f", {told.money:.4g} in money"
                    print_text(
                        f"{told.model_calls:,} calls, about {told.tokens_in:,} tokens in, at most {told.tokens_out:,} out{price}"
                    )
            return
        built = build_graph(upkeep.writer, options, _embedder(upkeep.writer), noted(upkeep.lease, progress()))
        report = _report(built, upkeep.writer, reader if isinstance(reader, ModelReader) else None)
    if session is not None:
        session.close()
    print_json(report) if as_json else _print_report(report)


def entities(
    root: Root,
    type_: Annotated[str | None, typer.Option("--type", metavar="T", help="Only this type: person, place, …")] = None,
    limit: Limit = None,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    snapshot: SnapshotNumber = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """Entities, those of most documents first."""
    from clew.query.graph_listing import entity_rows

    rows = _first(entity_rows(_graph(root, place, storage_option, snapshot, as_of), type_), limit)
    if as_json:
        print_json_lines(rows)
        return
    for row in rows:
        also = f" (also {', '.join(row.aliases[:5])})" if row.aliases else ""
        print_text(f"{row.id}  {row.documents:>6,} documents  {row.type:<12}  {row.name}{also}")
        if row.answer is not None:
            print_text(f"{'':18}{' '.join(row.answer.text.split())}  [{_where(row.answer)}]")


def relations(
    root: Root,
    entity: Annotated[str | None, typer.Option("--entity", metavar="E", help="Only of this one: name or id.")] = None,
    limit: Limit = None,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    snapshot: SnapshotNumber = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """What appears together in how many documents, and what links to what."""
    from clew.query.graph_listing import relation_rows

    rows = _first(relation_rows(_graph(root, place, storage_option, snapshot, as_of), entity), limit)
    if as_json:
        print_json_lines(rows)
        return
    for row in rows:
        print_text(f"{row.source_name} -> {row.target_name}  {row.kind} {row.weight:g}, rank {row.rank}")


def claims(
    root: Root,
    status: Annotated[
        str | None, typer.Option("--status", metavar="S", help="confirmed, suspected, disputed or unverified.")
    ] = None,
    contradicted: Annotated[bool, typer.Option("--contradicted", help="Only those that another contradicts.")] = False,
    limit: Limit = None,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    snapshot: SnapshotNumber = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """What sentences state: subject, predicate, object, and how sure the text is."""
    from clew.query.graph_listing import claim_rows

    graph = _graph(root, place, storage_option, snapshot, as_of)
    rows = _first(claim_rows(graph, status, contradicted=contradicted), limit)
    if as_json:
        print_json_lines(rows)
        return
    for row in rows:
        denied = "not " if row.negated else ""
        print_text(
            f"{row.subject} | {denied}{row.predicate} | {row.object}  ({row.kind}, {row.status})  [{_where(row.evidence)}]"
        )
        for other in row.contradicts:
            print_text(f"    contradicts {other}")


def communities(
    root: Root,
    level: Level = None,
    limit: Limit = None,
    delete: Delete = None,
    wait: Wait = "60s",
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    snapshot: SnapshotNumber = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """Groups of entities, level by level."""
    from clew.query.graph_listing import community_rows

    if delete is not None:
        _delete(root, delete, wait, place, storage_option, community=True, as_json=as_json)
        return
    rows = _first(community_rows(_graph(root, place, storage_option, snapshot, as_of), level), limit)
    if as_json:
        print_json_lines(rows)
        return
    for row in rows:
        print_text(
            f"{row.id}  level {row.level}  {row.size:>5,} entities  {row.documents:>6,} documents  {', '.join(row.members[:6])}"
        )


def reports(
    root: Root,
    level: Level = None,
    limit: Limit = None,
    delete: Delete = None,
    wait: Wait = "60s",
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    snapshot: SnapshotNumber = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """What each community is about, each statement with its source; the newest first."""
    from clew.query.graph_listing import report_rows

    if delete is not None:
        _delete(root, delete, wait, place, storage_option, community=False, as_json=as_json)
        return
    rows = _first(report_rows(_graph(root, place, storage_option, snapshot, as_of), level), limit)
    if as_json:
        print_json_lines(rows)
        return
    for row in rows:
        print_text(f"{row.id}  level {row.level}  {row.documents:,} documents  {row.title}")
        for one in row.summary:
            print_text(f"    {one.subject}: {one.statement}  [{_where(one.source)}]")


def fanout(
    root: Root,
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="A name, an alias or an id.")],
    hops: Annotated[int, typer.Option("--hops", help="1 to 5.")] = 2,
    cap: Annotated[int, typer.Option("--cap", help="Neighbours of a node, the heaviest.")] = 8,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    snapshot: SnapshotNumber = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """Nodes and paths a hop around an entity, with a degree cap and without."""
    from clew.query.graph_listing import fanout_report

    report = fanout_report(_graph(root, place, storage_option, snapshot, as_of), entity, hops, cap)
    if as_json:
        print_json(report)
        return
    print_text(
        f"{report.name}: cap {report.cap}, {report.edges_scanned:,} edges (without it {report.edges_scanned_without_cap:,})"
    )
    for hop in report.hops:
        print_text(
            f"hop {hop.hop}: {hop.nodes:,} nodes, {hop.paths:,} paths "
            f"(without cap {hop.nodes_without_cap:,} and {hop.paths_without_cap:,})"
        )
    if not report.complete:
        print_text("counting paths was stopped at its bound: there are more")


def merges(
    root: Root,
    undo: Annotated[str | None, typer.Option("--undo", metavar="ID", help="Undo this for good.")] = None,
    limit: Limit = None,
    wait: Wait = "60s",
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    snapshot: SnapshotNumber = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """Which forms were taken for one entity, or told apart as homonyms, and why."""
    from clew.query.graph_listing import key_of_id, merge_rows

    if undo is not None:
        from clew.indexer.graph.editing import undo_merge
        from clew.indexer.upkeep import upkeep_of

        key = key_of_id(undo)
        with upkeep_of(_place(root, place, storage_option), wait=seconds(wait), say=say) as upkeep:
            built = undo_merge(upkeep.writer, key, _embedder(upkeep.writer), progress())
            report = _report(built, upkeep.writer)
        print_json(report) if as_json else print_text(f"{undo} is undone for good; snapshot {report.snapshot}")
        return
    rows = _first(merge_rows(_graph(root, place, storage_option, snapshot, as_of)), limit)
    if as_json:
        print_json_lines(rows)
        return
    for row in rows:
        print_text(f"{row.id}  {row.form} -> {row.name}  {'undone' if row.undone else row.how}: {row.reason}")


def evaluate(
    root: Root,
    cases: Cases,
    k: Annotated[int, typer.Option("-k", "--k", min=1, max=100, help="Citations that are looked at.")] = 5,
    collection: Annotated[
        str | None, typer.Option("--collection", metavar="NAME", help="Only the cases for this one.")
    ] = None,
    budget: Annotated[
        int, typer.Option("--budget", metavar="N", min=1, help="Tokens that a model is given at once.")
    ] = 32_000,
    minimum: Annotated[
        float | None, typer.Option("--min", metavar="X", help="Exit status 1 below this macro accuracy.")
    ] = None,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    snapshot: SnapshotNumber = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """How the router and its routes do on cases, and where the graph is not worth its price."""
    from clew.cli.inspecting import opened

    index = opened(root, place, storage_option, snapshot, as_of)
    report = index.evaluate_routes(cases, k=k, collection=collection, budget_tokens=budget, progress=progress())
    print_json(report) if as_json else _print_routes(report)
    if minimum is not None and report.macro_accuracy < minimum:
        say(f"macro accuracy {report.macro_accuracy:.3f} is below {minimum:g}")
        raise typer.Exit(1)


def calibrate(
    root: Root,
    cases: Cases,
    collection: Annotated[
        str | None, typer.Option("--collection", metavar="NAME", help="Only the cases for this one.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Fit, and keep nothing.")] = False,
    place: IndexPlace = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Fit the router's thresholds to cases, and keep them beside the index."""
    from clew.cli.inspecting import opened

    index = opened(root, place, storage_option, None, None)
    fitted = index.calibrate_routes(cases, collection=collection, store=not dry_run, progress=progress())
    if as_json:
        print_json(fitted)
        return
    held = "" if fitted.held_out is None else f", {fitted.held_out:.3f} on halves that it was not fitted to"
    print_text(f"{fitted.cases:,} cases: macro accuracy {fitted.before:.3f} before, {fitted.after:.3f} after{held}")
    for name, value in fitted.thresholds.items():
        print_text(f"    {name}: {value}")


# --- parts ------------------------------------------------------------------------------------


def _first(rows: Iterable[T], limit: int | None) -> Iterable[T]:
    from itertools import islice

    return islice(rows, limit)


def _where(found: EvidenceRow) -> str:
    record = f"[{found.record}]" if found.record else ""
    return f"{found.path}{record}:{found.char_start}"


def _graph(
    root: str, place: str | None, storage_option: list[str] | None, snapshot: int | None, as_of: str | None
) -> Knowledge:
    from clew.cli.inspecting import opened

    return opened(root, place, storage_option, snapshot, as_of).knowledge


def _place(root: str, place: str | None, storage_option: list[str] | None) -> Place:
    from clew.cli.upkeep import _place as opened

    return opened(root, place, storage_option)


def _embedder(writer: Writer) -> Embedder | None:
    """What embedded the passages; None where there is none, or where vectors came with the records."""
    from clew.indexer.equipment import Equipment

    name = writer.generation.settings.embedder
    return None if writer.generation.dimension is None or name.startswith("given") else Equipment().embedder(name)


def _delete(
    root: str,
    text: str,
    wait: str,
    place: str | None,
    storage_option: list[str] | None,
    *,
    community: bool,
    as_json: bool,
) -> None:
    from clew.indexer.graph.editing import delete_report
    from clew.indexer.upkeep import upkeep_of
    from clew.query.graph_listing import key_of_id
    from clew_client.graph import DeletedReport

    key = key_of_id(text)
    with upkeep_of(_place(root, place, storage_option), wait=seconds(wait), say=say) as upkeep:
        snapshot = delete_report(upkeep.writer, key, community=community)
    done = DeletedReport(id=text, deleted=True, snapshot=snapshot.number)
    print_json(done) if as_json else print_text(f"{text} is removed; snapshot {done.snapshot}")


def _report(built: Built, writer: Writer, model: ModelReader | None = None) -> GraphReport:
    from clew_client.graph import GraphReport as Report

    settings = writer.snapshot.graph
    assert settings is not None
    names = ("entities", "aliases", "mentions", "relations", "claims", "communities", "reports")
    return Report(
        snapshot=built.snapshot, published=built.published, reader=settings.reader, method=built.method,
        passages_read=built.passages_read, passages_forgotten=built.passages_forgotten,
        passages_unread=built.passages_unread, passages_left=built.passages_left, stopped=built.stopped,
        cost=_cost(model) if model is not None else None, levels=tuple(built.levels), reports_made=built.reports_made,
        written=built.written, cpu_seconds=built.seconds, **{name: built.rows[name] for name in names},
    )  # fmt: skip


def _cost(reader: ModelReader) -> ModelCost:
    from clew_client.graph import ModelCost as Cost

    spent = reader.session.spent
    return Cost(
        model=reader.session.model.id, calls=spent.calls, cached=spent.cached, mended=spent.mended, malformed=spent.malformed,
        tokens_in=spent.tokens_in, tokens_out=spent.tokens_out, money=spent.money, dropped=dict(sorted(reader.dropped.items())),
    )  # fmt: skip


def _print_routes(report: RouteReport) -> None:
    print_text(
        f"{report.cases:,} cases: {report.route_accuracy:.3f} on the right route, macro over kinds {report.macro_accuracy:.3f}"
    )
    print_text("    " + ", ".join(f"{kind} {share:.2f}" for kind, share in report.by_kind.items()))
    for row in report.routes:
        told = [f"{row.routed:,} questions", f"{row.right:,} of {row.expected:,} right"]
        told += [f"coverage@{report.k} {row.coverage:.2f}"] if row.coverage is not None else []
        told += [f"community {row.community_correct:.2f}"] if row.community_correct is not None else []
        told += [
            f"{row.empty:,} empty",
            f"{row.context_chars:,} of {row.passage_chars:,} characters",
            f"{row.model_calls:,} calls",
        ]
        print_text(f"{row.route:<7} {', '.join(told)}")
    if report.negatives_empty is not None:
        by_route = ", ".join(f"{route} {share:.2f}" for route, share in report.negatives_empty_by_route.items())
        print_text(
            f"{report.negatives:,} without an answer: {report.negatives_empty:.2f} came back empty (asked for by name: {by_route})"
        )
    if report.lost is not None:
        print_text(f"{report.lost:.2f} of the others came back empty, too")
    if report.passages_coverage is not None:
        print_text(f"passages alone cover {report.passages_coverage:.2f} of the evidence")
    for line in report.advice:
        print_text(line)


def _print_report(report: GraphReport) -> None:
    print_text(
        f"{report.passages_read:,} passages read, {report.passages_forgotten:,} forgotten"
        + (f", {report.passages_unread:,} left out" if report.passages_unread else "")
    )
    print_text(
        f"{report.entities:,} entities ({report.aliases:,} forms, {report.mentions:,} mentions), {report.relations:,} relations, "
        f"{report.claims:,} claims"
    )
    print_text(
        f"{report.communities:,} communities by {report.method}, {report.reports:,} reports ({report.reports_made:,} made now)"
    )
    if (cost := report.cost) is not None:
        price = "" if cost.money is None else f", {cost.money:.4g} in money"
        print_text(
            f"{cost.model}: {cost.calls:,} calls ({cost.cached:,} kept from before), {cost.tokens_in:,} tokens in, "
            f"{cost.tokens_out:,} out{price}"
        )
        if cost.dropped:
            told = ", ".join(f"{count:,} {what}" for what, count in cost.dropped.items())
            print_text(f"left out, as no passage holds it: {told}")
    if report.stopped is not None:
        print_text(f"{report.passages_left:,} passages are left for the next build: {report.stopped}")
    elif report.passages_left:
        print_text(f"{report.passages_left:,} passages got no usable reply; the next build asks again")
    print_text(f"snapshot {report.snapshot}, {sum(report.cpu_seconds.values()):.1f} s CPU")
