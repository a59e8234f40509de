"""Without these, a root could name another place than the one that was written, or an index lie where it is lost."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from clew.connectors.location import Root, checked_path
from clew.errors import ConfigurationError, MissingPartError, OptionError, RootNotFoundError


def test_a_local_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = Root.parse("docs/../notes/")
    assert (root.kind, root.path, root.name, root.display) == (
        "file",
        f"{tmp_path}/notes",
        "notes",
        f"{tmp_path}/notes",
    )
    assert Root.parse(f"file://{tmp_path}/notes") == root.__class__.parse(tmp_path / "notes")


def test_a_file_url_with_escapes_is_understood_and_a_literal_name_wins(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    assert Root.parse((tmp_path / "a b").as_uri()).path == f"{tmp_path}/a b"
    (tmp_path / "a%20b").mkdir()
    assert Root.parse(f"file://{tmp_path}/a%20b").path == f"{tmp_path}/a%20b"


def test_urls_are_literal() -> None:
    root = Root.parse("s3a://bucket/50% off #1?/[x]%20/")
    assert (root.kind, root.bucket, root.prefix) == ("s3", "bucket", "50% off #1?/[x]%20/")
    assert root.url == "s3://bucket/50% off #1?/[x]%20"
    assert root.name == "[x]%20"
    top = Root.parse("s3://bucket")
    assert (top.bucket, top.prefix, top.name, top.index_place()) == ("bucket", "", "bucket", "s3://bucket/.clew")


@pytest.mark.parametrize("bad", ["", "  ", "s3://", "s3:///key", "gs://"])
def test_a_root_that_names_nothing_is_refused(bad: str) -> None:
    with pytest.raises(OptionError):
        Root.parse(bad)


def test_an_unknown_protocol_is_refused_when_it_is_opened() -> None:
    with pytest.raises(OptionError, match="nonsense"):
        Root.parse("nonsense://x").filesystem()


def test_a_missing_package_says_what_to_install() -> None:
    pytest.importorskip("fsspec")
    try:
        import paramiko  # noqa: F401
    except ImportError:
        with pytest.raises(MissingPartError, match=r"clew\[sftp\]"):
            Root.parse("sftp://host/x").filesystem()
    else:
        pytest.skip("paramiko is installed")


def test_options_reach_the_file_system() -> None:
    filesystem = Root.parse("http://127.0.0.1/x", {"block_size": "4096"}).filesystem()
    assert filesystem.block_size == 4096


def test_the_index_lies_beside_the_data(tmp_path: Path) -> None:
    assert Root.parse(tmp_path).index_place() == f"{tmp_path}/.clew"
    assert Root.parse("s3://bucket/docs/").index_place() == "s3://bucket/docs/.clew"
    corpus = tmp_path / "corpus.jsonl.gz"
    corpus.write_bytes(b"")
    assert Root.parse(corpus).index_place() == f"{corpus}.clew"
    folder = tmp_path / "parts.parquet"
    folder.mkdir()
    assert Root.parse(folder).index_place() == f"{folder}/.clew"


@pytest.mark.parametrize("url", ["memory://x", "hdfs://host/x", "sftp://host/x", "https://example.org/x/"])
def test_where_lance_cannot_commit_a_place_must_be_given(url: str) -> None:
    with pytest.raises(ConfigurationError, match="--index"):
        Root.parse(url).index_place()
    assert Root.parse(url).index_place("s3://bucket/idx/") == "s3://bucket/idx"


@pytest.mark.parametrize("place", ["memory://x", "sftp://host/x"])
def test_an_index_is_not_put_where_it_cannot_be_kept(tmp_path: Path, place: str) -> None:
    with pytest.raises(ConfigurationError):
        Root.parse(tmp_path).index_place(place)


def test_a_place_below_the_root_is_recognised_through_links(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "alias").symlink_to("docs")
    root = Root.parse(tmp_path / "docs")
    assert root.relative(tmp_path / "alias" / "idx") == "idx"
    assert root.relative(tmp_path / "docs-old" / "idx") is None
    assert root.relative(tmp_path / "docs") is None
    assert Root.parse("s3://b/docs").relative("s3://b/docs/idx/x") == "idx/x"
    assert Root.parse("s3://b/docs").relative("s3://c/docs/idx") is None


def test_a_root_that_is_not_there_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(RootNotFoundError, match="nowhere"):
        Root.parse(tmp_path / "nowhere").require()
    (tmp_path / "a.md").write_bytes(b"a")
    with pytest.raises(RootNotFoundError, match="--include"):
        Root.parse(tmp_path / "a.md").require()
    assert Root.parse(tmp_path).require().path == str(tmp_path)


def test_file_systems_are_not_shared_and_keep_no_listings() -> None:
    first = Root.parse("memory://x")
    second = pickle.loads(pickle.dumps(first))
    assert first.filesystem() is first.filesystem()
    assert first.filesystem() is not second.filesystem()
    assert first == second
    assert hash(first) == hash(second)
    assert first != Root.parse("memory://x", {"a": "b"})


def test_secrets_in_urls_are_not_displayed() -> None:
    assert Root.parse("sftp://me:secret@host/docs").display == "sftp://host/docs"


def test_azure_urls_name_container_and_account() -> None:
    root = Root.parse("abfss://box@account.dfs.core.windows.net/docs")
    assert (root.kind, root.bucket, root.prefix) == ("az", "box", "docs/")
    assert root.storage_options["account_name"] == "account"


@pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a\0b"])
def test_paths_that_leave_the_root_are_refused(path: str) -> None:
    with pytest.raises(OptionError):
        checked_path(path)


@pytest.mark.parametrize("path", ["a", "...", "..a", "a..", "a/.b", "%2e%2e/a", "a\\..\\b", "\udce9"])
def test_odd_paths_that_stay_below_the_root_are_not(path: str) -> None:
    assert checked_path(path) == path
