"""What a collection's links tell of the web site it is the source of: site roots and its own base URLs.

A site path `/docs/x` and a file `content/en/docs/x.md` that end alike vote for one root: the prefix left over of the
path, and the folder left over of the file. A root is believed when at least five links in three files vote for it and
it explains a good part of all links that begin with its prefix; a translation's folder, when it explains a tenth of
the links in its own files. So no single file can make or break one.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from clew.indexer.links.paths import Paths, fold, page_of, probe_hash, split_name
from clew.indexer.settings import SiteRoot, SiteSettings

Evidence = tuple[str, str]  # (path of the source, href as written)
_Root = tuple[str, str]  # (prefix, folder), without slashes at their ends

_SAMPLE = 20_000  # hrefs; a vote costs about 20 µs
_LINKS = 5
_FILES = 3
_COMMON = 64  # names that more files share tell nothing
# Of the links that a root could explain: the share that makes it believed. Kubernetes' documentation, with ten years
# of moved pages, has .66; chance coincidences of one segment (`/windows/win32/midl/id` and `attributes/id.md`) reach .5.
_SHARE = 0.3
_SHALLOW_SHARE = 0.7  # where most votes agree in their last segment alone
_TRANSLATED_SHARE = 0.1
_OWN_SHARE = 0.4  # of the links to a host below a base URL


def learn_site(links: Iterable[Evidence], paths: Paths) -> SiteSettings:
    """Roots and base URLs from all hyperlinks of a collection (others than site paths and URLs are passed over)."""
    site_paths: list[Evidence] = []
    urls: list[Evidence] = []
    for source, href in links:
        if href.startswith("/") and not href.startswith("//"):
            site_paths.append((source, href))
        elif href[:4].lower() == "http":
            urls.append((source, href))
    roots = learn_roots(site_paths, paths)
    return SiteSettings(roots=roots, base_urls=learn_base_urls(urls, paths, roots))


def learn_roots(absolute_hrefs: Iterable[Evidence], paths: Paths) -> tuple[SiteRoot, ...]:
    """Site roots, the best supported first, from (source path, href) pairs whose href begins with '/'.

    The result does not depend on the order of the pairs. Of many, a fixed pseudo-random 20,000 vote.
    """
    votes = _poll(_sample(absolute_hrefs), paths)
    ranking = votes.ranking()
    main = [root for root in ranking if votes.believed(root, _SHARE)]
    prefixes = {prefix for prefix, _ in main}
    roots = [root for root in ranking if root in main or (root[0] in prefixes and votes.translates(root))]
    return tuple(
        SiteRoot(prefix=f"/{prefix}/" if prefix else "/", folder=f"{folder}/" if folder else "")
        for prefix, folder in roots
    )


def learn_base_urls(urls: Iterable[Evidence], paths: Paths, roots: Sequence[SiteRoot] = ()) -> tuple[str, ...]:
    """The collection's own addresses (`https://kubernetes.io`), the best supported first: hosts whose links name
    files of the collection below a known root far more often than chance would have it."""
    hosts: dict[str, list[Evidence]] = defaultdict(list)
    for source, url in _sample(urls):
        host, _, path = url.partition("://")[2].partition("/")
        if host and path:
            hosts[host.lower()].append((source, "/" + path))
    known = {(root.prefix.strip("/"), root.folder.strip("/")) for root in roots} | {("", "")}
    found: list[tuple[int, str]] = []
    for host in sorted(hosts):
        votes = _poll(hosts[host], paths)
        for prefix, folder in votes.ranking():
            bases = [base for root in known if (base := _base(prefix, folder, root)) is not None]
            if bases and votes.believed((prefix, folder), _OWN_SHARE):
                found.append((-len(votes.links[prefix, folder]), "/".join(part for part in (host, min(bases)) if part)))
                break
    return tuple(f"https://{base}" for _, base in sorted(found))


def _base(prefix: str, folder: str, root: _Root) -> str | None:
    """What stands between host and site path when the file lies in a known root's folder."""
    if folder != root[1]:
        return None
    if prefix == root[0]:
        return ""
    if not root[0]:
        return prefix
    return prefix[: -len(root[0]) - 1] if prefix.endswith("/" + root[0]) else None


