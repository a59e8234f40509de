"""What shapes an index: the settings of one generation. A change here means a new generation."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ChunkSettings(_Settings):
    """Sliding windows over sentences."""

    tokens: int = Field(256, ge=16, le=8192, description="Window, in tokens of the embedder, title included.")
    overlap: float = Field(0.2, ge=0.0, lt=0.9, description="Share of a window that the next one repeats.")
    section_level: int = Field(2, ge=0, le=6, description="A window never crosses a heading of this level or higher.")
    tiny_section: int = Field(32, ge=0, description="A section of fewer tokens joins the next one all the same.")


class SiteRoot(_Settings):
    """Site paths that begin with `prefix` name files below `folder`: `/docs/` → `content/en/docs/`."""

    prefix: str = "/"
    folder: str = ""


class SiteSettings(_Settings):
    """How addresses of a web site map to files."""

    roots: tuple[SiteRoot, ...] = ()  # tried in this order; learnt at the first build where not given
    base_urls: tuple[str, ...] = ()  # the collection's own addresses: https://kubernetes.io
    url_template: str | None = None  # turns a path into a link people can open: https://example.org/{path}


class ColumnSettings(_Settings):
    """Columns of record files; the first present of each list is taken."""

    id: tuple[str, ...] = ("_id", "id")
    text: tuple[str, ...] = ("text", "body", "content")
    title: tuple[str, ...] = ("title", "name")
    links: tuple[str, ...] = ("links",)
    vector: tuple[str, ...] = ("vector", "embedding")
    language: tuple[str, ...] = ("language", "lang")


class ExtractionSettings(_Settings):
    """Bounds and options of extraction."""

    max_file_bytes: int = Field(8 << 30, ge=1, description="Larger files are skipped: too large.")
    seconds: float = Field(60.0, gt=0, description="Time limit of one file, plus 1 s a MiB.")
    memory: int = Field(2 << 30, ge=64 << 20, description="Memory limit of an extraction process, bytes.")
    encoding: str | None = Field(None, description="Forced for every text file; detected where not given.")


class GenerationSettings(_Settings):
    """Everything that decides what the index of a given set of files looks like."""

    embedder: str = Field("minilm", description="none | minilm | wordllama | e5 | given:DIMENSION | NAME:MODEL …")
    chunk: ChunkSettings = ChunkSettings()
    site: SiteSettings = SiteSettings()
    columns: ColumnSettings = ColumnSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    edge_weights: str = Field("anchor", pattern="^(anchor|source|one)$", description="What a link's weight compares.")


class SelectionSettings(_Settings):
    """Which files belong to the collection."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    default_excludes: bool = True
    hidden: bool = False
