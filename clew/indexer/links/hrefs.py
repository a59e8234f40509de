"""Pieces of written links: fragments, segments, percent signs, folders. Pure functions of text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import unquote_to_bytes

from clew.indexer.links.fragments import canonical_fragment

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
TRIMMED = "".join(map(chr, range(33)))


def split_fragment(href: str) -> tuple[str, str | None]:
    """What stands before '#', and the canonical fragment; `page=3&zoom=100` keeps the page, text fragments go."""
    written, mark, fragment = href.partition("#")
    if not mark:
        return written, None
    fragment = fragment.partition(":~:")[0]
    if fragment.startswith("page="):
        fragment = fragment.partition("&")[0]
    return written, canonical_fragment(fragment) or None


def segments_of(written: str) -> list[str]:
    """Percent-decoded once, each segment for itself: an encoded separator stays encoded and climbs nowhere."""
    return [_decode(segment) for segment in written.split("/")]


def _decode(segment: str) -> str:
    if "%" not in segment:
        return segment
    decoded = unquote_to_bytes(segment)
    if b"/" in decoded or b"\0" in decoded:
        return segment
    return decoded.decode("utf-8", "surrogateescape")


def normalized(segments: Iterable[str]) -> list[str] | None:
    """Without '.', '..' and empty segments; None where '..' would climb out of the root."""
    normal: list[str] = []
    for segment in segments:
        if segment == "..":
            if not normal:
                return None
            normal.pop()
        elif segment not in ("", "."):
            normal.append(segment)
    return normal


def join(folder: str, segments: Iterable[str]) -> str | None:
    """Segments below a folder, without '.' and '..'; None where they climb out of the root."""
    normal = normalized([*(folder.split("/") if folder else ()), *segments])
    return None if normal is None else "/".join(normal)


def below(folder: str, segments: Sequence[str]) -> str:
    """Segments below a folder as they are."""
    return "/".join([*((folder,) if folder else ()), *segments])
