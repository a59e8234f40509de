"""The cost model of `docs/scaling.md`, measured: bytes, requests, memory and time by the number of passages.

    python -m benchmarks.scaling 10000 100000
    python -m benchmarks.scaling 1000000 --folder BUILT    (20 CPU-minutes to build, 12 GB of disk, some 5 GB of memory)

Passages are rows of a Parquet file: 180 words of a vocabulary with Zipf's frequencies, three links, a vector of 384 numbers around
one of 1,000 centres, given (no model is part of what is measured). The index is built on disk, then read twice, each time by a process
of its own that opens it, warms it and asks on all four paths: where it lies, and from an S3 server through a proxy that counts
requests, with an empty cache. `--words` and `--dimension` make passages cheaper to build; `--folder` keeps what was built for a
second look, by another version for example; `--disk` leaves the bucket out.
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

VOCABULARY = 50_000
QUESTIONS = 200
MARK = "/mark"
GET_DOLLARS, MONTH_DOLLARS = 0.0004 / 1000, 0.023 / (1 << 30)  # S3 Standard, us-east-1: a request; a byte and month


def word(number: int) -> str:
    """A made-up word of two to four syllables."""
    syllables = ("ka", "lo", "mi", "ne", "ru", "sa", "te", "vo", "xi", "pu", "ga", "be", "do", "fi", "ho", "je")
    digits = [number % 16, number // 16 % 16, number // 256 % 16, number // 4096 % 16]
    return "".join(syllables[digit] for digit in digits[: 2 + (number > 255) + (number > 4095)])


def write_rows(path: Path, count: int, length: int, dimension: int) -> None:
    """The record file: so many passages of so many words each."""
    chance = np.random.default_rng(0)
    words = np.array([word(n) for n in range(VOCABULARY)])
    shares = 1 / (np.arange(VOCABULARY) + 2.7)
    shares /= shares.sum()
    centres = chance.standard_normal((1000, dimension)).astype(np.float32)
    with pq.ParquetWriter(
        path,
        pa.schema(
            {
                "_id": pa.string(),
                "title": pa.string(),
                "text": pa.string(),
                "links": pa.list_(pa.string()),
                "vector": pa.list_(pa.float32(), dimension),
            }
        ),
    ) as writer:
        for start in range(0, count, 5000):
            size = min(5000, count - start)
            drawn = words[chance.choice(VOCABULARY, size=(size, length), p=shares)]
            texts = [
                " ".join(" ".join(row[at : at + 12]).capitalize() + "." for at in range(0, length, 12)) for row in drawn
            ]
            vectors = centres[chance.integers(0, 1000, size)] + 0.5 * chance.standard_normal((size, dimension))
            vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
            targets = chance.integers(0, count, (size, 3))
            writer.write_table(
                pa.table(
                    {
                        "_id": [f"d{start + n}" for n in range(size)],
                        "title": [" ".join(row[:3]) for row in drawn],
                        "text": texts,
                        "links": [[f"d{target}" for target in row] for row in targets.tolist()],
                        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dimension),
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


def read(root: str, place: str, dimension: str) -> None:
    """In a process of its own: what a reader needs, as a line of JSON."""
    import clew
    from clew.indexer.embedders.registry import open_embedder

    endpoint = os.environ.get("AWS_ENDPOINT_URL") if place.startswith("s3://") else None
    options = {"key": "clew-tests", "secret": "clew-tests-secret", "endpoint_url": endpoint} if endpoint else {}
    chance = np.random.default_rng(1)

    class Given:
        """Questions as vectors near some passage's; see Embedder."""

        def embed_query(self, text: str) -> Any:
            vector = np.random.default_rng(len(text)).standard_normal(int(dimension)).astype(np.float32)
            return vector / np.linalg.norm(vector)

    began = time.process_time()
    opened = open_embedder(f"given:{dimension}")
    opened._queries = Given()  # type: ignore[union-attr]
    index = clew.open(root, index=place, storage_options=options, embedder=opened)
    index.warm()
    warm = time.process_time() - began
    marks = [figures()]
    if endpoint:
        with contextlib.suppress(urllib.error.HTTPError):  # a mark among the requests that are counted
            urllib.request.urlopen(endpoint + MARK)
    seconds, found = [], 0
    words = [word(int(n)) for n in chance.zipf(1.3, QUESTIONS * 4) % VOCABULARY]
    for n in range(QUESTIONS):
        began = time.process_time()
        found += len(index.search(" ".join(words[4 * n : 4 * n + 4]), k=10).hits)
        seconds.append(time.process_time() - began)
    marks.append(figures())
    print(
        json.dumps(
            {
                "warm_cpu": round(warm, 2),
                "search_cpu_ms_p50": round(1000 * float(np.percentile(seconds[20:], 50)), 2),
                "search_cpu_ms_p99": round(1000 * float(np.percentile(seconds[20:], 99)), 2),
                "hits_a_question": round(found / QUESTIONS, 2),
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


def reader(rows: Path, place: str, dimension: int, surroundings: dict[str, str]) -> dict[str, Any]:
    """What a reader of the index at this place needs."""
    child = "import sys; from benchmarks.scaling import read; read(*sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", child, str(rows), place, str(dimension)],
        env={**os.environ, **surroundings},
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def built(count: int, work: Path, length: int, dimension: int) -> dict[str, Any]:
    """The index in this folder, and what it cost; from the last time where it is there already."""
    kept = work / "built.json"
    if kept.is_file():
        known: dict[str, Any] = json.loads(kept.read_text())
        return known
    rows, place = work / "rows.parquet", work / "index"
    shutil.rmtree(place, ignore_errors=True)  # of a build that did not come to its end
    write_rows(rows, count, length, dimension)
    command = [sys.executable, "-m", "clew", "index", str(rows), "--index", str(place), "--json"]
    cost = run([*command, "--embedder", f"given:{dimension}", "--workers", "1"])
    if cost.status:
        sys.exit(f"clew index ended with status {cost.status}")
    report = json.loads(cost.stdout)
    sizes = parts_of(place)
    total, passages = sum(sizes.values()), report["chunks"]["total"]
    found = {
        "passages": passages,
        "words": length,
        "dimension": dimension,
        "links": report["links"]["total"],
        "build_cpu": round(cost.cpu, 1),
        "build_cpu_parts": report["cpu_seconds"],
        "build": cost.memory(),
        "bytes": total,
        "bytes_a_passage": round(total / passages),
        "parts_a_passage": {name: round(size / passages, 1) for name, size in sizes.items()},
        "objects": sum(1 for path in place.rglob("*") if path.is_file()),
        "dollars_a_month": round(total * MONTH_DOLLARS, 4),
    }
    kept.write_text(json.dumps(found))
    return found


def from_bucket(work: Path, dimension: int) -> dict[str, Any]:
    """A reader with an empty cache, and what it asks of the bucket."""
    from tests.servers import fault_proxy, moto_server

    rows, place, cache = work / "rows.parquet", work / "index", work / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    with moto_server() as server, fault_proxy(server) as proxy:
        bucket, client = server.bucket(), server.client()
        for path in sorted(place.rglob("*")):
            if path.is_file():
                client.upload_file(str(path), bucket, f"index/{path.relative_to(place)}")
        surroundings = {**proxy.server.environment, "XDG_CACHE_HOME": str(cache)}
        told = reader(rows, f"s3://{bucket}/index", dimension, surroundings)
        mark = next(number for number, one in enumerate(proxy.seen) if one.target == MARK)
        return {
            "reader": told,
            "requests_until_warm": mark,
            "requests_a_question": round((len(proxy.seen) - mark - 1) / QUESTIONS, 2),
            "cold_dollars": round(mark * GET_DOLLARS, 6),
            "cached_bytes": sum(path.stat().st_size for path in cache.rglob("*") if path.is_file()),
        }


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("passages", type=int, nargs="+")
    parser.add_argument("--words", type=int, default=180, help="of a passage")
    parser.add_argument("--dimension", type=int, default=384, help="of its vector")
    parser.add_argument("--folder", type=Path, help="where rows and index stay; a temporary one where not given")
    parser.add_argument("--disk", action="store_true", help="do not read from a bucket as well")
    chosen = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for count in chosen.passages:
        kept = chosen.folder and chosen.folder / f"{count}-{chosen.words}-{chosen.dimension}"
        if kept:
            kept.mkdir(parents=True, exist_ok=True)
        work = kept or Path(tempfile.mkdtemp(prefix="clew-scaling-"))
        try:
            row = built(count, work, chosen.words, chosen.dimension)
            row["disk"] = reader(work / "rows.parquet", str(work / "index"), chosen.dimension, {})
            if not chosen.disk:
                row |= from_bucket(work, chosen.dimension)
        finally:
            if not kept:
                shutil.rmtree(work, ignore_errors=True)
        rows.append(row)
        print(json.dumps(row), flush=True)
    of_others = [one for one in known_rows() if sized(one) not in {sized(row) for row in rows}]
    results("scaling").write_text(json.dumps(sorted([*of_others, *rows], key=sized), indent=1) + "\n")
    for row in rows:
        on_disk = row["disk"]
        bucket = f"; cold from a bucket {row['requests_until_warm']} requests" if "reader" in row else ""
        print(
            f"{row['passages']:,} passages of {row['words']} words: {row['bytes_a_passage']:,} bytes each, {row['build_cpu']} CPU-s to build "
            f"({row['build']['pss_sum_mib']:.0f} MiB), {on_disk['after_questions']['RssAnon']} MiB anonymous to read, "
            f"{on_disk['search_cpu_ms_p50']} CPU-ms a question{bucket}"
        )


def sized(row: dict[str, Any]) -> tuple[int, int, int]:
    """What one row of results is told from another by."""
    return row["passages"], row.get("words", 180), row.get("dimension", 384)


def known_rows() -> list[dict[str, Any]]:
    """Results of other sizes, from before."""
    path = results("scaling")
    return json.loads(path.read_text()) if path.is_file() else []


if __name__ == "__main__":
    main()
