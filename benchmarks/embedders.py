"""How fast the embedders are, how fast they start, and how well they find; beside the packaged model as it is.

    python benchmarks/embedders.py                  # speed and cold start, two minutes
    python benchmarks/embedders.py --scifact        # and quality, on SciFact's training questions
    python benchmarks/embedders.py --scifact --test # on its test questions: report, never tune

Times on shared machines are worth little; CPU seconds and ratios within one run are.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from clew.errors import MissingPartError
from clew.indexer.embedders import minilm
from clew.indexer.embedders.protocol import Embedder
from clew.indexer.embedders.registry import open_embedder
from clew.indexer.embedders.text_runs import usable_cores

WORDS = "the signing key of a service is rotated every ninety days by the team that owns its runbook and backups"
COLD = (
    "import time; began = time.perf_counter()\n"
    "from clew.indexer.embedders.registry import open_embedder\n"
    "embedder = open_embedder({name!r}); opened = time.perf_counter()\n"
    "embedder.embed_query('how do I rotate a signing key'); done = time.perf_counter()\n"
    "print(opened - began, done - opened, time.process_time())\n"
)


def text_of(embedder: Embedder, tokens: int, seed: int) -> str:
    """A text of about so many tokens."""
    rng = np.random.default_rng(seed)
    known = WORDS.split()
    words = [known[number] for number in rng.integers(0, len(known), tokens)]
    while embedder.count_tokens([" ".join(words)])[0] > tokens:
        words.pop()
    return " ".join(words)


def rate(run: Callable[[], int], seconds: float = 2.0) -> dict[str, float]:
    """Texts a second of wall time and a second of CPU time."""
    run()
    done = 0
    began, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        done += run()
    return {
        "per_second": round(done / (time.perf_counter() - began), 1),
        "per_cpu_second": round(done / (time.process_time() - cpu), 1),
    }


def passages(name: str) -> dict[str, Any]:
    """Throughput at 128 and 256 tokens with one thread and with all, and a question's latency."""
    found: dict[str, Any] = {}
    for threads in sorted({1, usable_cores()}) if name == "minilm" else [1]:
        embedder = open_embedder(name, threads=threads) if name == "minilm" else open_embedder(name)
        assert embedder is not None
        for tokens in (128, 256):
            texts = [text_of(embedder, tokens, seed) for seed in range(32)]

            def run(embedder: Embedder = embedder, texts: list[str] = texts) -> int:
                return len(embedder.embed_passages(texts))

            found[f"{tokens} tokens, {threads} threads"] = rate(run)
        found["query_ms"] = _latency(embedder, "how do I rotate a signing key")
        texts = [text_of(embedder, 256, seed) for seed in range(256)]
        characters = sum(map(len, texts))
        counted = rate(lambda embedder=embedder, texts=texts: len(embedder.count_tokens(texts)), 1.0)  # type: ignore[misc]
        found["count_mb_per_cpu_second"] = round(counted["per_cpu_second"] * characters / len(texts) / 1e6, 1)
    return found


def _latency(embedder: Embedder, text: str) -> float:
    times = []
    for _ in range(100):
        began = time.perf_counter()
        embedder.embed_query(text)
        times.append(time.perf_counter() - began)
    return round(median(times) * 1000, 2)


def packaged_model() -> dict[str, Any]:
    """The packaged file as it is, in float32, by batch and threads: what a plain use of onnxruntime would give."""
    import onnxruntime

    found: dict[str, Any] = {}
    content = minilm.WEIGHTS.read()
    rng = np.random.default_rng(0)
    for threads, spinning in ((1, "0"), (2, "0"), (2, "1")):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", spinning)
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        for batch in (1, 2, 4, 8, 16):
            ids = rng.integers(1_000, 30_000, (batch, 128))
            feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}

            def run(session: Any = session, feeds: dict[str, Any] = feeds, batch: int = batch) -> int:
                session.run(None, feeds)
                return batch

            found[f"batch {batch}, {threads} threads, spinning {spinning}"] = rate(run, 1.0)
    return found


def _in_process(texts: list[str]) -> int:
    embedder = open_embedder("minilm", threads=1)
    assert embedder is not None
    return len(embedder.embed_passages(texts))


