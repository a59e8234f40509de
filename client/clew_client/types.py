"""The types that cross the wire, and that the embedded API returns: one set for both.

Fields only ever grow. Offsets are Unicode code points into a document's normalised text.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

PathName = Literal["dense", "bm25", "tfidf", "attributes"]
PATHS: tuple[PathName, ...] = ("dense", "bm25", "tfidf", "attributes")
Normalization = Literal["minmax", "minmax-observed", "l2", "zscore", "none"]
NORMALIZATIONS: tuple[Normalization, ...] = ("minmax", "minmax-observed", "l2", "zscore", "none")
Combination = Literal["sum", "max", "mean", "rrf"]
COMBINATIONS: tuple[Combination, ...] = ("sum", "max", "mean", "rrf")
Direction = Literal["out", "in", "both"]


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ExpandOptions(BaseModel):
    """How far, and how wide, the links of the best hits are followed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hops: int = Field(1, ge=0, le=5, description="One more behind the twentieth hit; 0: no expansion.")
    fanout: int = Field(8, ge=1, le=256, description="At most this many links of one chunk are followed.")
    seeds: int = Field(10, ge=1, le=100, description="How many of the best hits are expanded.")
    min_similarity: float | None = Field(None, ge=-1.0, le=1.0, description="Links of a lower weight are not followed.")
    direction: Direction = "both"
    budget: int = Field(2000, ge=1, le=100_000, description="At most this many chunks are visited.")


class SearchRequest(BaseModel):
    """A question to the four paths."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = Field(max_length=10_000)
    k: int = Field(10, ge=1, le=1000)
    offset: int = Field(0, ge=0, le=10_000)
    paths: tuple[PathName, ...] = PATHS
    weights: dict[PathName, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(
        default_factory=dict, description="Overrides of the default weights; 0 leaves a path out."
    )
    over_fetch: int = Field(200, ge=1, le=10_000, description="Candidates of each path (K_over).")
    normalize: Normalization = "minmax"
    combine: Combination = "sum"
    where: str | None = Field(None, max_length=10_000)
    expand: ExpandOptions = ExpandOptions()
    intent: Literal["on", "off"] = "on"
    rerank: str | None = Field(None, max_length=100, description="A reranker's name: it reads the first 50 hits again.")
    sentences: Literal["on", "off"] = Field(
        "on",
        description="Whether the best sentences of the first passages are compared word by word with the question.",
    )
    snapshot: int | None = None
    as_of: str | None = None
    timeout: float | None = Field(
        None, gt=0, le=86_400, description="Seconds; a path that takes longer is named in `degraded`."
    )
    abstain: Literal["on", "mark", "off"] = Field(
        "mark",
        description="Where nothing seems to answer: on: no hits, the nearest misses aside; mark: hits, and `abstained`; "
        "off: not judged.",
    )
    explain: bool = False
    highlights: bool = Field(False, description="Say of each hit where its texts have the question's words.")


class ContextRequest(SearchRequest):
    """A question whose passages are to be handed to a model."""

    k: int = Field(50, ge=1, le=1000, description="At most this many hits go into the passages.")
    max_tokens: int = Field(ge=1, le=100_000_000, description="Budget: tokens of all passages together.")
    tokenizer: str = Field(
        "minilm",
        pattern=r"^(minilm|wordllama|chars/[1-9][0-9]?|tiktoken:[A-Za-z0-9_.-]{1,40})$",
        description="What counts the tokens.",
    )
    overhead: int = Field(
        0, ge=0, le=10_000, description="Tokens to leave free for what you write around each passage."
    )


class SourceScore(_Result):
    """What one path said of a hit."""

    raw: float
    normalized: float
    weight: float
    rank: int | None = None  # 1-based rank among the path's candidates; null: scored, but not a candidate


class TrailStep(_Result):
    """One link followed, from a seed towards a hit."""

    path: str  # the document it is followed from: the link stands there, or (`direction` is "in") points there
    chunk_key: int
    href: str
    anchor: str
    weight: float
    direction: Literal["out", "in"] = "out"


class Location(_Result):
    """Where in the file a passage lies; at most one is set."""

    page: int | None = None
    sheet: str | None = None
    slide: int | None = None
    line: int | None = None
    cell: int | None = None
    entry: str | None = None


class Highlights(_Result):
    """Where a hit has the question's words: [start, end] in code points of each text, rising."""

    text: tuple[tuple[int, int], ...] = ()
    title: tuple[tuple[int, int], ...] = ()
    heading: tuple[tuple[int, int], ...] = ()


