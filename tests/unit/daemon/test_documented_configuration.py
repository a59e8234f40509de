"""The documented configurations: without these, people would copy settings that `clew serve` refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from clew.daemon.cluster.settings import ClusterSettings, QuerySettings, StageSettings, read_cluster
from clew.daemon.configuration import CollectionEntry, Limits, ServerSettings, ServiceConfig, UpkeepSettings, examine
from clew.errors import ConfigurationError
from clew.indexer.configuration import CollectionConfig

DOCS = Path(__file__).parents[3] / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


@pytest.mark.parametrize("page", ["reference/service.md", "how-to/run-a-service.md", "how-to/answer-on-a-cluster.md"])
def test_every_shown_configuration_is_accepted(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORE_KEY", "id")
    secret = tmp_path / "store"
    secret.write_text("hushed")
    shown = blocks(page)
    assert shown
    for text in shown:
        path = tmp_path / "clew.yaml"
        path.write_text(text.replace("/run/secrets/store", str(secret)))
        configured, faults = examine(path)
        assert configured is not None, [fault.sentence() for fault in faults]


@pytest.mark.parametrize(
    "model", [ServerSettings, Limits, UpkeepSettings, CollectionEntry, ClusterSettings, StageSettings, QuerySettings]
)
def test_every_key_is_documented(model: type[BaseModel]) -> None:
    text = (DOCS / "reference/service.md").read_text() + (DOCS / "reference/settings.md").read_text()
    own = [name for name in model.model_fields if name not in CollectionConfig.model_fields]
    assert own
    assert [name for name in own if not re.search(rf"\b{name}\b", text)] == []


def test_every_section_is_documented() -> None:
    text = (DOCS / "reference/service.md").read_text()
    assert [name for name in ServiceConfig.model_fields if f"{name}:" not in text] == []


def test_every_shown_variable_is_a_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown = re.findall(r"`(CLEW_[A-Z_]+)='?([^'`]+)'?`", (DOCS / "reference/service.md").read_text())
    assert len(shown) >= 4
    for name, value in shown:
        monkeypatch.setenv(name, value)
    path = tmp_path / "clew.yaml"
    path.write_text("collections:\n  team docs: {root: docs}\n  handbook: {root: handbook}\n")
    configured, faults = examine(path)
    assert configured is not None, [fault.sentence() for fault in faults]
    config = configured.config
    assert (config.server.port, config.collections["team docs"].schedule) == (8700, "0 * * * *")
    assert config.collections["handbook"].exclude == ("drafts/",)


def test_the_shown_cluster_file_is_accepted(tmp_path: Path) -> None:
    (text,) = blocks("how-to/index-on-a-cluster.md")
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    settings = read_cluster(str(path), address="ray-head:6379", workers=4)
    assert (settings.extraction.maximum, settings.embedding.gpus, settings.address) == (4, 1.0, "ray-head:6379")
    assert settings.runtime_env()["py_modules"] == list(settings.wheels)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("adress: x\n", r"line 1: adress: .*known are address"),
        ("extraction: {minimum: 4, maximum: 2}\n", r"minimum \(4\) is more than maximum \(2\)"),
        ("extraction:\n  cores: 2\n", r"line 2: extraction.cores: .*known are minimum"),
        ("a: [\n", "not YAML"),
    ],
)
def test_a_wrong_cluster_file_is_named_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=words):
        read_cluster(str(path))
    with pytest.raises(ConfigurationError, match="No such file"):
        read_cluster(str(tmp_path / "nowhere.yaml"))
