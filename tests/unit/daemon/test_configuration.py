"""`clew.yaml` of the service: without these, a wrong setting would start a service that does something else, in silence."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from clew.daemon.configuration import config_of_root, examine, is_config, load_config
from clew.daemon.marked_yaml import read_marked
from clew.errors import ConfigurationError


def written(folder: Path, text: str) -> Path:
    path = folder / "clew.yaml"
    path.write_text(textwrap.dedent(text))
    return path


def faults(folder: Path, text: str) -> list[tuple[str, int | None, str]]:
    configured, found = examine(written(folder, text))
    assert configured is None
    return [(one.key, one.line, one.message) for one in found]


def test_every_fault_is_named_with_key_line_and_what_is_allowed(tmp_path: Path) -> None:
    found = faults(
        tmp_path,
        """\
        server:
          port: 99999
          log: loud
        collections:
          handbook:
            root: ./handbook
            embeder: none
            events: pigeons
            schedule: "now and then"
            wait: a while
            chunk:
              tokens: 3
            site:
              roots:
                - prefix: /
                  foldr: docs
          empty: {}
        """,
    )
    keys = {key: (line, message) for key, line, message in found}
    expected = [
        ("server.port", 2, "65535"),
        ("server.log", 3, "'text' or 'json'"),
        ("collections.handbook.embeder", 7, "did you mean embedder?"),
        ("collections.handbook.events", 8, "local, sqs://QUEUE, webhook or none"),
        ("collections.handbook.schedule", 9, "five fields"),
        ("collections.handbook.wait", 10, "60s, 5m, 2h or 7d"),
        ("collections.handbook.chunk.tokens", 12, "greater than or equal to 16"),
        ("collections.handbook.site.roots.0.foldr", 16, "known are prefix, folder"),
        ("collections.empty.root", 17, "is missing"),
    ]
    for key, line, words in expected:
        assert key in keys, keys
        assert keys[key][0] == line
        assert words in keys[key][1]
    assert len(found) == len(expected)
    assert [line for _, line, _ in found] == sorted(line or 0 for _, line, _ in found)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("collections: [", 1, "not YAML"),
        ("- a\n- b\n", 1, "keys and values"),
        ("server: {port: 1}\nserver: {port: 2}\n", 2, "written twice"),
        ("collections:\n  1: {root: a}\n", 2, "a key must be text"),
        ("server: {port: 1}\n", None, "is missing"),
        ("collections: {}\n", 1, "at least 1 item"),
        ("collections:\n  'a/b': {root: x}\n", 2, "without '/'"),
        ("collections: &a\n  x: *a\n", 1, "contains itself"),
        ("", None, "is missing"),
    ],
)
def test_what_is_no_configuration_at_all(tmp_path: Path, text: str, line: int | None, words: str) -> None:
    found = faults(tmp_path, text)
    assert any(words in message and at == line for _, at, message in found), found


def test_the_first_fault_is_one_sentence_for_serve(tmp_path: Path) -> None:
    path = written(tmp_path, "server: {port: -1, hosts: x}\ncollections: {a: {root: b}}\n")
    with pytest.raises(ConfigurationError, match=r"line 1: server.hosts: .*\(and 1 more: `clew config check") as raised:
        load_config(path)
    assert "\n" not in str(raised.value)
    with pytest.raises(ConfigurationError, match="No such file"):
        load_config(tmp_path / "other.yaml")


def test_secrets_stand_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = faults(
        tmp_path,
        """\
        collections:
          a:
            root: s3://bucket/a
            storage_options:
              key: AKIA
              secret: abc
              client_kwargs:
                aws_session_token: def
        """,
    )
    assert [(key.rpartition(".")[2], line) for key, line, _ in found] == [("secret", 6), ("aws_session_token", 8)]
    assert not any("abc" in message for _, _, message in found)

    by_reference = """\
        collections:
          a:
            root: s3://bucket/a
            storage_options: {key: {env: STORE_KEY}, secret: {file: secret.txt}, endpoint_url: "http://localhost:1"}
        """
    assert "STORE_KEY is not set" in faults(tmp_path, by_reference)[0][2]
    monkeypatch.setenv("STORE_KEY", "AKIA")
    assert "secret.txt cannot be read" in faults(tmp_path, by_reference)[0][2]
    (tmp_path / "secret.txt").write_text("hushed\n")
    configured = load_config(written(tmp_path, by_reference))
    assert configured.storage("a") == {"key": "AKIA", "secret": "hushed", "endpoint_url": "http://localhost:1"}
    assert "hushed" not in repr(configured)


def test_every_key_also_by_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "server: {port: 1}\ncollections:\n  Team docs: {root: docs, wait: 1m}\n")
    for name, value in {
        "CLEW_SERVER__PORT": "8700",
        "CLEW_LIMITS__MEMORY": "3GiB",
        "CLEW_COLLECTIONS__TEAM_DOCS__SCHEDULE": "0 * * * *",
        "CLEW_COLLECTIONS__TEAM_DOCS__EXCLUDE": '["drafts/"]',
        "CLEW_COLLECTIONS__TEAM_DOCS__CHUNK__TOKENS": "128",
        "CLEW_COLLECTIONS__TEAM_DOCS__STORAGE_OPTIONS__SECRET": "from the environment",
        "CLEW_COLLECTIONS__OTHER__ROOT": "s3://bucket/other",
    }.items():
        monkeypatch.setenv(name, value)
    config = load_config(path).config
    docs = config.collections["Team docs"]
    assert (config.server.port, config.limits.memory) == (8700, 3 << 30)
    assert (docs.root, docs.wait, docs.schedule, docs.exclude) == ("docs", 60.0, "0 * * * *", ("drafts/",))
    assert docs.chunk is not None
    assert docs.chunk.tokens == 128
    assert docs.storage_options == {"secret": "from the environment"}
    assert set(config.collections) == {"Team docs", "other"}


def test_a_wrong_variable_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_SERVER__PROT", "1")
    monkeypatch.setenv("CLEW_COLLECTIONS__A__WORKERS", "many")
    found = faults(tmp_path, "collections: {a: {root: docs}}\n")
    assert any("CLEW_SERVER__PROT" in message and "did you mean port?" in message for _, _, message in found)
    assert any("CLEW_COLLECTIONS__A__WORKERS" in message for _, _, message in found)


def test_two_collections_never_share_an_index(tmp_path: Path) -> None:
    found = faults(tmp_path, "collections:\n  a: {root: docs}\n  b: {root: ./docs/}\n")
    assert found[0][:2] == ("collections.b", 3)
    assert "give one of them another `index`" in found[0][2]


def test_memory_of_one_process_must_fit_the_budget(tmp_path: Path) -> None:
    found = faults(tmp_path, "limits: {memory: 1GiB}\ncollections:\n  a: {root: docs}\n")
    assert found[0][0] == "collections.a.extraction.memory"


def test_relative_places_start_from_the_file(tmp_path: Path) -> None:
    configured = load_config(
        written(tmp_path, "collections: {a: {root: docs, index: ../index}, b: {root: s3://b/c, index: /i}}")
    )
    assert configured.root("a") == str(tmp_path / "docs")
    assert configured.index("a") == str(tmp_path / "../index")
    assert (configured.root("b"), configured.index("b")) == ("s3://b/c", "/i")


def test_one_root_is_a_configuration_too(tmp_path: Path) -> None:
    configured = config_of_root(str(tmp_path / "Team docs"), storage_options={"secret": "typed by hand"})
    assert list(configured.config.collections) == ["Team docs"]
    assert configured.storage("Team docs") == {"secret": "typed by hand"}
    assert is_config("clew.yaml")
    assert not is_config(str(tmp_path))
    assert not is_config("s3://bucket/a.yaml")


def test_lines_of_a_list_and_of_what_is_not_written() -> None:
    marked = read_marked(b"a:\n  - b: 1\n  - b: 2\n")
    assert marked.line(("a", 1, "b")) == 3
    assert marked.line(("a", 1, "c")) == 3
    assert marked.line(("z",)) is None
