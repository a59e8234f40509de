"""`clew.yaml` of the service: what `clew serve` watches, how, and within which bounds.

Every key also by environment: `CLEW_SERVER__PORT=8700`, `CLEW_COLLECTIONS__HANDBOOK__SCHEDULE='0 * * * *'` (two underscores go
one level down; what is no letter or digit in a collection's name is written as `_`). The environment comes before the file.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ByteSize, ConfigDict, Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from clew.connectors.location import Root, split_url
from clew.daemon.cluster.settings import ClusterSettings, QuerySettings
from clew.daemon.http.settings import HttpSettings
from clew.daemon.marked_yaml import Fault, Marked, dotted, read_marked
from clew.daemon.schedule import Schedule
from clew.daemon.secrets import resolved, written_secrets
from clew.errors import ClewError, ConfigurationError, OptionError
from clew.indexer.configuration import CollectionConfig
from clew.indexer.embedders.registry import NAMES as EMBEDDERS

ENVIRONMENT = "CLEW_"
DEFAULT_PORT = 8610
DEFAULT_SCHEDULE = "*/15 * * * *"
_NAME = re.compile(r"[^/\x00-\x1f\x7f]{1,100}")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def _seconds(value: Any) -> Any:
    """`90`, `90s`, `5m`, `2h`, `7d` as seconds; anything else is left to the model to refuse."""
    if not isinstance(value, str):
        return value
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\s*", value)
    if found is None:
        raise ValueError("expected a time such as 60s, 5m, 2h or 7d")
    return float(found[1]) * _UNITS[found[2] or "s"]


Duration = Annotated[float, BeforeValidator(_seconds), Field(ge=0, lt=1e9, allow_inf_nan=False)]


def _schedule(value: str | None) -> str | None:
    if value is not None:
        try:
            Schedule(value)
        except OptionError:
            raise ValueError("expected five fields, minute hour day month weekday, such as '*/15 * * * *'") from None
    return value


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ServerSettings(_Section):
    """Where the service listens, and how it speaks."""

    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on; loopback alone by default.")
    port: int = Field(DEFAULT_PORT, ge=0, le=65_535, description="Port; 0 takes a free one.")
    log: Literal["text", "json"] = "text"
    writing: Literal["process", "thread"] = Field(
        "process", description="Where indexes are written: process (beside the one that answers) or thread (in it)."
    )
    keys: str | None = Field(
        None, min_length=1, description="Folder or URL where the keys lie, if not in NAME.keys beside this file."
    )


class Limits(_Section):
    """What the whole service may use, whatever the number of collections."""

    runs: int = Field(1, ge=1, le=1_000, description="Collections that are indexed at the same time.")
    workers: int | None = Field(None, ge=1, description="Extraction processes of all runs together; one a core.")
    memory: ByteSize | None = Field(
        None,
        ge=256 << 20,
        description="Memory of all extraction processes together; their own limits alone if not given.",
    )
    grace: Duration = Field(10.0, description="How long a run may go on after the wish to stop.")


class UpkeepSettings(_Section):
    """What commits leave behind: when it is merged and cleared away, and what is kept."""

    schedule: str | None = Field("7 * * * *", description="Five fields as in cron; null: never, somebody else does it.")
    retention: Duration = Field(86_400.0, ge=60.0, description="Snapshots superseded longer ago than this go.")
    older_than: Duration = Field(3600.0, ge=60.0, description="Objects that no snapshot names go from this age on.")

    @field_validator("schedule")
    @classmethod
    def _readable_schedule(cls, value: str | None) -> str | None:
        return _schedule(value)


class CollectionEntry(CollectionConfig):
    """One collection: its place, what tells of its changes, and what shapes its index."""

    root: str = Field(min_length=1, description="A folder, a record file or a URL such as s3://bucket/prefix.")
    index: str | None = Field(None, min_length=1, description="Where the index lies, if not at ROOT/.clew.")
    storage_options: dict[str, Any] = Field(default_factory=dict, description="In fsspec's names.")
    events: str | None = Field(None, description="local, sqs://QUEUE, webhook or none.")
    schedule: str | None = Field(DEFAULT_SCHEDULE, description="When everything is looked at: five fields as in cron.")
    workers: int | None = Field(None, ge=0, description="Extraction processes of a run.")
    wait: Duration = Field(60.0, description="How long to wait for another writer.")
    accept_mass_delete: bool = Field(False, description="Let nearly all files vanish from the index.")
    upkeep: UpkeepSettings = UpkeepSettings()

    @field_validator("events")
    @classmethod
    def _known_events(cls, value: str | None) -> str | None:
        if value is None or value in ("local", "webhook", "none") or value.startswith(("sqs://", "arn:aws:sqs:")):
            return value
        raise ValueError("expected local, sqs://QUEUE, webhook or none")

    @field_validator("schedule")
    @classmethod
    def _readable_schedule(cls, value: str | None) -> str | None:
        return _schedule(value)

    @field_validator("embedder")
    @classmethod
    def _known_embedder(cls, value: str | None) -> str | None:
        if value is not None:
            kind, _, argument = value.partition(":")
            if kind not in EMBEDDERS or bool(argument) != bool(EMBEDDERS[kind][0]):
                shown = ", ".join(f"{name}:{wants}" if wants else name for name, (wants, _) in EMBEDDERS.items())
                raise ValueError(f"expected one of {shown}")
        return value

    @field_validator("root", "index")
    @classmethod
    def _parsed_place(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                Root.parse(value)
            except ClewError as error:
                raise ValueError(str(error)) from None
        return value


class ServiceConfig(BaseSettings):
    """The whole configuration. Read it with `load_config`, which knows of lines and names every fault."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix=ENVIRONMENT, env_nested_delimiter="__", case_sensitive=False
    )

    server: ServerSettings = ServerSettings()
    http: HttpSettings = HttpSettings()
    limits: Limits = Limits()
    engine: Literal["local", "ray"] = Field("local", description="Where looks at everything read files: local or ray.")
    cluster: ClusterSettings = ClusterSettings()
    query: QuerySettings = QuerySettings()
    collections: dict[str, CollectionEntry] = Field(min_length=1)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment, then the file."""
        return (_Environment(settings_cls, init_settings), init_settings)


class _Environment(EnvSettingsSource):
    """The environment; names of collections are those of the file, however a variable has to spell them."""

    def __init__(self, settings: type[BaseSettings], file: PydanticBaseSettingsSource) -> None:
        super().__init__(settings)
        written = file().get("collections")
        self._names = {_spelt(name): name for name in written} if isinstance(written, Mapping) else {}

    def __call__(self) -> dict[str, Any]:
        found = super().__call__()
        collections = found.get("collections")
        if isinstance(collections, Mapping):
            found["collections"] = {self._names.get(_spelt(name), name): value for name, value in collections.items()}
        return found


def _spelt(name: object) -> str:
    return re.sub(r"\W", "_", str(name)).lower()


class Configured(_Section):
    """A configuration that was read, and the folder that its relative paths start from."""

    config: ServiceConfig
    folder: Path
    source: str  # what people know it by

    def storage(self, name: str) -> dict[str, Any]:
        """The storage options of a collection, secrets looked up now. Raises ConfigurationError."""
        where = f"collections.{name}.storage_options"
        return resolved(self.config.collections[name].storage_options, self.folder, where)

    def root(self, name: str) -> str:
        """The root of a collection; a relative path starts from the configuration's folder."""
        return self.placed(self.config.collections[name].root)

    def index(self, name: str) -> str | None:
        """The place of its index, if it is not beside the data."""
        place = self.config.collections[name].index
        return None if place is None else self.placed(place)

    def placed(self, text: str) -> str:
        """A path or URL of the configuration; a relative path starts from its folder."""
        kind, rest = split_url(text)
        if kind != "file" or text.startswith("file:"):
            return text
        slash = "/" if rest.endswith("/") else ""
        return str(self.folder / Path(rest).expanduser()) + slash


