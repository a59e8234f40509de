"""The cost model of `docs/scaling.md`, measured: bytes, requests, memory and time by the number of passages.

    python -m benchmarks.scaling 10000 100000

Passages are rows of a Parquet file: 180 words of a vocabulary with Zipf's frequencies, three links, a vector of 384 numbers around
one of 1,000 centres, given (no model is part of what is measured). The index is built on disk, then read through a proxy
that counts requests from an S3 server, by a process whose page cache is empty: opened, warmed, and asked on all four paths.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.datasets import results
from benchmarks.processes import run

DIMENSION = 384
VOCABULARY = 50_000
WORDS = 180
QUESTIONS = 200
MARK = "/mark"
GET_DOLLARS, MONTH_DOLLARS = 0.0004 / 1000, 0.023 / (1 << 30)  # S3 Standard, us-east-1: a request; a byte and month


def word(number: int) -> str:
    """A made-up word of two to four syllables."""
    syllables = ("ka", "lo", "mi", "ne", "ru", "sa", "te", "vo", "xi", "pu", "ga", "be", "do", "fi", "ho", "je")
    digits = [number % 16, number // 16 % 16, number // 256 % 16, number // 4096 % 16]
    return "".join(syllables[digit] for digit in digits[: 2 + (number > 255) + (number > 4095)])


def write_rows(path: Path, count: int) -> None:
    """The record file."""
    chance = np.random.default_rng(0)
    words = np.array([word(n) for n in range(VOCABULARY)])
    shares = 1 / (np.arange(VOCABULARY) + 2.7)
    shares /= shares.sum()
    centres = chance.standard_normal((1000, DIMENSION)).astype(np.float32)
    with pq.ParquetWriter(
        path,
        pa.schema(
            {
                "_id": pa.string(),
                "title": pa.string(),
                "text": pa.string(),
                "links": pa.list_(pa.string()),
                "vector": pa.list_(pa.float32(), DIMENSION),
            }
        ),
    ) as writer:
        for start in range(0, count, 5000):
            size = min(5000, count - start)
            drawn = words[chance.choice(VOCABULARY, size=(size, WORDS), p=shares)]
            texts = [
                " ".join(" ".join(row[at : at + 12]).capitalize() + "." for at in range(0, WORDS, 12)) for row in drawn
            ]
            vectors = centres[chance.integers(0, 1000, size)] + 0.5 * chance.standard_normal((size, DIMENSION))
            vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
            targets = chance.integers(0, count, (size, 3))
            writer.write_table(
                pa.table(
                    {
                        "_id": [f"d{start + n}" for n in range(size)],
                        "title": [" ".join(row[:3]) for row in drawn],
                        "text": texts,
                        "links": [[f"d{target}" for target in row] for row in targets.tolist()],
                        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION),
                    },
                    schema=writer.schema,
                )
            )


def parts_of(place: Path) -> dict[str, int]:
    """Bytes by what they are for."""
    found: dict[str, int] = {}
    for path in place.rglob("*"):
        if path.is_file():
            inside = path.relative_to(place).parts
            part = inside[0] if inside[0] != "generations" or len(inside) < 4 else inside[2]
            if part == "tables":
                part = inside[3]
            if "_indices" in inside:
                part += " indices"
            found[part] = found.get(part, 0) + path.stat().st_size
    return dict(sorted(found.items()))


def read(root: str, place: str) -> None:
    """In a process of its own: what a reader needs, as a line of JSON."""
    import clew

    options = {"key": "clew-tests", "secret": "clew-tests-secret", "endpoint_url": os.environ["AWS_ENDPOINT_URL"]}
    chance = np.random.default_rng(1)

    class Given:
        """Questions as vectors near some passage's; see Embedder."""

        def embed_query(self, text: str) -> Any:
            vector = np.random.default_rng(len(text)).standard_normal(DIMENSION).astype(np.float32)
            return vector / np.linalg.norm(vector)

    began = time.process_time()
    from clew.indexer.embedders.registry import open_embedder

    opened = open_embedder(f"given:{DIMENSION}")
    opened._queries = Given()  # type: ignore[union-attr]
    index = clew.open(root, index=place, storage_options=options, embedder=opened)
    index.warm()
    warm = time.process_time() - began
    marks = [figures()]
    with contextlib.suppress(urllib.error.HTTPError):  # a mark among the requests that are counted
        urllib.request.urlopen(os.environ["AWS_ENDPOINT_URL"] + MARK)
    seconds = []
    words = [word(int(n)) for n in chance.zipf(1.3, QUESTIONS * 4) % VOCABULARY]
    for n in range(QUESTIONS):
        began = time.process_time()
        index.search(" ".join(words[4 * n : 4 * n + 4]), k=10)
        seconds.append(time.process_time() - began)
    marks.append(figures())
    print(
        json.dumps(
            {
                "warm_cpu": round(warm, 2),
                "search_cpu_ms_p50": round(1000 * float(np.percentile(seconds[20:], 50)), 2),
                "search_cpu_ms_p99": round(1000 * float(np.percentile(seconds[20:], 99)), 2),
                "warmed": marks[0],
                "after_questions": marks[1],
            }
        )
    )


