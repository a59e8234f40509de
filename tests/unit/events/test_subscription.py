"""What is written to a bucket and a queue; without these, setting up could wipe out somebody else's rules."""

from __future__ import annotations

import json
from typing import Any

from clew.connectors.events.subscription import merged_notification, merged_policy

ARN = "arn:aws:sqs:us-east-1:123456789012:docs"
OTHER_RULE = {"Id": "backup", "QueueArn": ARN.replace("docs", "backup"), "Events": ["s3:ObjectCreated:*"]}
TOPIC = {"Id": "mail", "TopicArn": "arn:aws:sns:us-east-1:1:mail", "Events": ["s3:ObjectRemoved:*"]}
PRESENT: dict[str, Any] = {
    "ResponseMetadata": {"HTTPStatusCode": 200},
    "QueueConfigurations": [OTHER_RULE],
    "TopicConfigurations": [TOPIC],
    "EventBridgeConfiguration": {},
}


def test_other_rules_of_the_bucket_stay() -> None:
    merged = merged_notification(PRESENT, bucket="papers", prefix="docs/", queue_arn=ARN)
    assert "ResponseMetadata" not in merged
    assert merged["TopicConfigurations"] == [TOPIC]
    assert merged["EventBridgeConfiguration"] == {}
    assert merged["QueueConfigurations"][0] == OTHER_RULE
    ours = merged["QueueConfigurations"][1]
    assert ours["QueueArn"] == ARN
    assert ours["Filter"] == {"Key": {"FilterRules": [{"Name": "prefix", "Value": "docs/"}]}}
    assert "s3:ObjectRemoved:*" in ours["Events"]


def test_setting_up_twice_changes_nothing() -> None:
    once = merged_notification(PRESENT, bucket="papers", prefix="docs/", queue_arn=ARN)
    assert merged_notification(once, bucket="papers", prefix="docs/", queue_arn=ARN) == once
    policy = merged_policy(None, bucket="papers", queue_arn=ARN)
    assert merged_policy(json.dumps(policy), bucket="papers", queue_arn=ARN) == policy


def test_whole_bucket_needs_no_filter() -> None:
    merged = merged_notification({}, bucket="papers", prefix="", queue_arn=ARN)
    assert "Filter" not in merged["QueueConfigurations"][0]


def test_policy_lets_this_bucket_send_and_keeps_what_was_allowed() -> None:
    theirs = {"Sid": "team", "Effect": "Allow", "Principal": "*", "Action": "sqs:ReceiveMessage", "Resource": ARN}
    for statement in (theirs, [theirs]):
        policy = merged_policy(
            json.dumps({"Version": "2012-10-17", "Statement": statement}), bucket="papers", queue_arn=ARN
        )
        assert policy["Statement"][0] == theirs
        ours = policy["Statement"][1]
        assert (ours["Action"], ours["Resource"]) == ("sqs:SendMessage", ARN)
        assert ours["Condition"] == {"ArnEquals": {"aws:SourceArn": "arn:aws:s3:::papers"}}