# --- reading ---------------------------------------------------------------------------------------


def is_config(text: str) -> bool:
    """Whether `clew serve TEXT` names a configuration rather than a root."""
    return split_url(text)[0] == "file" and text.lower().endswith((".yaml", ".yml")) and not Path(text).is_dir()


def load_config(path: str | Path) -> Configured:
    """Read a configuration. ConfigurationError names the first fault, with key and line, and says how many there are."""
    configured, faults = examine(path)
    if configured is None:
        more = f" (and {len(faults) - 1} more: `clew config check {path}` names them)" if len(faults) > 1 else ""
        raise ConfigurationError(f"Reading {path}: {faults[0].sentence()}{more}.")
    return configured


def config_of_root(root: str, **entry: Any) -> Configured:
    """What `clew serve ROOT` runs with: one collection, named after the root's last segment."""
    name = Root.parse(root).name
    data = {"collections": {name: {"root": root, **entry}}}
    config, faults = _validated(Marked(data=data))
    if config is None:
        raise ConfigurationError(f"Serving {root}: {faults[0].sentence()}.")
    return Configured(config=config, folder=Path.cwd(), source=root)


def examine(path: str | Path) -> tuple[Configured | None, list[Fault]]:
    """The configuration, or None, and everything that is wrong with it.

    Raises:
        ConfigurationError: there is no such file, or it cannot be read.
    """
    file = Path(path)
    try:
        marked = read_marked(file.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"Reading the configuration {path}: {error.strerror}.") from error
    if marked.faults:
        return None, marked.faults
    faults = list(_open_secrets(marked))
    config, wrong = _validated(marked)
    faults += wrong
    if config is None or faults:
        return None, sorted(faults, key=lambda fault: (fault.line or 0, fault.key))
    configured = Configured(config=config, folder=file.resolve().parent, source=str(path))
    faults = list(_unusable(configured, marked))
    return (None, faults) if faults else (configured, [])


