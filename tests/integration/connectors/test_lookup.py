"""A look at a part must show what a listing of the whole shows of it; otherwise events and schedules would undo each other."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clew.connectors.listing import list_entries
from clew.connectors.location import Root
from clew.connectors.lookup import is_plain_folder, list_below, look_at
from clew.connectors.patterns import Selection
from clew.errors import StorageError
from tests.servers import FaultProxy, S3Server

FILES = {
    "top.md": "top",
    ".hidden.md": "hidden",
    ".clewignore": "*.tmp\nprivate/\n",
    "x.tmp": "ignored",
    "a/one.md": "one",
    "a/two.tmp": "ignored",
    "a/b/.clewignore": "!*.tmp\nno.md\n",
    "a/b/three.tmp": "taken back",
    "a/b/no.md": "ignored",
    "a/b/(first).md": "sorts before the ignore file",
    "a/private/four.md": "ignored",
    "ab/five.md": "begins alike",
    "a/venv/pyvenv.cfg": "home = /usr",
    "a/venv/lib/six.md": "a virtual environment",
    "env/seven.md": "only named like one",
    "a/.clew/eight.md": "an index",
    "a/node_modules/nine.md": "somebody else's",
    "a/[odd] 100%#?+ü.md": "odd",
    "index/snapshots/1": "the index of this root",
}
PATHS = [*FILES, "missing.md", "a", "a/b", "a/missing/x.md"]
FOLDERS = [
    "a",
    "a/b",
    "ab",
    "a/venv",
    "a/venv/lib",
    "env",
    "a/private",
    "a/.clew",
    "index",
    "missing",
    "top.md",
    "a/node_modules",
]


def _local(tmp_path: Path, request: pytest.FixtureRequest) -> Root:
    for name, text in FILES.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Root.parse(tmp_path / "root")


def _memory(tmp_path: Path, request: pytest.FixtureRequest) -> Root:
    root = Root.parse(f"memory://look-{uuid.uuid4().hex}")
    for name, text in FILES.items():
        root.filesystem().pipe_file(f"{root.filesystem_path}/{name}", text.encode())
    return root


def _s3(fixture: str) -> Callable[[Path, pytest.FixtureRequest], Root]:
    def fill(tmp_path: Path, request: pytest.FixtureRequest) -> Root:
        server: S3Server = request.getfixturevalue(fixture)
        bucket, client = server.bucket(), server.client()
        for name, text in FILES.items():
            client.put_object(Bucket=bucket, Key=f"docs/{name}", Body=text.encode())
        return Root.parse(f"s3://{bucket}/docs", server.storage_options)

    return fill


KINDS: dict[str, Any] = {"local": _local, "memory": _memory, "moto": _s3("moto_s3"), "seaweedfs": _s3("seaweed_s3")}
SELECTIONS = {
    "default": Selection(),
    "hidden": Selection(hidden=True),
    "everything": Selection(hidden=True, default_excludes=False),
    "chosen": Selection(include=("a/**", "*.tmp"), exclude=("one.md",)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_part_is_seen_as_in_the_whole(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    root = KINDS[kind](tmp_path, request)
    place = f"{root.url}/index"
    for name, selection in SELECTIONS.items():
        whole = {entry.path: entry for entry in list_entries(root, selection, place=place)}
        assert len(whole) >= 3, name
        looked = look_at(root, PATHS, selection, place=place)
        assert [entry.path for entry in looked] == [path for path in PATHS if path in whole], name
        for entry in looked:
            assert (entry.size, entry.etag, entry.inode) == (
                whole[entry.path].size,
                whole[entry.path].etag,
                whole[entry.path].inode,
            )
        for folder in FOLDERS:
            below = sorted(entry.path for entry in list_below(root, folder, selection, place=place))
            assert below == sorted(path for path in whole if path.startswith(f"{folder}/")), (name, folder)


def test_one_refused_answer_is_an_error_and_not_an_absence(faulty_s3: FaultProxy) -> None:
    """An absence that was none would delete a file from the index."""
    bucket, client = faulty_s3.behind.bucket(), faulty_s3.behind.client()
    for number in range(5):
        client.put_object(Bucket=bucket, Key=f"docs/{number}.md", Body=b"x")
    root = Root.parse(f"s3://{bucket}/docs", faulty_s3.server.storage_options)
    paths = [f"{number}.md" for number in range(5)]
    faulty_s3.fail("status", status=403, matches=lambda method, target: method == "HEAD" and "3.md" in target)
    with pytest.raises(StorageError):
        look_at(root, paths, Selection())
    assert len(look_at(root, paths, Selection())) == 5


def test_rules_of_a_folder_are_asked_for_once(faulty_s3: FaultProxy) -> None:
    bucket, client = faulty_s3.behind.bucket(), faulty_s3.behind.client()
    for number in range(50):
        client.put_object(Bucket=bucket, Key=f"docs/a/{number}.md", Body=b"x")
    root = Root.parse(f"s3://{bucket}/docs", faulty_s3.server.storage_options)
    assert len(look_at(root, [f"a/{number}.md" for number in range(50)], Selection())) == 50
    assert len(faulty_s3.seen) <= 50 + 2 + 2  # a HEAD a file, an ignore file a folder; the root looked at


def test_link_inside_the_root_is_no_plain_folder(tmp_path: Path) -> None:
    (tmp_path / "root/real/deep").mkdir(parents=True)
    (tmp_path / "root/link").symlink_to("real")
    root = Root.parse(tmp_path / "root")
    assert [is_plain_folder(root, folder) for folder in ("", "real", "real/deep", "gone", "link", "link/deep")] == [
        True, True, True, True, False, False,
    ]  # fmt: skip
