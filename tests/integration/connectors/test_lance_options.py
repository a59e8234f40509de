"""Without these, an index could be published in a bucket whose tables Lance cannot open with the same options."""

from __future__ import annotations

import pytest

from clew.connectors.listing import list_entries
from clew.connectors.location import Root
from clew.connectors.objects import ObjectStore
from tests.servers import S3Server

lance = pytest.importorskip("lance")


def round_trip(store: ObjectStore) -> int:
    import pyarrow as pa

    table = pa.table({"n": [1, 2, 3]})
    lance.write_dataset(table, store.uri("tables/t.lance"), storage_options=store.lance_options)
    opened = lance.dataset(store.uri("tables/t.lance"), storage_options=store.lance_options)
    return int(opened.count_rows())


def test_options_in_fsspecs_names_reach_lance(s3_server: S3Server) -> None:
    store = ObjectStore.open(f"s3://{s3_server.bucket()}/a b/.clew", s3_server.storage_options)
    assert round_trip(store) == 3
    assert any(each.name.startswith("tables/t.lance/") for each in store.list())


def test_the_environment_alone_is_enough(moto_s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in moto_s3.environment.items():
        monkeypatch.setenv(name, value)
    url = f"s3://{moto_s3.bucket()}/docs"
    root = Root.parse(url)
    store = ObjectStore.open(root.index_place())
    assert round_trip(store) == 3
    assert list(list_entries(root)) == []
    assert root.filesystem().exists(f"{root.path}/.clew/tables/t.lance")
