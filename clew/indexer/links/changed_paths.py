"""A path index with a few changes on top, so that a commit of ten files does not index ten million anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from clew.indexer.links.path_index import PathIndex, closest
from clew.indexer.links.paths import encode_path


class ChangedPaths:
    """`base` without `removed`, and with `added` (path → declared addresses and id). Satisfies `Paths`.

    Answers exactly as a `PathIndex` over all paths does. Look-ups cost about twice as much; when `heavy`, build anew.
    """

    def __init__(
        self,
        base: PathIndex,
        *,
        removed: Iterable[str] = (),
        added: Mapping[str, tuple[Sequence[str], int]] | None = None,
    ) -> None:
        """A path that is added is removed from the base first: adding anew is how its addresses change."""
        self._base = base
        self._added = dict(added or {})
        self._removed = frozenset(path for path in {*removed, *self._added} if path in base)
        paths = sorted(self._added, key=encode_path)
        self._extra = PathIndex(
            paths, [self._added[path][0] for path in paths], [self._added[path][1] for path in paths]
        )

    def changed(
        self, *, removed: Iterable[str] = (), added: Mapping[str, tuple[Sequence[str], int]] | None = None
    ) -> ChangedPaths:
        """Further changes on top of these: removals first."""
        gone = set(removed)
        kept = {path: facts for path, facts in self._added.items() if path not in gone}
        return ChangedPaths(self._base, removed=self._removed | gone, added=kept | dict(added or {}))

    @property
    def heavy(self) -> bool:
        """Whether so much has changed that building anew is the cheaper."""
        return len(self._removed) + len(self._extra) > max(10_000, len(self._base) // 10)

    def __len__(self) -> int:
        return len(self._base) - len(self._removed) + len(self._extra)

    def __contains__(self, path: object) -> bool:
        return path in self._extra or (path in self._base and path not in self._removed)

    def id_of(self, path: str) -> int | None:
        """The id given with this very path."""
        found = self._extra.id_of(path)
        return found if found is not None or path in self._removed else self._base.id_of(path)

    def pages(self, key: str) -> list[str]:
        """See `Paths`."""
        return self._merged(self._base.pages(key), self._extra.pages(key))

    def named(self, stem: str, limit: int = 1000) -> list[str]:
        """See `Paths`."""
        return self._merged(self._base.named(stem, limit + len(self._removed)), self._extra.named(stem, limit))[:limit]

    def nearest(self, stem: str, folder: str) -> list[str]:
        """See `Paths`."""
        found = self._kept(self._base.nearest(stem, folder))
        if not found and self._removed:
            found = closest(self._kept(self._base.named(stem, 1000 + len(self._removed))), folder)
        return closest(self._merged(found, self._extra.nearest(stem, folder)), folder)

    def with_url(self, url: str) -> str | None:
        """See `Paths`."""
        found = self._merged(self._base.all_with_url(url), self._extra.all_with_url(url))
        return found[0] if found else None

    def _kept(self, paths: Sequence[str]) -> list[str]:
        return [path for path in paths if path not in self._removed]

    def _merged(self, base: Sequence[str], extra: Sequence[str]) -> list[str]:
        kept = self._kept(base)
        return sorted([*kept, *extra], key=encode_path) if extra else kept
