"""Queries while the collection changes: `make soak` (twenty minutes), or `make soak SOAK="--seconds 240"`.

A service of its own process keeps a generated collection of 102,000 passages and answers; clients ask fifty times a second while one file in a
hundred is rewritten every ten seconds. Every rewrite of a round writes the round's number into all files it touches, twice: once at the
beginning, once at the end of the text, in passages of their own. An answer that holds different rounds of one file mixed
snapshots, and so did two answers that tell different rounds of a file in one snapshot. Counted: failed requests, mixed answers, latency
from the moment a question was due, what the service takes of the processor, and its memory over time: of the process that answers, of the one
that writes, and of those that read files for it.

It fails, with a sentence for each, where a request failed, an answer mixed snapshots, p99 is above 250 ms, fewer questions were asked
than were due, the collection stood still, or memory grows by more than chance explains.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import shutil
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
from urllib.parse import urlsplit

import httpx
import numpy as np

P99_MS = 250.0
ROUND_SECONDS = 10.0
WARM_SECONDS = 10.0  # of questions before the clock starts: a service that has just begun loads what it needs
IDLE_SECONDS = 10.0  # after which a client opens a connection anew: the service closes one after 15
#: MiB a minute that no service is blamed for: less than a hundredth of what it holds, in twenty minutes.
GROWTH = 0.25
#: MiB a minute; a slope that is known no better tells nothing. In twenty minutes it is 1 to 2.
MOST_ERROR = 10.0
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
    told: dict[tuple[int, int], int] = field(default_factory=dict)  # (snapshot, file) → round
    degraded: int = 0  # answers that said of a part that it was not all there yet, such as vectors of new passages
    twice: int = 0  # answers that told a file's round from two passages, and so could have mixed them
    snapshots: set[int] = field(default_factory=set)
    memory: list[tuple[float, dict[str, float]]] = field(default_factory=list)  # seconds, MiB by part


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
    place = urlsplit(url)
    client = http.client.HTTPConnection(place.netloc, timeout=30)
    due = last = time.monotonic() + chance.random() / rate
    while due < until:
        time.sleep(max(0.0, due - time.monotonic()))
        if time.monotonic() - last > IDLE_SECONDS:
            client.close()  # it opens another one
        number = chance.randrange(files)
        marked = chance.random() < 0.5
        text = f"marker{number} turn" if marked else " ".join(chance.sample(WORDS, 3))
        try:
            body = json.dumps({"text": text, "k": 10})
            client.request("POST", place.path, body, {"Content-Type": "application/json"})
            answer = client.getresponse()
            content = answer.read()
            took = time.monotonic() - due
            with tally.lock:
                tally.seconds.append(took)
                if answer.status == 200:
                    read(json.loads(content), number if marked else None, tally)
                else:
                    tally.failed.append(f"{answer.status} {content[:200]!r}")
        except (OSError, http.client.HTTPException) as error:
            with tally.lock:
                tally.failed.append(f"{type(error).__name__}: {error}")
            client.close()
        last = time.monotonic()
        due += 1 / rate


def read(found: dict[str, Any], number: int | None, tally: Tally) -> None:
    """Note what an answer tells of the rounds of the file that it was asked about. The tally's lock is held."""
    tally.snapshots.add(found["snapshot"])
    tally.degraded += bool(found["degraded"])
    if number is None:
        return
    told = [
        int(turn)
        for hit in found["hits"]
        for turn in set(re.findall(rf"marker{number} stands at turn (\d+)", hit["text"]))
    ]
    tally.twice += len(told) > 1
    for turn in told:
        if tally.told.setdefault((found["snapshot"], number), turn) != turn:
            tally.mixed.append(
                f"page {number} in snapshot {found['snapshot']}: {sorted({turn, tally.told[found['snapshot'], number]})}"
            )


#: The processes of a service by how far below the first one they are.
PARTS = ("answering", "writing", "reading files")


def family(process: int) -> Iterator[tuple[int, str]]:
    """A process and all below it, each with its part."""
    waiting = [(process, 0)]
    while waiting:
        one, depth = waiting.pop()
        yield one, PARTS[min(depth, len(PARTS) - 1)]
        try:
            for task in Path(f"/proc/{one}/task").iterdir():
                waiting.extend((int(child), depth + 1) for child in (task / "children").read_text().split())
        except OSError:  # it has ended meanwhile
            continue


