"""Makes the lists of ordinary words (`clew/indexer/graph/words`) anew, from collections that no figure is reported on.

    python -m benchmarks.word_lists [--words 4000] [--write]

English: HotpotQA train and MuSiQue train pages, WNUT 17 train. Portuguese: LeNER-Br train, the React documentation. Russian:
factRuEval's development part, the React documentation. A word is ordinary where it is written with a small letter at least four
times in five, beginnings of sentences aside; the lists hold those that stand in most texts. (Until November 2026 they had been
counted in other collections too, some of which figures are reported on; that is why this file is here.)
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.datasets import collection

SMALL_SHARE = 0.8
LEAST_TEXTS = 3
_WORD = re.compile(r"[^\W\d_]+(?:[-’'][^\W\d_]+)*")
_BEGINS = re.compile(r"(?:^|[.!?…:;\n»”\"(\[*#>|-])\s*$")
_FENCE = re.compile(r"^```.*?^```|`[^`\n]*`|<[^>\n]*>|\]\([^)\n]*\)|https?://\S+", re.DOTALL | re.MULTILINE)
FOLDER = Path(__file__).parents[1] / "clew" / "indexer" / "graph" / "words"
LETTERS = {"en": r"[a-z'’-]+", "pt": r"[a-záâãàçéêíóôõúü-]+", "ru": r"[а-яё-]+"}


def pages(*folders: Path) -> Iterator[str]:
    """Markdown pages without code, tags and addresses."""
    for folder in folders:
        for path in sorted(folder.rglob("*.md")):
            yield _FENCE.sub(" ", path.read_text("utf-8", "replace"))


def sentences(path: Path) -> Iterator[str]:
    """Sentences of a CoNLL file."""
    tokens: list[str] = []
    for line in [*path.read_text("utf-8").splitlines(), ""]:
        if line.strip():
            tokens.append(re.split(r"[\t ]", line)[0])
        elif tokens:
            yield " ".join(tokens)
            tokens = []


def texts(language: str) -> Iterator[str]:
    """What a language's words are counted in."""
    if language == "en":
        yield from pages(
            collection("hotpotqa-train500-linked") / "pages", collection("musique-train100-linked") / "pages"
        )
        yield from sentences(collection("ner-wnut17") / "wnut17train.conll")
    elif language == "pt":
        yield from pages(collection("docs-react-pt") / "files")
        yield from sentences(collection("ner-lener-br-pt") / "train.conll")
    else:
        yield from pages(collection("docs-react-ru") / "files")
        for path in sorted(collection("ner-factrueval-ru").glob("devset_*.txt")):
            yield path.read_text("utf-8")


def ordinary(found: Iterable[str], language: str, most: int) -> list[str]:
    """The `most` ordinary words of most texts, in the order of the alphabet."""
    small, large = Counter[str](), Counter[str]()
    for text in found:
        seen: dict[str, set[bool]] = {}
        for match in _WORD.finditer(text):
            word = match.group()
            if word[0].islower() or not _BEGINS.search(text, max(0, match.start() - 4), match.start()):
                seen.setdefault(word.lower(), set()).add(word[0].islower())
        for word, kinds in seen.items():
            small[word] += True in kinds
            large[word] += False in kinds
    shape = re.compile(LETTERS[language])
    words = [
        word
        for word, count in small.items()
        if count >= LEAST_TEXTS and count >= SMALL_SHARE * (count + large[word]) and shape.fullmatch(word)
    ]
    return sorted(sorted(words, key=lambda word: (-small[word], word))[:most])


def main() -> None:
    """Make the lists; print how many words are new and gone."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=4000)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    for language in ("en", "pt", "ru"):
        path = FOLDER / f"{language}.txt"
        before = set(path.read_text("utf-8").split())
        words = ordinary(texts(language), language, options.words)
        print(f"{language}: {len(words)} words, {len(set(words) - before)} new, {len(before - set(words))} gone")
        if options.write:
            path.write_text("\n".join(words) + "\n", "utf-8")


if __name__ == "__main__":
    main()
