"""A deterministic look at a question: which paths deserve more say, and why.

Plain natural language leaves every weight as it is. Every adjustment is a factor with its reason; `intent="off"` turns all
of them off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Factors by what was seen; small on purpose: they tilt, the paths decide. To be tuned on sets not reported on.
QUOTED: Mapping[str, float] = {"bm25": 1.2}
IDENTIFIER: Mapping[str, float] = {"bm25": 1.4, "tfidf": 1.2, "dense": 0.8}
IDENTIFIER_WORDS = 6  # an identifier tilts a question of at most so many words
FILE_NAME: Mapping[str, float] = {"attributes": 3.0}
FILE_WORD: Mapping[str, float] = {"attributes": 1.5}

_EXTENSIONS = (
    "md|markdown|txt|rst|adoc|html?|pdf|docx?|pptx?|xlsx?|odt|ods|odp|epub|eml|ipynb|jsonl?|csv|tsv|parquet|xml|ya?ml|toml|"
    "ini|cfg|conf|log|py|js|ts|tsx|jsx|java|go|rs|c|h|cc|cpp|hpp|cs|rb|php|sh|sql|css|tex|zip|tar|gz"
)
# Each is held against one word of bounded length, so that no text makes them slow.
_FILE = re.compile(rf"(?:[\w.+-]+/)*[\w+-][\w.+-]*\.(?:{_EXTENSIONS})", re.IGNORECASE)
_PATH = re.compile(r"\.{0,2}/?[\w.+-]+/(?:[\w.+-]+/)*|\.{0,2}/(?:[\w.+-]+/)*[\w.+-]+|[\w.+-]+/(?:[\w.+-]+/)+[\w.+-]+")
# A word of a shape that prose does not have: snake_case, camelCase, v1.2.3, 0x7f, SKU-123, a::b, f(), --flag.
_IDENTIFIER = re.compile(
    r"\w+_\w+|_\w+"
    r"|[a-z]+(?:[A-Z][a-z0-9]*)+|(?:[A-Z][a-z0-9]+){2,}"
    r"|0x[0-9a-fA-F]+|v\d+(?:\.\d+){0,3}|\d+(?:\.\d+){2,3}"
    r"|[A-Za-z]{1,10}-?\d[\w-]*"
    r"|\w+(?:(?:::|->)\w+)+|[\w.]+\(\)|--?[a-z][\w-]+"
)
_QUOTES = re.compile(r'"[^"\s][^"]{0,200}"|«[^»]{1,200}»|“[^”]{1,200}”|„[^“”]{1,200}[“”]')
_LONGEST = 200  # characters of a word that is looked at
_OUTER = ".,;:!?\"'«»“”„‘’()[]{}<>…¿¡"
_FILE_WORDS = frozenset(
    word
    for words in (
        "file files folder folders directory directories filename filenames spreadsheet spreadsheets slides attachment",
        "pdf docx xlsx pptx odt epub",
        # Portuguese
        "arquivo arquivos ficheiro ficheiros pasta pastas diretório diretórios planilha planilhas anexo anexos slides",
        # Russian, in its cases
        (
            "файл файла файлу файлом файле файлы файлов файлам файлами файлах папка папки папке папку папкой папок папках "
            "каталог каталога каталоге каталоги каталогов каталогах таблица презентация вложение"
        ),
        # Spanish
        "archivo archivos fichero ficheros carpeta carpetas directorio directorios planilla planillas adjunto adjuntos",
    )
    for word in words.split()
)
#: Words that ask, in English, Portuguese, Spanish and Russian.
QUESTION_WORDS = frozenset(
    word
    for words in (
        "how what why when where who whom which whose can could does do did is are was were should would will has have",
        # Portuguese and Spanish, with accents and without
        "como qual quais que quem quando onde por porque quanto quanta quantos quantas existe existem há",
        (
            "cómo qué cuál cuáles cual cuales quién quiénes quien quienes cuándo cuando dónde donde cuánto cuánta cuántos cuántas "
            "cuanto cuanta cuantos cuantas existen hay"
        ),
        # Russian
        (
            "как что чем чего чему почему когда где куда откуда кто кого кому кем какой какая какое какие каких каким какими "
            "какую каком каков какова каковы сколько зачем чей чья чьё чьи насколько который которая которое которые "
            "можно ли есть"
        ),
    )
    for word in words.split()
)
# Before a question word: "in which year", "em que ano", "в каком году", "¿a qué hora".
_PREPOSITIONS = frozenset(
    word
    for words in (
        "in on at by to from for of with",
        "em no na de do da a para com en con",
        "в во на о об с со у к из по до за",
    )
    for word in words.split()
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Intent:
    """What a question looks like."""

    factors: Mapping[str, float] = field(default_factory=dict)  # path → what its weight is multiplied with
    reasons: tuple[str, ...] = ()
    question: bool = False  # asked in a sentence, rather than a row of key words; weighted as it is

    def report(self) -> dict[str, Any]:
        """For `SearchResult.intent`."""
        return {"factors": dict(self.factors), "reasons": list(self.reasons), "question": self.question}


def judge(text: str) -> Intent:
    """Look at a question. Linear in its length; the same text gives the same answer."""
    factors: dict[str, float] = {}
    reasons: list[str] = []

    def apply(found: str | None, what: str, adjustment: Mapping[str, float]) -> None:
        if found:
            reasons.append(f"{what}: {found[:60]}")
            for path, factor in adjustment.items():
                factors[path] = round(factors.get(path, 1.0) * factor, 6)

    quoted = _QUOTES.search(text)
    apply(quoted[0] if quoted else None, "a quoted phrase", QUOTED)
    words = [word for word in text.split() if len(word) <= _LONGEST and "://" not in word]
    file = _first(_FILE, words) or _first(_PATH, words)
    apply(file, "a file name or path", FILE_NAME)
    rest = [word for word in words if _bare(word) != file]
    # In a long sentence a name like IL-6 is one word of many: tilting it cost SciFact train .002 nDCG@10.
    if len(rest) <= IDENTIFIER_WORDS:
        apply(_first(_IDENTIFIER, rest), "an identifier", IDENTIFIER)
    plain = [word for word in (_bare(word).lower() for word in rest) if word]
    if not file:
        apply(next((word for word in plain if word in _FILE_WORDS), None), "a word for files", FILE_WORD)
    asked = _asked(text, plain)
    if asked:
        reasons.append(f"natural language: {asked}")
    return Intent(factors=dict(sorted(factors.items())), reasons=tuple(reasons), question=bool(asked))


def _asked(text: str, words: list[str]) -> str | None:
    """What tells a question in a sentence; None for a row of key words."""
    if len(words) < 3:
        return None
    if text.rstrip().endswith(("?", "？")):
        return "a question mark"
    first = words[1] if words[0] in _PREPOSITIONS else words[0]
    if words[0] in QUESTION_WORDS or first in QUESTION_WORDS:
        return f"begins with {words[0] if words[0] in QUESTION_WORDS else f'{words[0]} {first}'}"
    return None


def _bare(word: str) -> str:
    """A word without the punctuation around it; the `()` of a function stays."""
    stripped = word.strip(_OUTER)
    return f"{stripped}()" if f"{stripped}()" in word else stripped


def _first(pattern: re.Pattern[str], words: list[str]) -> str | None:
    return next((bare for word in words if pattern.fullmatch(bare := _bare(word))), None)
