"""A bucket that tells a queue of its changes: without these, events lost, doubled or out of order would rot an index."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from clew.connectors.events.hints import Delivery, EventSource, EventTally
from clew.connectors.events.mailbox import DEAD
from clew.connectors.events.scope import Scope
from clew.connectors.events.sqs import SqsSource
from clew.connectors.events.subscription import identifier, subscribe
from clew.connectors.location import Root
from clew.connectors.objects import ObjectStore
from clew.daemon.schedule import Schedule
from clew.errors import ConfigurationError, OptionError
from clew.indexer.run import RunOptions, run_index
from tests.integration.events.watching import source_of, texts, watching
from tests.servers import S3Server, wait_until

pytestmark = [pytest.mark.timeout(280), pytest.mark.xdist_group("moto-events")]


@dataclass(frozen=True, kw_only=True)
class Told:
    """A bucket with documents below a prefix, and a queue that hears of them."""

    server: S3Server
    bucket: str
    queue: str
    arn: str
    url: str
    root: str

    @property
    def options(self) -> dict[str, Any]:
        return self.server.storage_options

    def put(self, path: str, text: str) -> None:
        self.server.client().put_object(Bucket=self.bucket, Key=f"docs/{path}", Body=text.encode())

    def delete(self, path: str) -> None:
        self.server.client().delete_object(Bucket=self.bucket, Key=f"docs/{path}")

    def send(self, body: Any) -> None:
        text = body if isinstance(body, str) else json.dumps(body)
        self.server.client("sqs").send_message(QueueUrl=self.url, MessageBody=text)

    def left(self) -> int:
        """Messages that wait, or that somebody has not acknowledged."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.server.client("sqs").get_queue_attributes(QueueUrl=self.url, AttributeNames=names)["Attributes"]
        return sum(int(value) for value in found.values())

    @property
    def queue_source(self) -> str:
        return f"sqs://{self.queue}"

    def source(self) -> EventSource:
        return source_of(self.queue_source, self.root, self.options)

    def texts(self, **more: Any) -> dict[str, str]:
        return texts(self.root, self.options, **more)

    def run(self, **options: Any) -> Any:
        run = RunOptions(embedder="none", workers=0, storage_options=self.options, **options)
        return run_index(self.root, run)


