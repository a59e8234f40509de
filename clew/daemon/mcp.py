"""An MCP server: assistants search a collection, follow its links, read its documents and cite them.

The tools speak of an index here or of a service elsewhere, which have the same methods. What they give is cut to sizes that fit
a model's window; every passage says where it stands, so that it can be cited and read on from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Annotated, Any, Literal, Protocol, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

import clew
from clew.daemon.collections import Collection
from clew.errors import ClewError
from clew_client.answers import Answer
from clew_client.errors import ClientError
from clew_client.types import ContextResult, Hit, LinkRow, SearchResult, ShownFile, Status

T = TypeVar("T")

MOST_TEXT = 20_000  # characters of a document that one call gives
MOST_HITS = 50
INSTRUCTIONS = """Search a collection of documents that link to each other.
Use `search` for passages, `context` for all that a question needs within a budget of tokens, `ask` for an answer that is put
together from cited statements (of a fact, or of the whole collection), `follow_links` to see where a document leads, `read_file` to
read on from a passage. Cite by path and characters (char_start to char_end)."""


class Source(Protocol):
    """What is asked: `clew_client.Client` is one, `Local` another."""

    def search(self, text: str, **options: Any) -> SearchResult:
        """Search."""
        ...

    def context(self, text: str, *, max_tokens: int, **options: Any) -> ContextResult:
        """Passages within a budget."""
        ...

    def ask(self, question: str, **options: Any) -> Answer:
        """An answer with its route and citations."""
        ...

    def links(
        self, *, path: str | None = None, direction: str | None = None, state: str | None = None
    ) -> Iterable[LinkRow]:
        """Written links."""
        ...

    def show(self, path: str, record: str | None = None) -> ShownFile:
        """One document."""
        ...

    def status(self) -> Status:
        """How the index is."""
        ...


class Local:
    """An index here, always at its newest snapshot."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def search(self, text: str, **options: Any) -> SearchResult:
        """Search."""
        with self._collection.lease() as index:
            return index.search(text, **options)

    def context(self, text: str, *, max_tokens: int, **options: Any) -> ContextResult:
        """Passages within a budget."""
        with self._collection.lease() as index:
            return index.context(text, max_tokens=max_tokens, **options)

    def ask(self, question: str, **options: Any) -> Answer:
        """An answer with its route and citations."""
        with self._collection.lease() as index:
            return index.ask(question, **options)

    def links(
        self, *, path: str | None = None, direction: str | None = None, state: str | None = None
    ) -> Iterator[LinkRow]:
        """Written links."""
        with self._collection.lease() as index:
            yield from index.links(path=path, direction=direction, state=state)

    def show(self, path: str, record: str | None = None) -> ShownFile:
        """One document."""
        with self._collection.lease() as index:
            return index.show(path, record)

    def status(self) -> Status:
        """How the index is."""
        with self._collection.lease() as index:
            return index.status()


class Found(BaseModel):
    """One passage."""

    path: str
    record: str | None = None
    title: str | None = None
    heading: str | None = None
    char_start: int
    char_end: int
    text: str
    score: float
    url: str | None = None
    reached_by: list[str] = Field(default_factory=list, description="The links that led to it, from a better hit.")


class Passages(BaseModel):
    """What was found."""

    passages: list[Found]
    incomplete: dict[str, str] = Field(
        default_factory=dict, description="Ways of searching that did not answer wholly."
    )


class Cited(BaseModel):
    """Where a statement stands."""

    n: int = Field(description="As in the answer: [n].")
    path: str
    record: str | None = None
    char_start: int
    char_end: int
    text: str


class Answered(BaseModel):
    """An answer, put together from statements of documents."""

    answer: str = Field(description="Statements with [n], a citation each. Empty where nothing was found.")
    found: bool
    route: str = Field(description="local: passages and entities; global: reports; mixed, drift: both; none.")
    reason: str = Field(description="Why this route.")
    citations: list[Cited]
    further_questions: dict[str, str] = Field(
        default_factory=dict, description="Asked on the way, with what was found."
    )
    incomplete: dict[str, str] = Field(default_factory=dict, description="What did not answer wholly.")


class Links(BaseModel):
    """Written links."""

    links: list[dict[str, Any]]
    more: bool = Field(False, description="Whether there are more than were asked for.")


class Document(BaseModel):
    """A part of a document's text."""

    path: str
    record: str | None = None
    title: str | None = None
    state: str
    text: str
    start: int
    length: int = Field(description="Characters of the whole document.")
    note: str | None = None