@dataclass(slots=True)
class _Votes:
    """Which links vote for which root, and how many segments of path and file agree."""

    links: dict[_Root, dict[Evidence, int]] = field(default_factory=lambda: defaultdict(dict))
    all_links: set[Evidence] = field(default_factory=set)

    def ranking(self) -> list[_Root]:
        """Roots, most votes first; ties by name."""
        return sorted(self.links, key=lambda root: (-len(self.links[root]), root))

    def believed(self, root: _Root, share: float) -> bool:
        """Whether enough links in enough files vote for a root, of those that it could explain."""
        votes = self.links[root]
        if not _enough(votes):
            return False
        if sum(depth > 1 for depth in votes.values()) * 2 < len(votes):
            if all(root):
                return False  # one folder's names alone do not make it another's
            share = max(share, _SHALLOW_SHARE)
        return len(votes) >= share * sum(_under(root[0], path) for _, path in self.all_links)

    def translates(self, root: _Root) -> bool:
        """Whether files in the root's folder link below it: a second language, which many links of the first, whose
        pages are not translated, do not reach."""
        folder = root[1] + "/"
        votes = [link for link, depth in self.links[root].items() if depth > 1 and link[0].startswith(folder)]
        could = sum(source.startswith(folder) and _under(root[0], path) for source, path in self.all_links)
        return root[1] != "" and _enough(votes) and len(votes) >= _TRANSLATED_SHARE * could


def _enough(votes: Iterable[Evidence]) -> bool:
    sources = Counter(source for source, _ in votes)
    return sources.total() >= _LINKS and len(sources) >= _FILES


def _poll(links: Iterable[Evidence], paths: Paths) -> _Votes:
    votes = _Votes()
    roots: dict[str, list[tuple[_Root, int]]] = {}  # by path: many pages link to the same ones
    for source, href in links:
        segments = _segments(href)
        if not segments:
            continue
        link = (source, "/".join(segments))
        if link in votes.all_links:
            continue
        votes.all_links.add(link)
        if link[1] not in roots:
            roots[link[1]] = _roots_of(segments, paths)
        for root, depth in roots[link[1]]:
            votes.links[root][link] = depth
    return votes


def _roots_of(segments: Sequence[str], paths: Paths) -> list[tuple[_Root, int]]:
    """The roots under which these segments name a file, those that leave least over, and how many segments agree."""
    wanted = [fold(segment) for segment in segments]
    best: list[_Root] = []
    longest = 0
    candidates = paths.named(segments[-1], _COMMON + 1)
    if len(candidates) > _COMMON:
        return []
    for path in candidates:
        page = page_of(path)[0].split("/")
        shared = 0
        for ours, theirs in zip(reversed(wanted), reversed(page), strict=False):
            if ours != fold(theirs):
                break
            shared += 1
        if shared and shared >= longest:
            if shared > longest:
                best, longest = [], shared
            best.append(("/".join(segments[:-shared]), "/".join(page[:-shared])))
    return [(root, longest) for root in dict.fromkeys(best)]


def _segments(href: str) -> list[str]:
    """Segments of a site path without query, fragment, index name and extension; none where it is no page's."""
    segments = [unquote(part) for part in href.partition("#")[0].partition("?")[0].split("/") if part]
    if ".." in segments or not segments:
        return []
    stem, extension = split_name(segments[-1])
    if not extension and stem.rpartition(".")[2].lower() in _ASSETS:
        return []
    return segments[:-1] if stem.lower() == "index" else [*segments[:-1], stem]


_ASSETS = frozenset(
    ("png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "css", "js", "pdf", "zip", "mp4", "yaml", "json")
)


def _under(prefix: str, path: str) -> bool:
    return not prefix or path.startswith(prefix + "/")


def _sample(links: Iterable[Evidence]) -> list[Evidence]:
    """The distinct pairs whose hashes are smallest: the same whatever the order they come in."""
    ranked = ((probe_hash(f"{source}\0{href}"), source, href) for source, href in dict.fromkeys(links))
    return [(source, href) for _, source, href in heapq.nsmallest(_SAMPLE, ranked)]