@pytest.fixture
def told(moto_s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    """A bucket and its queue, set up as `clew events setup` does."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, value in moto_s3.environment.items():
        monkeypatch.setenv(name, value)
    bucket, queue = moto_s3.bucket(), f"q-{uuid.uuid4().hex[:12]}"
    sqs = moto_s3.client("sqs")
    url = sqs.create_queue(QueueName=queue)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    told = Told(server=moto_s3, bucket=bucket, queue=queue, arn=arn, url=url, root=f"s3://{bucket}/docs")
    told.put("index.md", "# Start\n\nSee [keys](keys.md).\n")
    subscribe(Root.parse(told.root, told.options), arn)
    return told


def watched(told: Told, **arguments: Any) -> Any:
    source = arguments.pop("source", None) or told.source()
    run = {"storage_options": told.options, "index": arguments.pop("place", None)}
    return watching(told.root, source, run=run, **arguments)


def test_changes_arrive_and_messages_go(told: Told) -> None:
    """The way of one event: put, overwrite and delete are in the index, and the queue is empty after it."""
    with watched(told) as watch:
        told.put("keys.md", "# Keys\n\nRotate.\n")
        watch.until(lambda: "keys.md" in told.texts(), "the put")
        told.put("keys.md", "# Keys\n\nEvery month.\n")
        watch.until(lambda: "Every month" in told.texts()["keys.md"], "the overwrite")
        told.delete("keys.md")
        watch.until(lambda: "keys.md" not in told.texts(), "the removal")
        watch.until(lambda: told.left() == 0, "an empty queue")
        assert watch.source.tally.hints == 3
        # The index lies below the prefix that the bucket tells of: its own writes come, too, and wake nobody.
        assert watch.source.tally.foreign > 10
        assert len(watch.lines) <= 4
    told.texts(checked=True)


def test_test_event_and_nonsense_beside_good_events(told: Told) -> None:
    """S15: all are acknowledged, the unreadable is kept as a dead letter, the good ones are followed, nothing loops."""
    told.put("good.md", "# Good\n\nText.\n")
    good = {"s3": {"bucket": {"name": told.bucket}, "object": {"key": "docs/better.md"}}}
    told.server.client().put_object(Bucket=told.bucket, Key="docs/better.md", Body=b"# Better\n\nText.\n")
    told.send({"Records": [{"s3": {"bucket": {}}}, good]})
    told.send("this is not JSON")
    told.send({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": told.bucket})
    told.send({"Records": []})
    with watched(told) as watch:
        watch.until(lambda: told.left() == 0, "an empty queue")
        assert {"good.md", "better.md"} <= set(told.texts())
        tally = watch.source.tally
        assert (tally.rejected, tally.tests >= 1) == (2, True)
    store = ObjectStore.open(f"{told.root}/.clew", told.options)
    letters = [orjson.loads(store.get(stored.name)) for stored in store.list(DEAD)]
    assert sorted(letter["reason"] for letter in letters) == ["it is not JSON", "the record names no object"]


NAMES = ["a b.md", "a+b.md", "x%2Fy.md", "über.md", "50% off #1?.md", "[x]*.md", "deep/er/a&b=c.md"]


@pytest.mark.parametrize("encoded", [True, False], ids=["aws", "ceph"])
def test_keys_lead_to_the_same_documents_as_a_listing(told: Told, encoded: bool) -> None:
    """S17: encoded as AWS does (and moto), raw as Ceph does."""
    told.run()
    for name in NAMES:
        told.put(name, f"# Odd\n\nNamed {name}.\n")
    if not encoded:
        told.server.client("sqs").purge_queue(QueueUrl=told.url)
        for name in NAMES:
            told.send({"Records": [{"s3": {"bucket": {"name": told.bucket}, "object": {"key": f"docs/{name}"}}}]})
    with watched(told, source=told.source()) as watch:
        watch.until(lambda: told.left() == 0)
    by_events = told.texts(checked=True)
    assert set(NAMES) <= set(by_events)
    assert told.run().changes.unchanged == len(by_events)


def test_delete_marker_removes_the_document(told: Told) -> None:
    """S18: in a versioned bucket a removal is a marker, and its event has another name."""
    told.server.client().put_bucket_versioning(Bucket=told.bucket, VersioningConfiguration={"Status": "Enabled"})
    told.put("keys.md", "# Keys\n\nText.\n")
    with watched(told) as watch:
        assert "keys.md" in told.texts()
        told.delete("keys.md")
        watch.until(lambda: "keys.md" not in told.texts())


def test_same_event_twice_and_in_reverse(told: Told) -> None:
    """S14: the end is what storage holds, whatever the events say and in whatever order."""
    told.put("here.md", "# Here\n\nText.\n")
    told.put("gone.md", "# Gone\n\nText.\n")
    told.run()
    told.delete("gone.md")
    told.put("here.md", "# Here\n\nNewer text.\n")
    told.server.client("sqs").purge_queue(QueueUrl=told.url)
    for key, name in [("here.md", "ObjectRemoved:Delete"), ("here.md", "ObjectCreated:Put"), ("gone.md", "ObjectRemoved:Delete"),
                      ("gone.md", "ObjectCreated:Put"), ("gone.md", "ObjectCreated:Put"), ("never.md", "ObjectCreated:Put")]:  # fmt: skip
        told.send(
            {
                "Records": [
                    {"eventName": name, "s3": {"bucket": {"name": told.bucket}, "object": {"key": f"docs/{key}"}}}
                ]
            }
        )
    with watched(told) as watch:
        watch.until(lambda: told.left() == 0)
    found = told.texts(checked=True)
    assert set(found) == {"index.md", "here.md"}
    assert "Newer" in found["here.md"]


def test_stopping_gives_messages_back(told: Told) -> None:
    """Another watcher need not wait a quarter of an hour for what this one had taken."""
    scope = Scope.of(Root.parse(told.root, told.options), f"{told.root}/.clew")
    from clew.connectors.events.mailbox import DeadLetters

    letters = DeadLetters(ObjectStore.open(f"{told.root}/.clew", told.options))
    one, other = (SqsSource(queue, scope, letters, told.options) for queue in (told.queue, told.arn))
    told.put("a.md", "# A\n\nText.\n")
    taken: list[Delivery] = []
    wait_until(lambda: bool(taken.extend(one.receive(0)) or any(each.hints for each in taken)))
    assert not any(each.hints for each in other.receive(0))
    one.hand_back([each.handle or "" for each in taken])
    found: list[Delivery] = []
    wait_until(lambda: bool(found.extend(other.receive(0)) or any(each.hints for each in found)))
    assert [hint.path for each in found for hint in each.hints] == ["a.md"]


def test_setting_up_keeps_what_is_there_and_can_be_repeated(told: Told) -> None:
    s3, sqs = told.server.client(), told.server.client("sqs")
    root = Root.parse(told.root, told.options)
    other = Root.parse(f"s3://{told.bucket}/other", told.options)
    subscribe(other, told.arn)
    before = s3.get_bucket_notification_configuration(Bucket=told.bucket)["QueueConfigurations"]
    shown = subscribe(root, told.arn, write=False)
    subscribe(root, told.arn)
    after = s3.get_bucket_notification_configuration(Bucket=told.bucket)["QueueConfigurations"]
    assert {rule["Id"] for rule in before} == {rule["Id"] for rule in after}
    assert {rule["Id"] for rule in after} == {identifier(told.bucket, "docs/"), identifier(told.bucket, "other/")}
    assert [rule["Id"] for rule in shown.notification["QueueConfigurations"]] == [rule["Id"] for rule in after]
    policy = json.loads(sqs.get_queue_attributes(QueueUrl=told.url, AttributeNames=["Policy"])["Attributes"]["Policy"])
    assert policy == shown.policy


@pytest.mark.parametrize("queue", ["sqs://", "sqs://arn:aws:sns:x:1:t"])
def test_what_is_no_queue_is_refused(told: Told, queue: str) -> None:
    with pytest.raises(OptionError):
        source_of(queue, told.root, told.options)


def test_missing_queue_is_named(told: Told) -> None:
    with pytest.raises(ConfigurationError, match="no SQS queue 'nobody'"):
        source_of("sqs://nobody", told.root, told.options)


class Unreliable:
    """A queue whose deliveries are dropped, doubled and shuffled on their way."""

    def __init__(self, inner: EventSource, chance: random.Random) -> None:
        self._inner = inner
        self._chance = chance
        self.tally: EventTally = inner.tally
        self.dropped = self.doubled = 0

    def receive(self, wait: float) -> Sequence[Delivery]:
        """Dropping is acknowledging without a look: nobody will ever hear of the event again."""
        found: list[Delivery] = []
        for delivery in self._inner.receive(wait):
            fate = self._chance.random()
            if fate < 0.1:
                self.dropped += 1
                found.append(Delivery(handle=delivery.handle))
                continue
            if fate < 0.2:
                self.doubled += 1
                found.append(Delivery(hints=delivery.hints))
            found.append(delivery)
        self._chance.shuffle(found)
        return found

    def acknowledge(self, handles: Sequence[str]) -> None:
        self._inner.acknowledge(handles)

    def hand_back(self, handles: Sequence[str]) -> None:
        self._inner.hand_back(handles)

    def close(self) -> None:
        self._inner.close()


def _text(chance: random.Random, names: Sequence[str]) -> str:
    links = " ".join(f"[see]({name})" for name in chance.sample(names, 2))
    return f"# Note {chance.randrange(1000)}\n\nText number {chance.randrange(10**6)}, {links}.\n"


@pytest.mark.parametrize(
    "count",
    [
        24,
        pytest.param(120, marks=[pytest.mark.slow, pytest.mark.timeout(600)]),
        pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)]),
    ],
)
def test_storm_converges_by_events_and_then_by_reconcile(told: Told, count: int) -> None:
    """Puts, overwrites and deletes, a tenth of the events doubled, a tenth lost, in random order: the end is a fresh build."""
    chance = random.Random(count)
    names = [f"f{number // 10}/note-{number}.md" for number in range(count // 2)]
    for name in names[::2]:
        told.put(name, _text(chance, names))
    place = f"s3://{told.bucket}/index"  # beside the root: its own writes do not come through the queue
    told.run(index=place)
    told.server.client("sqs").purge_queue(QueueUrl=told.url)
    source = Unreliable(source_of(told.queue_source, told.root, told.options, place), chance)
    schedule = Schedule("0 0 1 1 *")
    with watched(told, source=source, schedule=schedule, place=place) as watch:
        for _ in range(count):
            name = chance.choice(names)
            told.delete(name) if chance.random() < 0.3 else told.put(name, _text(chance, names))
        watch.until(lambda: told.left() == 0, "an empty queue", seconds=90 + 2 * count)
        assert watch.source.tally.foreign == 0
        if count >= 120:  # of few messages it may be that none is drawn
            assert source.dropped
            assert source.doubled
        assert len(watch.lines) > 1
        schedule.due = 0.0
        watch.until(lambda: schedule.due > 0, "the reconcile", seconds=90 + 2 * count)
    assert watch.told.messages == []
    by_events = (told.texts(place=place, checked=True), _links(told, place))
    fresh = f"s3://{told.bucket}/fresh"
    run_index(told.root, RunOptions(index=fresh, embedder="none", workers=0, storage_options=told.options))
    assert by_events == (texts(told.root, told.options, fresh), _links(told, fresh))


def _links(told: Told, place: str | None = None) -> list[tuple[Any, ...]]:
    from clew.query.index import Index

    with Index.open(told.root, index=place, storage_options=told.options) as index:
        return sorted((link.source, link.target or "", link.href, link.state) for link in index.links())
