"""`make demo-web`: the example collection indexed and served, with its web page. `CHECK=1` looks at what a first visit costs, and ends.

A copy of the collection lies in a temporary folder, and its index beside it: a file that is changed there shows up in the page by itself.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PORT = 8610
PATIENCE = 300.0  # seconds
QUESTION = "how much may be spent without a signature on a lost buoy"
#: What the page asks on a first visit, beside its own files.
FIRST_QUESTIONS = (
    "v1/collections",
    "v1/collections/handbook/files?limit=50",
    "v1/collections/handbook/facets?limit=20",
)


def say(text: str) -> None:
    """One line."""
    print(text, flush=True)


def until(what: str, process: subprocess.Popen[bytes], log: Path, holds: Callable[[], Any]) -> Any:
    """Wait for something of the service; what it gave."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        found = holds()
        if found:
            return found
        time.sleep(0.1)
    raise SystemExit(f"demo-web: {what} did not come; the service said:\n{log.read_text()}")


def usable(port: int) -> int:
    """The port, or 0 (any that is free) where something else listens there."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return 0
    return port


def settled(address: str) -> bool:
    """Whether everything is indexed: texts can be searched before vectors and links are there."""
    import httpx

    status = httpx.get(f"{address}/v1/collections/handbook/status", timeout=30).json()
    return bool(status["upkeep"]["phase"] == "watching" and status["vectors"] == status["chunks"])


def visit(address: str) -> str:
    """A first visit as a browser makes it, in figures."""
    import httpx

    with httpx.Client(base_url=address, headers={"Accept-Encoding": "gzip"}) as client:
        began = time.perf_counter()
        page = client.get("/")
        files = re.findall(r'(?:href|src)="(page/[^"]+)"', page.text)
        answers = [page, *(client.get(f"/{one}") for one in (*dict.fromkeys(files), *FIRST_QUESTIONS))]
        took = time.perf_counter() - began
        for one in answers:
            one.raise_for_status()
        weight = sum(one.num_bytes_downloaded for one in answers)
        hits = client.post("v1/collections/handbook/search", json={"text": QUESTION, "k": 5}).json()["hits"]
        status = client.get("v1/collections/handbook/status").json()
    say(f"asked {QUESTION!r}: {hits[0]['path']}, and {sum(bool(hit['trail']) for hit in hits)} of 5 hits by links")
    return (
        f"{status['files']['total']} files, {status['chunks']} passages; a first visit: {len(answers)} answers, "
        f"{weight / 1000:.0f} kB, {took:.2f} s one after the other"
    )


def main() -> None:
    """Run it."""
    from clew.examples import handbook

    check = os.environ.get("CHECK", "") not in ("", "0")
    embedder = os.environ.get("EMBEDDER", "minilm")
    with tempfile.TemporaryDirectory(prefix="clew-demo-") as work:
        root, log = Path(work) / "handbook", Path(work) / "log"
        shutil.copytree(handbook(), root, ignore=shutil.ignore_patterns(".clew"))
        with (root / "clew.yaml").open("a") as settings:
            settings.write("graph: true\n")  # so that questions about the whole of it have somewhere to look
        port = 0 if check else usable(int(os.environ.get("PORT", PORT)))
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "clew", "serve", str(root), "--port", str(port), "--embedder", embedder],
                stderr=output,
                stdout=subprocess.DEVNULL,
            )
        try:
            import httpx

            address = until(
                "the service", process, log, lambda: re.search(r"http://127\.0\.0\.1:\d+", log.read_text())
            )[0]
            say(f"indexing the example collection, a copy of it in {root}")
            until(
                "the first snapshot",
                process,
                log,
                lambda: httpx.get(f"{address}/readyz", timeout=30).status_code == 200,
            )
            if check:
                until("the links and vectors", process, log, lambda: settled(address))
                figures = visit(address)
            else:
                say(f"open {address}/ in a browser; Ctrl-C ends it")
                process.wait()
                raise SystemExit(f"demo-web: the service ended by itself; it said:\n{log.read_text()}")
        except KeyboardInterrupt:
            figures = "the service was up"
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                status = process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                status = process.wait()
        say(f"\ndemo-web: {figures}; it ended with {status}")


if __name__ == "__main__":
    main()
