"""Reading a passage: everything the graph takes from it, as a function of the passage alone.

What is found depends on nothing but the passage, its title and headings, and the links written in it; so passages are read in
any order, by any number of processes, and only those that changed are read again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from clew.indexer.graph.lexicon import lexicon
from clew.indexer.graph.names import key_of, tidy
from clew.indexer.graph.phrases import phrase_keys, stems
from clew.indexer.graph.schemas import CLAIMS, MENTIONS, READINGS
from clew.indexer.graph.spans import names
from clew.indexer.graph.statements import Statement, sentences, statements

#: Changes whenever the rules find something else: passages read by others are read again.
RULES_VERSION = "rules-5"
FIELDS = ("title", "headings", "anchors", "text")
LONGEST_NAME = 80  # characters
MOST_NAMES = 64  # of a passage: what names more is a list, and its co-occurrences say nothing
MOST_CLAIMS = 12  # of a passage
_NUMBERING = re.compile(r"^(?:\d+[.)]|[IVX]+\.|[-–—•*#])+(?:\d+[.)]?)*\s*")
_WORDLESS = re.compile(r"^[\W\d_]*$")
_VAGUE = frozenset(
    [
        "here",
        "docs",
        "documentation",
        "this",
        "page",
        "link",
        "more",
        "read",
        "details",
        "see",
        "example",
        "examples",
        "guide",
        "introduction",
        "overview",
        "summary",
        "notes",
        "note",
        "aqui",
        "documentação",
        "página",
        "link",
        "mais",
        "exemplo",
        "exemplos",
        "introdução",
        "resumo",
        "visão",
        "geral",
        "veja",
        "também",
        "aquí",
        "más",
        "здесь",
        "подробнее",
        "документация",
        "пример",
        "примеры",
        "введение",
        "обзор",
    ]
)


_VAGUE_PHRASES = frozenset(
    {
        "learn more", "more information", "read more", "see also", "getting involved", "getting started", "get involved", "what's next",
        "what’s next", "before you begin", "next steps", "quick start", "further reading", "table of contents", "release notes",
        "this page", "this document", "this guide", "this section", "click here", "known issues", "use cases", "best practices",
        "discussions", "docs", "acknowledgments", "prerequisites", "objectives", "cleaning up", "clean up", "feedback", "conclusion",
        "saiba mais", "mais informações", "leia mais", "ver também", "veja também", "próximos passos", "antes de começar",
        "o que vem a seguir", "primeiros passos", "pré-requisitos", "conclusão", "objetivos", "más información", "leer más",
        "узнать больше", "подробнее", "смотрите также", "что дальше", "подготовка к работе", "что дальше?", "начало работы",
        "дополнительная информация", "подготовка", "цели", "заключение",
    }
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """What a reader is given."""

    chunk_key: int
    file_key: int
    record_number: int
    text: str
    title: str | None
    headings: tuple[str, ...]
    language: str | None
    is_first: bool  # of its document
    anchors: tuple[str, ...] = ()  # texts of the links written in it that lead inside the collection


@dataclass(kw_only=True)
class Reading:
    """Rows of the tables `readings`, `mentions` and `claims`."""

    readings: pa.Table
    mentions: pa.Table
    claims: pa.Table


class Reader(Protocol):
    """Finds names and claims in passages: by rules, or by a model."""

    @property
    def block(self) -> int:
        """How many passages it is given at a time."""
        ...

    @property
    def parallel(self) -> bool:
        """Whether it may be sent to several processes."""
        ...

    @property
    def id(self) -> str:
        """Names the rules or the model, with their version: passages read by another are read again."""
        ...

    @property
    def stopped(self) -> str | None:
        """Why it reads no more; None while it does."""
        ...

    def read(self, passages: Sequence[Passage]) -> Reading:
        """Rows of these passages, or of those that it could read."""
        ...


@dataclass(kw_only=True)
class FoundMention:
    """A name as a passage has it; `definition`: (start, end, score) of the sentence that says what it is."""

    name: str
    type: str
    kind: str
    start: int | None = None
    end: int | None = None
    count: int = 0
    definition: tuple[int, int, float] | None = None

    def define(self, start: int, end: int, score: float) -> None:
        """A sentence that says what it is; the better one stands."""
        if self.definition is None or score > self.definition[2]:
            self.definition = (start, end, score)


@dataclass(kw_only=True)
class Found:
    """What was found in one passage: names by (name, type) in order of appearance, statements with their subject's mention."""

    mentions: dict[tuple[str, str], FoundMention] = field(default_factory=dict)
    statements: list[tuple[Statement, FoundMention]] = field(default_factory=list)

    def note(
        self, name: str, kind: str, type_: str = "", start: int | None = None, end: int | None = None
    ) -> FoundMention:
        """A mention of this name, at text[start:end] where it stands in the text; the first one's place and kind are kept."""
        mention = self.mentions.get((name, type_))
        if mention is None:
            mention = FoundMention(name=name, type=type_, kind=kind, start=start, end=end)
            self.mentions[name, type_] = mention
        elif mention.start is None and start is not None:
            mention.start, mention.end = start, end
        mention.count += start is not None
        return mention

    def state(self, one: Statement, subject: str) -> FoundMention:
        """A statement of this subject, which is a mention, too. Returns that mention."""
        mention = next((m for (name, _), m in self.mentions.items() if name == subject), None)
        if mention is None:
            mention = self.note(subject, "subject", "", one.subject_start, one.subject_start + len(one.subject))
        self.statements.append((one, mention))
        return mention


