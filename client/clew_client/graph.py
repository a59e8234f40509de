"""What the graph's commands answer. Ids are 16 hexadecimal digits. Fields only ever grow."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class EvidenceRow(_Result):
    """A span of a document that supports something."""

    path: str
    record: str | None
    chunk_key: int
    char_start: int  # code points into the document's normalised text
    char_end: int
    text: str


class ModelCost(_Result):
    """What a language model was asked, and what of its replies was used."""

    model: str  # and where it is served
    calls: int  # replies that came from it
    cached: int  # replies that were kept from before
    mended: int  # times that it was asked for a better shape
    malformed: int  # questions given up
    tokens_in: int
    tokens_out: int
    money: float | None  # by the prices given; None where there are none
    dropped: dict[str, int]  # what it said that no passage holds: entities, relations, claims, definitions


class GraphReport(_Result):
    """What `clew graph build` did, and what there is now."""

    snapshot: int
    published: bool  # false: nothing differed
    reader: str  # which rules or model read the passages
    method: str  # leiden | components
    passages_read: int
    passages_forgotten: int
    passages_unread: int  # left out, as only certain documents were asked for
    passages_left: int = (
        0  # that the model did not get to, or gave no answer to; the rules read those that nothing had read
    )
    stopped: str | None = None  # why it did not: the budget, or the service
    cost: ModelCost | None = None  # None where no model was asked
    entities: int
    aliases: int
    mentions: int
    relations: int
    claims: int
    communities: int
    reports: int
    levels: tuple[int, ...]  # communities a level, the finest first; () where they stayed as they were
    reports_made: int
    written: dict[str, int]  # rows that differed, by table
    cpu_seconds: dict[str, float]  # by step


class GraphEstimate(_Result):
    """What a build would read."""

    passages: int  # in all
    passages_to_read: int
    characters: int  # of those
    model_calls: int  # 0 with rules
    tokens_in: int  # about
    tokens_out: int = 0  # at most
    money: float | None  # at most, by the prices given; None where there are none


class EntityRow(_Result):
    """An entity."""

    id: str
    name: str
    type: str
    aliases: tuple[str, ...]
    documents: int
    mentions: int
    degree: int  # relations of co-occurrence that it keeps
    answer: EvidenceRow | None  # the short answer, with its place


class RelationRow(_Result):
    """A directed relation."""

    source: str  # id
    source_name: str
    target: str
    target_name: str
    kind: str  # cooccurrence | hyperlink
    weight: float  # documents
    rank: int  # from its source, within the kind
    evidence: EvidenceRow | None


class ClaimRow(_Result):
    """What a sentence states of a subject."""

    id: str
    entity: str | None  # id; None where the subject is no entity
    subject: str
    predicate: str
    object: str
    kind: str
    status: str  # confirmed | suspected | disputed | unverified, as the text states it
    negated: bool
    evidence: EvidenceRow
    contradicts: tuple[str, ...]  # ids


class CommunityRow(_Result):
    """A group of entities. Level 0 is the finest."""

    id: str
    level: int
    parent: str | None
    size: int
    documents: int
    members: tuple[str, ...]  # names, the most connected first
    title: str | None  # of its report


class StatementRow(_Result):
    """A line of a report: a subject, what a text says of it, and where."""

    entity: str  # id
    subject: str
    statement: str
    source: EvidenceRow


class ReportRow(_Result):
    """A community's map. Its statements are evidence; it is not."""

    id: str  # of the community
    level: int
    title: str
    summary: tuple[StatementRow, ...]
    documents: int  # distinct ones that support it: its weight
    evidence: tuple[EvidenceRow, ...]
    author: str  # extraction, or a model's name
    built: str  # when, UTC


class MergeRow(_Result):
    """A form that was taken for another's, or told apart from one that is spelt alike, and why."""

    id: str
    form: str
    entity: str  # id
    name: str  # the entity's
    type: str
    how: str  # exact | normalised | abbreviation | embedding | homonym
    reason: str
    similarity: float | None
    undone: bool  # kept apart by hand; of a homonym: kept as one


class FanoutHop(_Result):
    """What one more hop opens."""

    hop: int
    nodes: int  # reached first at this hop
    paths: int  # simple paths of this length
    nodes_without_cap: int
    paths_without_cap: int


class FanoutReport(_Result):
    """How far and how wide the graph is around an entity."""

    entity: str
    name: str
    cap: int
    hops: tuple[FanoutHop, ...]
    edges_scanned: int  # with the cap
    edges_scanned_without_cap: int
    complete: bool  # false: counting paths was stopped at its bound


class DeletedReport(_Result):
    """What `clew graph reports --delete` removed."""

    id: str
    deleted: bool
    snapshot: int
