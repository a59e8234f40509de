"""The Arrow schemas of the graph's tables, which stand beside the others once a graph was built.

Keys are 63-bit hashes of what they name, so they are the same in every build, whatever the order: one pair in 180,000
collections of ten million names collides. Evidence is a `chunk_key` and a span in code points *of that chunk's text*: a passage
keeps its key while its text stays, wherever it moves in its document. What names a passage that the snapshot does not hold any
more is out of date, and readers leave it out until the graph is built again.
"""

from __future__ import annotations

import pyarrow as pa

_key = pa.int64()
_span = [
    pa.field("chunk_key", pa.int64(), nullable=False),
    pa.field("start", pa.int32(), nullable=False),  # code points into the chunk's text
    pa.field("end", pa.int32(), nullable=False),
]

#: One row a passage that was read: what is not here is read by the next build.
READINGS = pa.schema(
    [
        pa.field("chunk_key", pa.int64(), nullable=False),
        pa.field("file_key", pa.int64(), nullable=False),
        pa.field("record_number", pa.int32(), nullable=False),
        pa.field("reader", pa.string(), nullable=False),  # which rules or model, with their version and fields
        pa.field("phrases", pa.list_(pa.int64()), nullable=False),  # keys of its phrases (see `phrases`), rising
    ]
)

#: One row a name in a passage. Its entity is found by `form_key` in the table of aliases.
MENTIONS = pa.schema(
    [
        pa.field("form_key", _key, nullable=False),
        pa.field("chunk_key", pa.int64(), nullable=False),
        pa.field("file_key", pa.int64(), nullable=False),
        pa.field("record_number", pa.int32(), nullable=False),
        pa.field("name", pa.string(), nullable=False),  # as written
        pa.field("type", pa.string(), nullable=False),  # what this place says of it; '' for nothing
        pa.field(
            "kind", pa.string(), nullable=False
        ),  # title | heading | anchor | name | identifier | subject | phrase
        pa.field("start", pa.int32()),  # of the first, in the chunk's text; null where only the title or heading has it
        pa.field("end", pa.int32()),
        pa.field("count", pa.int32(), nullable=False),  # in this passage
        pa.field("definition_start", pa.int32()),  # of a sentence of the passage that says what the name stands for
        pa.field("definition_end", pa.int32()),
        pa.field("definition_score", pa.float32()),  # 0 … 1
    ]
)

