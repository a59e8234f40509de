"""Zip archives and dates that are the same on every machine."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from io import BytesIO

DATE = "2026-09-01T09:00:00Z"
XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


def archive(entries: Mapping[str, str]) -> bytes:
    """A zip of these entries, in this order, uncompressed, dated 1980."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as pack:
        for name, text in entries.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.create_system = 3
            info.external_attr = 0o644 << 16
            pack.writestr(info, text)
    return buffer.getvalue()
