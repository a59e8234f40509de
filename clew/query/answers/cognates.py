"""Words of a question that names in the collection sound like: bridges from one language, or script, to another.

"Сандпайпер", "batería" and "Albatrosa" stand in no English page, and an English stemmer makes nothing of them; `Sandpiper`, `battery`
and `Albatross` do. A word is reduced to a skeleton of how it sounds (Cyrillic transliterated, digraphs and double letters made one, the
ending that inflects cut off), and skeletons are compared by their trigrams. What sounds alike is a hint of where to look, never by
itself a reason to answer: "actual" is no "atual".
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from clew.indexer.lexical.analysis import fold, words
from clew.query.knowledge import Knowledge

ALIKE = 0.7  # Dice coefficient of trigrams from which two words are taken for one
BEGINNING = 0.65  # of the longer one that they must begin with in common
FEWEST_CONSONANTS = 5  # that make words one whatever their vowels
FEWEST_LETTERS = 4  # of a skeleton: shorter ones are alike by chance
MOST_WORDS = 200_000  # of names that are kept, those of the most mentioned entities
COMMONEST = 5_000  # words that a trigram may stand in, to be looked up by

_CYRILLIC = dict(
    zip(
        "абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґ",
        "a b v g d e zh z i i k l m n o p r s t u f kh c ch sh sh | i | e iu ia e i i e g".replace("|", "").split(" "),
        strict=True,
    )
)
#: How spellings of English, Portuguese, Spanish and transliterated Russian meet; in this order.
_SOUNDS = [
    (re.compile(pattern), sound)
    for pattern, sound in (
        ("^kh", "h"), ("kh", "k"), ("ph", "f"), ("th", "t"), ("ck|qu|q", "k"), ("sh|sch", "s"), ("x", "ks"), ("c(?=[eiy])", "s"), ("c", "k"), ("y|j", "i"),
        ("w", "v"), ("z", "s"), ("(?<=.)h", ""), (r"(.)\1+", r"\1"), ("ou", "u"), ("cao$|tion$|tsiia?$", "si"),
    )
]  # fmt: skip
_VOWELS = re.compile("[aeiou]")
_ENDING = re.compile(r"(?:[aeiou]+(?:[smvkhn]|mi)?|s)$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cognate:
    """A word of a question, and one of the collection's names that sounds like it."""

    asked: str
    word: str
    alike: float  # 0 … 1


@lru_cache(maxsize=200_000)
def sound(word: str) -> str:
    """How a word sounds, as letters; "" for what is no word of letters."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(c))
    heard = "".join(_CYRILLIC.get(c, c) for c in plain)
    if not heard.isascii() or not heard.isalpha():
        return ""
    for pattern, replacement in _SOUNDS:
        heard = pattern.sub(replacement, heard)
    return heard


def skeleton(word: str) -> str:
    """Its sound with the inflected ending cut off; "" for what is too short to tell."""
    heard = sound(word)
    cut = _ENDING.sub("", heard)
    heard = cut if len(cut) >= FEWEST_LETTERS else heard
    return heard if len(heard) >= FEWEST_LETTERS else ""


def begin_alike(one: str, other: str) -> bool:
    """Whether two words sound the same but for their endings, or for their vowels.

    "florian" and "florida" do not, for all the trigrams they share; "sandpaiper" and "sandpiper" do.
    """
    first, second = sound(one), sound(other)
    common = next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    if common >= BEGINNING * max(len(first), len(second)):
        return True
    bare, of_other = (_VOWELS.sub("", skeleton(word)) for word in (one, other))
    return len(bare) >= FEWEST_CONSONANTS and bare == of_other


def trigrams(sound: str) -> frozenset[str]:
    """Of a skeleton, its beginning marked: words that are alike begin alike."""
    marked = f"^{sound}"
    return frozenset(marked[at : at + 3] for at in range(len(marked) - 2))


class SoundIndex:
    """Words of names by how they sound."""

    def __init__(self, names: Sequence[str]) -> None:
        """`names`: those that matter most first."""
        found: Counter[str] = Counter()
        for name in names:
            for word in words(fold(name)):
                found[word] += 1
            if len(found) >= MOST_WORDS:
                break
        self._by_sound: dict[str, list[str]] = {}
        for word, _ in sorted(found.items(), key=lambda one: (-one[1], one[0])):
            skeletal = skeleton(word)
            if skeletal:
                self._by_sound.setdefault(skeletal, []).append(word)
        self._by_trigram: dict[str, list[str]] = {}
        for skeletal in self._by_sound:
            for trigram in sorted(trigrams(skeletal)):
                self._by_trigram.setdefault(trigram, []).append(skeletal)

    def like(self, word: str) -> Cognate | None:
        """The word that sounds most like one, itself left out; None where none does."""
        skeletal = skeleton(word)
        if not skeletal:
            return None
        own = trigrams(skeletal)
        shared: Counter[str] = Counter()
        for trigram in sorted(own):
            places = self._by_trigram.get(trigram, ())
            if len(places) <= COMMONEST:
                shared.update(places)
        best: tuple[float, str] | None = None
        nearest = ""
        for other, common in shared.items():
            alike = 2 * common / (len(own) + len(trigrams(other)))
            if alike < ALIKE or (best is not None and (-alike, other) >= (-best[0], best[1])):
                continue
            found = next((one for one in self._by_sound[other] if begin_alike(word, one)), None)
            if found is not None:
                best, nearest = (alike, other), found
        return None if best is None else Cognate(asked=word, word=nearest, alike=round(best[0], 6))


def sound_index(graph: Knowledge) -> SoundIndex:
    """Of a snapshot's names, made when it is first asked for."""

    def made() -> SoundIndex:
        mentions = graph.entities["mentions"].to_pylist()
        names = graph.entities["name"].to_pylist()
        order = sorted(range(len(names)), key=lambda one: (-mentions[one], one))
        return SoundIndex([names[one] for one in order])

    return graph.pinned.once("_sound_index", made)


def cognates(graph: Knowledge, asked: Sequence[str]) -> list[Cognate]:
    """Of words, those that a name in the graph sounds like, as they come; a word that is a name's own sounds like itself."""
    index = sound_index(graph)
    found = (index.like(word) for word in dict.fromkeys(asked))
    return [one for one in found if one is not None]