def memory(process: int) -> dict[str, float]:
    """Anonymous memory of a service by part, MiB: mapped files are the page cache's."""
    held = dict.fromkeys(PARTS, 0.0)
    for one, part in family(process):
        try:
            found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{one}/status").read_text())
        except OSError:
            continue
        held[part] += int(found[1]) / 1024 if found else 0.0
    return held


def processor(process: int) -> dict[str, float]:
    """CPU seconds so far by part, of processes that have ended as well."""
    tick = os.sysconf("SC_CLK_TCK")
    spent = dict.fromkeys(PARTS, 0.0)
    for one, part in family(process):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        own, ended = (sum(int(count) for count in fields[at : at + 2]) / tick for at in (11, 13))
        spent[part] += own
        spent[PARTS[min(PARTS.index(part) + 1, len(PARTS) - 1)]] += ended
    return spent


def slope_of(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Least squares of memory over time: (MiB a minute, its standard error).

    Memory rises and falls with the snapshots that are open, so that neighbouring points resemble each other: the error is that of as
    many points as there would be were they independent, n · (1 - r) / (1 + r) for a first-order autocorrelation r of what the line leaves.
    """
    if len(points) < 8:
        return 0.0, float("nan")
    at, size = (np.array(column, dtype=np.float64) for column in zip(*points, strict=True))
    slope, start = np.polyfit(at, size, 1)
    rest = size - (slope * at + start)
    spread = float((rest**2).sum())
    along = float((rest[1:] * rest[:-1]).sum()) / spread if spread else 0.0
    along = min(max(along, 0.0), 0.95)
    points_worth = max(3.0, len(points) * (1 - along) / (1 + along))
    error = np.sqrt(spread / len(points) * (len(points) / (points_worth - 2)) / ((at - at.mean()) ** 2).sum())
    return float(slope) * 60, float(error) * 60


def change(root: Path, chosen: argparse.Namespace, until: float, began: float, process: int, tally: Tally) -> int:
    """Rewrite files, a round every ten seconds, and look at the memory every second; how many rounds there were."""
    turn, chance = 0, random.Random(0)
    while (left := until - time.monotonic()) > 0:
        turn += 1
        ends = time.monotonic() + min(ROUND_SECONDS, left)
        rewrite(root, chance.sample(range(chosen.files), max(1, chosen.files // 100)), turn, chosen.passages)
        while (now := time.monotonic()) < ends:
            tally.memory.append((now - began, memory(process)))
            time.sleep(min(1.0, max(0.0, ends - now)))
    return turn


def run(chosen: argparse.Namespace, work: Path) -> tuple[Tally, dict[str, Any]]:
    """The soak itself."""
    tally = Tally()
    root = work / "docs"
    if not root.is_dir():
        rewrite(root, list(range(chosen.files)), 0, chosen.passages)
    # First, as a service answers from its first snapshot on, which holds a part.
    indexing = [sys.executable, "-m", "clew", "index", str(root), "--embedder", chosen.embedder]
    subprocess.run(indexing, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with service(root, work / "log", chosen.embedder) as (process, address):
        (collection,) = httpx.get(f"{address}/v1/collections").json()["collections"]
        url = f"{address}/v1/collections/{collection['name']}/search"
        warming = Tally()
        ask(url, chosen.rate, time.monotonic() + WARM_SECONDS, chosen.files, warming, -1)
        tally.failed += warming.failed
        before = processor(process.pid)
        began = time.monotonic()
        until = began + chosen.seconds
        clients = [
            threading.Thread(target=ask, args=(url, chosen.rate / chosen.clients, until, chosen.files, tally, seed))
            for seed in range(chosen.clients)
        ]
        for client in clients:
            client.start()
        rounds = change(root, chosen, until, began, process.pid, tally)
        for client in clients:
            client.join()
        took = time.monotonic() - began
        after = processor(process.pid)
        status = httpx.get(f"{address}/v1/collections/{collection['name']}/status", timeout=60).json()
    settled = tally.memory[len(tally.memory) // 4 :]
    slopes = {part: slope_of([(at, held[part]) for at, held in settled]) for part in PARTS[:2]}
    slopes["all"] = slope_of([(at, sum(held.values())) for at, held in settled])
    asked, spent = max(1, len(tally.seconds)), {part: after[part] - before[part] for part in PARTS}
    return (
        tally,
        {
            "seconds": round(took, 1),
            "requests": len(tally.seconds),
            "a_second": round(len(tally.seconds) / took, 2),
            "failed": len(tally.failed),
            "mixed": len(tally.mixed),
            "could_have_mixed": tally.twice,
            "degraded": tally.degraded,
            "rounds": rounds,
            "snapshots_seen": len(tally.snapshots),
            "p50_ms": round(1000 * float(np.percentile(tally.seconds, 50)), 1),
            "p99_ms": round(1000 * float(np.percentile(tally.seconds, 99)), 1),
            "most_ms": round(1000 * max(tally.seconds), 1),
            "cpu_seconds": {part: round(seconds, 1) for part, seconds in spent.items()},
            "cpu_ms_an_answer": round(1000 * spent["answering"] / asked, 2),  # moves to new snapshots included
            "cpu_ms_a_round": round(1000 * (spent["writing"] + spent["reading files"]) / max(1, rounds)),
            "anonymous_mib": [{part: round(size) for part, size in held.items()} for _, held in tally.memory[::10]],
            "slope_mib_a_minute": {part: round(slope, 3) for part, (slope, _) in slopes.items()},
            "slope_error": {part: round(error, 3) for part, (_, error) in slopes.items()},
            "chunks": status["chunks"],
            "examples": [*tally.failed[:3], *tally.mixed[:3]],
        },
    )


def shortcomings(found: dict[str, Any], rate: float) -> list[str]:
    """What was not reached, in sentences."""
    said = []
    if found["failed"]:
        said.append(f"{found['failed']} requests failed, such as {found['examples'][0]}.")
    if found["mixed"]:
        said.append(f"{found['mixed']} answers mixed snapshots, such as {found['examples'][-1]}.")
    if not found["could_have_mixed"]:
        said.append("No answer told of a file twice, so that none could have shown mixed snapshots.")
    if found["a_second"] < 0.99 * rate:
        said.append(f"{found['a_second']} answers a second instead of {rate:g}.")
    if found["p99_ms"] > P99_MS:
        said.append(f"p99 is {found['p99_ms']} ms; {P99_MS:g} at most were to be.")
    if found["snapshots_seen"] < 0.5 * found["rounds"]:
        said.append(f"{found['rounds']} rounds of changes were seen as {found['snapshots_seen']} snapshots.")
    for part in ("answering", "all"):
        slope, error = found["slope_mib_a_minute"][part], found["slope_error"][part]
        if not slope - 2 * error <= GROWTH:
            said.append(f"Memory ({part}) grows by {slope:+.2f} ± {error:.2f} MiB a minute.")
        elif error > MOST_ERROR:  # what rises to twice its size and falls again is not flat either
            said.append(f"Memory ({part}) is not flat: {slope:+.2f} ± {error:.2f} MiB a minute.")
    return said


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--files", type=int, default=6000)
    parser.add_argument("--passages", type=int, default=8, help="sections of a file; each becomes two passages")
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--work", type=Path, help="a folder for the collection and its index, kept for the next time")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "soak.json")
    chosen = parser.parse_args()
    work = chosen.work or Path(tempfile.mkdtemp(prefix="clew-soak-"))
    try:
        _, found = run(chosen, work)
    finally:
        if chosen.work is None:
            shutil.rmtree(work, ignore_errors=True)
    short = shortcomings(found, chosen.rate)
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps({**found, "short": short}, indent=1) + "\n")
    print(
        f"{found['chunks']:,} passages, {found['rounds']} rounds of changes seen as {found['snapshots_seen']} snapshots; {found['requests']:,} requests "
        f"({found['a_second']} a second): {found['failed']} failed, {found['mixed']} mixed snapshots ({found['could_have_mixed']:,} could have), {found['degraded']} degraded, "
        f"p50 {found['p50_ms']} ms, p99 {found['p99_ms']} ms, {found['cpu_ms_an_answer']} CPU-ms an answer with all else that the process did, "
        f"{found['cpu_ms_a_round']} CPU-ms a round elsewhere"
    )
    last = found["anonymous_mib"][-1]
    for part in (*PARTS[:2], "all"):
        size = last[part] if part in last else sum(last.values())
        slope, error = found["slope_mib_a_minute"][part], found["slope_error"][part]
        print(f"memory, {part}: {size} MiB, {slope:+.2f} ± {error:.2f} MiB a minute")
    for sentence in short:
        print(f"Short of what was to be: {sentence}")
    raise SystemExit(1 if short else 0)


if __name__ == "__main__":
    main()
