"""The files of a collection as links look for them: by path, by page, by name, by the addresses they claim.

A *page key* is a path without what site generators drop from it: the extension of a document and an index name.
`docs/x.md`, `docs/x/index.html` and `docs/x/_index.md` share the page key `docs/x`, so one lookup answers every way
of writing a link to them, and one 64-bit hash per link is enough to find who waits for a file that arrives.

Ten million paths fit: keys are sorted 64-bit hashes (xxh3) in numpy, texts stand in one Arrow-like buffer each;
nothing is a dict of everything. A lookup hashes the key, reads a bucket and compares the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Protocol
from urllib.parse import unquote

import xxhash

from clew.indexer.extract.document import Document

MARKDOWN = ("md", "mdx", "markdown", "mdown", "mkd", "mkdn", "qmd", "rmd")
HTML = ("html", "htm", "xhtml", "shtml", "php", "aspx", "jsp")
#: Extensions of documents, best first where several files share a page key.
DOCUMENT_EXTENSIONS = (*MARKDOWN, *HTML, "rst", "adoc", "asciidoc", "asc", "org", "textile", "ipynb", "txt")
#: Names of the document that stands for its folder, best first.
INDEX_NAMES = ("index", "_index", "readme")

_EXTENSIONS = frozenset(DOCUMENT_EXTENSIONS)
_DATED = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})-(.+)", re.ASCII)
_ISO_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?!\d)", re.ASCII)
_NOT_SLUG = re.compile(r"[^\w.-]+")
_LOOSE = re.compile(r"[\s_-]+")


class Paths(Protocol):
    """What link resolution asks of a collection."""

    def __contains__(self, path: object) -> bool: ...

    def pages(self, key: str) -> list[str]:
        """The files with this (folded) page key, in path order."""
        ...

    def named(self, stem: str, limit: int = 1000) -> list[str]:
        """Files whose name without its extension folds to `stem` (spaces, `_` and `-` alike), and the index documents
        of folders of that name, in path order."""
        ...

    def nearest(self, stem: str, folder: str) -> list[str]:
        """Those of `named(stem)` that share the longest leading part with `folder`, in path order."""
        ...

    def with_url(self, url: str) -> str | None:
        """The file that declares this address; the first in path order where several do."""
        ...


# --- Keys --------------------------------------------------------------------------------------


def fold(text: str) -> str:
    """Case and Unicode composition put aside: NFC and casefold."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def probe_hash(key: str) -> int:
    """xxh3-64 of a key: what stands in the column `probed` of the links table."""
    return xxhash.xxh3_64_intdigest(encode_path(key))


def encode_path(path: str) -> bytes:
    """UTF-8; lone surrogates, which stand for bytes that are not UTF-8, give these bytes back."""
    try:
        return path.encode()
    except UnicodeEncodeError:
        try:
            return path.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return path.encode("utf-8", "surrogatepass")


def decode_path(path: bytes) -> str:
    """The inverse of `encode_path`."""
    return path.decode("utf-8", "surrogateescape")


def page_of(path: str) -> tuple[str, str, str]:
    """(page, index name or "", extension) of a path, case kept: `a/Index.md` → (`a`, `Index`, `md`)."""
    folder, slash, name = path.rpartition("/")
    stem, extension = split_name(name)
    if stem.lower() in INDEX_NAMES:
        return folder, stem, extension
    return f"{folder}{slash}{stem}", "", extension


def split_name(name: str) -> tuple[str, str]:
    """A file name without the extension of a document, and that extension; other extensions belong to the name."""
    stem, dot, extension = name.rpartition(".")
    if dot and stem and extension.lower() in _EXTENSIONS:
        return stem, extension
    return name, ""


def page_key(path: str) -> str:
    """The folded page of a path."""
    return fold(page_of(path)[0])


def name_keys(path: str) -> Iterator[str]:
    """`name:` keys of a path: its stem, its whole name, and its folder's name where it is an index document."""
    page, index, extension = page_of(path)
    last = page.rpartition("/")[2]
    yield name_key(index or last)
    if index and last:
        yield name_key(last)
    if not extension and not index:
        stem, dot, _ = last.rpartition(".")
        if dot and stem:
            yield name_key(stem)