def _open_secrets(marked: Marked) -> Iterator[Fault]:
    collections = marked.data.get("collections")
    for name, entry in collections.items() if isinstance(collections, Mapping) else ():
        options = entry.get("storage_options") if isinstance(entry, Mapping) else None
        base = ("collections", name, "storage_options")
        for path in written_secrets(options):
            yield Fault(
                key=dotted((*base, *path)),
                line=marked.line((*base, *path)),
                message="a secret does not stand here; write {env: NAME} or {file: PATH} instead",
            )


def _validated(marked: Marked) -> tuple[ServiceConfig | None, list[Fault]]:
    try:
        config = ServiceConfig(**marked.data)
    except ValidationError as error:
        return None, [_fault(one, marked) for one in error.errors()]
    except Exception as error:  # noqa: BLE001 - pydantic-settings raises several kinds for a variable that is no JSON
        return None, [Fault(key="", line=None, message=f"in the environment: {error}")]
    wrong = [
        Fault(
            key=dotted(("collections", name)),
            line=marked.line(("collections", name)),
            message="a name has 1 to 100 characters, without '/' and control characters",
        )
        for name in config.collections
        if not _NAME.fullmatch(name) or name in (".", "..")
    ]
    return (None, wrong) if wrong else (config, [])


def _unusable(configured: Configured, marked: Marked) -> Iterator[Fault]:
    """What can only be seen of the whole: secrets that are not there, two collections in one index, budgets too small."""
    places: dict[str, str] = {}
    limits = configured.config.limits
    for name, entry in configured.config.collections.items():
        base = ("collections", name)
        try:
            options = configured.storage(name)
            place = Root.parse(configured.root(name), options).index_place(configured.index(name))
        except ConfigurationError as error:
            part = "storage_options" if "storage_options" in str(error) else "root"
            yield Fault(key=dotted(base), line=marked.line((*base, part)), message=str(error).rstrip("."))
            continue
        if place in places:
            message = (
                f"its index would lie where that of {places[place]} lies ({place}); give one of them another `index`"
            )
            yield Fault(key=dotted(base), line=marked.line(base), message=message)
        places[place] = name
        memory = (entry.extraction.memory if entry.extraction else None) or (2 << 30)
        if limits.memory is not None and memory > limits.memory:
            yield Fault(
                key=dotted((*base, "extraction", "memory")),
                line=marked.line((*base, "extraction", "memory")),
                message=f"one process may use {memory} bytes, but limits.memory allows {int(limits.memory)} for all",
            )


def _fault(error: Any, marked: Marked) -> Fault:
    path: tuple[str | int, ...] = tuple(error["loc"])
    if error["type"] == "extra_forbidden":
        known = _keys(path[:-1])
        close = difflib.get_close_matches(str(path[-1]), known, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        message = f"unknown key; {hint}known are {', '.join(known)}"
    elif error["type"] == "missing":
        message = f"is missing; {_description(path) or 'give it a value'}"
    else:
        message = str(error["msg"]).removeprefix("Value error, ").rstrip(".")
        message = message[:1].lower() + message[1:]
        described = _description(path)
        message += f" ({described.rstrip('.')})" if described and "expected" not in message else ""
    written = _is_written(marked.data, path)
    line = marked.line(path if written or error["type"] == "missing" else path[:-1])
    if not written and error["type"] != "missing":
        variable = ENVIRONMENT + "__".join(_spelt(part) for part in path).upper()
        return Fault(key=dotted(path), line=None, message=f"{message}; it comes from the environment ({variable})")
    return Fault(key=dotted(path), line=line, message=message)


def _is_written(data: Any, path: Sequence[str | int]) -> bool:
    for part in path:
        if not isinstance(data, Mapping | list):
            return True  # what comes after a written value is pydantic's own: which member of a union it tried
        try:
            data = data[part]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _model(path: Sequence[str | int]) -> type[BaseModel] | None:
    """The model that the value at `path` is read into."""
    model: type[BaseModel] | None = ServiceConfig
    parts = list(path)
    while parts and model is not None:
        part = parts.pop(0)
        if model is ServiceConfig and part == "collections":
            if not parts:
                return None
            parts.pop(0)
            model = CollectionEntry
            continue
        field = model.model_fields.get(str(part))
        if field is None:
            return None
        candidates = [field.annotation, *get_args(field.annotation)]
        inner = [one for one in candidates if isinstance(one, type) and issubclass(one, BaseModel)]
        if not inner and parts and isinstance(parts[0], int):  # a tuple of models
            inner = [one for arg in get_args(field.annotation) for one in get_args(arg) if isinstance(one, type)]
        if parts and isinstance(parts[0], int):
            parts.pop(0)
        model = inner[0] if inner else None
    return model


def _keys(path: Sequence[str | int]) -> list[str]:
    model = _model(path)
    return list(model.model_fields) if model is not None else []


def _description(path: Sequence[str | int]) -> str:
    model = _model(path[:-1])
    field = model.model_fields.get(str(path[-1])) if model is not None and path else None
    return (field.description or "") if field is not None else ""
