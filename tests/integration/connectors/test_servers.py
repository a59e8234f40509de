"""Without these, every test against an S3 server could pass because no server was there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers import FaultProxy, S3Server


def test_each_server_stores_and_returns_an_object(s3_server: S3Server) -> None:
    client, bucket = s3_server.client(), s3_server.bucket()
    client.put_object(Bucket=bucket, Key="a/b", Body=b"hello")
    assert client.get_object(Bucket=bucket, Key="a/b")["Body"].read() == b"hello"


def test_seaweedfs_checks_who_asks(seaweed_s3: S3Server) -> None:
    stranger = S3Server(name="x", endpoint_url=seaweed_s3.endpoint_url, key="stranger", secret="nothing")
    with pytest.raises(Exception, match=r"403|InvalidAccessKeyId"):
        stranger.client().list_buckets()


def test_the_proxy_passes_requests_on_and_fails_on_demand(faulty_s3: FaultProxy) -> None:
    bucket = faulty_s3.behind.bucket()
    client = faulty_s3.server.client()
    faulty_s3.fail("slow-down", times=1)
    client.put_object(Bucket=bucket, Key="a", Body=b"x" * 1000)
    assert faulty_s3.behind.client().get_object(Bucket=bucket, Key="a")["Body"].read() == b"x" * 1000
    assert [each.method for each in faulty_s3.seen] == ["PUT", "PUT"]


def test_a_shared_collection_is_unpacked(data: Callable[[str], Path]) -> None:
    folder = data("docs-rust-book")
    assert len(list(folder.rglob("*.md"))) >= 100
