"""Hyperlinks: paths, site paths and addresses, as browsers and site generators read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clew.indexer.links.hrefs import SCHEME, TRIMMED, join, normalized, segments_of, split_fragment
from clew.indexer.links.paths import HTML, fold, page_of
from clew.indexer.links.targets import Resolution, TargetSearch
from clew.indexer.settings import SiteRoot

#: Schemes that never name a file of the collection, with or without `//`.
_FOREIGN_NAMES = """about blob chrome cid data dns ed2k facetime feed file ftp ftps geo git gopher im imap irc ircs itms
jar javascript ldap ldaps magnet mailto market mid ms-settings news nfs nntp oid pop resource rsync rtsp sftp sip sips
skype slack smb sms spotify ssh steam svn tel telnet tg udp urn vbscript view-source vscode webcal ws wss xmpp"""
_FOREIGN = frozenset(_FOREIGN_NAMES.split())


def resolve_hyperlink(search: TargetSearch, href: str) -> Resolution:
    """An href of a page: its own fragment, an address with a scheme or host, a site path, or a relative path."""
    written, fragment = split_fragment(href)
    if not written:
        return search.itself(fragment)
    scheme = SCHEME.match(written)
    if scheme is not None:
        return _with_scheme(search, written, scheme[1].lower(), fragment)
    if written.startswith(("//", "\\\\")):
        return _web(search, "https:" + written.replace("\\", "/"), fragment)
    if written.startswith("?"):
        return search.itself(fragment)
    based = _based(search, written)
    if based is not None:
        if SCHEME.match(based):
            return _web(search, based, fragment)
        written = based
    if written.startswith("/"):
        return _site(search, written, fragment)
    return _relative(search, written, href, fragment)


def _with_scheme(search: TargetSearch, written: str, scheme: str, fragment: str | None) -> Resolution:
    if scheme in ("http", "https"):
        return _web(search, written, fragment)
    if scheme not in _FOREIGN and len(scheme) > 1 and not written.startswith("//", len(scheme) + 1):
        stem = join(search.folder, segments_of(written))  # a file name with a colon
        target = None if stem is None else search.page(stem, exact=True)
        if target is not None:
            return search.found(target, fragment)
    return search.lost("external", fragment)


def _web(search: TargetSearch, url: str, fragment: str | None) -> Resolution:
    """An address with a host: the collection's own, or declared by a document, or external."""
    own = _own_path(url, search.site.base_urls)
    target = search.url(url)
    if target is not None:
        return search.found(target, fragment)
    if own is None:
        return search.lost("external", fragment)
    return _site(search, own, fragment)


def _own_path(url: str, bases: Sequence[str]) -> str | None:
    """The site path of an address below one of the collection's own base URLs (scheme and a final '/' aside)."""
    address = url.partition("://")[2]
    host, slash, path = address.partition("?")[0].partition("/")
    address = host.lower() + slash + path
    for base in sorted(bases, key=len, reverse=True):
        own_host, own_slash, own_path = base.partition("://")[2].rstrip("/").partition("/")
        own = own_host.lower() + own_slash + own_path
        if address == own or address.startswith(own + "/"):
            return address[len(own) :] or "/"
    return None


def _site(search: TargetSearch, written: str, fragment: str | None) -> Resolution:
    """A path from the root of the site: below the roots that fit, then below the collection's own root."""
    segments = normalized(segments_of(written.partition("?")[0]))
    if segments is None:
        return search.lost("dangling", fragment)
    target = search.stems(rooted(search, segments))
    if target is None:
        for base in search.site.base_urls:
            target = search.url(f"{base.rstrip('/')}/{'/'.join(segments)}")
            if target is not None:
                break
    if target is None and ("%" in written or "?" in written):
        target = search.page(written.lstrip("/"), exact=True)
    return search.lost("dangling", fragment) if target is None else search.found(target, fragment)


def rooted(search: TargetSearch, segments: Sequence[str]) -> Iterator[str]:
    """Stems of a site path: roots whose folder holds the source first (its own language), then as listed."""
    for root in roots_for(search.source, search.site.roots):
        prefix = [fold(part) for part in root.prefix.split("/") if part]
        if [fold(part) for part in segments[: len(prefix)]] == prefix:
            yield "/".join([*(part for part in root.folder.split("/") if part), *segments[len(prefix) :]])
    yield "/".join(segments)


def roots_for(source: str, roots: Sequence[SiteRoot]) -> list[SiteRoot]:
    """The site roots, those whose folder holds the source first."""
    if len(roots) < 2:
        return list(roots)
    return [
        root for mine, root in sorted(zip(own_roots(source, roots), roots, strict=True), key=lambda pair: not pair[0])
    ]


def own_roots(source: str, roots: Sequence[SiteRoot]) -> tuple[bool, ...]:
    """For each site root, whether its folder holds the source."""
    folders = [root.folder.strip("/") for root in roots]
    return tuple(bool(folder) and source.startswith(folder + "/") for folder in folders)


def _relative(search: TargetSearch, written: str, href: str, fragment: str | None) -> Resolution:
    bare = written.partition("?")[0]
    stem = join(search.folder, segments_of(bare))
    odd = _odd_name(search, written, href)
    if odd is not None and (stem is None or search.page(stem, exact=True) is None):
        return search.found(odd[0], fragment if odd[1] else None)
    if stem is None and "\\" not in bare:
        return search.lost("dangling", fragment)
    target = None if stem is None else search.stems((stem,))
    if target is None and "\\" in bare:
        stem = join(search.folder, segments_of(bare.replace("\\", "/")))
        target = None if stem is None else search.stems((stem,))
    if target is None and stem is not None:
        pretty = pretty_stem(search.source, bare)
        target = None if pretty is None else search.stems((pretty,))
    if target is None and stem is not None and "/" in bare.strip("/") and ".." not in bare:
        normal = normalized(segments_of(bare))  # the leading '/' forgotten
        target = None if normal is None else search.stems(dict.fromkeys(rooted(search, normal)))
    return search.lost("dangling", fragment) if target is None else search.found(target, fragment)


def pretty_stem(source: str, written: str) -> str | None:
    """The stem when `a/b.md` is served as `a/b/`, as Hugo, Docusaurus and Jekyll do: for links that name a page, not
    a source file."""
    page, index, _ = page_of(source)
    if index or page_of(written.rstrip("/"))[2] not in ("", *HTML):
        return None
    return join(page, segments_of(written))


def _odd_name(search: TargetSearch, written: str, href: str) -> tuple[str, bool] | None:
    """A file whose very name is written, with its '%', '?' or '#' taken literally; and whether the fragment was one."""
    for name, keeps in ((href, False), (written, True)):
        if "#" in name if not keeps else ("%" in name or "?" in name):
            stem = join(search.folder, name.split("/"))
            target = None if stem is None else search.page(stem, exact=True)
            if target is not None:
                return target, keeps
    return None


def _based(search: TargetSearch, written: str) -> str | None:
    """`written` joined to the document's `<base href>`: a site path or a URL; None where there is no base."""
    base = (search.base_href or "").strip(TRIMMED).partition("#")[0].partition("?")[0]
    if not base or written.startswith("/"):
        return None
    scheme = SCHEME.match(base)
    if scheme is not None and scheme[1].lower() not in ("http", "https"):
        return None
    if base.startswith("//"):
        base, scheme = "https:" + base, SCHEME.match("https:")
    if scheme is not None and base.count("/") < 3:
        base += "/"
    folder = base.rpartition("/")[0]
    if scheme is None and not base.startswith("/"):
        return f"{folder}/{written}" if folder else None
    return f"{folder}/{written}"
