"""Which source a word on the command line means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clew.connectors.events.hints import EventSource, Silent
from clew.connectors.events.mailbox import DeadLetters, Mailbox
from clew.connectors.events.scope import Scope
from clew.connectors.objects import ObjectStore
from clew.errors import OptionError


def default_source(scope: Scope) -> str:
    """What is listened to when nobody says: the operating system for a local folder, nothing elsewhere."""
    return "local" if scope.root.kind == "file" else "none"


def open_source(name: str, scope: Scope, store: ObjectStore, storage_options: Mapping[str, Any]) -> EventSource:
    """Open a source: `local`, `sqs://QUEUE`, `webhook` (what a server of this index has accepted) or `none`.

    Args:
        name: the word.
        scope: which events concern us.
        store: the index's place, where dead letters and accepted events lie.
        storage_options: in fsspec's names; credentials are taken from them.

    Raises:
        OptionError: there is no such kind of source.
        ConfigurationError: the source does not fit the root, or is not there.
        ServiceError: it does not answer.
    """
    if name == "none":
        return Silent()
    if name == "webhook":
        return Mailbox(store)
    if name == "local":
        from clew.connectors.events.local import LocalSource

        return LocalSource(scope).open()
    if name.startswith(("sqs://", "arn:aws:sqs:")):
        from clew.connectors.events.sqs import SqsSource

        if scope.root.kind != "s3":
            raise OptionError(f"--events {name}: an SQS queue tells of S3 buckets, and {scope.root.display} is none.")
        return SqsSource(name, scope, DeadLetters(store), storage_options)
    raise OptionError(f"--events {name}: expected local, sqs://QUEUE, webhook or none.")