class Hit(_Result):
    """One passage."""

    rank: int
    score: float
    path: str
    record: str | None = None
    chunk_key: int
    char_start: int
    char_end: int
    location: Location | None = None
    url: str | None = None
    title: str | None = None
    heading: str | None = None
    text: str
    sources: dict[str, SourceScore] = Field(default_factory=dict)
    trail: tuple[TrailStep, ...] = ()
    explain: dict[str, Any] | None = None
    highlights: Highlights | None = None  # with `highlights`: where its texts have the question's words


class SearchResult(_Result):
    """What `search` gives."""

    query: str
    snapshot: int
    took_ms: float
    timings_ms: dict[str, float] = Field(default_factory=dict)
    degraded: dict[str, str] = Field(default_factory=dict)  # path → why it is missing or incomplete
    intent: dict[str, Any] | None = None
    expansion: dict[str, Any] | None = None  # edges scanned, chunks visited, where it was cut
    hits: tuple[Hit, ...] = ()
    abstained: bool = False  # nothing seems to answer the question
    reason: str | None = None  # why
    confidence: float | None = None  # that the hits answer, within 0…1; null: not judged
    floor: float | None = None  # the confidence below which nothing counts as found
    signals: dict[str, float] | None = None  # with `explain`: what the confidence was made of
    nearest: tuple[Hit, ...] = ()  # with abstain="on": what the hits would have been

    def to_arrow(self) -> Any:
        """The hits as a pyarrow Table."""
        return rows_to_arrow(self.hits)

    def to_pandas(self) -> Any:
        """The hits as a pandas DataFrame."""
        return rows_to_pandas(self.hits)


def rows_to_arrow(rows: tuple[BaseModel, ...]) -> Any:
    """Rows as a pyarrow Table."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError("A table needs the package pyarrow: pip install pyarrow") from error

    return pa.Table.from_pylist([_flat(row) for row in rows])


def rows_to_pandas(rows: tuple[BaseModel, ...]) -> Any:
    """Rows as a pandas DataFrame; nothing but pandas is needed for it."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("A DataFrame needs the package pandas: pip install pandas") from error

    return pd.DataFrame([_flat(row) for row in rows])


def _flat(row: BaseModel) -> dict[str, Any]:
    """A row for a table. Metadata, whose values are of any kind from one file to the next, stands as JSON."""
    flat = row.model_dump(mode="json", exclude={"explain"})
    if "meta" in flat:
        flat["meta"] = json.dumps(flat["meta"], ensure_ascii=False, sort_keys=True)
    return flat


class FileCounts(_Result):
    """Files of one run, by what became of them."""

    seen: int = 0
    added: int = 0
    changed: int = 0
    renamed: int = 0
    removed: int = 0
    unchanged: int = 0
    failed: int = 0
    skipped: int = 0


class ChunkCounts(_Result):
    """Chunks of one run."""

    total: int = 0
    written: int = 0
    deleted: int = 0
    vectors_reused: int = 0


class LinkCounts(_Result):
    """Written links in the index."""

    total: int = 0
    resolved: int = 0
    dangling: int = 0
    external: int = 0


class Seconds(_Result):
    """Time by part of the work."""

    total: float = 0.0
    list: float = 0.0
    extract: float = 0.0
    embed: float = 0.0
    write: float = 0.0
    commit: float = 0.0


class IndexReport(_Result):
    """What an indexing run did."""

    snapshot: int
    files: FileCounts = FileCounts()
    chunks: ChunkCounts = ChunkCounts()
    links: LinkCounts = LinkCounts()
    bytes_read: int = 0
    seconds: Seconds = Seconds()  # wall
    cpu_seconds: Seconds = Seconds()  # this process and its workers
    peak_rss_bytes: int = 0  # of this process and its workers together
    advice: tuple[str, ...] = ()  # what would serve better, said in one sentence each


