"""What each store's notification says; without these a bucket could change and nobody would look."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from clew.connectors.events.hints import Hint, Parsed
from clew.connectors.events.messages import parse_message
from clew.connectors.events.scope import Scope
from clew.connectors.location import Root

BUCKET = "papers"
SCOPE = Scope.of(Root.parse(f"s3://{BUCKET}/team/docs"), f"s3://{BUCKET}/team/docs/.clew")


def parse(value: Any, scope: Scope = SCOPE) -> Parsed:
    return parse_message(json.dumps(value), scope)


def record(key: str = "team/docs/a.md", *, name: str = "ObjectCreated:Put", bucket: str = BUCKET) -> dict[str, Any]:
    """As S3 writes it; the key is taken as it is to stand there."""
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "eventTime": "2026-11-30T10:00:00.250Z",
        "eventName": name,
        "s3": {"bucket": {"name": bucket}, "object": {"key": key, "size": 3, "eTag": "abc", "sequencer": "0A"}},
    }


def plain(*records: Any) -> dict[str, Any]:
    return {"Records": list(records)}


def through_sns(inner: Any) -> dict[str, Any]:
    return {"Type": "Notification", "TopicArn": "arn:aws:sns:x:1:t", "Message": json.dumps(inner), "Signature": "…"}


def through_event_bridge(key: str, detail_type: str = "Object Created") -> dict[str, Any]:
    return {
        "version": "0",
        "source": "aws.s3",
        "detail-type": detail_type,
        "time": "2026-11-30T10:00:00Z",
        "detail": {"bucket": {"name": BUCKET}, "object": {"key": key, "size": 1}},
    }


def azure(subject: str, kind: str = "Microsoft.Storage.BlobCreated", **data: Any) -> dict[str, Any]:
    return {"eventType": kind, "subject": subject, "eventTime": "2026-11-30T10:00:00Z", "data": data}


A = "team/docs/a.md"
SUBJECT = f"/blobServices/default/containers/{BUCKET}/blobs/"
GOOGLE = {"eventType": "OBJECT_FINALIZE", "bucketId": BUCKET, "objectId": A, "eventTime": "2026-11-30T10:00:00Z"}
GOOGLE_DATA = {"kind": "storage#object", "bucket": BUCKET, "name": A, "updated": "2026-11-30T10:00:00Z"}

SHAPES: dict[str, Any] = {
    "plain": plain(record()),
    "removed": plain(record(name="ObjectRemoved:Delete")),
    "delete-marker": plain(record(name="ObjectRemoved:DeleteMarkerCreated")),
    "lifecycle": plain(record(name="LifecycleExpiration:Delete")),
    "minio": {
        "EventName": "s3:ObjectCreated:Put",
        "Key": f"{BUCKET}/{A}",
        **plain(record(name="s3:ObjectCreated:Put")),
    },
    "sns": through_sns(plain(record())),
    "event-bridge": through_event_bridge(A),
    "event-bridge-deleted": through_event_bridge(A, "Object Deleted"),
    "event-bridge-through-sns": through_sns(through_event_bridge(A)),
    "gcs-attributes": {"message": {"attributes": GOOGLE, "messageId": "1"}, "subscription": "s"},
    "gcs-data": {"message": {"data": base64.b64encode(json.dumps(GOOGLE_DATA).encode()).decode()}},
    "gcs-channel": GOOGLE_DATA,
    "azure": [azure(SUBJECT + A)],
    "azure-cloud-event": {"specversion": "1.0", "type": "Microsoft.Storage.BlobDeleted", "subject": SUBJECT + A},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_names_the_file(shape: str) -> None:
    parsed = parse(SHAPES[shape])
    assert [(hint.path, hint.is_folder) for hint in parsed.hints] == [("a.md", False)]
    assert (parsed.rejected, parsed.tests, parsed.foreign) == ((), 0, 0)


def test_moment_of_the_event_is_kept_for_freshness() -> None:
    (hint,) = parse(plain(record())).hints
    assert hint.happened_ns == 1_796_032_800_250_000_000


@pytest.mark.parametrize(
    "greeting",
    [
        {"Service": "Amazon S3", "Event": "s3:TestEvent", "Time": "2026-11-30T10:00:00Z", "Bucket": BUCKET},
        {
            "Type": "SubscriptionConfirmation",
            "TopicArn": "arn",
            "Message": "You have chosen to subscribe",
            "Token": "x",
        },
        through_sns({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": BUCKET}),
        {"nothing": "of ours"},
        {},
    ],
)
def test_announcements_are_counted_and_name_nothing(greeting: dict[str, Any]) -> None:
    parsed = parse(greeting)
    assert (parsed.hints, parsed.rejected, parsed.tests) == ((), (), 1)


@pytest.mark.parametrize(
    "body",
    ["", "not json", "[1, 2", "17", '"text"', "null", "[" * 100_000, '{"Records": [{"s3": {}}]}', '{"Records": [null]}',
     '{"message": {"data": "%%%"}}', '{"message": {"data": "MTc="}}', json.dumps(through_event_bridge("")),
     '{"eventType": "Microsoft.Storage.BlobCreated", "subject": "elsewhere"}',
     '{"TopicArn": "a", "Type": "Notification", "Message": "{broken"}'],
    ids=lambda body: body[:24] or "empty",
)  # fmt: skip
def test_what_cannot_be_read_is_rejected_with_its_text(body: str) -> None:
    parsed = parse_message(body, SCOPE)
    assert parsed.hints == ()
    assert len(parsed.rejected) == 1
    assert parsed.rejected[0].reason


def test_envelopes_do_not_nest_for_ever() -> None:
    value: Any = plain(record())
    for _ in range(8):
        value = through_sns(value)
    assert parse(value).rejected[0].reason == "too many envelopes"


def test_bad_record_does_not_hide_the_good_ones_beside_it() -> None:
    """S15: the good events of a batch are processed, the bad one is kept for people."""
    parsed = parse(plain(record("team/docs/a.md"), {"s3": {"bucket": {"name": BUCKET}}}, record("team/docs/b.md")))
    assert [hint.path for hint in parsed.hints] == ["a.md", "b.md"]
    assert [json.loads(one.body) for one in parsed.rejected] == [{"s3": {"bucket": {"name": BUCKET}}}]


@pytest.mark.parametrize(
    "key", ["team/docs/.clew/snapshots/000000000001", "team/docs/sub/.clew/x", "team/other/a.md", "team/docsx/a.md",
            "team/docs/", "team/docs/a//b.md", "team/docs/../secret.md", "team/docs/.git/config", "team/docs/" + "x" * 1024],
    ids=lambda key: key[10:24] or "root",
)  # fmt: skip
def test_other_prefixes_the_index_and_impossible_names_are_ignored(key: str) -> None:
    parsed = parse(plain(record(key)))
    assert (parsed.hints, parsed.rejected, parsed.foreign) == ((), (), 1)


def test_other_buckets_are_ignored() -> None:
    parsed = parse(plain(record(bucket="somebody-elses"), record()))
    assert (len(parsed.hints), parsed.foreign) == (1, 1)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("team/docs/a+b.md", "a b.md"),  # AWS: a space
        ("team/docs/a%2Bb.md", "a+b.md"),  # AWS: a plus
        ("team/docs/a+b.md", "a+b.md"),  # Ceph: a plus
        ("team/docs/a b.md", "a b.md"),  # Ceph: a space
        ("team%2Fdocs%2Fx%252Fy.md", "x%2Fy.md"),  # AWS: a percent sign
        ("team/docs/x%2Fy.md", "x%2Fy.md"),  # Ceph: the same
        ("team/docs/%C3%BCber.md", "über.md"),
        ("team/docs/über.md", "über.md"),
        ("team/docs/100%.md", "100%.md"),
        ("team/docs/%FF.md", "%FF.md"),
    ],
)
def test_encoded_and_raw_keys_lead_to_the_file(written: str, meant: str) -> None:
    """S17: nothing in the event tells whether the key is encoded, so both readings are looked at."""
    assert meant in [hint.path for hint in parse(plain(record(written))).hints]


def test_azure_handshake_is_answered() -> None:
    value = [{"eventType": "Microsoft.EventGrid.SubscriptionValidationEvent", "data": {"validationCode": "abc-1"}}]
    parsed = parse(value)
    assert json.loads(parsed.answer or "") == {"validationResponse": "abc-1"}
    assert parsed.tests == 1


def test_renamed_azure_folder_is_looked_for_on_both_sides() -> None:
    event = azure(
        SUBJECT + "team/docs/new",
        "Microsoft.Storage.DirectoryRenamed",
        sourceUrl=f"https://acc.dfs.core.windows.net/{BUCKET}/team/docs/old",
    )
    assert [(hint.path, hint.is_folder) for hint in parse(event).hints] == [("new", True), ("old", True)]


def test_ignore_file_is_a_reason_to_look_although_it_is_hidden() -> None:
    assert [hint.path for hint in parse(plain(record("team/docs/sub/.clewignore"))).hints] == ["sub/.clewignore"]


def test_record_file_hears_of_itself_alone(tmp_path: Any) -> None:
    root = Root(kind="s3", path=f"{BUCKET}/data/rows.jsonl", url=f"s3://{BUCKET}/data/rows.jsonl")
    root._opened["record_file"] = True  # as storage would have said
    scope = Scope.of(root, f"s3://{BUCKET}/data/rows.jsonl.clew")
    parsed = parse(plain(record("data/rows.jsonl"), record("data/rows.jsonl.clew/x"), record("data/other.md")), scope)
    assert [hint.path for hint in parsed.hints] == ["rows.jsonl"]


def test_hint_is_written_as_runs_take_it() -> None:
    assert (Hint(path="a/b").text, Hint(path="a/b", is_folder=True).text) == ("a/b", "a/b/")
