"""What a bucket and a queue need to know of each other, merged with what they know already.

Pure functions of the present settings, and one that reads, merges and writes them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clew.connectors import s3
from clew.connectors.events.sqs import arn_parts, queue_url
from clew.connectors.location import Root
from clew.connectors.retries import advice, reason, retry
from clew.errors import OptionError, ServiceError, StorageError

#: Expiry by a lifecycle rule is told apart from removal by hand; without it, files would stay in the index until the
#: next scheduled look.
EVENTS = ("s3:ObjectCreated:*", "s3:ObjectRemoved:*", "s3:LifecycleExpiration:*")
_KINDS = ("QueueConfigurations", "TopicConfigurations", "LambdaFunctionConfigurations", "EventBridgeConfiguration")


@dataclass(frozen=True, kw_only=True)
class Subscription:
    """The two documents."""

    notification: dict[str, Any]  # of the bucket
    policy: dict[str, Any]  # of the queue


def identifier(bucket: str, prefix: str) -> str:
    """The name of our rule: the same for the same root, so that setting up twice changes nothing."""
    return "clew-" + hashlib.sha256(f"{bucket}/{prefix}".encode()).hexdigest()[:16]


def merged_notification(present: Mapping[str, Any], *, bucket: str, prefix: str, queue_arn: str) -> dict[str, Any]:
    """A bucket's notification configuration with our rule in it; all other rules stay as they are."""
    name = identifier(bucket, prefix)
    merged = {kind: present[kind] for kind in _KINDS if kind in present}
    ours: dict[str, Any] = {"Id": name, "QueueArn": queue_arn, "Events": list(EVENTS)}
    if prefix:
        ours["Filter"] = {"Key": {"FilterRules": [{"Name": "prefix", "Value": prefix}]}}
    others = [rule for rule in merged.get("QueueConfigurations", []) if rule.get("Id") != name]
    return {**merged, "QueueConfigurations": [*others, ours]}


def merged_policy(present: str | None, *, bucket: str, queue_arn: str) -> dict[str, Any]:
    """A queue's policy with the statement that lets this bucket, and no other, send to it."""
    policy: dict[str, Any] = json.loads(present) if present else {"Version": "2012-10-17", "Statement": []}
    statements = policy.get("Statement", [])
    statements = [statements] if isinstance(statements, Mapping) else list(statements)
    partition = queue_arn.split(":")[1]
    ours = {
        "Sid": identifier(bucket, "").replace("-", ""),  # letters and digits only
        "Effect": "Allow",
        "Principal": {"Service": "s3.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": queue_arn,
        "Condition": {"ArnEquals": {"aws:SourceArn": f"arn:{partition}:s3:::{bucket}"}},
    }
    others = [one for one in statements if one.get("Sid") != ours["Sid"]]
    return {**policy, "Statement": [*others, ours]}


def subscribe(root: Root, queue_arn: str, *, write: bool = True) -> Subscription:
    """Let the bucket of a root tell a queue of every change below the root's prefix.

    With `write=False` both documents are worked out and nothing is changed.

    Raises:
        OptionError: the root is no bucket, or the ARN is none.
        ServiceError: S3 or SQS refused.
    """
    if root.kind != "s3":
        raise OptionError(f"{root.display} is no bucket on S3; `clew watch ROOT --events local` needs no setting up.")
    arn_parts(queue_arn)
    prefix = root.path.partition("/")[2] if root.is_record_file else root.prefix
    buckets, queues = s3.client(root.storage_options), s3.client(root.storage_options, "sqs")
    try:
        present = retry(lambda: buckets.get_bucket_notification_configuration(Bucket=root.bucket))
    except Exception as error:
        raise StorageError(
            f"S3 failed while reading the notifications of {root.bucket}: {reason(error)}. {advice(error)}"
        ) from error
    url = queue_url(queues, queue_arn)
    try:
        attributes = retry(lambda: queues.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"]))
        subscription = Subscription(
            notification=merged_notification(present, bucket=root.bucket, prefix=prefix, queue_arn=queue_arn),
            policy=merged_policy(
                (attributes.get("Attributes") or {}).get("Policy"), bucket=root.bucket, queue_arn=queue_arn
            ),
        )
        if write:  # the policy first: S3 tries the queue when it is told of it
            policy = {"Policy": json.dumps(subscription.policy)}
            retry(lambda: queues.set_queue_attributes(QueueUrl=url, Attributes=policy))
    except Exception as error:
        raise ServiceError(f"SQS failed while setting up {queue_arn}: {reason(error)}. {advice(error)}") from error
    if write:
        try:
            retry(
                lambda: buckets.put_bucket_notification_configuration(
                    Bucket=root.bucket, NotificationConfiguration=subscription.notification
                )
            )
        except Exception as error:
            raise StorageError(
                f"S3 failed while setting up the notifications of {root.bucket}: {reason(error)}. {advice(error)}"
            ) from error
    return subscription
