"""`where` by example, and its errors: without these, a slip of the pen would quietly filter something else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from clew.errors import WhereError
from clew.query.moments import nanoseconds
from clew.query.where import parse
from tests.unit.query.documents import Row, catalog_of

NOW = nanoseconds(datetime(2026, 3, 15, 12, tzinfo=UTC))


def at(text: str) -> int:
    return nanoseconds(datetime.fromisoformat(text).replace(tzinfo=UTC))


ROWS = [
    Row(path="contracts/acme.pdf", kind="pdf", size=2_000_000, mtime_ns=at("2025-02-01"), owner="root", language="pt-BR",
        meta={"author": ["Ana"], "tag.team": ["ops"], "year": ["2024"]}, title="Acme: master agreement"),
    Row(path="contracts/archive/old.pdf", kind="pdf", size=500, mtime_ns=at("2019-01-01"), meta={"year": ["1999.5"]}),
    Row(path="notes/report (1).md", size=1000, mtime_ns=at("2026-03-15T06:00"), meta={"tags": ["ops", "draft"], "due": ["2025-03-02"]}),
    Row(path="notes/[draft] a,b.md", size=1024, mtime_ns=None, language="pt"),
    Row(path="src/main.py", kind="code", size=0, mtime_ns=at("2026-03-14T23:59")),
    Row(path="src/data.tar.gz", kind="unsupported", state="skipped", mtime_ns=at("2026-03-08T12:00")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("", [0, 1, 2, 3, 4, 5]),
        ("type:pdf path:contracts/** -path:**/archive/** size:>1MB modified:>2025-01-01 tag.team=ops meta.author=ana owner:root lang:pt", [0]),
        ("type:pdf,md", [0, 1, 2, 3]),
        ("type:MD", [2, 3]),
        ("type:py", [4]),
        ("ext:pdf OR ext:.py", [0, 1, 4]),
        ("ext:tar.gz", [5]),
        ("path:contracts", [0, 1]),
        ("path:contracts/", [0, 1]),
        ("path:/contracts/acme.pdf", [0]),
        ("path=contracts", []),
        ("path:contracts/*", [0]),
        ("path:*.pdf", []),
        ("path:**/*.pdf", [0, 1]),
        ("path:Contracts/**", []),
        ("dir:contracts", [0, 1]),
        ("dir=contracts", [0]),
        ("dir:**/archive", [1]),
        ('name:"report (1).md"', [2]),
        ("name:report\\ (1).md", [2]),
        ("name:[draft]*", [3]),
        ("name:*a\\,b*", [3]),
        ('name:"*"', []),
        ("size:0", [4]),
        ("size:1KB..1KiB", [2, 3]),
        ("size:>=1KiB size:<1GB", [0, 3]),
        ("size:>1MB,<600", [0, 1, 4, 5]),
        ("size!=0", [0, 1, 2, 3, 5]),
        ("modified:2025", [0]),
        ("modified:2025-01..2025-03", [0]),
        ("modified:today", [2]),
        ("modified:yesterday", [4]),
        ("modified:<7d", [2, 4]),
        ("modified:<=7d", [2, 4, 5]),
        ("modified:7d", [2, 4, 5]),
        ("modified:1d..30d", [5]),
        ("modified:>1y", [0, 1]),
        ("-modified:>1970", [3]),
        ("lang:pt", [0, 3]),
        ("lang=pt", [3]),
        ("lang:pt_br", [0]),
        ("title:MASTER", [0]),
        ("tag:ops", [2]),
        ("tag:ops tag:draft", [2]),
        ("meta.year:>2000", [0]),
        ("meta.year:1999..2000", [1]),
        ("meta.due:>2025-03-01", [2]),
        ("meta.due:2025-01-01..2025-12-31", [2]),
        ("meta.author:*", [0]),
        ("state:skipped", [5]),
        ("(type:pdf OR type:code) AND NOT dir:contracts", [4]),
        ("type:pdf -(size:>1MB OR lang:pt)", [1]),
        ("kind:pdf folder:contracts mtime:<2020", [1]),
    ],
)  # fmt: skip
def test_expressions_keep_what_people_expect(expression: str, expected: list[int]) -> None:
    assert parse(expression).mask(catalog_of(ROWS), NOW).nonzero()[0].tolist() == expected


@pytest.mark.parametrize(
    ("expression", "column", "said"),
    [
        ("typ:pdf", 0, "did you mean 'type'?"),
        ("type:pdf colour:red", 9, "Fields: path"),
        ("report", 0, "such as name:*report*"),
        ("type:pdf or type:md", 9, "write OR in capital letters"),
        ("size:>big", 6, "such as 500, 20KB"),
        ("size:1e9", 5, "not a size"),
        ("size:5..1", 5, "backwards"),
        ("size:..", 5, "at least one end"),
        ("size:>1..2", 6, "stands behind ':'"),
        ("chunks:1.5", 7, "whole number"),
        ("modified:soon", 9, "is no date"),
        ("modified:2025-02-30", 9, "is no date"),
        ("modified:5m", 9, "5mo or 5min"),
        ("modified:2025..7d", 9, "dates at both ends"),
        ("name:>x", 6, "takes ':' (pattern) and '=' (exactly)"),
        ("meta:ana", 0, "meta.author=ana"),
        ("meta.:ana", 5, "a name is missing"),
        ("meta.year:>soon", 11, "a number or a date"),
        ("state:fialed", 6, "did you mean 'failed'?"),
        ('name:"x', 5, "not closed"),
        ("name:x\\", 6, "backslash"),
        ("(type:pdf", 0, "not closed"),
        ("type:pdf)", 8, "closes nothing"),
        ("type:", 5, "a value is missing"),
        ("type:pdf,", 9, "a value is missing"),
        ("type:pdf OR", 11, "a condition is missing"),
        ("NOT", 0, "a condition is missing"),
        ("()", 1, "a condition is missing"),
        ("size:99999999999999999999", 5, "not a size"),
        ("size:9999999999999P", 5, "too large"),
        ("path:" + "*a" * 50, 5, "wildcards"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_pointed_at_and_explained(expression: str, column: int, said: str) -> None:
    with pytest.raises(WhereError) as raised:
        parse(expression)
    assert raised.value.column == column
    assert said in str(raised.value)


def test_a_filter_says_what_it_does() -> None:
    assert parse("type:pdf -size:>1MB modified:<7d").describe() == (
        "type is pdf and not (size > 1000000) and modified within the last 7d"
    )
    assert parse("").describe() == "every document"
