"""Listing S3 buckets: flat pages of 1,000 keys, no request per folder.

The budget is one LIST request a thousand keys. What a flat listing cannot see from a folder's own listing costs a
request only where it may matter: a `.clewignore` that could hide keys sorted before it, a `venv` folder.

Keys that are no relative paths (`a//b`, `../a`, a leading slash) are counted and left out: they cannot be told apart
from others once they are paths. Keys that end in a slash are folder markers and are no files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clew.connectors import s3 as service
from clew.connectors.entry import Entry
from clew.connectors.patterns import IGNORE_FILE, Selection, folders_above
from clew.connectors.retries import advice, http_status, reason, retry
from clew.errors import ClewError, ListingError

#: The greatest character: `folder/` + LAST sorts after everything in the folder.
LAST = "\U0010ffff"
_IGNORE_FILE_BYTES = 1 << 20
_REMEMBERED = 1 << 14  # folders
#: What servers that list in the order of keys call themselves. (SeaweedFS lists folder by folder: `a/b` before `a-b`.)
ORDERED_SERVERS = ("amazons3", "minio", "ceph", "uploadserver")
_PAGES_BEFORE_SPLITTING = 16  # up to 16,000 keys one thread lists alone, without a request too many


@dataclass(frozen=True, slots=True)
class Span:
    """Keys that begin with `prefix`, after `after`, not beyond `until` ('' = no bound)."""

    prefix: str
    after: str = ""
    until: str = ""


class Bucket:
    """The keys below one prefix of a bucket."""

    def __init__(self, options: Mapping[str, Any], bucket: str, prefix: str) -> None:
        self.client = service.client(options)
        self.arguments = service.request_payer(options)
        self.bucket = bucket
        self.prefix = prefix
        self.is_ordered = not bucket.endswith("--x-s3")  # directory buckets list in no order
        self.requests = 0  # LIST requests, of which
        self.extra_requests = 0  # were, or may have been, spent on finding places to split
        self.ignored_keys = 0
        self._split_from = _PAGES_BEFORE_SPLITTING
        self._lock = threading.Lock()

    def page(self, **request: Any) -> Mapping[str, Any]:
        """One LIST request, retried while it fails transiently.

        Raises:
            ListingError: it failed.
        """
        with self._lock:
            self.requests += 1
        try:
            answer: Mapping[str, Any] = retry(
                lambda: self.client.list_objects_v2(
                    **{"Bucket": self.bucket, "MaxKeys": 1000, **request, **self.arguments}
                )
            )
        except ClewError:  # such as a package that is not installed
            raise
        except Exception as error:
            raise ListingError(
                f"Storage failed while listing s3://{self.bucket}/{request['Prefix']}: {reason(error)}. {advice(error)}"
            ) from error
        return answer

    def walk(
        self,
        span: Span,
        selection: Selection,
        spawn: Callable[[Span], None],
        has_room: Callable[[], bool] = lambda: False,
    ) -> Iterator[Entry]:
        """The files among the keys of a span.

        While `has_room` says that somebody is idle, and the span turns out long, its upper part is spawned.
        """
        folders = _Folders(self, selection, span)
        until, first, last = span.until, "", ""
        position = {"StartAfter": span.after} if span.after else {}
        while True:
            answer = self.page(Prefix=span.prefix, **position)
            for record in answer.get("Contents") or []:
                key = str(record["Key"])
                if until and key > until:
                    return
                if (span.after or until) and key <= last:
                    raise ListingError(
                        f"s3://{self.bucket} lists its keys in no order ({key!r} after {last!r}), although its kind of "
                        "server should; nothing was concluded from it."
                    )
                first, last = first or key, key
                path = key[len(self.prefix) :]
                if key.endswith("/") or not path:
                    continue
                if not _is_relative(path):
                    with self._lock:
                        self.ignored_keys += 1
                    continue
                if folders.admit(path):
                    yield Entry(
                        path=path,
                        size=int(record["Size"]),
                        mtime_ns=service.timestamp_ns(record.get("LastModified")),
                        etag=service.etag(record.get("ETag")),
                    )
            if not answer.get("IsTruncated"):
                return
            token = answer.get("NextContinuationToken")
            if token is None:
                raise ListingError(
                    f"The listing of s3://{self.bucket}/{span.prefix} broke off: the service says that there is more, "
                    "but not how to go on."
                )
            position = {"ContinuationToken": str(token)}
            if self.can_split(answer):
                left_out = folders.left_out
                if left_out is not None:  # what remains of a folder of a million machine-made files is not read
                    position = {"StartAfter": f"{self.prefix}{left_out}/{LAST}"}
                elif has_room():
                    middle = self._middle(span.prefix, first, last, until)
                    if middle is not None:
                        spawn(Span(span.prefix, after=middle, until=until))
                        until = middle

    def can_split(self, answer: Mapping[str, Any]) -> bool:
        """Whether this server is known to list keys in their order, so that any key is a place to begin."""
        server = str(answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("server", "")).lower()
        return self.is_ordered and server.startswith(ORDERED_SERVERS)

    def _middle(self, prefix: str, first: str, last: str, until: str) -> str | None:
        """A key in the midst of what is left of a span; None when looking for one is not worth its requests.

        Looking costs a request a level and splitting half a page, so all of it together is kept near a tenth of what
        was spent on listing. The level on which the keys so far differ comes first, then those below, then those above.
        """
        if not self._may_look():
            return None
        folders = [f"{folder}/" for folder in folders_above(last) if folder]
        levels = [prefix, *(folder for folder in folders if folder.startswith(prefix) and folder != prefix)]
        shared = sum(first.startswith(level) for level in levels) - 1
        for level in levels[shared:] + levels[:shared][::-1]:
            with self._lock:
                self.extra_requests += 1
            answer = self.page(Prefix=level, StartAfter=last, Delimiter="/")
            found = [str(each["Prefix"]) for each in answer.get("CommonPrefixes") or []]
            beyond = [each for each in found if each > last and (not until or each < until)]
            if beyond:
                return beyond[len(beyond) // 2]
        with self._lock:  # one long folder without folders: look again much later
            self._split_from = 2 * self.requests
        return None

    def _may_look(self) -> bool:
        with self._lock:
            if self.requests < self._split_from or 10 * (self.extra_requests + 2) > self.requests:
                return False
            self.extra_requests += 1
            return True

    def selection_at(self, path: str, selection: Selection) -> Selection:
        """The selection with the rules of every ignore file above `path`: one request a folder."""
        folders = path.split("/")[:-1]
        for depth in range(len(folders) + 1):
            folder = "/".join(folders[:depth])
            text = self.ignore_text(folder)
            if text is not None:
                selection = selection.with_rules(folder, text)
        return selection

    def ignore_text(self, folder: str) -> str | None:
        """The text of a folder's ignore file, None where it has none."""
        key = self.prefix + (f"{folder}/" if folder else "") + IGNORE_FILE
        try:
            answer = retry(
                lambda: self.client.get_object(
                    Bucket=self.bucket, Key=key, Range=f"bytes=0-{_IGNORE_FILE_BYTES - 1}", **self.arguments
                )["Body"].read()
            )
        except Exception as error:
            if service.is_missing(error):
                return None
            if http_status(error) == 416:  # an empty object has no first byte
                return ""
            raise ListingError(
                f"Storage failed while reading s3://{self.bucket}/{key}: {reason(error)}. {advice(error)}"
            ) from error
        return bytes(answer).decode("utf-8-sig", "replace")

    def has(self, path: str) -> bool:
        """Whether there is an object of this path now."""
        return service.head(self.client, self.bucket, self.prefix + path, arguments=self.arguments) is not None


