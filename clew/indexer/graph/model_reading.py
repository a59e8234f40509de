"""Reading passages with a language model. What it says is kept only where the passage holds it, letter by letter.

Titles, headings and anchors are taken as the rules take them: they tie documents together, and cost nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, field_validator

from clew.indexer.graph.names import tidy
from clew.indexer.graph.passages import MODEL
from clew.indexer.graph.quotation import locate, occurrences
from clew.indexer.graph.reading import FIELDS, LONGEST_NAME, MOST_CLAIMS, Found, Passage, Reading, RuleReader, rows_of
from clew.indexer.graph.schemas import CLAIM_KINDS, RELATION, STATUSES, TYPES
from clew.indexer.graph.statements import Statement
from clew.indexer.llm.prompts import Filled, fenced, prompt
from clew.indexer.llm.session import Forecast, Session

MOST_ENTITIES = 24
MOST_RELATIONS = 16
MAX_TOKENS = 1500  # of a reply
LONGEST_PREDICATE = 60  # characters
LONGEST_OBJECT = 240
DEFINED_BY_MODEL = 0.85  # score of a definition: a little above the rules' best, as it was chosen by its meaning
_SYNONYMS = {
    "organization": "organisation", "company": "organisation", "location": "place", "people": "person", "concept": "term", "event": "term",
    "technology": "product", "document": "work", "component": "product",
}  # fmt: skip


class FoundEntity(BaseModel):
    """A name."""

    name: str
    type: str = ""
    definition: str = ""

    @field_validator("type")
    @classmethod
    def _known(cls, value: str) -> str:
        value = _SYNONYMS.get(value.strip().lower(), value.strip().lower())
        return value if value in TYPES else ""


class FoundRelation(BaseModel):
    """What ties two names."""

    source: str
    relation: str
    target: str
    quote: str


class FoundClaim(BaseModel):
    """What is stated of a name."""

    subject: str
    predicate: str
    object: str
    kind: str = "other"
    status: str = "unverified"
    negated: bool = False
    quote: str

    @field_validator("kind")
    @classmethod
    def _known_kind(cls, value: str) -> str:
        value = value.strip().lower()
        return value if value in CLAIM_KINDS and value != RELATION else "other"

    @field_validator("status")
    @classmethod
    def _known_status(cls, value: str) -> str:
        value = value.strip().lower()
        return value if value in STATUSES else "unverified"


class Extraction(BaseModel):
    """A model's reply on a passage."""

    entities: list[FoundEntity] = []
    relations: list[FoundRelation] = []
    claims: list[FoundClaim] = []


@dataclass(kw_only=True)
class ModelReader:
    """A model's reading. `dropped` counts what it said that no passage holds: entities, relations, claims, definitions."""

    session: Session
    fields: tuple[str, ...] = FIELDS
    max_tokens: int = MAX_TOKENS  # of a reply
    dropped: Counter[str] = field(default_factory=Counter)
    block: int = 64  # passages at a time: what is read is written soon, and progress is seen
    parallel: bool = False  # one session, one budget: several calls at once, but one process

    @property
    def id(self) -> str:
        """Model and version of the prompt, and the fields where they are not all."""
        parts = "" if set(self.fields) == set(FIELDS) else f":{','.join(sorted(self.fields))}"
        return f"{MODEL}{self.session.model.id}:{prompt('extract').version[:8]}{parts}"

    @property
    def stopped(self) -> str | None:
        """Why not all passages were read; None where they were."""
        return self.session.stopped

    def read(self, passages: Sequence[Passage]) -> Reading:
        """Rows of those passages that the model read: all, unless it stopped or gave no answer to some."""
        rules = RuleReader(fields=self.fields)
        kept: list[Passage] = []
        found: list[Found] = []
        if self.session.stopped is None:
            outcomes = self.session.ask_each(self._questions(passages), Extraction)
            for passage, outcome in zip(passages, outcomes, strict=False):
                if outcome.value is not None:
                    kept.append(passage)
                    found.append(self._found(passage, outcome.value, rules.context(passage)))
        return rows_of(kept, found, self.id, [passage.text if "text" in self.fields else "" for passage in kept])

    def forecast(self, blocks: Iterator[list[Passage]]) -> Forecast:
        """What reading these would cost at most. Nothing is asked."""
        return self.session.forecast(one for block in blocks for one in self._questions(block))

    def _questions(self, passages: Sequence[Passage]) -> Iterator[Filled]:
        for passage in passages:
            yield prompt("extract").fill(
                max_tokens=self.max_tokens,
                title=tidy(passage.title or ""),
                section=tidy(" > ".join(passage.headings)),
                passage=fenced(passage.text if "text" in self.fields else ""),
                types=", ".join(TYPES),
                kinds=", ".join(kind for kind in CLAIM_KINDS if kind != RELATION),
                most_entities=str(MOST_ENTITIES),
                most_relations=str(MOST_RELATIONS),
                most_claims=str(MOST_CLAIMS),
            )

    def _found(self, passage: Passage, said: Extraction, found: Found) -> Found:
        """What of a reply the passage holds, added to what the rules took of its title, headings and links."""
        text = passage.text if "text" in self.fields else ""
        named: set[str] = set()
        for one in said.entities[:MOST_ENTITIES]:
            name = tidy(one.name)
            spans = occurrences(text, name) if len(name) <= LONGEST_NAME else []
            if not spans:
                self.dropped["entities"] += 1
                continue
            named.add(name.casefold())
            mention = found.note(name, "name", one.type, *spans[0])
            mention.count = max(mention.count, len(spans))
            if one.definition:
                span = locate(text, one.definition)
                if span is None:
                    self.dropped["definitions"] += 1
                else:
                    mention.define(*span, DEFINED_BY_MODEL)
        known = named | {name.casefold() for name, _ in found.mentions}
        said_before: set[tuple[object, ...]] = set()
        for tie in said.relations[:MOST_RELATIONS]:
            span = locate(text, tie.quote)
            ends = (tidy(tie.source), tidy(tie.target))
            if (
                span is None
                or not tie.relation.strip()
                or ends[0] == ends[1]
                or not all(e.casefold() in known for e in ends)
            ):
                self.dropped["relations"] += 1
                continue
            one_tie = _statement(span, ends[0], tie.relation, ends[1], RELATION, "confirmed", negated=False)
            if _new(one_tie, said_before):
                found.state(one_tie, ends[0])
        for claim in said.claims[:MOST_CLAIMS]:
            span = locate(text, claim.quote)
            subject = tidy(claim.subject)
            if (
                span is None
                or subject.casefold() not in known
                or not claim.predicate.strip()
                or not claim.object.strip()
            ):
                self.dropped["claims"] += 1
                continue
            stated = _statement(
                span, subject, claim.predicate, claim.object, claim.kind, claim.status, negated=claim.negated
            )
            if _new(stated, said_before):
                found.state(stated, subject)
        return found


def _new(one: Statement, before: set[tuple[object, ...]]) -> bool:
    """Whether it was not said in this reply already."""
    said = (one.start, one.subject, one.predicate, one.object)
    if said in before:
        return False
    before.add(said)
    return True


def _statement(
    span: tuple[int, int], subject: str, predicate: str, goal: str, kind: str, status: str, *, negated: bool
) -> Statement:
    return Statement(
        start=span[0], end=span[1], subject=subject, subject_start=span[0], abbreviation=None,
        predicate=tidy(predicate).lower()[:LONGEST_PREDICATE], object=tidy(goal)[:LONGEST_OBJECT], kind=kind, status=status,
        negated=negated,
    )  # fmt: skip
