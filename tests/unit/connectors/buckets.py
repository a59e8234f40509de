"""A bucket in memory that lists as S3 does, fast enough for hundreds of thousands of keys."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Iterable
from typing import Any

from botocore.exceptions import ClientError

LAST = "\U0010ffff"


class FakeBucket:
    """The two calls of a boto3 client that a listing makes."""

    def __init__(self, keys: Iterable[str], *, server: str = "AmazonS3", texts: dict[str, str] | None = None) -> None:
        self.texts = texts or {}
        self.keys = sorted({*keys, *self.texts})
        self.server = server
        self.lists = 0
        self.gets: list[str] = []
        self.heads: list[str] = []
        self._lock = threading.Lock()

    def list_objects_v2(
        self,
        *,
        Bucket: str,
        Prefix: str = "",
        MaxKeys: int = 1000,
        StartAfter: str = "",
        ContinuationToken: str = "",
        Delimiter: str = "",
    ) -> dict[str, Any]:
        with self._lock:
            self.lists += 1
        after = ContinuationToken or StartAfter
        at = bisect.bisect_right(self.keys, after) if after >= Prefix else bisect.bisect_left(self.keys, Prefix)
        contents: list[dict[str, Any]] = []
        prefixes: list[str] = []
        last = after
        while at < len(self.keys) and len(contents) + len(prefixes) < MaxKeys:
            key = self.keys[at]
            if not key.startswith(Prefix):
                break
            rest = key[len(Prefix) :]
            if Delimiter and Delimiter in rest:
                prefixes.append(Prefix + rest.partition(Delimiter)[0] + Delimiter)
                last = prefixes[-1] + LAST
                at = bisect.bisect_left(self.keys, last)
                continue
            contents.append({"Key": key, "Size": len(key), "ETag": '"tag"'})
            last = key
            at += 1
        more = at < len(self.keys) and self.keys[at].startswith(Prefix)
        return {
            "Contents": contents,
            "CommonPrefixes": [{"Prefix": prefix} for prefix in prefixes],
            "IsTruncated": more,
            **({"NextContinuationToken": last} if more else {}),
            "ResponseMetadata": {"HTTPHeaders": {"server": self.server}},
        }

    def get_object(self, *, Bucket: str, Key: str, Range: str = "") -> dict[str, Any]:
        self.gets.append(Key)
        if Key not in self.texts:
            raise self._missing("NoSuchKey")
        import io

        return {"Body": io.BytesIO(self.texts[Key].encode())}

    def head_object(self, *, Bucket: str, Key: str, **_: Any) -> dict[str, Any]:
        self.heads.append(Key)
        if Key not in self.keys:
            raise self._missing("404")
        return {"ContentLength": len(Key), "ETag": '"tag"'}

    @staticmethod
    def _missing(code: str) -> ClientError:
        answer: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": 404}}
        return ClientError(answer, "Get")
