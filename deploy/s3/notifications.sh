#!/bin/sh
# Lets a bucket tell a new SQS queue of its changes, and prints what to put into clew.yaml.
#   deploy/s3/notifications.sh s3://bucket/prefix QUEUE-NAME
# Doing it twice changes nothing. Needs the AWS command line, clew, and the permissions of docs/how-to/watch.md.
set -eu

if [ "$#" -ne 2 ]; then
    echo "usage: $0 s3://BUCKET/PREFIX QUEUE-NAME" >&2
    exit 2
fi
root=$1
name=$2
CLEW=${CLEW:-clew}
AWS=${AWS:-aws}

# Messages that nobody could follow for a day are worth a look; four days is what SQS keeps them by default.
url=$("$AWS" sqs create-queue --queue-name "$name" \
    --attributes "VisibilityTimeout=900,MessageRetentionPeriod=345600,ReceiveMessageWaitTimeSeconds=20" \
    --query QueueUrl --output text)
arn=$("$AWS" sqs get-queue-attributes --queue-url "$url" --attribute-names QueueArn \
    --query Attributes.QueueArn --output text)

"$CLEW" events setup "$root" --queue "$arn"
cat <<YAML
# in clew.yaml:
collections:
  ${name}:
    root: ${root}
    events: sqs://${name}
YAML
