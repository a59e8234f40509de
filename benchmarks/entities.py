"""Entities found by the rules, against three annotated collections: exact-span F1, untyped and typed, beside two baselines.

    python -m benchmarks.entities [--part train|dev|test]

Rules are developed on the train and dev parts; figures are reported on the test parts. A sentence (WNUT 17, LeNER-Br) or a whole
text (factRuEval) is one passage. LeNER-Br's `JURISPRUDENCIA` is `case`, `TEMPO` is `date`; of factRuEval, mentions of Person,
Org, Location and LocOrg count, from their first to their last token.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.datasets import collection

Span = tuple[int, int, str]


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A text with its annotated spans."""

    text: str
    gold: tuple[Span, ...]


_TYPES = {
    "location": "place", "group": "organisation", "corporation": "organisation", "person": "person", "product": "product",
    "creative-work": "work", "ORGANIZACAO": "organisation", "JURISPRUDENCIA": "case", "PESSOA": "person", "LEGISLACAO": "law",
    "LOCAL": "place", "TEMPO": "date", "Person": "person", "Org": "organisation", "Location": "place", "LocOrg": "place",
}  # fmt: skip


def read_conll(path: Path) -> Iterator[Passage]:
    """Sentences of token and BIO tag; tokens are joined by spaces."""
    rows: list[tuple[str, str]] = []
    for line in [*path.read_text("utf-8").splitlines(), ""]:
        if line.strip():
            cells = line.split("\t") if "\t" in line else line.split(" ")
            rows.append((cells[0], cells[-1]))
        elif rows:
            yield _sentence(rows)
            rows = []


def _sentence(rows: list[tuple[str, str]]) -> Passage:
    text, spans = "", list[Span]()
    before = "O"
    for token, tag in rows:
        start = len(text) + bool(text)
        text = f"{text} {token}" if text else token
        prefix, _, label = tag.partition("-")
        if prefix == "B" or (prefix == "I" and before != label):
            spans.append((start, len(text), _TYPES[label]))
        elif prefix == "I":
            spans[-1] = (spans[-1][0], len(text), spans[-1][2])
        before = label if prefix != "O" else "O"
    return Passage(text=text, gold=tuple(spans))


def read_factrueval(folder: Path, part: str) -> Iterator[Passage]:
    """Texts of the dev or test set."""
    for path in sorted(folder.glob(f"{part}set_*.txt")):
        if not path.with_suffix(".spans").exists():  # a list of the texts
            continue
        text = path.read_text("utf-8")
        places = {}
        for line in path.with_suffix(".spans").read_text("utf-8").splitlines():
            cells = line.split()
            places[cells[0]] = (int(cells[2]), int(cells[2]) + int(cells[3]))
        gold = set()
        for line in path.with_suffix(".objects").read_text("utf-8").splitlines():
            cells = line.partition("#")[0].split()
            if cells[1] in _TYPES:
                parts = [places[one] for one in cells[2:] if one in places]
                gold.add((min(a for a, _ in parts), max(b for _, b in parts), _TYPES[cells[1]]))
        yield Passage(text=text, gold=tuple(sorted(gold)))


def capitalised_runs(text: str, _: str) -> list[Span]:
    """The naive baseline: every run of words that begin with a capital letter."""
    return [(m.start(), m.end(), "") for m in re.finditer(r"\b[^\W\d_a-zа-яё]\w*(?: [^\W\d_a-zа-яё]\w*)*", text)]


def rules(text: str, language: str) -> list[Span]:
    """What the graph is built from."""
    from clew.indexer.graph.spans import names

    return [(name.start, name.end, name.type) for name in names(text, language) if name.kind == "name"]


def score(passages: list[Passage], language: str, find: Callable[[str, str], list[Span]]) -> dict[str, float]:
    """Precision, recall and F1 of exact spans, F1 of typed ones, and characters a CPU second."""
    untyped, typed, found, gold = 0, 0, 0, 0
    began = time.process_time()
    answers = [find(passage.text, language) for passage in passages]
    seconds = time.process_time() - began
    for passage, spans in zip(passages, answers, strict=True):
        right = {(a, b) for a, b, _ in passage.gold}
        untyped += len(right & {(a, b) for a, b, _ in spans})
        typed += len(set(passage.gold) & set(spans))
        found, gold = found + len(spans), gold + len(passage.gold)
    return {
        "precision": untyped / max(1, found),
        "recall": untyped / max(1, gold),
        "f1": 2 * untyped / max(1, found + gold),
        "typed_f1": 2 * typed / max(1, found + gold),
        "chars_a_cpu_second": sum(len(passage.text) for passage in passages) / max(1e-9, seconds),
    }


def parts(part: str) -> dict[str, tuple[str, list[Passage]]]:
    """The collections' passages of a part, by name, with their language."""
    wnut, lener, fact = (collection(name) for name in ("ner-wnut17", "ner-lener-br-pt", "ner-factrueval-ru"))
    file = {"train": "wnut17train.conll", "dev": "emerging.dev.conll", "test": "emerging.test.annotated"}[part]
    return {
        "wnut17": ("en", list(read_conll(wnut / file))),
        "lener-br": ("pt", list(read_conll(lener / f"{part}.conll"))),
        "factrueval": ("ru", list(read_factrueval(fact, "test" if part == "test" else "dev"))),
    }


def mistakes(passages: list[Passage], language: str, most: int) -> Iterator[str]:
    """The spans most often missed and most often found in vain."""
    missed, vain, kinds = Counter[str](), Counter[str](), defaultdict[str, Counter[bool]](Counter)
    for passage in passages:
        found = {(a, b) for a, b, _ in rules(passage.text, language)}
        right = {(a, b) for a, b, _ in passage.gold}
        for a, b, kind in passage.gold:
            kinds[kind][(a, b) in found] += 1
            if (a, b) not in found:
                missed[
                    f"{kind}: {passage.text[max(0, a - 15) : a]}[{passage.text[a:b]}]{passage.text[b : b + 12]}"
                ] += 1
        for a, b in found - right:
            vain[f"{passage.text[max(0, a - 15) : a]}[{passage.text[a:b]}]{passage.text[b : b + 12]}"] += 1
    yield str({kind: f"{counts[True]}/{counts.total()}" for kind, counts in kinds.items()})
    for title, counter in (("missed", missed), ("vain", vain)):
        yield f"  {title}: {sum(counter.values())}"
        yield from (f"    {count} {text}" for text, count in list(counter.items())[:: max(1, len(counter) // most)])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("train", "dev", "test"), default="test")
    parser.add_argument("--mistakes", type=int, default=0, help="show so many of each kind, of the train and dev parts")
    options = parser.parse_args()
    for name, (language, passages) in parts(options.part).items():
        for label, find in (("capitalised runs", capitalised_runs), ("rules", rules)):
            figures = score(passages, language, find)
            print(
                f"{name:<11} {label:<17} P {figures['precision']:.3f}  R {figures['recall']:.3f}  F1 {figures['f1']:.3f}  "
                f"typed {figures['typed_f1']:.3f}  {figures['chars_a_cpu_second'] / 1e6:.2f} M chars/CPU-s"
            )
        if options.mistakes and options.part != "test":
            print("\n".join(mistakes(passages, language, options.mistakes)))


if __name__ == "__main__":
    main()
