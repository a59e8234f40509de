"""Small messages, notebooks and record files."""

from __future__ import annotations

import gzip
import json
from io import BytesIO
from typing import Any


def sample_eml() -> bytes:
    """A message with alternatives, an attachment that is text, one that is not, and a forwarded message."""
    return (
        "From: =?utf-8?q?Jos=C3=A9?= <jose@example.org>\r\nTo: a@example.org, Bo <b@example.org>\r\n"
        "Subject: =?utf-8?b?0J/RgNC40LLQtdGC?=\r\nDate: Fri, 27 Mar 2026 15:42:10 +0100\r\n"
        'MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="X"\r\n\r\n'
        '--X\r\nContent-Type: multipart/alternative; boundary="Y"\r\n\r\n'
        "--Y\r\nContent-Type: text/plain; charset=windows-1251\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
        "=CF=F0=E8=E2=E5=F2, see https://example.org/x.\r\n\r\n> quoted\r\n"
        '--Y\r\nContent-Type: text/html\r\n\r\n<p>HTML <a href="https://h.example/">twin</a></p>\r\n--Y--\r\n'
        '--X\r\nContent-Type: text/csv; name="list.csv"\r\nContent-Disposition: attachment; filename="list.csv"\r\n\r\n'
        "sku,price\r\n"
        '--X\r\nContent-Type: image/png\r\nContent-Disposition: attachment; filename="logo.png"\r\n'
        "Content-Transfer-Encoding: base64\r\n\r\niVBORw0KGgo=\r\n"
        "--X\r\nContent-Type: message/rfc822\r\n\r\nFrom: c@example.org\r\nSubject: Inner\r\n\r\nforwarded body\r\n--X--\r\n"
    ).encode("ascii")


def sample_notebook() -> bytes:
    """A notebook with Markdown, code, a result with colours, and a table."""
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "id": "intro", "source": ["# Title\n", "\n", "See [docs](docs.md#x).\n"]},
        {
            "cell_type": "code",
            "source": "def f():\n    return 1",
            "outputs": [
                {"output_type": "stream", "text": ["\x1b[31mred\x1b[0m\n"]},
                {"output_type": "execute_result", "data": {"text/html": "<b>t</b>", "text/plain": ["plain"]}},
                {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo="}},
                {"output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": ["x"]},
            ],
        },
        {"cell_type": "markdown", "source": "## Part\ntext"},
    ]
    metadata = {"kernelspec": {"display_name": "Python 3"}, "authors": [{"name": "Ana"}]}
    return json.dumps({"nbformat": 4, "metadata": metadata, "cells": cells}).encode()


def rows(count: int = 6) -> list[dict[str, Any]]:
    """Records with every special column."""
    return [
        {
            "_id": f"d{number}",
            "title": f"Title {number}",
            "text": f"Text of {number}.\n\nSecond paragraph.",
            "links": [f"d{(number + 1) % count}", "other.md"],
            "vector": [number / 8, 1.0, -0.5],
            "tags": ["a", "b"],
            "year": 2000 + number,
            "deep": {"x": 1},
        }
        for number in range(count)
    ]


def jsonl(records: list[Any]) -> bytes:
    """Rows as JSON lines; strings are taken as they are."""
    return b"".join((row if isinstance(row, str) else json.dumps(row)).encode() + b"\n" for row in records)


def sample_jsonl_gz() -> bytes:
    """Compressed JSON lines."""
    return gzip.compress(jsonl(rows(40)), mtime=0)


def sample_json() -> bytes:
    """An array of objects."""
    return json.dumps(rows(), indent=1).encode()


def sample_csv() -> bytes:
    """Semicolons, quotes, a line break in a cell."""
    return b'id;title;text;year\n1;"One; or so";"first\nline";2001\n2;Two;second;2002\n'


def parquet(columns: dict[str, Any]) -> bytes:
    """A Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = BytesIO()
    pq.write_table(pa.table(columns), buffer, row_group_size=4)
    return buffer.getvalue()


def sample_parquet() -> bytes:
    """The rows, with a column of vectors."""
    records = rows()
    return parquet({key: [row[key] for row in records] for key in records[0]})
