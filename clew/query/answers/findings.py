"""Findings: spans that may answer, each as one source found it, and the statements and citations that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clew.query.answers.evidence import Quote, Ref, citations_resolve, resolve_evidence, same_text
from clew.query.answers.merging import merged
from clew.query.pinned import PinnedIndex
from clew_client.answers import AnswerStatement, Citation

#: Of sources in the order by reciprocal rank; of others 1. Half a weight puts the first neighbour behind the last passage: what
#: stands near a subject is its surroundings, and completes an answer.
WEIGHTS: Mapping[str, float] = {"neighbours": 0.5}


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A span that one source found."""

    ref: Ref
    subject: str | None = None  # an entity's name, where the span was found by one
    report: str | None = None  # id of the community whose report led here


@dataclass(kw_only=True)
class Findings:
    """What each source found, in its own order; sources are only ever made one by their ranks."""

    by_source: dict[str, list[Finding]] = field(default_factory=dict)

    def add(self, source: str, found: Sequence[Finding]) -> None:
        """A source's ranking."""
        if found:
            self.by_source.setdefault(source, []).extend(found)

    def __bool__(self) -> bool:
        return any(self.by_source.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Composed:
    """Statements with citations, and what they were made of."""

    statements: tuple[AnswerStatement, ...]
    citations: tuple[Citation, ...]
    refs: tuple[Ref, ...]  # of the citations, in their order
    resolve: bool
    context_chars: int
    passage_chars: int

    @property
    def text(self) -> str:
        """The answer, a statement a line."""
        return as_text(self.statements)


def as_text(statements: Sequence[AnswerStatement]) -> str:
    """Statements as people read them, each with the numbers of its citations."""
    lines = []
    for one in statements:
        marks = "".join(f"[{n}]" for n in one.citations)
        led = f"{one.subject}: " if one.subject and one.subject.casefold() not in one.text.casefold() else ""
        lines.append(f"{led}{one.text} {marks}")
    return "\n".join(lines)


def compose(
    pinned: PinnedIndex, findings: Findings, most: int, *, in_order: Sequence[Finding] | None = None
) -> Composed:
    """At most `most` statements of what was found, word for word but for white space.

    Sources are merged by reciprocal rank, unless an order is given. Spans of one passage that overlap are one statement, and a
    text that stands in several places is one statement with several citations.
    """
    subjects: dict[Ref, str | None] = {}
    sources: dict[Ref, list[str]] = {}
    reports: dict[Ref, str | None] = {}
    rankings: dict[str, list[Ref]] = {}
    canonical = _canonical(findings)
    for source, found in findings.by_source.items():
        for one in found:
            ref = canonical[one.ref]
            subjects[ref] = subjects.get(ref) or one.subject
            reports[ref] = reports.get(ref) or one.report
            if source not in sources.setdefault(ref, []):
                sources[ref].append(source)
        rankings[source] = [canonical[one.ref] for one in found]
    if in_order is not None:
        order = [canonical[one.ref] for one in in_order]
    else:
        order = [ref for ref, _ in merged(rankings, WEIGHTS)]
    order = list(dict.fromkeys(order))
    quotes = dict(zip(order, resolve_evidence(pinned, order), strict=True))
    chosen: list[list[Quote]] = []
    for ref in order:
        quote = quotes[ref]
        if quote is None or not quote.text.strip():
            continue
        same = next((group for group in chosen if _is_same(group, quote)), None)
        if same is None:
            if len(chosen) == most:
                continue
            chosen.append([quote])
        elif all(one.ref.chunk_key != ref.chunk_key and _place(one) != _place(quote) for one in same):
            same.append(quote)
    return _numbered(pinned, chosen, subjects, sources, reports)


def _canonical(findings: Findings) -> dict[Ref, Ref]:
    """The span that each span counts for: of two in one passage that overlap the one that was chosen for the question's sake.

    That is the short answer of an entity where the question is about it. Else what a passage is quoted with holds what is asked.
    """
    by_source = findings.by_source
    chosen = ("entities", "passages")
    home: dict[int, list[Ref]] = {}
    canonical: dict[Ref, Ref] = {}
    for source in dict.fromkeys([*(one for one in chosen if one in by_source), *by_source]):
        for ref in (one.ref for one in by_source[source]):
            if ref in canonical:
                continue
            near = next(
                (one for one in home.get(ref.chunk_key, []) if ref.start < one.end and one.start < ref.end), None
            )
            canonical[ref] = near or ref
            if near is None:
                home.setdefault(ref.chunk_key, []).append(ref)
    return canonical


def _place(quote: Quote) -> tuple[str, str | None, int]:
    """Where a quotation stands: passages overlap, and the same sentence of both is one citation."""
    return quote.path, quote.record, quote.char_start


def _is_same(group: Sequence[Quote], quote: Quote) -> bool:
    first = group[0]
    if first.ref.chunk_key == quote.ref.chunk_key:
        return quote.ref.start < first.ref.end and first.ref.start < quote.ref.end
    return same_text(first.text, quote.text)


def _numbered(
    pinned: PinnedIndex,
    chosen: Sequence[Sequence[Quote]],
    subjects: Mapping[Ref, str | None],
    sources: Mapping[Ref, Sequence[str]],
    reports: Mapping[Ref, str | None],
) -> Composed:
    statements: list[AnswerStatement] = []
    citations: list[Citation] = []
    refs: list[Ref] = []
    passages: dict[int, int] = {}
    for group in chosen:
        numbers = []
        for quote in group:
            numbers.append(1 + len(citations))
            citations.append(citation(pinned, quote, numbers[-1]))
            refs.append(quote.ref)
            passages[quote.ref.chunk_key] = quote.passage_chars
        lead = group[0].ref
        statements.append(
            AnswerStatement(
                subject=subjects.get(lead), text=" ".join(group[0].text.split()), citations=tuple(numbers),
                sources=tuple(sources.get(lead, ())), report=reports.get(lead),
            )
        )  # fmt: skip
    texts = {cited.n: cited.text for cited in citations}
    verbatim = all(same_text(one.text, texts[n]) for one in statements for n in one.citations)
    return Composed(
        statements=tuple(statements),
        citations=tuple(citations),
        refs=tuple(refs),
        resolve=verbatim and citations_resolve(pinned, zip(refs, (one.text for one in citations), strict=True)),
        context_chars=sum(len(one.text) for one in statements),
        passage_chars=sum(passages.values()),
    )


def citation(pinned: PinnedIndex, quote: Quote, number: int) -> Citation:
    """A quotation as it travels."""
    return Citation(
        n=number, path=quote.path, record=quote.record, chunk_key=pinned.public_key(quote.ref.chunk_key),
        char_start=quote.char_start, char_end=quote.char_end, text=quote.text, title=quote.title,
    )  # fmt: skip


def numbered_into(composed: Composed, citations: dict[Ref, Citation]) -> tuple[AnswerStatement, ...]:
    """The statements of a part of an answer, numbered as in the whole: what it cites beside the others is added to them."""
    numbers: dict[int, int] = {}
    for ref, cited in zip(composed.refs, composed.citations, strict=True):
        if ref not in citations:
            citations[ref] = cited.model_copy(update={"n": len(citations) + 1})
        numbers[cited.n] = citations[ref].n
    return tuple(
        one.model_copy(update={"citations": tuple(numbers[n] for n in one.citations)}) for one in composed.statements
    )
