"""`make demo-cluster`: a Ray cluster, an S3 server and the service on this machine; a changed object arrives in a search by itself.

Everything lies in a temporary folder and ends with this program, Ctrl-C included. The S3 server is moto's, as it speaks SQS, too: the bucket
tells a queue of its changes, and the service watches the queue.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE = 600.0  # seconds for each step
KEY = {
    "AWS_ACCESS_KEY_ID": "demo",
    "AWS_SECRET_ACCESS_KEY": "demo-secret",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
}


def until(what: str, holds: Callable[[], Any]) -> Any:
    """Wait for something; what it gave."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = holds()
        if found:
            return found
        time.sleep(0.1)
    raise SystemExit(f"demo-cluster: {what} did not come within {PATIENCE:.0f} s")


def say(text: str) -> None:
    """One line."""
    print(text, flush=True)


def bucket_with_queue(endpoint: str) -> Any:
    """A bucket with the example collection, which tells a queue of its changes; its client."""
    import boto3

    from clew.connectors.events.subscription import subscribe
    from clew.connectors.location import Root
    from clew.examples import handbook

    client = boto3.client("s3", endpoint_url=endpoint)
    client.create_bucket(Bucket="documents")
    client.create_bucket(Bucket="index")
    root = Path(str(handbook()))
    for path in sorted(root.rglob("*")):
        if path.is_file() and ".clew" not in path.parts:
            client.put_object(Bucket="documents", Key=f"handbook/{path.relative_to(root)}", Body=path.read_bytes())
    queues = boto3.client("sqs", endpoint_url=endpoint)
    url = queues.create_queue(QueueName="handbook")["QueueUrl"]
    arn = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    subscribe(Root.parse("s3://documents/handbook", {"endpoint_url": endpoint}), arn, write=True)
    return client


def main() -> None:
    """Run it."""
    os.environ.update(KEY, RAY_USAGE_STATS_ENABLED="0", AWS_EC2_METADATA_DISABLED="true")
    import httpx
    from moto.server import ThreadedMotoServer

    from tests.integration.cluster.raylets import raylets

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line a request
    logging.getLogger("ray").setLevel(logging.WARNING)
    storage = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    storage.start()
    host, port = storage.get_host_and_port()
    endpoint = os.environ["AWS_ENDPOINT_URL"] = f"http://{host}:{port}"
    client = bucket_with_queue(endpoint)
    say(f"an S3 server at {endpoint}, with the example collection in s3://documents/handbook")
    running = contextlib.ExitStack()
    process = None
    try:
        cluster = running.enter_context(raylets(2, cores=2))
        say(f"a Ray cluster at {cluster.address}: a head and two nodes")
        with tempfile.TemporaryDirectory(prefix="clew-demo-") as work:
            config, log = Path(work) / "clew.yaml", Path(work) / "log"
            config.write_text(
                f"server: {{port: 0}}\nengine: ray\ncluster: {{address: '{cluster.address}', extraction: {{maximum: 2}}}}\n"
                "query: {engine: ray, minimum: 2, maximum: 2, cpus: 0.5}\n"
                "collections:\n  handbook:\n    root: s3://documents/handbook\n    index: s3://index/handbook\n"
                "    events: sqs://handbook\n    embedder: none\n"  # what is shown is the cluster, not the model
            )
            with log.open("wb") as output:
                process = subprocess.Popen(
                    [sys.executable, "-m", "clew", "serve", str(config)],
                    stderr=output,
                    stdout=subprocess.DEVNULL,
                    process_group=0,  # Ctrl-C goes to the whole terminal; this program tells the service itself
                )

            def listening() -> Any:
                if process.poll() is not None:
                    raise SystemExit(f"demo-cluster: the service ended at once\n{log.read_text()}")
                return re.search(r"http://127\.0\.0\.1:\d+", log.read_text())

            address = until("the service", listening)[0]

            def ready() -> bool:
                try:
                    return bool(httpx.get(f"{address}/readyz", timeout=10).status_code == 200)
                except httpx.HTTPError:
                    return False

            until("the first snapshot", ready)
            say(f"clew serve at {address}: indexed on the cluster, and answered by two replicas on it")
            question = {"text": "where is the spare lantern kept", "k": 1}

            def best() -> str:
                answer = httpx.post(f"{address}/v1/collections/handbook/search", json=question, timeout=60).json()
                return str(answer["hits"][0]["path"]) if answer.get("hits") else ""

            say(f"asked {question['text']!r}: {best() or 'nothing'}")
            client.put_object(
                Bucket="documents",
                Key="handbook/store/lantern.md",
                Body=b"# The spare lantern\n\nThe spare lantern is kept on the third shelf of the rope store.\n",
            )
            began = time.monotonic()
            until("the change", lambda: best() == "store/lantern.md")
            took = time.monotonic() - began
            say(f"put store/lantern.md into the bucket; asked again: {best()}")
            process.send_signal(signal.SIGTERM)
            status = process.wait(120)
            say(
                f"demo-cluster: an event-driven change arrived in a search after {took:.1f} s; the service ended with {status}"
            )
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # who presses it twice would leave a cluster behind
        if process is not None:
            end(process)
        running.close()
        storage.stop()


def end(process: subprocess.Popen[bytes]) -> None:
    """End the service: it hands back what it has on the cluster, if it can."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def interrupted(*_: object) -> None:
    """SIGTERM is an interrupt, too."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupted)
    try:
        main()
    except KeyboardInterrupt:
        say("demo-cluster: stopped; nothing of it runs any more")
        sys.exit(130)
