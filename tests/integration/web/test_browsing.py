"""What the page asks beside questions is right: counts agree with the files, parts with the text, snapshots with what was published.

Deleted, a wrong count would stand beside every filter, and a long document could lose a passage where two parts meet.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import httpx
import pytest

import clew
from tests.integration.web.conftest import Site

pytestmark = pytest.mark.xdist_group("browser")  # these need no browser, but the same indexes


@pytest.mark.parametrize("where", [None, "type:md", "path:ops/** -type:html", "state:failed", "name:no-such-name"])
def test_counts_are_those_of_the_files(site: Site, where: str | None) -> None:
    files = site.api("handbook/files", params={"limit": 1000, "where": where} if where else {"limit": 1000})["files"]
    files = [file for file in files if file["records"] <= 1]
    found = site.api("handbook/facets", params={"limit": 200, "where": "records:<=1" + (f" {where}" if where else "")})
    assert found["documents"] == len(files)
    expected = {
        "type": Counter(file["type"] for file in files if file["type"]),
        "lang": Counter(file["language"] for file in files if file["language"]),
        "folder": Counter(file["path"].partition("/")[0] for file in files if "/" in file["path"]),
        "tag": Counter(tag for file in files for tag in _tags(file["meta"])),
    }
    for name, counter in expected.items():
        counted = [(one["value"], one["documents"]) for one in found["fields"][name]]
        assert counted == sorted(counter.items(), key=lambda pair: (-pair[1], pair[0])), name


def _tags(meta: dict[str, Any]) -> set[str]:
    values = [meta[name] for name in ("tags", "tag", "keywords", "categories", "labels") if name in meta]
    return {one for value in values for one in (value if isinstance(value, list) else [value])}


def test_folders_are_counted_one_level_at_a_time(site: Site) -> None:
    paths = [file["path"] for file in site.api("handbook/files?limit=1000")["files"]]
    below = site.api("handbook/facets?below=ops")["fields"]["folder"]
    inside = Counter("/".join(path.split("/")[:2]) for path in paths if path.startswith("ops/") and path.count("/") > 1)
    assert {one["value"]: one["documents"] for one in below} == inside
    assert len(inside) > 1
    assert site.api("handbook/facets?below=no/such")["fields"]["folder"] == []
    assert len(site.api("handbook/facets?limit=2")["fields"]["type"]) == 2


def test_mistake_in_a_filter_is_pointed_at(site: Site) -> None:
    with pytest.raises(httpx.HTTPStatusError) as refused:
        site.api("handbook/facets?where=type:md sise:1")
    assert refused.value.response.json()["column"] == 8


@pytest.mark.parametrize("path", ["ops/signing-keys.md", "products/datasheet-gannet.pdf", "pt/compras.md"])
@pytest.mark.parametrize("length", [1, 150, 100_000])
def test_parts_of_a_document_are_its_text(site: Site, path: str, length: int) -> None:
    with clew.open(str(site.roots["handbook"])) as index:
        whole = index.show(path)
        for start in range(0, len(whole.text), 97):
            part = index.part(path, start=start, length=length)
            assert part.text == whole.text[part.char_start : part.char_end]
            assert part.char_start <= start < part.char_end or start >= part.char_end == len(whole.text.rstrip())
            assert part.char_end >= min(start + length, len(whole.text.rstrip()))
            assert part.characters == len(whole.text)
            assert [one.chunk_key for one in part.passages] == [
                chunk.chunk_key
                for chunk in whole.chunks
                if chunk.char_start >= part.char_start and chunk.char_start < max(start + length, part.char_start + 1)
            ]
        beyond = index.part(path, start=10**9)
        assert beyond.char_end == beyond.characters


def test_file_without_text_has_an_empty_part(site: Site) -> None:
    part = site.api("handbook/part?path=broken.pdf")
    assert (part["text"], part["characters"], part["passages"], part["state"]) == ("", 0, [], "failed")
    assert part["reason"]


def test_snapshots_come_newest_first(site: Site) -> None:
    rows = site.api("handbook/snapshots")["snapshots"]
    numbers = [row["number"] for row in rows]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] == site.api("handbook/status")["snapshot"]
    assert site.api("handbook/snapshots?limit=1")["snapshots"] == rows[:1]
    assert rows[0]["chunks"] == site.api("handbook/status")["chunks"]
