"""Which language is a text written in?

Three steps, cheapest first, on a sample of about 600 characters: the script; function words that only one language
has; the n-gram model of py3langid. The model costs 0.7 CPU-s to load and 0.26 ms a text, the function words 0.03 ms:
they decide nearly all prose, so a small index of it never loads the model (`benchmarks/lexical.py languages`).
"""

from __future__ import annotations

import re
from contextlib import suppress
from copy import copy
from functools import cache
from typing import TYPE_CHECKING

from clew.indexer.lexical.languages import LANGUAGES, Script

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

SAMPLE = 600  # characters looked at
MIN_LETTERS = 24  # below this nothing is certain but a script that one language owns
MIN_CONFIDENCE = 0.9  # of py3langid's normalised probability
MIN_WORDS = 4  # function words of one language that are needed to decide by them
LEAD = 4  # times as many as the runner-up's

_LETTERS = re.compile(r"[^\W\d_]+")
_WIDE = re.compile(r"[\u0370-\uffff\U00010000-\U0003ffff]")  # beyond Latin

#: Ranges of the scripts that settle a language, or a family of languages, at once.
_SCRIPTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("cyrillic", re.compile(r"[\u0400-\u052f]")),
    ("greek", re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]")),
    ("arabic", re.compile(r"[\u0600-\u06ff\u0750-\u077f]")),
    ("hebrew", re.compile(r"[\u0590-\u05ff]")),
    ("devanagari", re.compile(r"[\u0900-\u097f]")),
    ("bengali", re.compile(r"[\u0980-\u09ff]")),
    ("tamil", re.compile(r"[\u0b80-\u0bff]")),
    ("thai", re.compile(r"[\u0e00-\u0e7f]")),
    ("lao", re.compile(r"[\u0e80-\u0eff]")),
    ("khmer", re.compile(r"[\u1780-\u17ff]")),
    ("georgian", re.compile(r"[\u10a0-\u10ff\u1c90-\u1cbf]")),
    ("armenian", re.compile(r"[\u0530-\u058f]")),
    ("hangul", re.compile(r"[\u1100-\u11ff\uac00-\ud7af]")),
    ("kana", re.compile(r"[\u3040-\u30ff]")),
    ("han", re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")),
)
_OWNED = {
    "greek": "el",
    "hebrew": "he",
    "bengali": "bn",
    "tamil": "ta",
    "thai": "th",
    "lao": "lo",
    "khmer": "km",
    "georgian": "ka",
    "armenian": "hy",
    "hangul": "ko",
    "kana": "ja",
    "han": "zh",
}
_FAMILIES = {"cyrillic": Script.CYRILLIC, "arabic": Script.ARABIC, "devanagari": Script.DEVANAGARI}
_FAMILY_DEFAULT = {"cyrillic": "ru", "arabic": "ar", "devanagari": "hi"}

#: The commonest function words. What two languages share counts for neither.
_FUNCTION_WORDS = {
    "en": "the of and to is in that for with as are be this by or an from it can was which not have you if on at "
    "when will has but we were their its these more use",
    "pt": "de que não uma para com um os da do em como mais mas ao das dos pela pelo são está ou seu sua você isso "
    "também quando muito já foi ser à às esse essa pode nos nas num numa até",
    "es": "de que los el las una para con un por del como más pero al su sus está es y o lo también cuando muy ya "
    "fue ser puede esto este esta son hay desde sin sobre entre",
    "fr": "le la les des et est une dans pour pas que qui sur avec du au aux ce cette par plus ne vous nous sont ou "
    "être il elle ils mais comme peut ses leur dont",
    "de": "der die das und ist nicht ein eine mit zu den von für auf dem des sich im auch es wird werden sie oder "
    "als bei nach wenn kann aus einer eines durch sind zum zur",
    "it": "il di che la per un una non con sono del della nel le gli dei alla come anche più questo questa essere "
    "si da ma o delle degli nella può quando",
    "nl": "de het een en van is dat niet op te zijn met voor aan er bij ook als door naar uit maar wordt worden "
    "kunnen deze dit die om heeft wij je",
    "sv": "och att det som är för inte den med av på till ett om kan har eller från när man också så vid vi",
    "da": "og at det som er for ikke den med af på til et om kan har eller fra når man også så ved vi blev",
    "no": "og at det som er for ikke den med av på til et om kan har eller fra når man også så ved vi ble etter",
    "fi": "ja on ei että se oli tai kun ovat myös mutta kuin hän joka ole jos sen voi niin tämä mukaan",
    "hu": "a az és hogy nem egy is van ez meg csak vagy mint de már el ha azt még után lehet volt",
    "ro": "și în de la cu pe nu este o un din pentru care mai sunt sau ce să se au ca prin dar fi fost",
    "tr": "ve bir bu için ile de da olarak daha çok olan gibi ne kadar sonra ancak veya her değil var",
    "pl": "i w na z nie do się że jest to od o jak za przez po dla są oraz tym który może lub tego",
    "cs": "a se na je v že s z o do jako pro by které nebo podle jsou byl také při může tak aby",
    "ru": "и в не на что с по как это для из от или при если быть также можно его так вы мы есть чтобы который но бы",
    "uk": "і в не на що з та як це для від або при якщо бути також можна його так ви ми є щоб який але й до",
    "bg": "и в не на че с по как това за от или при ако да също може неговата така вие ние е който но са се",
}


