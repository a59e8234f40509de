"""`clew.yaml`: what a collection says of itself, beside the data or named on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from clew.connectors.listing import head
from clew.connectors.location import Root
from clew.connectors.reading import open_stable
from clew.errors import ConfigurationError
from clew.indexer.settings import ChunkSettings, ColumnSettings, ExtractionSettings, SiteSettings

FILE_NAME = "clew.yaml"
LARGEST = 1 << 20


class CollectionConfig(BaseModel):
    """Settings of a collection; what is left out keeps its default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    embedder: str | None = None
    chunk: ChunkSettings | None = None
    site: SiteSettings | None = None
    columns: ColumnSettings | None = None
    extraction: ExtractionSettings | None = None
    edge_weights: Literal["anchor", "source", "one"] | None = None
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    default_excludes: bool | None = None
    hidden: bool | None = None
    graph: bool | None = None  # whether indexing brings the graph up to date, too

    def settings(self) -> dict[str, Any]:
        """Overrides of GenerationSettings: only what was written."""
        names = ("chunk", "site", "columns", "extraction", "edge_weights")
        return self.model_dump(include=set(names), exclude_unset=True, exclude_none=True)

    def selection(self) -> dict[str, Any]:
        """Overrides of SelectionSettings: only what was written."""
        names = ("include", "exclude", "default_excludes", "hidden")
        return self.model_dump(include=set(names), exclude_unset=True, exclude_none=True)


def read_config(root: Root, explicit: str | None) -> CollectionConfig:
    """The configuration named, else the `clew.yaml` beside the data, else nothing but defaults."""
    if explicit is not None:
        try:
            return parse_config(Path(explicit).read_bytes(), explicit)
        except OSError as error:
            raise ConfigurationError(f"Reading the configuration {explicit}: {error.strerror}.") from error
    if root.is_record_file:
        return CollectionConfig()
    entry = head(root, FILE_NAME)
    if entry is None or entry.size > LARGEST:
        return CollectionConfig()
    with open_stable(root, entry) as (stream, _):
        return parse_config(stream.read(), f"{root.display}/{FILE_NAME}")


def parse_config(data: bytes, name: str) -> CollectionConfig:
    """Read YAML. ConfigurationError says which key is wrong, and why."""
    import yaml

    try:
        raw = yaml.safe_load(data) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        raise ConfigurationError(f"Reading {name}: it is not YAML{where}.") from error
    if not isinstance(raw, dict):
        raise ConfigurationError(f"Reading {name}: expected keys and values, such as `embedder: minilm`.")
    try:
        return CollectionConfig.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        known = ", ".join(CollectionConfig.model_fields) if first["type"] == "extra_forbidden" else first["msg"]
        hint = f"unknown key; known are {known}" if first["type"] == "extra_forbidden" else known
        raise ConfigurationError(f"Reading {name}: {key}: {hint}.") from error