#: Of two kinds of a name in one passage, the first stands.
KINDS = ("title", "heading", "anchor", "name", "identifier", "subject", "phrase")


@dataclass(frozen=True, kw_only=True)
class RuleReader:
    """The rules. `fields`: which parts of a passage are read."""

    fields: tuple[str, ...] = FIELDS
    block: int = 1024  # passages at a time
    parallel: bool = True
    stopped: str | None = None

    @property
    def id(self) -> str:
        """The version of the rules, and the fields where they are not all."""
        return RULES_VERSION if set(self.fields) == set(FIELDS) else f"{RULES_VERSION}:{','.join(sorted(self.fields))}"

    def read(self, passages: Sequence[Passage]) -> Reading:
        """Rows of these passages, in their order; names of a passage in order of appearance."""
        found = [self._found(passage) for passage in passages]
        return rows_of(passages, found, self.id, [self._text(passage) for passage in passages])

    def context(self, passage: Passage) -> Found:
        """What title, headings and links alone name."""
        found = Found()
        self._context(passage, self._text(passage), found)
        return found

    def _text(self, passage: Passage) -> str:
        return passage.text if "text" in self.fields else ""

    def _found(self, passage: Passage) -> Found:
        text = self._text(passage)
        found = self.context(passage)
        for name in names(text, passage.language):
            if name.type != "date" and len(found.mentions) < MOST_NAMES and len(name.text) <= LONGEST_NAME:
                found.note(tidy(name.text), name.kind, name.type if name.sure else "", name.start, name.end)
        for one in statements(text, passage.language):
            if len(one.subject) <= LONGEST_NAME and len(found.statements) < MOST_CLAIMS:
                found.state(one, tidy(one.subject)).define(one.start, one.end, one.definition_score)
        return found

    def _context(self, passage: Passage, text: str, found: Found) -> None:
        """Title, heading and anchor texts; the sentence that follows them is the answer where no better one is found."""
        lead: tuple[int, int] | None = None

        def first_sentence(after: str | None) -> tuple[int, int] | None:
            for start, end in sentences(text[:1500], passage.language):
                sentence = text[start:end]
                if end - start >= 25 and sentence[-1] in ".!…" and sentence.strip(" #") != (after or "").strip():
                    return start, end
            return None

        if "title" in self.fields and passage.is_first:
            name = _subject_name(passage.title)
            if name is not None:
                at = text.find(name)
                mention = found.note(name, "title", "", *((at, at + len(name)) if at >= 0 else (None, None)))
                lead = first_sentence(passage.title)
                if lead is not None:
                    # It is the better for naming what it is about.
                    named = name.lower() in text[lead[0] : lead[1]].lower()
                    mention.define(*lead, 0.55 if named else 0.4)
        if "headings" in self.fields and passage.headings:
            heading = passage.headings[-1]
            name = _subject_name(heading)
            if name is not None and heading != passage.title:
                at = text.find(name)
                mention = found.note(name, "heading", "", *((at, at + len(name)) if at >= 0 else (None, None)))
                lead = lead if lead is not None and len(passage.headings) < 2 else first_sentence(heading)
                if lead is not None and at >= 0 and at <= lead[0]:
                    named = name.lower() in text[lead[0] : lead[1]].lower()
                    mention.define(*lead, 0.45 if named else 0.3)
        if "anchors" in self.fields:
            for anchor in passage.anchors:
                name = _subject_name(anchor, longest=5)
                if name is not None and not all(
                    word in lexicon(passage.language).common for word in name.lower().split()[:1]
                ):
                    at = text.find(name)
                    if at >= 0:
                        found.note(name, "anchor", "", at, at + len(name))