def name_key(name: str) -> str:
    """The key of a name in a wikilink: `Page Name`, `page-name` and `Page_Name` are one."""
    return "name:" + _LOOSE.sub(" ", fold(name)).strip()


def url_key(url: str) -> str:
    """The key of an address: `https://Example.org/Docs/x/index.html?y#z` → `url://example.org/docs/x`.

    Labels (`label:Some Name`) and names (`name:…`) are their own keys.
    """
    scheme, colon, rest = url.partition(":")
    if colon and scheme in ("label", "name"):
        return name_key(rest) if scheme == "name" else f"label:{' '.join(fold(rest).split())}"
    address = url.partition("#")[0].partition("?")[0]
    if "://" in address:
        address = "//" + address.partition("://")[2]
    address = fold(unquote(address)).rstrip("/")
    if not address.startswith("/"):
        address = "/" + address
    head, _, last = address.rpartition("/")
    stem, extension = split_name(last)
    if stem == "index" and (extension in HTML or not extension):
        address = head
    elif extension in HTML:
        address = f"{head}/{stem}"
    return f"url:{address}" if address else "url:/"


def declared_urls(document: Document) -> tuple[str, ...]:
    """The addresses a document gives itself, whatever its path: what stands in the column `urls`.

    A date in the front matter adds `dated:2023/08/15/slug`, from which `url_keys` makes the permalinks of a blog.
    """
    urls = dict.fromkeys(document.urls)
    date = _ISO_DATE.match(_first(document.meta.get("date")))
    if date is not None:
        for name in (_first(document.meta.get("slug")), _first(document.meta.get("title"))):
            slug = _NOT_SLUG.sub("-", fold(name)).strip("-")
            if slug:
                urls[f"dated:{'/'.join(date.groups())}/{slug}"] = None
    return tuple(urls)


def url_keys(path: str, urls: Iterable[str]) -> list[str]:
    """Every key under which a file with these declared addresses answers, without duplicates.

    A bare slug (`slug: advanced`) stands beside its file; one with slashes (`slug: Web/API/Foo`) counts from the root
    as well; a name is also an alias for wikilinks. Dated names and `dated:` addresses give the permalinks of Jekyll,
    Hugo and Docusaurus: `blog/_posts/2018-05-05-x.md` → `/blog/2018/05/05/x`, `/blog/2018/05/x`, `/blog/x`.
    """
    page = page_of(path)[0]
    folder, _, name = page.rpartition("/")
    keys: dict[str, None] = {}
    dated = _DATED.fullmatch(name)
    if dated is not None:
        year, month, day, slug = dated.groups()
        _dated_keys(folder, f"{year}/{month}/{day}/{slug}", keys)
        keys[url_key(_below(_without_posts(folder), slug))] = None
    for url in urls:
        if url.startswith("dated:"):
            _dated_keys(folder, url[6:], keys)
        elif url.startswith(("label:", "/")) or "://" in url:
            keys[url_key(url)] = None
        elif url:
            keys[url_key(_below(_without_posts(folder), url))] = None
            keys[url_key("/" + url) if "/" in url else name_key(url)] = None
    return list(keys)


def waiting_keys(path: str, urls: Iterable[str] = ()) -> list[str]:
    """The keys whose links must be resolved anew when a file with this path and these addresses comes or goes."""
    return list(dict.fromkeys([page_key(path), *name_keys(path), *url_keys(path, urls)]))


def _dated_keys(folder: str, address: str, keys: dict[str, None]) -> None:
    year, month, day, slug = address.split("/", 3)
    base = _without_posts(folder)
    keys[url_key(_below(base, f"{year}/{month}/{day}/{slug}"))] = None
    keys[url_key(_below(base, f"{year}/{month}/{slug}"))] = None


def _without_posts(folder: str) -> str:
    return "/".join(segment for segment in folder.split("/") if segment not in ("_posts", "_drafts"))


def _below(folder: str, rest: str) -> str:
    return f"/{folder}/{rest}" if folder else f"/{rest}"


def _first(value: str | tuple[str, ...] | None) -> str:
    return value if isinstance(value, str) else value[0] if value else ""
