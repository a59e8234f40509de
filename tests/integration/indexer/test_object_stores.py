"""Without these, the same documents could give another index in a bucket than on a disk."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clew.examples import handbook
from clew.indexer.run import RunOptions, run_index
from clew.query.index import Index
from tests.servers import S3Server

QUESTIONS = ("how do I rotate a signing key", "payment terms", "сколько дней отпуска", "HP-200")


def answers(root: str, options: dict[str, Any]) -> dict[str, Any]:
    """What people see of an index."""
    with Index.open(root, storage_options=options) as index:
        assert index.check().findings == ()
        return {
            "hits": [
                [(hit.path, hit.char_start, hit.score, len(hit.trail)) for hit in index.search(text, k=20).hits]
                for text in QUESTIONS
            ],
            "links": [(row.source, row.target, row.href, row.state, row.weight) for row in index.links()],
            "files": [(row.path, row.size, row.state, row.chunk_count, row.language) for row in index.files()],
        }


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Equal, scores and weights to 1e-4."""
    assert one["files"] == other["files"]
    assert [row[:4] for row in one["links"]] == [row[:4] for row in other["links"]]
    weights = [[row[4] or 0.0 for row in side["links"]] for side in (one, other)]
    assert np.allclose(weights[0], weights[1], atol=1e-4)
    for mine, theirs in zip(one["hits"], other["hits"], strict=True):
        assert [(hit[0], hit[1], hit[3]) for hit in mine] == [(hit[0], hit[1], hit[3]) for hit in theirs]
        assert np.allclose([hit[2] for hit in mine], [hit[2] for hit in theirs], atol=1e-4)


def test_disk_and_bucket_give_the_same_index_and_an_empty_cache_answers(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """moto and SeaweedFS against the local disk; then a second machine, which has nothing but the bucket."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    local = tmp_path / "handbook"
    shutil.copytree(handbook(), local)
    bucket = s3_server.bucket()
    client = s3_server.client()
    for file in sorted(path for path in local.rglob("*") if path.is_file()):
        client.upload_file(str(file), bucket, f"docs/{file.relative_to(local).as_posix()}")
    run_index(local.as_uri(), RunOptions(embedder="hashing:32", workers=0))
    url = f"s3://{bucket}/docs"
    options = s3_server.storage_options
    run_index(url, RunOptions(embedder="hashing:32", workers=0, storage_options=options))
    here = answers(local.as_uri(), {})
    assert_same(here, answers(url, options))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another machine"))
    assert_same(here, answers(url, options))