def processes_against_threads() -> dict[str, float]:
    """Texts a second of wall time: two processes of one thread each, and one process of two threads."""
    embedder = open_embedder("minilm", threads=2)
    assert embedder is not None
    texts = [text_of(embedder, 128, seed) for seed in range(600)]
    began = time.perf_counter()
    embedder.embed_passages(texts)
    threads = time.perf_counter() - began
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(_in_process, [texts[:2], texts[:2]]))
        began = time.perf_counter()
        list(pool.map(_in_process, [texts[::2], texts[1::2]]))
        both = time.perf_counter() - began
    return {"two threads": round(len(texts) / threads, 1), "two processes": round(len(texts) / both, 1)}


def cold(name: str) -> dict[str, float]:
    """Median seconds of five fresh processes: open, first question; CPU with the interpreter's start."""
    runs = []
    for _ in range(5):
        out = subprocess.run(
            [sys.executable, "-c", COLD.format(name=name)], capture_output=True, text=True, check=True
        ).stdout
        runs.append([float(value) for value in out.split()])
    opened, first, cpu = (round(median(column), 3) for column in zip(*runs, strict=True))
    return {"open": opened, "first_query": first, "cpu_with_interpreter": cpu}


def scifact(embedder: Embedder, folder: Path, *, test: bool) -> dict[str, float]:
    """nDCG@10 and recall@100 of the vectors alone; a document is one text, of which the model reads the beginning."""
    with gzip.open(folder / "corpus.jsonl.gz", "rt") as file:
        documents = [json.loads(line) for line in file]
    name = "" if test else "-train"
    questions = {}
    for line in (folder / f"queries{name}.jsonl").read_text().splitlines():
        record = json.loads(line)
        questions[record["_id"]] = record["text"]
    judged: dict[str, dict[str, int]] = {}
    for line in (folder / f"qrels{name}.tsv").read_text().splitlines()[1:]:
        question, document, grade = line.split("\t")
        if int(grade) > 0:
            judged.setdefault(question, {})[document] = int(grade)
    began, cpu = time.perf_counter(), time.process_time()
    vectors = embedder.embed_passages([f"{one['title']}\n{one['text']}".strip() for one in documents])
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    ids = [one["_id"] for one in documents]
    gains, recalls = [], []
    for question, relevant in sorted(judged.items()):
        order = np.argsort(-(vectors @ embedder.embed_query(questions[question])), kind="stable")[:100]
        ranked = [ids[row] for row in order]
        gains.append(_dcg([relevant.get(one, 0) for one in ranked[:10]]) / _dcg(sorted(relevant.values())[::-1][:10]))
        recalls.append(len(relevant.keys() & set(ranked)) / len(relevant))
    return {
        "questions": len(judged),
        "ndcg@10": round(float(np.mean(gains)), 4),
        "recall@100": round(float(np.mean(recalls)), 4),
        "documents_per_second": round(len(documents) / wall, 1),
        "documents_per_cpu_second": round(len(documents) / cpu, 1),
    }


def _dcg(grades: Sequence[int]) -> float:
    return float(sum(grade / np.log2(rank + 2) for rank, grade in enumerate(grades)))


def main() -> None:
    """Measure, print, and write the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scifact", action="store_true")
    parser.add_argument("--test", action="store_true")
    parser.add_argument("--speed", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--embedder", action="append")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("CLEW_DATA", "data")), help="holds scifact/")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    figures: dict[str, Any] = {"cores": usable_cores()}
    for name in arguments.embedder or ["minilm", "wordllama", "hashing:256"]:
        try:
            embedder = open_embedder(name)
        except MissingPartError as error:
            figures[name] = {"skipped": str(error)}
            continue
        assert embedder is not None
        figures[name] = {}
        if arguments.speed:
            figures[name] |= {"cold": cold(name), **passages(name)}
        if arguments.scifact:
            split = "scifact test" if arguments.test else "scifact train"
            figures[name][split] = scifact(embedder, arguments.data / "scifact", test=arguments.test)
        print(name, json.dumps(figures[name], indent=1))
    if arguments.speed:
        figures["the packaged model in float32, 128 tokens"] = packaged_model()
        figures["minilm, 128 tokens, per second"] = processes_against_threads()
        print(json.dumps({name: figures[name] for name in list(figures)[-2:]}, indent=1))
    if arguments.output:
        arguments.output.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
