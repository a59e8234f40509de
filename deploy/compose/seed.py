"""Puts the example collection, which ships with clew, into the bucket `documents`, and makes the bucket for the index."""

from __future__ import annotations

from importlib.resources import as_file, files

import boto3


def main() -> None:
    """Do it; doing it twice changes nothing."""
    client = boto3.client("s3")
    there = {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}
    for bucket in ("documents", "index"):
        if bucket not in there:
            client.create_bucket(Bucket=bucket)
    count = 0
    with as_file(files("clew.examples") / "handbook") as folder:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                key = f"handbook/{path.relative_to(folder).as_posix()}"
                client.put_object(Bucket="documents", Key=key, Body=path.read_bytes())
                count += 1
    print(f"{count} documents in s3://documents/handbook")  # noqa: T201 - what a container says


if __name__ == "__main__":
    main()
