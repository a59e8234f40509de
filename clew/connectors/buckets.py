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
from clew.connectors.patterns import IGNORE_FILE, Selection
from clew.connectors.retries import advice, http_status, reason, retry
from clew.errors import ListingError

#: The greatest character: `folder/` + LAST sorts after everything in the folder.
LAST = "\U0010ffff"
_IGNORE_FILE_BYTES = 1 << 20
_REMEMBERED = 1 << 14  # folders


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
        self.requests = 0
        self.ignored_keys = 0
        self._lock = threading.Lock()

    def pages(self, span: Span) -> Iterator[tuple[list[Mapping[str, Any]], bool]]:
        """Pages of object records, and whether more may follow; one request each, retried while transient."""
        token: str | None = None
        after = span.after
        while True:
            request: dict[str, Any] = {"Bucket": self.bucket, "Prefix": span.prefix, "MaxKeys": 1000}
            if token is not None:
                request["ContinuationToken"] = token
            elif after:
                request["StartAfter"] = after
            with self._lock:
                self.requests += 1
            try:
                answer = retry(lambda request=request: self.client.list_objects_v2(**request, **self.arguments))  # type: ignore[misc]
            except Exception as error:
                raise ListingError(
                    f"Storage failed while listing s3://{self.bucket}/{span.prefix}: {reason(error)}. {advice(error)}"
                ) from error
            more = bool(answer.get("IsTruncated"))
            token = answer.get("NextContinuationToken")
            yield answer.get("Contents") or [], more
            if not more:
                return
            if token is None:
                raise ListingError(
                    f"The listing of s3://{self.bucket}/{span.prefix} broke off: the service says that there is more, "
                    "but not how to go on."
                )

    def walk(self, span: Span, selection: Selection, spawn: Callable[[Span], None]) -> Iterator[Entry]:
        """The files among the keys of a span."""
        folders = _Folders(self, selection, span)
        for page, _more in self.pages(span):
            for record in page:
                key = str(record["Key"])
                if span.until and key > span.until:
                    return
                path = key[len(self.prefix) :]
                if key.endswith("/") or not path:
                    continue
                if "//" in path or not _is_relative(path):
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
    if path[0] == "/":
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
