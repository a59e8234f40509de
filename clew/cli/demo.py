"""`clew demo`: the example collection, indexed and searched."""

from __future__ import annotations

from typing import Annotated

import typer

from clew.cli.options import AsJson
from clew.cli.output import print_json, print_text, progress

SEARCHES = (
    ("how do I rotate a signing key", None),
    ("how much may be spent without a signature on chartering a vessel for a lost buoy", None),
    ("quantos dias de férias por ano", None),
    ("mooring and battery of the Gannet", "type:pdf,docx"),
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo", epilog="Example: clew demo")(demo)


def demo(
    embedder: Annotated[str, typer.Option("--embedder", metavar="NAME", help="none, minilm, wordllama, …")] = "minilm",
    as_json: AsJson = False,
) -> None:
    """Index the example collection (a made-up company's handbook) in a cache folder, and show a few searches."""
    from clew.cli.searching import print_result
    from clew.errors import RequestError
    from clew.examples import handbook
    from clew.indexer.report import index as build
    from clew.query.cache import cache_directory
    from clew.query.index import Index
    from clew_client.types import DemoReport, DemoSearch

    root = str(handbook())
    place = str(cache_directory() / "demo" / embedder.replace(":", "-"))
    try:
        report = build(root, index=place, embedder=embedder, progress=progress())
    except RequestError:  # an older clew's demo lies there, with other settings or in another format
        report = build(root, index=place, embedder=embedder, progress=progress(), full=True)
    searches = []
    with Index.open(root, index=place) as index:
        for text, where in SEARCHES:
            result = index.search(text, k=3, where=where)
            searches.append(DemoSearch(query=text, where=where, result=result))
            if not as_json:
                print_text(f'$ clew search "{text}"' + (f" --where '{where}'" if where else ""))
                print_result(result)
    if as_json:
        print_json(DemoReport(root=root, place=place, index=report, searches=tuple(searches)))
        return
    print_text("Go on with your own documents:")
    print_text("    clew index ./documents")
    print_text('    clew search ./documents "a question"')
    files, links = report.files, report.links
    print_text(
        f"{files.seen} files, {report.chunks.total} passages, {links.resolved} links that lead somewhere, "
        f"{sum(len(search.result.hits) for search in searches)} hits shown; the index lies at {place}"
    )
