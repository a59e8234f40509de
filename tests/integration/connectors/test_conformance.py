"""The published suites, run against local disk, memory and two S3 servers: any of them could drift from the others."""

from __future__ import annotations

import uuid
from pathlib import Path

import fsspec
import pytest

from clew.connectors.location import Root
from clew.connectors.objects import ObjectStore
from clew.testing.connectors import ConnectorConformance, ObjectStoreConformance, WritableStorage
from tests.servers import S3Server


class LocalStorage(WritableStorage):
    """A folder."""

    def write(self, path: str, data: bytes) -> None:
        target = Path(self.root.path, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)

    def remove(self, path: str) -> None:
        Path(self.root.path, path).unlink()

    def sibling(self, name: str, path: str, data: bytes) -> None:
        target = Path(self.root.path + name, path)
        target.parent.mkdir(parents=True)
        target.write_bytes(data)


class MemoryStorage(WritableStorage):
    """fsspec's memory file system, which stands for any other fsspec file system."""

    def write(self, path: str, data: bytes) -> None:
        fsspec.filesystem("memory").pipe_file(f"{self.root.path}/{path}", data)

    def remove(self, path: str) -> None:
        fsspec.filesystem("memory").rm_file(f"{self.root.path}/{path}")

    def sibling(self, name: str, path: str, data: bytes) -> None:
        fsspec.filesystem("memory").pipe_file(f"{self.root.path}{name}/{path}", data)


class BucketStorage(WritableStorage):
    """A prefix of a bucket."""

    has_etags = True

    def __init__(self, root: Root, server: S3Server) -> None:
        super().__init__(root)
        self.client = server.client()
        if server.name == "moto":
            # werkzeug, which moto stands on, does not route paths with a line break.
            self.impossible_names = frozenset({"line\nbreak.md"})
        else:
            # SeaweedFS stores it as "back/slash.md".
            self.impossible_names = frozenset({"back\\slash.md"})

    def write(self, path: str, data: bytes) -> None:
        self.client.put_object(Bucket=self.root.bucket, Key=self.root.prefix + path, Body=data)

    def remove(self, path: str) -> None:
        self.client.delete_object(Bucket=self.root.bucket, Key=self.root.prefix + path)

    def sibling(self, name: str, path: str, data: bytes) -> None:
        self.client.put_object(Bucket=self.root.bucket, Key=f"{self.root.prefix[:-1]}{name}/{path}", Body=data)


class TestLocalDisk(ConnectorConformance):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> WritableStorage:
        folder = tmp_path / "docs"
        folder.mkdir()
        return LocalStorage(Root.parse(folder))


class TestMemory(ConnectorConformance):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> WritableStorage:
        return MemoryStorage(Root.parse(f"memory://{uuid.uuid4().hex}/docs"))


class TestS3(ConnectorConformance):
    @pytest.fixture
    def storage(self, tmp_path: Path, s3_server: S3Server) -> WritableStorage:
        root = Root.parse(f"s3://{s3_server.bucket()}/team a/docs", s3_server.storage_options)
        return BucketStorage(root, s3_server)


class TestLocalStore(ObjectStoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return ObjectStore.open(tmp_path / "docs" / ".clew")


class TestMemoryStore(ObjectStoreConformance):
    crosses_processes = False

    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return ObjectStore.open(f"memory://{uuid.uuid4().hex}/.clew")


class TestS3Store(ObjectStoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path, s3_server: S3Server) -> ObjectStore:
        return ObjectStore.open(f"s3://{s3_server.bucket()}/docs/.clew", s3_server.storage_options)
