"""How a run spreads over a Ray cluster: where it is, and what each stage takes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ByteSize, ConfigDict, Field, ValidationError, model_validator

from clew.daemon.marked_yaml import Fault, dotted, read_marked
from clew.errors import ConfigurationError

Cores = Annotated[float, Field(ge=0, le=1024)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StageSettings(_Section):
    """The actors of one stage: between how many, and what each takes."""

    minimum: int = Field(1, ge=0, le=100_000, description="Actors that are there from the beginning.")
    maximum: int | None = Field(None, ge=1, le=100_000, description="Actors at most; as many as the cluster has cores.")
    cpus: Cores = Field(1.0, description="Cores of each actor, as Ray counts them.")
    gpus: Cores = Field(0.0, description="GPUs of each actor.")
    memory: int | None = Field(None, ge=0, description="Bytes of each actor, as Ray counts them.")
    resources: dict[str, float] = Field(default_factory=dict, description="Further resources of each, by Ray's names.")

    @model_validator(mode="after")
    def _in_order(self) -> StageSettings:
        if self.maximum is not None and self.minimum > self.maximum:
            raise ValueError(f"minimum ({self.minimum}) is more than maximum ({self.maximum})")
        return self

    def options(self) -> dict[str, object]:
        """As Ray's `.options` takes them."""
        chosen: dict[str, object] = {"num_cpus": self.cpus, "num_gpus": self.gpus, "resources": dict(self.resources)}
        return chosen if self.memory is None else {**chosen, "memory": self.memory}


class QuerySettings(_Section):
    """Who answers questions: this process, or replicas on the cluster that come and go with the number of questions."""

    engine: Literal["local", "ray"] = Field("local", description="Where questions are answered: local or ray.")
    application: str = Field(
        "clew", min_length=1, max_length=100, description="The name of the application of Ray Serve."
    )
    minimum: int = Field(1, ge=1, le=10_000, description="Replicas at least.")
    maximum: int = Field(4, ge=1, le=10_000, description="Replicas at most.")
    ongoing: float = Field(2.0, gt=0, le=1000, description="Questions waiting or under way a replica that is aimed at.")
    cpus: Cores = Field(1.0, description="Cores of each replica, as Ray counts them.")
    memory: int | None = Field(None, ge=0, description="Bytes of each replica, as Ray counts them.")
    resources: dict[str, float] = Field(default_factory=dict, description="Further resources of each, by Ray's names.")
    cache: ByteSize = Field(ByteSize(10 << 30), ge=0, description="Bytes of segments that a node keeps on its disk.")
    warming: float = Field(
        120.0, ge=0, le=3600, description="Seconds that a new replica may load before it is given questions."
    )

    @model_validator(mode="after")
    def _in_order(self) -> QuerySettings:
        if self.minimum > self.maximum:
            raise ValueError(f"minimum ({self.minimum}) is more than maximum ({self.maximum})")
        return self


class ClusterSettings(_Section):
    """A Ray cluster, and how its actors are used."""

    address: str = Field("auto", min_length=1, description="HOST:PORT of the cluster; auto: that of this machine.")
    namespace: str = Field("clew", min_length=1, description="Ray's namespace for the coordinators.")
    extraction: StageSettings = StageSettings()
    embedding: StageSettings = Field(StageSettings(minimum=0), description="minimum 0: embedded by the coordinator.")
    coordinator_cpus: Cores = Field(0.0, description="Cores that the coordinator is counted with.")
    wheels: tuple[str, ...] = Field((), description="Wheels of clew for the workers; none: it is installed there.")
    environment: dict[str, str] = Field(default_factory=dict, description="Environment variables of the workers.")

    def runtime_env(self) -> dict[str, object]:
        """As Ray takes it."""
        chosen: dict[str, object] = {}
        if self.wheels:
            chosen["py_modules"] = list(self.wheels)
        if self.environment:
            chosen["env_vars"] = dict(self.environment)
        return chosen


def read_cluster(path: str | None, *, address: str | None = None, workers: int | None = None) -> ClusterSettings:
    """Settings of a YAML file, or the default ones; what is given here comes before what is written there.

    Raises:
        ConfigurationError: the file cannot be read, or a setting is wrong.
    """
    data: dict[str, Any] = {}
    lines: Any = None
    if path is not None:
        try:
            lines = read_marked(Path(path).read_bytes())
        except OSError as error:
            raise ConfigurationError(f"Reading {path}: {error.strerror}.") from error
        if lines.faults:
            raise ConfigurationError(f"Reading {path}: {lines.faults[0].sentence()}.")
        data = dict(lines.data)
    if address is not None:
        data["address"] = address
    if workers:
        stage = data.get("extraction")
        stage = dict(stage) if isinstance(stage, dict) else {}
        data["extraction"] = {**stage, "minimum": min(workers, int(stage.get("minimum", workers))), "maximum": workers}
    try:
        return ClusterSettings.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = tuple(first["loc"])
        known = f"; known are {', '.join(_known(where[:-1]))}" if first["type"] == "extra_forbidden" else ""
        fault = Fault(key=dotted(where), line=lines.line(where) if lines else None, message=f"{first['msg']}{known}")
        raise ConfigurationError(f"Reading {path or 'the cluster settings'}: {fault.sentence()}.") from error


def _known(path: tuple[str | int, ...]) -> list[str]:
    return list((StageSettings if path else ClusterSettings).model_fields)
