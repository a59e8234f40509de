"""Notifications of object stores, read: S3 (plain, through SNS, through EventBridge), MinIO, GCS and Azure.

Event names are not looked at: `ObjectCreated:Put`, `ObjectRemoved:DeleteMarkerCreated` and whatever comes next all mean
that one should look. Nothing here raises on what a message holds: what cannot be read comes back as rejected, part by
part, so that one bad record does not hide the good ones beside it.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from clew.connectors.events.hints import Hint, Parsed, Rejected
from clew.connectors.events.scope import Scope
from clew.connectors.s3 import timestamp_ns

_DEPTH = 4  # envelopes inside envelopes (EventBridge through SNS through SQS are three)
_AZURE_FOLDERS = ("DirectoryCreated", "DirectoryRenamed", "DirectoryDeleted")
_AZURE_SUBJECT = "/blobServices/default/containers/"


def parse_message(body: str | bytes, scope: Scope) -> Parsed:
    """Read one message, whatever its shape."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return Parsed(rejected=(Rejected(reason="it is not JSON", body=text),))
    reader = _Reader(scope)
    reader.read(value, _DEPTH)
    return reader.parsed()


class _Reader:
    """Collects what the parts of one message say."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._hints: dict[tuple[str, bool], Hint] = {}
        self._rejected: list[Rejected] = []
        self._tests = self._foreign = 0
        self._answer: str | None = None

    def parsed(self) -> Parsed:
        return Parsed(
            hints=tuple(self._hints.values()),
            rejected=tuple(self._rejected),
            tests=self._tests,
            foreign=self._foreign,
            answer=self._answer,
        )

    def read(self, value: Any, depth: int) -> None:
        """One value: an envelope, an event, or a list of events."""
        if depth == 0:
            self._reject("too many envelopes", value)
        elif isinstance(value, list):
            for item in value:
                self._part(item, depth - 1)
        elif not isinstance(value, Mapping):
            self._reject("it is not an object", value)
        elif isinstance(value.get("Records"), list):
            for record in value["Records"]:
                self._record(record)
        elif "detail" in value and "detail-type" in value:
            self._bridge(value)
        elif isinstance(value.get("Message"), str) and "TopicArn" in value:
            self._inner(value["Message"], value, depth)
        elif isinstance(value.get("message"), Mapping):
            self._pubsub(value["message"], value)
        elif "eventType" in value or "specversion" in value:
            self._azure(value)
        elif "bucketId" in value or value.get("kind") == "storage#object":
            self._google(value, value)
        else:
            # `s3:TestEvent`, MinIO's and SNS's greetings, and other people's messages: nothing to look at.
            self._tests += 1

    def _part(self, item: Any, depth: int) -> None:
        self.read(item, depth) if isinstance(item, Mapping) else self._reject("it is not an object", item)

    def _inner(self, text: str, whole: Any, depth: int) -> None:
        try:
            inner = json.loads(text)
        except (ValueError, RecursionError):
            # What SNS sends by itself (the confirmation of a subscription) is prose, and carries nothing.
            if whole.get("Type") in ("SubscriptionConfirmation", "UnsubscribeConfirmation"):
                self._tests += 1
            else:
                self._reject("the message inside is not JSON", whole)
            return
        self.read(inner, depth - 1)

    def _record(self, record: Any) -> None:
        bucket, key = _at(record, "s3", "bucket", "name"), _at(record, "s3", "object", "key")
        if not isinstance(bucket, str) or not isinstance(key, str) or not key:
            self._reject("the record names no object", record)
            return
        self._object(bucket, key, _moment(record.get("eventTime")), encoded=True)

    def _bridge(self, value: Mapping[str, Any]) -> None:
        bucket, key = _at(value, "detail", "bucket", "name"), _at(value, "detail", "object", "key")
        if not isinstance(bucket, str) or not isinstance(key, str) or not key:
            if value.get("source") == "aws.s3":
                self._reject("the event names no object", value)
            else:
                self._foreign += 1
            return
        self._object(bucket, key, _moment(value.get("time")), encoded=True)

    def _pubsub(self, message: Mapping[str, Any], whole: Any) -> None:
        attributes = message.get("attributes")
        if isinstance(attributes, Mapping) and "objectId" in attributes:
            self._google(attributes, whole)
            return
        try:
            data = json.loads(base64.b64decode(str(message.get("data") or ""), validate=True))
        except (ValueError, binascii.Error, RecursionError):
            self._reject("the message names no object", whole)
            return
        self._google(data, whole)

    def _google(self, value: Any, whole: Any) -> None:
        if not isinstance(value, Mapping):
            self._reject("the message names no object", whole)
            return
        bucket, key = value.get("bucketId") or value.get("bucket"), value.get("objectId") or value.get("name")
        if not isinstance(bucket, str) or not isinstance(key, str):
            self._reject("the message names no object", whole)
            return
        self._object(bucket, key, _moment(value.get("eventTime") or value.get("updated")), encoded=False)

    def _azure(self, value: Mapping[str, Any]) -> None:
        kind = str(value.get("eventType") or value.get("type") or "")
        data = value.get("data")
        if kind.endswith("SubscriptionValidationEvent"):
            code = data.get("validationCode") if isinstance(data, Mapping) else None
            self._tests += 1
            self._answer = json.dumps({"validationResponse": str(code)})
            return
        container, _, key = str(value.get("subject") or "").removeprefix(_AZURE_SUBJECT).partition("/blobs/")
        if not container or not key or not str(value.get("subject")).startswith(_AZURE_SUBJECT):
            self._reject("the event names no blob", value)
            return
        is_folder = kind.endswith(_AZURE_FOLDERS)
        moment = _moment(value.get("eventTime") or value.get("time"))
        self._object(container, key, moment, encoded=False, is_folder=is_folder)
        renamed = data.get("sourceUrl") if isinstance(data, Mapping) else None
        if isinstance(renamed, str):  # a rename names where it came from, too
            former = urlsplit(renamed).path.lstrip("/").partition("/")
            self._object(former[0], former[2], moment, encoded=True, is_folder=is_folder)

    def _object(
        self, bucket: str, key: str, happened_ns: int | None, *, encoded: bool, is_folder: bool = False
    ) -> None:
        hints = self._scope.object_hints(bucket, key, is_folder=is_folder, happened_ns=happened_ns, encoded=encoded)
        if not hints:
            self._foreign += 1
        for hint in hints:
            self._hints.setdefault((hint.path, hint.is_folder), hint)

    def _reject(self, reason: str, value: Any) -> None:
        self._rejected.append(Rejected(reason=reason, body=json.dumps(value)))


def _at(value: Any, *names: str) -> Any:
    for name in names:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _moment(value: Any) -> int | None:
    """Nanoseconds since 1970 of an ISO 8601 time; None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        return timestamp_ns(datetime.fromisoformat(value))
    except ValueError:
        return None