def _is_relative(path: str) -> bool:
    if path[0] == "/" or "//" in path or "\0" in path:
        return False
    return not ("." in path and any(segment in (".", "..") for segment in path.split("/")))


class _Folders:
    """The rules on the way to the key at hand, while keys stream by in order.

    A folder's ignore file is seen before the keys that it speaks of, with few exceptions: keys that sort before
    `.clewignore` in their folder. Only a folder that begins with such a key costs a request.
    """

    def __init__(self, bucket: Bucket, selection: Selection, span: Span) -> None:
        self._bucket = bucket
        self._first = selection
        self._after = span.after[len(bucket.prefix) :] or span.prefix[len(bucket.prefix) :]
        self._stack: list[tuple[str, Selection, bool]] = []  # folder ('' or 'a/b'), its selection, left out
        self._texts: dict[str, str | None] = {}  # of ignore files, where keys come in no order
        self._marked: dict[str, bool] = {}

    @property
    def left_out(self) -> str | None:
        """The folder of the last key, or one above it, that is left out whole."""
        return self._stack[-1][0] if self._stack and self._stack[-1][2] else None

    def admit(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        selection = self._enter(folder, path)
        if name == IGNORE_FILE:
            return False
        return selection is not None and selection.admits(path)

    def _enter(self, folder: str, path: str) -> Selection | None:
        """The selection of a folder; None when it, or one above it, is left out."""
        while self._stack and not _is_at_or_below(folder, self._stack[-1][0]):
            self._stack.pop()
        if not self._stack:
            self._push("", self._first, path)
        selection, left_out = self._stack[-1][1:]
        known = self._stack[-1][0]
        if left_out:
            return None
        if known == folder:
            return selection
        rest = folder[len(known) + 1 :] if known else folder
        at = known
        for segment in rest.split("/"):
            at = f"{at}/{segment}" if at else segment
            if not selection.descends(at) or self._is_marked(at, selection):
                self._stack.append((at, selection, True))
                return None
            selection = self._push(at, selection, path)
        return selection

    def _push(self, folder: str, above: Selection, path: str) -> Selection:
        """Enter a folder whose first key is `path`."""
        inside = f"{folder}/" if folder else ""
        begins_before = bool(self._after) and self._after.startswith(inside)  # the span began in the midst of it
        text = None
        if begins_before or not self._bucket.is_ordered or path[len(inside) :] <= IGNORE_FILE:
            text = self._text(folder)
        selection = above if text is None else above.with_rules(folder, text)
        self._stack.append((folder, selection, False))
        return selection

    def _text(self, folder: str) -> str | None:
        if self._bucket.is_ordered:
            return self._bucket.ignore_text(folder)
        if folder not in self._texts:
            if len(self._texts) >= _REMEMBERED:
                self._texts.clear()
            self._texts[folder] = self._bucket.ignore_text(folder)
        return self._texts[folder]

    def _is_marked(self, folder: str, selection: Selection) -> bool:
        marker = selection.marker(folder)
        if marker is None:
            return False
        known = self._marked.get(folder)
        if known is None:
            self._marked[folder] = known = self._bucket.has(marker)
        return known


def _is_at_or_below(folder: str, above: str) -> bool:
    return not above or folder == above or folder.startswith(above + "/")
