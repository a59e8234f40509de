"""Addresses that stand in running text without any markup."""

from __future__ import annotations

import re
from collections.abc import Iterator

# GFM's extended autolinks (https://github.github.com/gfm/#autolinks-extension-); what may not end one is trimmed.
_URL = re.compile(
    r"(?:(?<![\w/@])https?://|(?<![\w/.:@-])www\.)[^\s<>\"\u201c\u201d\u3001\u3002\uff0c]+", re.IGNORECASE
)


def find_urls(text: str) -> Iterator[tuple[int, int, str]]:
    """Bare URLs in a text: where each begins and ends, and what it leads to."""
    for found in _URL.finditer(text):
        url = _trimmed(found[0])
        if len(url) < 8 or ("." not in url[4:] and "localhost" not in url):
            continue
        start = found.start()
        yield start, start + len(url), url if "://" in url[:8] else f"https://{url}"


def split_urls(text: str) -> Iterator[tuple[str, str]]:
    """Text cut at bare URLs: pairs of (run, href), href '' where the run is no URL."""
    at = 0
    for start, end, href in find_urls(text):
        if start > at:
            yield text[at:start], ""
        yield text[start:end], href
        at = end
    if at < len(text):
        yield text[at:], ""


def _trimmed(url: str) -> str:
    """A URL without the punctuation that belongs to the sentence around it."""
    end = len(url)
    closing = {")": url.count(")") - url.count("("), "]": url.count("]") - url.count("[")}  # that nothing opened
    while end:
        last = url[end - 1]
        if last in closing and closing[last] > 0:
            closing[last] -= 1
        elif last not in "?!.,:;*_~'\"`|\\}>":
            break
        end -= 1
    return url[:end]