#: One row a form (a name as written, with the type that its places give it): which entity it stands for, and why.
ALIASES = pa.schema(
    [
        pa.field("form_key", _key, nullable=False),
        pa.field("entity_key", _key, nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("how", pa.string(), nullable=False),  # self | exact | normalised | abbreviation | embedding | homonym
        pa.field("reason", pa.string(), nullable=False),  # for people
        pa.field("similarity", pa.float32()),  # cosine, of `embedding` alone
        pa.field("documents", pa.int64(), nullable=False),
        pa.field("mentions", pa.int64(), nullable=False),
        # the form it was kept apart from by hand (`clew graph merges --undo`); itself: its senses are one, by hand
        pa.field("apart_from", _key),
    ]
)


def entities_schema(dimension: int | None) -> pa.Schema:
    """One row an entity. `vector`: of its name, where the generation has an embedder that takes texts."""
    fields = [
        pa.field("entity_key", _key, nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),  # see TYPES
        pa.field("aliases", pa.list_(pa.string()), nullable=False),  # other forms, most mentioned first
        pa.field("documents", pa.int64(), nullable=False),  # distinct, with a mention
        pa.field("mentions", pa.int64(), nullable=False),
        pa.field("answer", pa.string()),  # the short answer: the best definitional sentence, verbatim
        pa.field("answer_chunk", pa.int64()),
        pa.field("answer_start", pa.int32()),
        pa.field("answer_end", pa.int32()),
        pa.field("answer_hash", pa.binary(16)),  # content hash of that chunk: where it differs, the answer is not valid
    ]
    return _with_vector(fields, dimension)


#: One row a directed edge. Co-occurrence stands in both directions; `rank` counts 1, 2, … from a source within a kind.
RELATIONS = pa.schema(
    [
        pa.field("source", _key, nullable=False),
        pa.field("target", _key, nullable=False),
        pa.field("kind", pa.string(), nullable=False),  # cooccurrence | hyperlink | a predicate
        pa.field("weight", pa.float32(), nullable=False),  # documents that say so
        pa.field(
            "rank", pa.int32(), nullable=False
        ),  # by falling weight, then by target: "the first n" is a degree cap
        pa.field("chunk_key", pa.int64()),  # one passage that holds both
    ]
)

#: One row a claim: what a sentence states of an entity.
CLAIMS = pa.schema(
    [
        pa.field("claim_key", _key, nullable=False),
        pa.field("subject_form", _key, nullable=False),  # the form that the sentence names
        pa.field("subject", pa.string(), nullable=False),
        pa.field("predicate", pa.string(), nullable=False),
        pa.field("object", pa.string(), nullable=False),
        # one of CLAIM_KINDS; `relation`: subject and object are names, and the predicate ties them (a model's alone)
        pa.field("kind", pa.string(), nullable=False),
        pa.field(
            "status", pa.string(), nullable=False
        ),  # confirmed | suspected | disputed | unverified, as the text says
        pa.field("negated", pa.bool_(), nullable=False),
        pa.field("statement", pa.string(), nullable=False),  # the sentence, verbatim
        pa.field("file_key", pa.int64(), nullable=False),
        pa.field("record_number", pa.int32(), nullable=False),
        *_span,
        pa.field("contradicts", pa.list_(_key), nullable=False),  # keys of claims that cannot hold beside this one
    ]
)

#: One row a community. Level 0 is the finest; the communities of a level lie within those of the next.
COMMUNITIES = pa.schema(
    [
        pa.field("community_key", _key, nullable=False),
        pa.field("level", pa.int32(), nullable=False),
        pa.field("parent", _key),  # of level + 1; null at the coarsest
        pa.field("members", pa.list_(_key), nullable=False),  # entities, the most connected first
        pa.field("documents", pa.int64(), nullable=False),  # distinct, with a mention of a member
    ]
)

_statement = pa.struct(
    [
        pa.field("entity_key", _key, nullable=False),
        pa.field("subject", pa.string(), nullable=False),
        pa.field("statement", pa.string(), nullable=False),  # verbatim text of the span, white space folded
        pa.field("chunk_key", pa.int64(), nullable=False),
        pa.field("start", pa.int32(), nullable=False),
        pa.field("end", pa.int32(), nullable=False),
    ]
)


def reports_schema(dimension: int | None) -> pa.Schema:
    """One row a report: a community's map, made of statements with their sources. It is never evidence itself."""
    fields = [
        pa.field("community_key", _key, nullable=False),
        pa.field("level", pa.int32(), nullable=False),
        pa.field("title", pa.string(), nullable=False),
        pa.field("summary", pa.list_(_statement), nullable=False),
        pa.field("documents", pa.int64(), nullable=False),  # the report's weight: distinct documents that support it
        pa.field("evidence", pa.list_(pa.int64()), nullable=False),  # chunk keys, those with most members first
        pa.field("author", pa.string(), nullable=False),  # extraction | a model's name
        pa.field("built_ns", pa.int64(), nullable=False),  # nanoseconds since 1970, UTC
        pa.field("input_hash", pa.binary(16), nullable=False),  # of what it is made of: equal means nothing to do
    ]
    return _with_vector(fields, dimension)


def _with_vector(fields: list[pa.Field], dimension: int | None) -> pa.Schema:
    if dimension is not None:
        fields.append(pa.field("vector", pa.list_(pa.float32(), dimension)))
    return pa.schema(fields)


#: What a claim may state, and how sure its text is.
RELATION = "relation"
CLAIM_KINDS = (
    "definition", "capability", "requirement", "compatibility", "certification", "price", "date", "quantity", "state", "other", RELATION,
)  # fmt: skip
STATUSES = ("confirmed", "suspected", "disputed", "unverified")

#: Types of entities.
TYPES = ("person", "organisation", "place", "product", "work", "law", "date", "identifier", "term")


def graph_schemas(dimension: int | None) -> dict[str, pa.Schema]:
    """Schemas of the graph's tables, by name."""
    return {
        "readings": READINGS,
        "mentions": MENTIONS,
        "aliases": ALIASES,
        "entities": entities_schema(dimension),
        "relations": RELATIONS,
        "claims": CLAIMS,
        "communities": COMMUNITIES,
        "reports": reports_schema(dimension),
    }