def _exclusive(words: dict[str, str]) -> dict[str, str]:
    """Word → the one language that has it."""
    owners: dict[str, list[str]] = {}
    for code, listed in words.items():
        for word in listed.split():
            owners.setdefault(word, []).append(code)
    return {word: codes[0] for word, codes in owners.items() if len(codes) == 1}


_OWNER = _exclusive(_FUNCTION_WORDS)


def detect_language(text: str) -> str | None:
    """The language of a text as a code of `languages.LANGUAGES`, or None where it is short or uncertain.

    Looks at three stretches (start, middle, end third) of 200 characters each. Deterministic.
    """
    sample = _sample(text)
    words = _LETTERS.findall(sample)
    letters = sum(map(len, words))
    if not letters:
        return None
    script = _script(sample, letters) if _WIDE.search(sample) else None
    if script in _OWNED:
        return _OWNED[script]
    if letters < MIN_LETTERS:
        return None
    decided = _by_function_words(words)
    if decided is not None and (script is None or LANGUAGES[decided].script is _FAMILIES[script]):
        return decided
    return _by_model(sample, script)


def _sample(text: str) -> str:
    if len(text) <= SAMPLE:
        return text
    part = SAMPLE // 3
    starts = (0, len(text) // 2 - part // 2, len(text) - part - len(text) // 8)
    return "\n".join(text[max(start, 0) : max(start, 0) + part] for start in starts)


def _script(sample: str, letters: int) -> str | None:
    """The script of a text that is not (mostly) Latin.

    A fifth of the letters is enough: technical prose in Russian or Japanese quotes much code. Ideographs say more than a
    letter does, so they count twice; Japanese is known by its kana, whatever the share of Han.
    """
    counts = {name: len(pattern.findall(sample)) for name, pattern in _SCRIPTS}
    if counts["kana"] and counts["kana"] * 20 >= counts["han"]:
        counts["kana"] += counts["han"]
        counts["han"] = 0
    for name in ("han", "kana", "hangul"):
        counts[name] *= 2
    best = max(counts, key=lambda name: counts[name])  # the first of equals: the order of _SCRIPTS
    return best if counts[best] * 5 >= letters else None


def _by_function_words(words: list[str]) -> str | None:
    counts: dict[str, int] = {}
    for word in words:
        owner = _OWNER.get(word.lower())
        if owner is not None:
            counts[owner] = counts.get(owner, 0) + 1
    if not counts:
        return None
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    second = ranked[1][1] if len(ranked) > 1 else 0
    code, best = ranked[0]
    return code if best >= MIN_WORDS and best >= LEAD * second and best * 20 >= len(words) else None


def _by_model(sample: str, script: str | None) -> str | None:
    code, confidence = _model(None if script is None else _FAMILIES[script]).classify(sample)
    if confidence >= MIN_CONFIDENCE:
        return str(code)
    return None if script is None else _FAMILY_DEFAULT[script]


def _model(script: Script | None) -> LanguageIdentifier:
    """py3langid, choosing among the known languages of one script."""
    return _models()[Script.LATIN if script is None else script]


@cache
def _models() -> dict[Script, LanguageIdentifier]:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    whole = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    labels = set(whole.labels)
    models = {}
    for script in (Script.LATIN, *_FAMILIES.values()):
        models[script] = model = copy(whole)
        model.set_languages(
            [code for code, language in LANGUAGES.items() if language.script is script and code in labels]
        )
        # Each has its own columns now; the weights of all 142 languages are 28 MB that every process would keep.
        with suppress(AttributeError):
            model._full_model = ()
    return models
