"""S3 notifications from an SQS queue.

A message stays in the queue until what came of it is published; one whose reader dies comes back by itself after
`VISIBILITY_SECONDS`. Messages that name nothing (`s3:TestEvent`, other buckets) are acknowledged like all others, and
those that cannot be read become dead letters first, so that nothing goes round for ever.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clew.connectors import s3
from clew.connectors.events.hints import Delivery, EventTally
from clew.connectors.events.mailbox import DeadLetters
from clew.connectors.events.messages import parse_message
from clew.connectors.events.scope import Scope
from clew.connectors.retries import advice, error_code, reason, retry
from clew.errors import ConfigurationError, OptionError, ServiceError

VISIBILITY_SECONDS = 900  # a run longer than this sees its messages again: a look too many, nothing worse
_A_REQUEST = 10  # messages; SQS gives and takes no more at once
_LONGEST_POLL = 20  # seconds
_MISSING_QUEUE = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})


class SqsSource:
    """A queue that receives a bucket's notifications. Satisfies `EventSource`."""

    def __init__(
        self,
        queue: str,
        scope: Scope,
        dead_letters: DeadLetters,
        storage_options: Mapping[str, Any],
        *,
        visibility: int = VISIBILITY_SECONDS,
    ) -> None:
        self._client = s3.client(storage_options, "sqs")
        self._scope = scope
        self._dead_letters = dead_letters
        self._visibility = visibility
        self.url = queue_url(self._client, queue)
        self.tally = EventTally()

    def receive(self, wait: float) -> Sequence[Delivery]:
        """See EventSource. One request: up to ten messages."""
        began = time.monotonic()
        try:
            answer = retry(
                lambda: self._client.receive_message(
                    QueueUrl=self.url,
                    MaxNumberOfMessages=_A_REQUEST,
                    WaitTimeSeconds=min(_LONGEST_POLL, int(wait)),
                    VisibilityTimeout=self._visibility,
                    AttributeNames=["SentTimestamp"],
                )
            )
        except Exception as error:
            raise self._failed("receiving from", error) from error
        deliveries = [self._read(message) for message in answer.get("Messages") or []]
        if not deliveries and wait % 1 and time.monotonic() - began < wait:
            time.sleep(wait % 1)  # SQS waits whole seconds only
        return deliveries

    def _read(self, message: Mapping[str, Any]) -> Delivery:
        parsed = parse_message(str(message.get("Body") or ""), self._scope)
        self._dead_letters.keep(self.url, parsed)
        self.tally.count(parsed)
        return Delivery(hints=parsed.hints, handle=str(message["ReceiptHandle"]))

    def acknowledge(self, handles: Sequence[str]) -> None:
        """See EventSource. A message that could not be deleted comes again, and is followed again."""
        for some in _tens(handles):
            entries = [{"Id": str(number), "ReceiptHandle": handle} for number, handle in enumerate(some)]
            try:
                retry(lambda entries=entries: self._client.delete_message_batch(QueueUrl=self.url, Entries=entries))  # type: ignore[misc]
            except Exception as error:
                raise self._failed("acknowledging to", error) from error

    def hand_back(self, handles: Sequence[str]) -> None:
        """See EventSource: the messages are visible to others at once."""
        for some in _tens(handles):
            entries = [
                {"Id": str(number), "ReceiptHandle": handle, "VisibilityTimeout": 0}
                for number, handle in enumerate(some)
            ]
            try:
                self._client.change_message_visibility_batch(QueueUrl=self.url, Entries=entries)
            except Exception as error:
                raise self._failed("handing back to", error) from error

    def close(self) -> None:
        """See EventSource."""

    def _failed(self, doing: str, error: BaseException) -> ServiceError:
        return ServiceError(f"SQS failed while {doing} {self.url}: {reason(error)}. {advice(error)}")


def queue_url(client: Any, queue: str) -> str:
    """The URL of a queue that is given as name, ARN or URL, with or without `sqs://` before it.

    Raises:
        OptionError: it is none of these.
        ConfigurationError: there is no such queue.
        ServiceError: SQS does not answer.
    """
    text = queue.removeprefix("sqs://")
    if text.startswith(("http://", "https://")):
        return text
    name, account = text, None
    if text.startswith("arn:"):
        name, account = arn_parts(text)
    elif "/" in text:
        account, _, name = text.rpartition("/")
    if not name:
        raise OptionError(f"--events {queue}: name a queue, such as sqs://my-queue, by its name, ARN or URL.")
    arguments = {"QueueName": name} | ({"QueueOwnerAWSAccountId": account} if account else {})
    try:
        return str(retry(lambda: client.get_queue_url(**arguments))["QueueUrl"])
    except Exception as error:
        if error_code(error) in _MISSING_QUEUE:
            raise ConfigurationError(
                f"There is no SQS queue {name!r}; create it, or check its name and region."
            ) from error
        raise ServiceError(
            f"SQS failed while looking for the queue {name!r}: {reason(error)}. {advice(error)}"
        ) from error


def arn_parts(arn: str) -> tuple[str, str]:
    """(name, account) of a queue's ARN.

    Raises:
        OptionError: it is not one.
    """
    parts = arn.split(":")
    if len(parts) != 6 or parts[0] != "arn" or parts[2] != "sqs" or not parts[5]:
        raise OptionError(f"{arn!r} is not the ARN of an SQS queue: arn:aws:sqs:REGION:ACCOUNT:NAME.")
    return parts[5], parts[4]


def _tens(handles: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(handles), _A_REQUEST):
        yield handles[start : start + _A_REQUEST]
