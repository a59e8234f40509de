"""Queries while the collection changes: `make soak` (twenty minutes), or `python -m benchmarks.soak --seconds 120 --files 2000`.

A service of its own process keeps a generated collection and answers; clients ask at a steady rate while one file in a hundred is rewritten
every ten seconds. Every rewrite of a round writes the round's number into all files it touches, twice: once at the beginning, once at the end of the
text, in passages of their own. An answer that holds different rounds of one file mixed snapshots. Counted: failed requests, mixed answers, latency, and the
memory of the service's process over time (slope by least squares over the second half).
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

WORDS = [
    "harbour",
    "lamp",
    "tide",
    "key",
    "rotation",
    "signing",
    "ledger",
    "anchor",
    "pilot",
    "chart",
    "buoy",
    "channel",
    "mooring",
    "crane",
    "customs",
    "freight",
    "manifest",
    "signal",
    "watch",
    "berth",
    "dredge",
    "beacon",
    "quay",
    "rope",
    "winch",
    "cargo",
    "inspection",
    "permit",
    "schedule",
    "weather",
]


@dataclass(kw_only=True)
class Tally:
    """What happened."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    seconds: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)
    snapshots: set[int] = field(default_factory=set)
    memory: list[tuple[float, float]] = field(default_factory=list)  # seconds, MiB


def page(number: int, turn: int, passages: int) -> str:
    """A file: `passages` sections, the marker of its turn in the first and in the last one."""
    chance = random.Random(number)
    sections = [
        f"## Part {part}\n\n" + " ".join(" ".join(chance.choices(WORDS, k=12)).capitalize() + "." for _ in range(14))
        for part in range(passages)
    ]
    marker = f"\n\nThe marker{number} stands at turn {turn} of marker{number}.\n\n"
    return f"# Page {number}\n{marker}" + "\n\n".join(sections) + f"\n\n## End of page {number}\n{marker}"


def rewrite(root: Path, numbers: list[int], turn: int, passages: int) -> None:
    """Replace files at once each, as editors do."""
    for number in numbers:
        target = root / f"d{number % 50:02d}" / f"page{number}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f".{target.name}.new")
        fresh.write_text(page(number, turn, passages))
        fresh.replace(target)


@contextmanager
def service(root: Path, log: Path, embedder: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """`clew serve`, ready."""
    command = [sys.executable, "-m", "clew", "serve", str(root), "--port", "0", "--embedder", embedder]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=output)
    try:
        while True:
            found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text())
            if found is not None:
                try:
                    if httpx.get(f"{found[0]}/readyz", timeout=10).status_code == 200:
                        break
                except httpx.HTTPError:
                    pass
            if process.poll() is not None:
                raise RuntimeError(log.read_text())
            time.sleep(0.5)
        yield process, found[0]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)


def ask(url: str, rate: float, until: float, files: int, tally: Tally, seed: int) -> None:
    """One client: a question every 1 / rate seconds, late ones included in its latency."""
    chance = random.Random(seed)
    due = time.monotonic()
    with httpx.Client(timeout=30) as client:
        while (now := time.monotonic()) < until:
            if now < due:
                time.sleep(due - now)
            number = chance.randrange(files)
            marked = chance.random() < 0.5
            text = f"marker{number} turn" if marked else " ".join(chance.sample(WORDS, 3))
            try:
                answer = client.post(url, json={"text": text, "k": 10})
                took = time.monotonic() - due
                with tally.lock:
                    tally.seconds.append(took)
                    if answer.status_code != 200:
                        tally.failed.append(f"{answer.status_code} {answer.text[:200]}")
                        continue
                    found = answer.json()
                    tally.snapshots.add(found["snapshot"])
                    if marked:
                        told = " ".join(hit["text"] for hit in found["hits"])
                        turns = set(re.findall(rf"marker{number} stands at turn (\d+)", told))
                        if len(turns) > 1:
                            tally.mixed.append(f"{text}: {sorted(turns)} in snapshot {found['snapshot']}")
            except httpx.HTTPError as error:
                with tally.lock:
                    tally.failed.append(f"{type(error).__name__}: {error}")
            due += 1 / rate


def memory(process: int) -> float:
    """Anonymous memory of the service's process, MiB: mapped files are the page cache's."""
    text = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"RssAnon:\s+(\d+) kB", text)
    return int(found[1]) / 1024 if found else float("nan")


def slope_of(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Least squares of memory over time: (MiB a minute, its standard error)."""
    if len(points) < 4:
        return 0.0, float("nan")
    at, size = (np.array(column) for column in zip(*points, strict=True))
    (slope, _), covariance = np.polyfit(at, size, 1, cov=True)
    return float(slope) * 60, float(np.sqrt(covariance[0, 0])) * 60


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--passages", type=int, default=8, help="sections of a file; each becomes a passage")
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "soak.json")
    chosen = parser.parse_args()
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="clew-soak-") as work:
        root = Path(work) / "docs"
        rewrite(root, list(range(chosen.files)), 0, chosen.passages)
        with service(root, Path(work) / "log", chosen.embedder) as (process, address):
            (collection,) = httpx.get(f"{address}/v1/collections").json()["collections"]
            url = f"{address}/v1/collections/{collection['name']}/search"
            began = time.monotonic()
            until = began + chosen.seconds
            clients = [
                threading.Thread(target=ask, args=(url, chosen.rate / chosen.clients, until, chosen.files, tally, seed))
                for seed in range(chosen.clients)
            ]
            for client in clients:
                client.start()
            turn, chance = 0, random.Random(0)
            while time.monotonic() < until:
                turn += 1
                rewrite(root, chance.sample(range(chosen.files), max(1, chosen.files // 100)), turn, chosen.passages)
                tally.memory.append((time.monotonic() - began, memory(process.pid)))
                time.sleep(max(0.0, min(10.0, until - time.monotonic())))
            for client in clients:
                client.join()
            status = httpx.get(f"{address}/v1/collections/{collection['name']}/status").json()
    slope, error = slope_of(tally.memory[len(tally.memory) // 2 :])
    summary: dict[str, Any] = {
        "seconds": chosen.seconds,
        "requests": len(tally.seconds),
        "a_second": round(len(tally.seconds) / chosen.seconds, 1),
        "failed": len(tally.failed),
        "mixed": len(tally.mixed),
        "snapshots_seen": len(tally.snapshots),
        "p50_ms": round(1000 * float(np.percentile(tally.seconds, 50)), 1),
        "p99_ms": round(1000 * float(np.percentile(tally.seconds, 99)), 1),
        "anonymous_mib": [round(size) for _, size in tally.memory],
        "slope_mib_a_minute": round(slope, 2),
        "slope_error": round(error, 2),
        "chunks": status.get("chunks"),
        "examples": [*tally.failed[:3], *tally.mixed[:3]],
    }
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps(summary, indent=1) + "\n")
    print(
        f"{summary['requests']} requests ({summary['a_second']} a second): {summary['failed']} failed, {summary['mixed']} mixed snapshots, "
        f"p50 {summary['p50_ms']} ms, p99 {summary['p99_ms']} ms, {summary['snapshots_seen']} snapshots, memory {slope:+.2f} ± {error:.2f} MiB a minute"
    )
    raise SystemExit(1 if tally.failed or tally.mixed else 0)


if __name__ == "__main__":
    main()