def figures() -> dict[str, float]:
    """Memory of this process, MiB."""
    text = Path("/proc/self/status").read_text()
    return {
        name: round(int(line.split()[1]) / 1024, 1)
        for line in text.splitlines()
        for name in ("VmRSS", "RssAnon", "RssFile")
        if line.startswith(name + ":")
    }


def one(count: int, work: Path) -> dict[str, Any]:
    """All figures of one size."""
    from tests.servers import fault_proxy, moto_server

    rows, place = work / "rows.parquet", work / "index"
    write_rows(rows, count)
    command = [sys.executable, "-m", "clew", "index", str(rows), "--index", str(place), "--json"]
    built = run([*command, "--embedder", f"given:{DIMENSION}", "--workers", "1"])
    report = json.loads(built.stdout)
    sizes = parts_of(place)
    total = sum(sizes.values())
    found: dict[str, Any] = {
        "passages": report["chunks"]["total"],
        "links": report["links"]["total"],
        "build_cpu": round(built.cpu, 1),
        "build": built.memory(),
        "bytes": total,
        "bytes_a_passage": round(total / report["chunks"]["total"]),
        "parts_a_passage": {name: round(size / report["chunks"]["total"], 1) for name, size in sizes.items()},
        "objects": sum(1 for path in place.rglob("*") if path.is_file()),
        "dollars_a_month": round(total * MONTH_DOLLARS, 4),
    }
    with moto_server() as server, fault_proxy(server) as proxy:
        bucket, client = server.bucket(), server.client()
        for path in sorted(place.rglob("*")):
            if path.is_file():
                client.upload_file(str(path), bucket, f"index/{path.relative_to(place)}")
        surroundings = {
            **os.environ,
            **proxy.server.environment,
            "XDG_CACHE_HOME": str(work / "cache"),
            "CLEW_BENCHMARK_ROOT": str(rows),
        }
        child = "import sys; from benchmarks.scaling import read; read(*sys.argv[1:])"
        done = subprocess.run(
            [sys.executable, "-c", child, str(rows), f"s3://{bucket}/index"],
            env=surroundings,
            stdout=subprocess.PIPE,
            check=True,
        )
        found["reader"] = json.loads(done.stdout)
        mark = next(number for number, one in enumerate(proxy.seen) if one.target == MARK)
        found["requests_until_warm"] = mark
        found["requests_a_question"] = round((len(proxy.seen) - mark - 1) / QUESTIONS, 2)
        found["cold_dollars"] = round(mark * GET_DOLLARS, 6)
        found["cached_bytes"] = sum(path.stat().st_size for path in (work / "cache").rglob("*") if path.is_file())
    return found


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("passages", type=int, nargs="+")
    chosen = parser.parse_args()
    rows = []
    for count in chosen.passages:
        work = Path(tempfile.mkdtemp(prefix="clew-scaling-"))
        try:
            rows.append(one(count, work))
        finally:
            shutil.rmtree(work, ignore_errors=True)
        print(json.dumps(rows[-1]), flush=True)
    results("scaling").write_text(json.dumps(rows, indent=1) + "\n")
    for row in rows:
        print(
            f"{row['passages']:,} passages: {row['bytes_a_passage']:,} bytes each, {row['build_cpu']} CPU-s to build, cold reader "
            f"{row['requests_until_warm']} requests, {row['reader']['after_questions']['RssAnon']} MiB anonymous, "
            f"{row['reader']['search_cpu_ms_p50']} CPU-ms a question"
        )


if __name__ == "__main__":
    main()