class DryRun(_Result):
    """What an indexing run would do."""

    files: FileCounts = FileCounts()
    bytes: int = 0  # of files that would be read
    by_type: dict[str, dict[str, int]] = Field(default_factory=dict)  # extension → files, bytes, of those
    requests: dict[str, int] = Field(default_factory=dict)  # to storage: list, get
    chunks: int = 0  # estimated
    seconds: float = 0.0  # estimated, on this machine
    money: float = 0.0  # estimated, in US dollars: requests to an object store at list price
    rebuild: bool = False  # all of it anew, beside the present index: with --full, another embedder or other settings
    changes: tuple[dict[str, str], ...] = ()  # {"change", "path"}, the first 1,000 by path


class LinkRow(_Result):
    """One written link."""

    source: str
    target: str | None = None
    href: str
    anchor: str
    fragment: str | None = None
    kind: str
    state: Literal["resolved", "dangling", "external"]
    weight: float | None = None
    source_record: str | None = None
    target_record: str | None = None


class FileRow(_Result):
    """One indexed file."""

    path: str
    size: int
    mtime: str | None = None  # ISO 8601, UTC
    etag: str | None = None
    state: str
    chunk_count: int
    language: str | None = None
    type: str | None = None  # kind: markdown, pdf, …
    media_type: str | None = None
    encoding: str | None = None
    title: str | None = None
    records: int = 1
    reason: str | None = None
    meta: dict[str, Any] = Field(default_factory=dict)


class ErrorRow(_Result):
    """One line of the ledger."""

    path: str
    stage: str | None = None
    error: str | None = None
    message: str | None = None
    attempts: int = 0
    next_try: str | None = None  # ISO 8601, UTC
    state: str = "failed"


class ChunkRow(_Result):
    """One chunk of a document, as `show` gives it."""

    chunk_key: int
    record: str | None = None
    char_start: int
    char_end: int
    text: str
    heading_path: tuple[str, ...] = ()
    location: Location | None = None
    token_count: int = 0
    has_vector: bool = False


class ShownFile(_Result):
    """What the index holds of one file."""

    path: str
    record: str | None = None
    state: str
    text: str
    title: str | None = None
    language: str | None = None
    encoding: str | None = None
    type: str | None = None
    reason: str | None = None
    message: str | None = None
    meta: dict[str, Any] = Field(default_factory=dict)
    chunks: tuple[ChunkRow, ...] = ()
    links: tuple[LinkRow, ...] = ()


class Passage(_Result):
    """One passage for a model."""

    path: str
    record: str | None = None
    char_start: int
    char_end: int
    text: str  # exactly the document's normalised text from char_start to char_end
    tokens: int
    role: Literal["seed", "support"] = "seed"  # found by the question itself, or through a link
    title: str | None = None
    heading: str | None = None
    location: Location | None = None
    url: str | None = None
    rank: int | None = None  # of its best hit in the search, from 1; null in a whole collection
    chunk_keys: tuple[int, ...] = ()  # the chunks that it is made of
    trail: tuple[TrailStep, ...] = ()  # of a support: the links that led to it


class ContextResult(_Result):
    """What `context` gives: passages in the order of reading, together within the budget, nothing twice."""

    passages: tuple[Passage, ...] = ()
    tokens: int = 0  # of all passages together
    parent_window_tokens: int = 0  # what the files around the same hits would cost, each cut to 1,024 tokens
    whole_collection: bool = False  # all that may be seen fits the budget, and is here
    query: str = ""
    snapshot: int = 0
    max_tokens: int = 0
    tokenizer: str = "minilm"
    took_ms: float = 0.0
    degraded: dict[str, str] = Field(default_factory=dict)
    abstained: bool = False  # nothing seems to answer the question
    reason: str | None = None  # why
    confidence: float | None = None  # that the passages answer, within 0…1; null: not judged
    floor: float | None = None  # the confidence below which nothing counts as found

    def render(self) -> str:
        """The passages as one text, each under its number and source: `[1] ops/keys.md › Rotation`."""
        return "\n\n".join(
            f"[{number}] {passage.path}"
            + (f" [{passage.record}]" if passage.record is not None else "")
            + (f" › {passage.heading}" if passage.heading else "")
            + f"\n{passage.text}"
            for number, passage in enumerate(self.passages, 1)
        )

    def to_arrow(self) -> Any:
        """The passages as a pyarrow Table."""
        return rows_to_arrow(self.passages)

    def to_pandas(self) -> Any:
        """The passages as a pandas DataFrame."""
        return rows_to_pandas(self.passages)


