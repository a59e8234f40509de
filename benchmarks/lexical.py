"""How well and how fast the lexical legs are.

    python benchmarks/lexical.py quality [--data DIR] [--test]      nDCG@10 and R@100 of BM25 and TF-IDF, each alone
    python benchmarks/lexical.py speed FOLDER [--copies N]          CPU seconds from chunks to segments; p50 of searches
    python benchmarks/lexical.py languages [--data DIR]             what detection says of texts of known language

`quality` reads SciFact train and hotpotqa-train500 (settings are chosen on these); `--test` adds SciFact test, to be reported.
DIR holds the unpacked collections, one folder each.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from clew.indexer.chunking import chunk_document, estimate_tokens
from clew.indexer.extract.document import Document
from clew.indexer.lexical.analysis import analyze_chunks
from clew.indexer.lexical.assembly import LexicalIndex, open_lexical, unpack
from clew.indexer.lexical.detection import detect_language
from clew.indexer.lexical.questions import analyze_question
from clew.indexer.lexical.segment import build_segments
from clew.indexer.settings import ChunkSettings
from clew.query.bm25 import Bm25Path, Bm25Settings
from clew.query.candidates import Candidates, Universe
from clew.query.tfidf import TfidfPath

Passage = tuple[str, str | None, str]  # (document id, title, text)
SEARCH = ("mutex", "template argument deduction", "how do I initialize a static member of a class")


@dataclass(frozen=True, kw_only=True)
class Collection:
    """A judged collection."""

    documents: list[Passage]
    questions: list[tuple[str, str]]
    judgements: dict[str, dict[str, int]]


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    quality = commands.add_parser("quality")
    quality.add_argument("--data", type=Path, default=Path("data"))
    quality.add_argument("--test", action="store_true")
    speed = commands.add_parser("speed")
    speed.add_argument("folder", type=Path)
    speed.add_argument("--copies", type=int, default=1)
    languages = commands.add_parser("languages")
    languages.add_argument("--data", type=Path, default=Path("data"))
    options = parser.parse_args()
    if options.command == "quality":
        report = measure_quality(options.data, options.test)
    elif options.command == "speed":
        report = measure_speed(options.folder, options.copies)
    else:
        report = measure_languages(options.data)
    print(json.dumps(report, indent=2, ensure_ascii=False))


# --- quality ---------------------------------------------------------------------------------


def measure_quality(data: Path, test: bool) -> dict[str, object]:
    """nDCG@10 and R@100 by collection, unit of retrieval and path."""
    collections = {"scifact-train": scifact(data / "scifact", "-train"), "hotpotqa-train500": linked(data)}
    if test:
        collections["scifact-test"] = scifact(data / "scifact", "")
    report: dict[str, object] = {}
    for name, collection in collections.items():
        for unit, passages in (("documents", collection.documents), ("windows of 256", windows(collection.documents))):
            with tempfile.TemporaryDirectory() as directory:
                lexical = index(passages, ["en"] * len(passages), Path(directory))
                universe = dense_universe(lexical)
                figures: dict[str, object] = {"passages": len(passages)}
                figures["tfidf"] = judged(TfidfPath(lexical.segments, universe).search, passages, collection, lexical)
                figures["bm25"] = judged(Bm25Path(lexical.index, universe).search, passages, collection, lexical)
                for title in () if name == "scifact-test" else (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 1.0):
                    path = Bm25Path(lexical.index, universe, Bm25Settings(title=title))
                    figures[f"bm25, title {title}"] = judged(path.search, passages, collection, lexical)
                for ident in () if name == "scifact-test" else (0.0, 0.1, 0.3, 0.5):
                    path = Bm25Path(lexical.index, universe, Bm25Settings(ident=ident))
                    figures[f"bm25, ident {ident}"] = judged(path.search, passages, collection, lexical)
                report[f"{name}, {unit}"] = figures
    return report


def judged(
    search: Callable[..., Candidates], passages: Sequence[Passage], collection: Collection, lexical: LexicalIndex
) -> dict[str, float]:
    """By document: its best passage counts."""
    gains, recalls = [], []
    for number, text in collection.questions:
        found = search(analyze_question(text, lexical.languages), 400)
        ranked = list(dict.fromkeys(passages[ordinal][0] for ordinal in found.ordinals))[:100]
        relevant = collection.judgements[number]
        gains.append(ndcg(ranked, relevant))
        recalls.append(sum(document in ranked for document in relevant) / len(relevant))
    return {"ndcg@10": round(float(np.mean(gains)), 4), "recall@100": round(float(np.mean(recalls)), 4)}


def ndcg(ranked: Sequence[str], relevant: dict[str, int]) -> float:
    """nDCG@10 with linear gain."""
    gain = sum(relevant.get(document, 0) / math.log2(rank + 2) for rank, document in enumerate(ranked[:10]))
    best = sorted(relevant.values(), reverse=True)[:10]
    return gain / sum(grade / math.log2(rank + 2) for rank, grade in enumerate(best))


def scifact(folder: Path, split: str) -> Collection:
    """SciFact in the BEIR layout; `split` is '-train' or '' (test)."""
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        documents = [(row["_id"], row["title"], row["text"]) for row in map(json.loads, lines)]
    return judged_collection(documents, folder / f"queries{split}.jsonl", folder / f"qrels{split}.tsv")


def linked(data: Path) -> Collection:
    """hotpotqa-train500-linked, links reduced to their texts."""
    folder = data / "hotpotqa-train500-linked"
    documents: list[Passage] = []
    for path in sorted((folder / "pages").glob("*.md")):
        heading, _, body = path.read_text(encoding="utf-8").partition("\n")
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", body).strip()
        documents.append((f"pages/{path.name}", heading.lstrip("# "), text))
    return judged_collection(documents, folder / "queries.jsonl", folder / "qrels.tsv")


def judged_collection(documents: list[Passage], queries: Path, qrels: Path) -> Collection:
    """Documents with the questions that have judgements."""
    judgements: dict[str, dict[str, int]] = {}
    for line in qrels.read_text(encoding="utf-8").splitlines()[1:]:
        question, document, grade = line.split("\t")
        judgements.setdefault(question, {})[document] = int(grade)
    rows = [json.loads(line) for line in queries.read_text(encoding="utf-8").splitlines()]
    questions = [(row["_id"], row["text"]) for row in rows if row["_id"] in judgements]
    return Collection(documents=documents, questions=questions, judgements=judgements)


def windows(documents: Sequence[Passage]) -> list[Passage]:
    """The chunks that indexing would make of documents."""
    chunked: list[Passage] = []
    for number, title, text in documents:
        prefix = estimate_tokens([title])[0] if title else 0
        chunks = chunk_document(Document(text=text), ChunkSettings(), estimate_tokens, prefix_tokens=prefix)
        chunked.extend((number, title, chunk.text) for chunk in chunks)
    return chunked


def index(passages: Sequence[Passage], languages: Sequence[str | None], directory: Path) -> LexicalIndex:
    """An index of passages; keys are positions."""
    analyzed = analyze_chunks([title for _, title, _ in passages], [text for _, _, text in passages], languages)
    files = build_segments(
        directory,
        chunk_keys=np.arange(len(passages), dtype=np.int64),
        titles=analyzed.titles,
        bodies=analyzed.bodies,
        idents=analyzed.idents,
        languages=analyzed.languages,
    )
    cache = directory / "cache"
    return open_lexical([unpack(file.path, cache, segment_id=file.id) for file in files], cache)


def dense_universe(lexical: LexicalIndex) -> Universe:
    """All chunks alive, ties by key."""
    keys = np.sort(np.concatenate([segment.keys for segment in lexical.segments]))
    return Universe(keys=keys, tie=np.arange(len(keys), dtype=np.int64))


# --- speed -----------------------------------------------------------------------------------


def measure_speed(folder: Path, copies: int) -> dict[str, object]:
    """From the Markdown files below a folder to segments, and searches over `copies` such sets of segments."""
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.rglob("*.md"))]
    report: dict[str, object] = {"files": len(texts), "characters": sum(map(len, texts))}
    cpu: dict[str, float] = {}
    with timed(cpu, "detect"):
        found = [detect_language(text) for text in texts]
    passages: list[Passage] = []
    languages: list[str | None] = []
    for i, text in enumerate(texts):  # windows of 1,200 characters every 1,000: chunking is not what is measured
        for start in range(0, len(text), 1000):
            passages.append((str(i), None, text[start : start + 1200]))
            languages.append(found[i])
    report["chunks"] = len(passages)
    with timed(cpu, "analyse"):
        analyzed = analyze_chunks([None] * len(passages), [text for _, _, text in passages], languages)
    with tempfile.TemporaryDirectory() as name:
        directory, cache = Path(name), Path(name) / "cache"
        parts, size = [], 0
        for copy in range(copies):
            with timed(cpu, "segments") if not copy else timed({}, ""):
                files = list(
                    build_segments(
                        directory,
                        chunk_keys=np.arange(len(passages), dtype=np.int64) + copy * len(passages),
                        titles=analyzed.titles,
                        bodies=analyzed.bodies,
                        idents=analyzed.idents,
                        languages=analyzed.languages,
                    )
                )
            for file in files:
                size += file.bytes
                parts.append(unpack(file.path, cache, segment_id=file.id))
                file.path.unlink()
        report["cpu_seconds"] = cpu
        report["bytes"] = size
        report["open_ms"] = {name: p50(partial(open_lexical, parts, cache), 1) for name in ("first", "again")}
        report["searches"] = searches(open_lexical(parts, cache))
    return report


def searches(lexical: LexicalIndex) -> dict[str, object]:
    """p50 milliseconds for the 200 best."""
    universe = dense_universe(lexical)
    bm25 = Bm25Path(lexical.index, universe)
    tfidf = TfidfPath(lexical.segments, universe)
    random = np.random.default_rng(1)
    some = random.choice(len(universe), min(200, len(universe)), replace=False)
    report: dict[str, object] = {"chunks": len(universe), "segments": len(lexical.segments)}
    for text in SEARCH:
        question = analyze_question(text, lexical.languages)
        figures = {"analyse": p50(partial(analyze_question, text, lexical.languages))}
        for name, path in (("bm25", bm25), ("tfidf", tfidf)):
            figures[name] = p50(partial(path.search, question, 200))
            figures[f"{name}, scores of 200"] = p50(partial(path.scores, question, some))
            for share in (0.001, 0.01, 0.1, 0.5):
                low = int(0.3 * len(universe))
                folder = np.zeros(len(universe), dtype=bool)
                folder[low : low + max(1, int(share * len(universe)))] = True
                scattered = random.random(len(universe)) < share
                figures[f"{name}, {share:.1%} in one folder"] = p50(partial(path.search, question, 200, folder), 7)
                figures[f"{name}, {share:.1%} scattered"] = p50(partial(path.search, question, 200, scattered), 7)
        report[text] = figures
    return report


@contextmanager
def timed(into: dict[str, float], name: str) -> Iterator[None]:
    """Add the CPU seconds of a block to a dictionary."""
    start = time.process_time()
    yield
    into[name] = round(into.get(name, 0.0) + time.process_time() - start, 2)


def p50(call: Callable[[], object], repeats: int = 15) -> float:
    """Median milliseconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return round(float(np.median(times)) * 1000, 3)


# --- languages -------------------------------------------------------------------------------


def measure_languages(data: Path) -> dict[str, object]:
    """How often detection is right, undecided or wrong, on whole texts and on their first 200 characters."""
    report: dict[str, object] = {}
    for name, language in (("xquad-en", "en"), ("scifact", "en"), ("xquad-ru", "ru"), ("faquad-pt", "pt")):
        texts = list(corpus_texts(data / name))[:1000]
        for unit, cut in (("whole", 10**9), ("200 characters", 200)):
            start = time.process_time()
            counts = Counter(detect_language(text[:cut]) for text in texts)
            figures = {
                "texts": len(texts),
                "right": counts[language],
                "undecided": counts[None],
                "wrong": len(texts) - counts[language] - counts[None],
                "cpu_ms": round((time.process_time() - start) / len(texts) * 1000, 3),
            }
            report[f"{name}, {unit}"] = figures
    return report


def corpus_texts(folder: Path) -> Iterator[str]:
    """The texts of a corpus in the BEIR layout."""
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from (json.loads(line)["text"] for line in lines)


if __name__ == "__main__":
    main()
