"""S3 and its kin through boto3: clients, keys and the few requests that clew makes.

boto3 rather than s3fs: its client is shared by threads, takes keys literally, gives the etag of the very response that
is read, and costs less to load (0.43 against 0.62 CPU-seconds, imports and client together).
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from clew.connectors.entry import Entry
from clew.connectors.options import boto3_options, environment_endpoint
from clew.connectors.retries import advice, error_code, http_status, reason, retry
from clew.errors import MissingPartError, StorageError

_clients: dict[tuple[int, str], Any] = {}
_lock = threading.Lock()

#: Full-object checksums that S3 may hold, strongest first, and our names for them.
_CHECKSUMS = (
    ("ChecksumSHA256", "sha256"),
    ("ChecksumSHA1", "sha1"),
    ("ChecksumCRC64NVME", "crc64nvme"),
    ("ChecksumCRC32C", "crc32c"),
    ("ChecksumCRC32", "crc32"),
)


def client(options: Mapping[str, Any], service: str = "s3") -> Any:
    """The boto3 client for these options, one a process (a client costs 0.1 CPU-seconds and 10 MB; it is thread-safe).

    Raises:
        StorageError: boto3 refuses the options.
    """
    environment = [os.environ.get(name) for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION")]
    signature = json.dumps([service, dict(options), environment_endpoint(), environment], sort_keys=True, default=repr)
    key = (os.getpid(), signature)
    with _lock:
        found = _clients.get(key)
        if found is None:
            try:
                import boto3

                session, arguments = boto3_options(options, service)
                found = boto3.session.Session(**session).client(service, **arguments)
            except ImportError as error:
                raise MissingPartError(
                    f"S3 needs the package boto3, which is not installed ({error}). Install it: pip install 'clew[s3]'."
                ) from error
            except Exception as error:
                raise StorageError(
                    f"No connection to {service} can be set up: {reason(error)}. {advice(error)}"
                ) from error
            _clients[key] = found
    return found


def timestamp_ns(moment: Any) -> int | None:
    """Nanoseconds since 1970 of a `datetime` (UTC where it does not say); None for anything else."""
    if not isinstance(moment, datetime):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds: int = int(moment.replace(microsecond=0).timestamp())
    return seconds * 1_000_000_000 + int(moment.microsecond) * 1_000


def etag(value: Any) -> str | None:
    """An etag without its quotes."""
    return str(value).strip('"') if value else None


def is_missing(error: BaseException) -> bool:
    """Whether the answer was: no such object (a missing bucket is another matter)."""
    if error_code(error) in ("NoSuchKey", "NoSuchVersion"):
        return True
    return http_status(error) == 404 and error_code(error) != "NoSuchBucket"


def describe(path: str, answer: Mapping[str, Any]) -> Entry:
    """The Entry of a HEAD or GET answer."""
    size = answer["ContentLength"]
    span = answer.get("ContentRange")  # "bytes 0-9/100" in answers to a ranged GET
    if span:
        size = int(str(span).rpartition("/")[2])
    checksum = None
    # A composite checksum ("…-3") is one of the parts' checksums: it proves nothing about another upload.
    if answer.get("ChecksumType", "FULL_OBJECT") == "FULL_OBJECT":
        for name, ours in _CHECKSUMS:
            value = answer.get(name)
            if value and "-" not in value:
                checksum = f"{ours}:{value}"
                break
    version = answer.get("VersionId")
    return Entry(
        path=path,
        size=int(size),
        mtime_ns=timestamp_ns(answer.get("LastModified")),
        etag=etag(answer.get("ETag")),
        version_id=None if version in (None, "null") else str(version),
        checksum=checksum,
    )


def request_payer(options: Mapping[str, Any]) -> dict[str, str]:
    """Arguments of every reading request in a bucket whose readers pay."""
    return {"RequestPayer": "requester"} if options.get("requester_pays") else {}


def head(s3: Any, bucket: str, key: str, path: str = "", arguments: Mapping[str, Any] | None = None) -> Entry | None:
    """What the store says of one key now; None when there is no such object.

    Raises:
        StorageError: the store refused, or did not answer after retries.
    """
    try:
        answer = retry(lambda: s3.head_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED", **(arguments or {})))
    except Exception as error:
        if is_missing(error):
            return None
        raise StorageError(
            f"Storage failed while asking for s3://{bucket}/{key}: {reason(error)}. {advice(error)}"
        ) from error
    return describe(path or key, answer)


def prefix_exists(s3: Any, bucket: str, prefix: str) -> bool:
    """Whether a bucket (empty prefix) or any key below a prefix exists.

    Raises:
        StorageError: the store refused, or did not answer after retries.
    """
    try:
        answer = retry(lambda: s3.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1))
    except Exception as error:
        if error_code(error) == "NoSuchBucket":
            return False
        raise StorageError(
            f"Storage failed while looking for s3://{bucket}/{prefix}: {reason(error)}. {advice(error)}"
        ) from error
    return not prefix or bool(answer.get("Contents"))
