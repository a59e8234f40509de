"""`clew watch` and `clew events setup` as people run them: without these, a service manager could not stop it cleanly."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from clew.cli.watching import _stop_on_signals as stop_on_signals
from tests.acceptance.commands import clew, environment
from tests.servers import S3Server, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(200)]


@contextmanager
def watching(root: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """The command in a process of its own, and the file its output goes to."""
    output = root.parent / "output"
    command = [sys.executable, "-m", "clew", "watch", str(root), "--embedder", "none", "--workers", "1", *options]
    with output.open("w") as stdout:
        process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=environment())
    try:
        yield process, output
    finally:
        process.kill()
        process.communicate()


def lines(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.read_text().splitlines() if line.endswith("}")]


def test_one_line_a_commit_until_told_to_stop(tmp_path: Path) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    (root / "a.md").write_text("# A\n\nText.\n")
    with watching(root) as (process, output):
        wait_until(lambda: bool(lines(output)), seconds=90, what="the first line")
        (root / "b.md").write_text("# B\n\nAbout harbour dues.\n")
        wait_until(lambda: len(lines(output)) > 1, seconds=90, what="the second line")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "Traceback" not in said
    first, second = lines(output)[:2]
    assert (first["cause"], first["files"]["added"], second["cause"]) == ("start", 1, "events")
    assert second["snapshot"] > first["snapshot"]
    assert second["freshness"] > 0
    assert (root / ".clew/epochs").is_dir()
    assert sorted((root / ".clew/epochs").glob("*.heartbeat"))[-1].read_bytes() == b"released"


def test_either_signal_asks_for_an_end_and_a_second_one_insists(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is waited for, as what is under way is to be published or handed back."""
    handlers: dict[int, Any] = {}
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    for number in (signal.SIGTERM, signal.SIGINT):
        stop = threading.Event()
        stop_on_signals(stop)
        handlers[number](number, None)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            handlers[number](number, None)


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["--events", "carrier-pigeon"], "local, sqs://QUEUE, webhook or none"),
        (["--events", "sqs://queue"], "S3 buckets"),
        (["--schedule", "now and then"], "--schedule 'now and then': expected five fields"),
        (["--upkeep", "sometimes"], "--upkeep 'sometimes': expected five fields"),
        (["--events", "setup"], "clew events setup"),
        (["--print"], "--events setup"),
    ],
)
def test_impossible_wish_is_one_sentence(tmp_path: Path, options: list[str], hint: str) -> None:
    (tmp_path / "docs").mkdir()
    done = clew("watch", str(tmp_path / "docs"), *options)
    assert done.status == 2
    assert hint in done.sentence


def test_events_setup_prints_or_writes(moto_s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in moto_s3.environment.items():
        monkeypatch.setenv(name, value)
    bucket, queue = moto_s3.bucket(), f"q-{uuid.uuid4().hex[:12]}"
    sqs = moto_s3.client("sqs")
    url = sqs.create_queue(QueueName=queue)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    arguments = ["events", "setup", f"s3://{bucket}/docs", "--queue", arn]

    shown = clew(*arguments, "--print")
    assert shown.status == 0
    documents = json.loads(shown.out)
    assert documents["notification_configuration"]["QueueConfigurations"][0]["QueueArn"] == arn
    assert documents["queue_policy"]["Statement"][0]["Action"] == "sqs:SendMessage"
    assert "QueueConfigurations" not in moto_s3.client().get_bucket_notification_configuration(Bucket=bucket)

    assert (
        json.loads(clew("watch", f"s3://{bucket}/docs", "--events", "setup", "--queue", arn, "--print").out)
        == documents
    )
    assert clew("watch", f"s3://{bucket}/docs", "--events", "setup", "--queue", arn).status == 0
    assert clew(*arguments).status == 0  # twice changes nothing
    written = moto_s3.client().get_bucket_notification_configuration(Bucket=bucket)
    assert written["QueueConfigurations"] == documents["notification_configuration"]["QueueConfigurations"]
    assert clew("events", "setup", str(tmp_path), "--queue", arn).status == 2