class RunProgress(_Result):
    """How far the run is that writes to an index, as its process said last: up to some seconds ago."""

    stage: str  # Starting, Listing, Reading, …
    done: int = 0  # of the stage, in its unit
    total: int | None = None  # null: nobody knows yet
    unit: str = ""  # files, bytes, passages, links, …
    percent: float | None = None  # of the stage, 0…100
    files_done: int | None = None  # of those that are to be read; null before they are known
    files_total: int | None = None
    bytes_done: int | None = None
    bytes_total: int | None = None
    seconds: float = 0.0  # since it began


class Status(_Result):
    """How an index is."""

    root: str
    place: str
    snapshot: int
    generation: str
    format_version: int
    embedder: str
    files: dict[str, int]  # by state
    documents: int
    chunks: int
    vectors: int
    links: LinkCounts
    segments: int
    bytes: int | None = None  # of the index
    published: str | None = None  # ISO 8601, UTC
    degraded: dict[str, str] = Field(default_factory=dict)
    tables: str | None = None  # what other Lance readers connect to
    languages: dict[str, int] = Field(default_factory=dict)  # chunks by language
    settings: dict[str, Any] = Field(default_factory=dict)
    run: RunProgress | None = None  # what is being written now; null where nothing is, and for keys that see a part


class Finding(_Result):
    """One thing found wrong."""

    check: str
    message: str
    path: str | None = None


class CheckReport(_Result):
    """What `check` found."""

    ok: bool
    findings: tuple[Finding, ...] = ()
    checked: dict[str, int] = Field(default_factory=dict)


class DemoSearch(_Result):
    """One search of the demo."""

    query: str
    where: str | None = None
    result: SearchResult


class DemoReport(_Result):
    """What `clew demo` did."""

    root: str
    place: str
    index: IndexReport
    searches: tuple[DemoSearch, ...] = ()


class Comparison(_Result):
    """How much better one setting is than another on the same questions; `p`: of as much by chance (randomisation test)."""

    of: str
    over: str
    difference: float
    low: float  # 95 % paired bootstrap interval
    high: float
    p: float


class Calibration(_Result):
    """The confidence below which nothing counts as found, fitted to an index and kept beside it."""

    function: str  # the coefficients that the floor belongs to
    floor: float
    method: Literal["questions", "self"]  # fitted by judged questions, or by the index's own sentences
    questions: int  # that should be answered
    foreign: int  # that should not
    lost: float  # share of the former below the floor
    accepted: float  # share of the latter at or above it
    snapshot: int
    fitted: str  # ISO 8601, UTC


class EvaluationReport(BaseModel):
    """What `eval` measured. Metrics are means over questions; by document, best passage counts, linear gain."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, serialize_by_alias=True)

    queries: int
    ndcg_at_10: float = Field(alias="ndcg@10")
    mrr_at_10: float = Field(alias="mrr@10")
    recall_at_5: float = Field(alias="recall@5")
    recall_at_10: float = Field(alias="recall@10")
    recall_at_100: float = Field(alias="recall@100")
    latency_ms: dict[str, float]  # p50, p95, p99 of whole searches
    by_path: dict[str, dict[str, float]] = Field(default_factory=dict)  # one path alone, without expansion
    without_expansion: dict[str, float] = Field(default_factory=dict)
    ci95: dict[str, tuple[float, float]] = Field(default_factory=dict)
    by_fusion: dict[str, dict[str, float]] = Field(default_factory=dict)  # "sum minmax", …, "rrf"; without expansion
    intervals: dict[str, dict[str, tuple[float, float]]] = Field(default_factory=dict)  # ci95 of every setting
    comparisons: dict[str, dict[str, Comparison]] = Field(
        default_factory=dict,
        description="`expansion`: all over without; `fusion`: fused over the best path; by metric.",
    )
    clusters: int | None = None  # how many groups of questions the intervals resample; None: each question by itself
    per_query: dict[str, dict[str, float]] = Field(default_factory=dict)
    calibration: Calibration | None = None  # with `--calibrate`

    def metrics(self) -> dict[str, float]:
        """The metrics by their usual names."""
        return {
            "ndcg@10": self.ndcg_at_10,
            "mrr@10": self.mrr_at_10,
            "recall@5": self.recall_at_5,
            "recall@10": self.recall_at_10,
            "recall@100": self.recall_at_100,
        }