def _subject_name(text: str | None, longest: int = 6) -> str | None:
    """A title, heading or anchor as a name; None where it is a sentence, a number or says nothing."""
    if not text:
        return None
    name = tidy(_NUMBERING.sub("", text)).strip("`*_\"'“”«»:.…!?/ ")
    words = name.split()
    if (
        not name
        or len(name) > LONGEST_NAME
        or len(words) > longest
        or _WORDLESS.match(name)
        or text.rstrip().endswith("?")
    ):
        return None
    if (
        name.casefold() in _VAGUE_PHRASES
        or name.lower() in _VAGUE
        or all(word.lower() in _VAGUE for word in words)
        or len(name) < 2
    ):
        return None
    return name


def rows_of(passages: Sequence[Passage], found: Sequence[Found], reader: str, texts: Sequence[str]) -> Reading:
    """Rows of what was found in each of these passages. `texts`: of which phrases are kept."""
    mentions: dict[str, list[Any]] = {name: [] for name in MENTIONS.names}
    claims: dict[str, list[Any]] = {name: [] for name in CLAIMS.names}
    for passage, one in zip(passages, found, strict=True):
        _append_mentions(mentions, passage, list(one.mentions.values()))
        _append_claims(claims, passage, one.statements)
    words = stems(texts, [passage.language for passage in passages])
    readings = pa.table(
        {
            "chunk_key": [passage.chunk_key for passage in passages],
            "file_key": [passage.file_key for passage in passages],
            "record_number": pa.array([passage.record_number for passage in passages], pa.int32()),
            "reader": [reader] * len(passages),
            "phrases": pa.array([phrase_keys(one) for one in words], pa.list_(pa.int64())),
        },
        schema=READINGS,
    )
    return Reading(
        readings=readings, mentions=pa.table(mentions, schema=MENTIONS), claims=pa.table(claims, schema=CLAIMS)
    )


def _append_mentions(columns: dict[str, list[Any]], passage: Passage, found: Sequence[FoundMention]) -> None:
    for mention in found:
        definition = mention.definition or (None, None, None)
        values = {
            "form_key": key_of(mention.name, mention.type), "chunk_key": passage.chunk_key, "file_key": passage.file_key,
            "record_number": passage.record_number, "name": mention.name, "type": mention.type, "kind": mention.kind,
            "start": mention.start, "end": mention.end, "count": max(1, mention.count), "definition_start": definition[0],
            "definition_end": definition[1], "definition_score": definition[2],
        }  # fmt: skip
        for name, value in values.items():
            columns[name].append(value)


def _append_claims(
    columns: dict[str, list[Any]], passage: Passage, stated: Sequence[tuple[Statement, FoundMention]]
) -> None:
    for one, mention in stated:
        subject = mention.name
        values = {
            "claim_key": key_of(str(passage.chunk_key), str(one.start), subject, one.predicate, one.object),
            "subject_form": key_of(subject, mention.type), "subject": subject, "predicate": one.predicate, "object": one.object,
            "kind": one.kind, "status": one.status, "negated": one.negated, "statement": passage.text[one.start : one.end],
            "file_key": passage.file_key, "record_number": passage.record_number, "chunk_key": passage.chunk_key,
            "start": one.start, "end": one.end, "contradicts": [],
        }  # fmt: skip
        for name, value in values.items():
            columns[name].append(value)
        if one.abbreviation and _abbreviates(one.abbreviation, subject):
            short = key_of(str(passage.chunk_key), str(one.start), one.abbreviation, "stands for", subject)
            values |= {
                "claim_key": short, "subject_form": key_of(one.abbreviation, ""), "subject": one.abbreviation,
                "predicate": STANDS_FOR, "object": subject, "kind": "definition", "status": "confirmed", "negated": False,
            }  # fmt: skip
            for name, value in values.items():
                columns[name].append(value)


STANDS_FOR = "stands for"


def _abbreviates(short: str, long: str) -> bool:
    """Whether the letters of `short` are those that the words of `long` begin with, in order."""
    letters = [c.lower() for c in short if c.isalpha()]
    if not 2 <= len(letters) <= 8 or not short[0].isupper():
        return False
    initials = [word[0].lower() for word in re.findall(r"\w+", long)]
    at = 0
    for initial in initials:
        if at < len(letters) and initial == letters[at]:
            at += 1
    return at == len(letters) and len(initials) - len(letters) <= 2
