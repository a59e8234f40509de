"""Many clients at once: `make load` (five minutes), or `make load LOAD="--seconds 60"`.

A service of its own process answers over loopback from a generated collection of 100,000 passages. First 16 clients ask without a pause:
no request may fail. Then four times as many as the service takes at once and lets wait: those beyond must be told to come again
(429 with Retry-After), at once, and the others be answered as before. The clients are locust's, in a process of their own; on a small machine
they take their share of the processor, so the figures are a lower bound.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.soak import WORDS, memory, rewrite, service

HERE = Path(__file__).parent
BEYOND_SHARE = 0.2  # of the seconds go into the part beyond the limit


@dataclass(frozen=True, kw_only=True)
class Part:
    """What locust counted: by operation, answers and milliseconds; `429` are refusals."""

    clients: int
    seconds: float
    answered: int
    refused: int
    failed: int
    p50: float
    p99: float
    refused_p99: float
    by_operation: dict[str, dict[str, float]]


def percentile(times: dict[int, int], share: float) -> float:
    """Of a histogram of milliseconds."""
    total, seen = sum(times.values()), 0
    for at in sorted(times):
        seen += times[at]
        if seen >= share * total:
            return float(at)
    return float("nan")


def run(locust: Path, address: str, collection: str, clients: int, seconds: float, files: int) -> Part:
    """One part of the load."""
    environment = {
        **os.environ,
        "CLEW_LOAD_WORDS": " ".join(WORDS),
        "CLEW_LOAD_COLLECTION": collection,
        "CLEW_LOAD_FILES": str(files),
    }
    command = [
        *(str(locust), "-f", str(HERE / "load_client.py"), "--headless", "--host", address, "--json"),
        *("--users", str(clients), "--spawn-rate", str(clients), "--run-time", f"{seconds:.0f}s"),
        *("--stop-timeout", "60", "--only-summary", "--loglevel", "WARNING", "--exit-code-on-error", "0"),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    rows = json.loads(done.stdout)
    times: dict[str, dict[int, int]] = {}
    for row in rows:  # a name stands once a method
        histogram = times.setdefault(row["name"], {})
        for at, count in row["response_times"].items():
            histogram[int(at)] = histogram.get(int(at), 0) + count
    answered: dict[int, int] = {}
    for name, histogram in times.items():
        for at, count in histogram.items() if name != "429" else ():
            answered[at] = answered.get(at, 0) + count
    failed = sum(row["num_failures"] for row in rows)
    # What it took, not what was asked for: clients begin late on a busy machine, and the last answers are waited for.
    counted = [row for row in rows if row["num_requests"]]
    if not counted:
        raise RuntimeError(f"locust's clients asked nothing: {done.stderr[-2000:]}")
    seconds = max(row["last_request_timestamp"] for row in counted) - min(row["start_time"] for row in counted)
    refused = sum(row["num_requests"] - row["num_failures"] for row in rows if row["name"] == "429")
    return Part(
        clients=clients,
        seconds=seconds,
        answered=sum(row["num_requests"] for row in rows) - refused - failed,
        refused=refused,
        failed=failed,
        p50=percentile(answered, 0.5),
        p99=percentile(answered, 0.99),
        refused_p99=percentile(times.get("429", {}), 0.99),
        by_operation={
            name: {
                "requests": sum(histogram.values()),
                "p50_ms": percentile(histogram, 0.5),
                "p99_ms": percentile(histogram, 0.99),
            }
            for name, histogram in sorted(times.items())
        },
    )


def processor(process: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--files", type=int, default=10_000, help="ten passages each")
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--locust", type=Path, default=Path("locust"))
    parser.add_argument("--output", type=Path, default=HERE / "results" / "load.json")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="clew-load-") as work:
        root = Path(work) / "docs"
        rewrite(root, list(range(chosen.files)), 0, 8)
        # First, as a service answers from its first snapshot on, which holds a part.
        indexing = [sys.executable, "-m", "clew", "index", str(root), "--embedder", chosen.embedder]
        subprocess.run(indexing, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with service(root, Path(work) / "log", chosen.embedder) as (process, address):
            (collection,) = httpx.get(f"{address}/v1/collections").json()["collections"]
            name = collection["name"]
            status = httpx.get(f"{address}/v1/collections/{name}/status", timeout=60).json()
            _warm(address, name)
            beyond = max(10.0, BEYOND_SHARE * chosen.seconds)
            before = processor(process.pid)
            steady = run(chosen.locust, address, name, chosen.clients, chosen.seconds - beyond, chosen.files)
            spent = processor(process.pid) - before
            limit = _limit()
            crowd = run(chosen.locust, address, name, 4 * limit, beyond, chosen.files)
            alive = httpx.get(f"{address}/readyz").status_code == 200
            log = (Path(work) / "log").read_text()
            size = sum(memory(process.pid).values())
    traces = log.count("Traceback")
    summary: dict[str, Any] = {
        "chunks": status["chunks"],
        "steady": steady.__dict__,
        "beyond": crowd.__dict__,
        "at_once_and_waiting": limit,
        "cpu_ms_a_request": round(1000 * spent / max(1, steady.answered), 2),
        "anonymous_mib": round(size),
        "tracebacks": traces,
    }
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps(summary, indent=1) + "\n")
    print(
        f"{status['chunks']:,} passages, {steady.clients} clients for {steady.seconds:.0f} s: {steady.answered:,} answers "
        f"({steady.answered / steady.seconds:.0f} a second, {summary['cpu_ms_a_request']} CPU-ms each), {steady.failed} failed, {steady.refused} refused, "
        f"p50 {steady.p50:.0f} ms, p99 {steady.p99:.0f} ms; {crowd.clients} clients for {crowd.seconds:.0f} s: {crowd.answered:,} answers "
        f"({crowd.answered / crowd.seconds:.0f} a second, p99 {crowd.p99:.0f} ms), {crowd.refused:,} told to come again "
        f"(p99 {crowd.refused_p99:.0f} ms), {crowd.failed} failed"
    )
    collapsed = crowd.answered / crowd.seconds < 0.5 * steady.answered / steady.seconds
    wrong = (
        not steady.answered
        or steady.failed
        or steady.refused
        or crowd.failed
        or not crowd.refused
        or traces
        or not alive
        or collapsed
    )
    raise SystemExit(1 if wrong else 0)


def _limit() -> int:
    """Requests that a service takes at once and lets wait, by default."""
    from clew.daemon.http.settings import HttpSettings

    settings = HttpSettings()
    return settings.concurrency + settings.queue


def _warm(address: str, name: str) -> None:
    """The first questions load what the others find in memory."""
    end = time.monotonic() + 5
    with httpx.Client(timeout=60) as client:
        while time.monotonic() < end:
            client.post(f"{address}/v1/collections/{name}/search", json={"text": "harbour lamp"}).raise_for_status()


if __name__ == "__main__":
    main()
