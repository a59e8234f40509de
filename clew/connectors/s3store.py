"""An index in a bucket of S3 or its kin: conditional put by `If-None-Match: *`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from clew.connectors import s3
from clew.connectors.localstore import write_atomically
from clew.connectors.location import Root, checked_path, lance_storage_options
from clew.connectors.objects import ObjectStore, Stored
from clew.connectors.options import S3Options
from clew.connectors.reading import fetch_s3
from clew.connectors.retries import advice, error_code, http_status, is_transient, reason, retry, was_refused
from clew.errors import (
    AmbiguousWriteError,
    ClewError,
    NoConditionalPutError,
    ObjectExistsError,
    ObjectMissingError,
    StorageError,
)

_BATCH = 1000  # keys of one DELETE request: S3's limit
_UNKNOWN_TO_STORE = frozenset({"NotImplemented", "InvalidArgument"})


class S3Store(ObjectStore):
    """Objects as keys below one prefix of a bucket."""

    def __init__(self, place: str, storage_options: Mapping[str, Any]) -> None:
        super().__init__(place.rstrip("/"), storage_options)
        root = Root.parse(place, storage_options)
        self.bucket = root.bucket
        self.prefix = root.prefix
        self._reads = s3.request_payer(storage_options)
        self._writes = {**self._reads, **S3Options.of(storage_options).write_arguments}

    @property
    def _client(self) -> Any:
        return s3.client(self.storage_options)

    def _key(self, name: str) -> str:
        return self.prefix + checked_path(name)

    @property
    def lance_options(self) -> dict[str, str]:
        """See ObjectStore."""
        return lance_storage_options(self.storage_options, "s3")

    # --- writing -------------------------------------------------------------------------------

    def put_if_absent(self, name: str, data: bytes) -> None:
        """See ObjectStore. Only answers that say that nothing was done are followed by another attempt."""
        key = self._key(name)

        def attempt() -> None:
            self._client.put_object(Bucket=self.bucket, Key=key, Body=data, IfNoneMatch="*", **self._writes)

        try:
            retry(attempt, when=lambda error: is_transient(error) and was_refused(error))
        except Exception as error:
            if http_status(error) == 412:
                raise ObjectExistsError(f"{self.uri(name)} exists already.") from error
            if http_status(error) == 501 or error_code(error) in _UNKNOWN_TO_STORE:
                raise NoConditionalPutError(
                    f"The store at {self.place} refuses conditional puts ({reason(error)}), so two writers could "
                    "destroy each other's work. Use another place for the index: --index PLACE."
                ) from error
            if is_transient(error) and not was_refused(error):
                raise AmbiguousWriteError(
                    f"No answer came while creating {self.uri(name)} ({reason(error)}): it may be there or not."
                ) from error
            raise self._failed("creating", name, error) from error

    def put(self, name: str, data: bytes) -> None:
        """See ObjectStore."""
        key = self._key(name)
        try:
            retry(lambda: self._client.put_object(Bucket=self.bucket, Key=key, Body=data, **self._writes))
        except Exception as error:
            raise self._failed("writing", name, error) from error

    def put_file(self, name: str, local_path: str | os.PathLike[str]) -> None:
        """See ObjectStore. Large files go up in parts, four at a time."""
        from boto3.s3.transfer import TransferConfig

        key = self._key(name)
        config = TransferConfig(max_concurrency=4, multipart_threshold=16 << 20, multipart_chunksize=16 << 20)
        try:
            retry(
                lambda: self._client.upload_file(
                    os.fspath(local_path), self.bucket, key, ExtraArgs=self._writes or None, Config=config
                ),
                when=lambda error: is_transient(error.__context__ or error),
            )
        except Exception as error:
            raise self._failed("writing", name, error) from error

    def delete(self, names: Iterable[str]) -> None:
        """See ObjectStore."""
        keys = (self._key(name) for name in names)
        while batch := list(islice(keys, _BATCH)):
            request = {"Objects": [{"Key": key} for key in batch], "Quiet": True}
            try:
                answer = retry(
                    lambda request=request: self._client.delete_objects(  # type: ignore[misc]
                        Bucket=self.bucket, Delete=request, **self._reads
                    )
                )
            except Exception as error:
                raise self._failed("deleting", f"{len(batch)} objects", error) from error
            failed = [each for each in answer.get("Errors") or [] if each.get("Code") != "NoSuchKey"]
            if failed:
                first = failed[0]
                raise StorageError(
                    f"{len(failed)} of {len(batch)} objects could not be deleted from {self.place}; the first is "
                    f"{first.get('Key')}: {first.get('Code')} {first.get('Message', '')}."
                )

    # --- reading -------------------------------------------------------------------------------

    def get(self, name: str) -> bytes:
        """See ObjectStore."""
        key = self._key(name)
        try:
            answer = retry(lambda: self._client.get_object(Bucket=self.bucket, Key=key, **self._reads)["Body"].read())
        except Exception as error:
            if s3.is_missing(error):
                raise ObjectMissingError(f"There is no object {self.uri(name)}.") from error
            raise self._failed("reading", name, error) from error
        return bytes(answer)

    def get_file(self, name: str, local_path: str | os.PathLike[str]) -> None:
        """See ObjectStore."""
        key = self._key(name)
        write_atomically(
            local_path, lambda file: fetch_s3(self._client, self.bucket, key, name, file, dict(self._reads))
        )

    def stat(self, name: str) -> Stored | None:
        """See ObjectStore."""
        found = s3.head(self._client, self.bucket, self._key(name), name, self._reads)
        return None if found is None else Stored(name=name, size=found.size, mtime_ns=found.mtime_ns)

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[Stored]:
        """See ObjectStore. One request a thousand objects."""
        request: dict[str, Any] = {"Bucket": self.bucket, "Prefix": self.prefix + prefix, **self._reads}
        if after:
            request["StartAfter"] = self.prefix + after
        while True:
            try:
                answer = retry(lambda: self._client.list_objects_v2(**request))
            except Exception as error:
                raise self._failed("listing", prefix, error) from error
            for record in answer.get("Contents") or []:
                name = str(record["Key"])[len(self.prefix) :]
                if name and not name.endswith("/") and name > after:
                    yield Stored(
                        name=name, size=int(record["Size"]), mtime_ns=s3.timestamp_ns(record.get("LastModified"))
                    )
            if not answer.get("IsTruncated"):
                return
            request.pop("StartAfter", None)
            request["ContinuationToken"] = answer["NextContinuationToken"]

    def _failed(self, doing: str, name: str, error: Exception) -> StorageError:
        if isinstance(error, ClewError):  # such as a package that is not installed
            raise error
        return StorageError(f"Storage failed while {doing} {self.place}/{name}: {reason(error)}. {advice(error)}")