def create_server(source: Source, *, name: str = "clew") -> MCPServer:
    """The server, with all tools."""
    # Clients keep what comes on stderr: a line for every call of a tool is not for their logs.
    server = MCPServer(name, version=clew.__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    reading = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

    def search(
        query: Annotated[str, Field(description="What to look for, as a person would ask it.", max_length=10_000)],
        k: Annotated[int, Field(description="How many passages.", ge=1, le=MOST_HITS)] = 8,
        where: Annotated[
            str | None, Field(description="A filter such as `type:pdf path:ops/** mtime:>2026`.", max_length=10_000)
        ] = None,
        hops: Annotated[int, Field(description="How far links of the best passages are followed.", ge=0, le=5)] = 1,
    ) -> Passages:
        """Find passages by meaning, words and names at once, and along the links of the best ones."""
        with _told():
            result = source.search(query, k=k, where=where, hops=hops)
        return Passages(passages=[_found(hit) for hit in result.hits], incomplete=result.degraded)

    def context(
        question: Annotated[str, Field(description="The question to be answered.", max_length=10_000)],
        max_tokens: Annotated[int, Field(description="Budget of tokens.", ge=50, le=200_000)] = 4000,
    ) -> ContextResult:
        """The passages that a question needs, within a budget, nothing twice, in the order of reading."""
        with _told():
            return source.context(question, max_tokens=max_tokens)

    def ask(
        question: Annotated[str, Field(description="In a sentence, in any language.", max_length=10_000)],
        route: Annotated[
            Literal["auto", "local", "mixed", "global", "drift"],
            Field(description="auto chooses; global and drift are for the whole collection, and need its graph."),
        ] = "auto",
        max_statements: Annotated[int, Field(description="Statements of the answer.", ge=1, le=50)] = 6,
    ) -> Answered:
        """Answer a question from the documents: statements as they stand there, each with a citation, never made up."""
        with _told():
            found = source.ask(question, route=route, max_statements=max_statements)
        return Answered(
            answer=found.answer,
            found=not found.abstained,
            route=found.route,
            reason=found.reason,
            citations=[
                Cited(**one.model_dump(include={"n", "path", "record", "char_start", "char_end", "text"}))
                for one in found.citations
            ],
            further_questions={one.question: one.answer for one in found.follow_ups},
            incomplete=found.degraded,
        )

    def follow_links(
        path: Annotated[str, Field(description="A document, as search names it.")],
        direction: Annotated[
            Literal["out", "in", "both"], Field(description="Links in it, or links of others to it.")
        ] = "out",
        limit: Annotated[int, Field(ge=1, le=500)] = 50,
    ) -> Links:
        """Where a document's links lead, and which documents link to it; links that lead nowhere are said so."""
        with _told():
            rows = source.links(path=path, direction=None if direction == "both" else direction)
            found = list(islice(rows, limit + 1))
        shown = [row.model_dump(exclude_none=True, exclude={"weight"}) for row in found[:limit]]
        return Links(links=shown, more=len(found) > limit)

    def read_file(
        path: Annotated[str, Field(description="A document, as search names it.")],
        record: Annotated[str | None, Field(description="A row of a record file.")] = None,
        start: Annotated[int, Field(description="Character to begin at: `char_start` of a passage.", ge=0)] = 0,
        length: Annotated[int, Field(description="How many characters.", ge=1, le=MOST_TEXT)] = 8000,
    ) -> Document:
        """Read a document's text, or a part of it."""
        with _told():
            shown = source.show(path, record)
        return Document(
            path=shown.path,
            record=shown.record,
            title=shown.title,
            state=shown.state,
            text=shown.text[start : start + length],
            start=start,
            length=len(shown.text),
            note=shown.message,
        )

    def status() -> dict[str, Any]:
        """How large and how fresh the collection is."""
        with _told():
            found = source.status()
        wanted = {"snapshot", "published", "files", "documents", "chunks", "links", "languages", "degraded"}
        return found.model_dump(mode="json", include=wanted)

    tools: list[Callable[..., Any]] = [search, context, ask, follow_links, read_file, status]
    for tool in tools:
        server.add_tool(tool, annotations=reading)
    return server


@contextmanager
def _told() -> Iterator[None]:
    """What is wrong with a question is said to the model, which can ask another one."""
    try:
        yield
    except (ClewError, ClientError) as error:
        raise ToolError(str(error)) from error


def _found(hit: Hit) -> Found:
    return Found(
        **hit.model_dump(include={"path", "record", "title", "heading", "char_start", "char_end", "text", "url"}),
        score=round(hit.score, 4),
        reached_by=[f"{step.path} -> {step.anchor or step.href}" for step in hit.trail],
    )
