"""Languages: what clew knows of each, and how tags become codes.

A code is ISO 639-1 (`pt`), never a regional tag (`pt-BR`). A language that is not listed here is treated as
unknown, which means the neutral analysis: English rules for Latin script, Russian rules for Cyrillic, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Script(StrEnum):
    """A family of letters; a word is written in one of them."""

    LATIN = "latin"
    CYRILLIC = "cyrillic"
    GREEK = "greek"
    ARABIC = "arabic"
    TAMIL = "tamil"
    HEBREW = "hebrew"
    DEVANAGARI = "devanagari"
    BENGALI = "bengali"
    GEORGIAN = "georgian"
    ARMENIAN = "armenian"
    CONTINUOUS = "continuous"  # written without spaces, or close to it: Chinese, Japanese, Korean, Thai, Lao, Khmer


@dataclass(frozen=True, kw_only=True, slots=True)
class Language:
    """What the analysis of one language needs."""

    code: str  # ISO 639-1
    script: Script
    stemmer: str | None = None  # tantivy's name; None: no stemming
    stop_words: str | None = None  # tantivy's name of a built-in list
    fold_first: bool = False  # fold accents before stemming, else after it


#: Whose accents are left out by many who type. Folding before the stemmer costs it some endings and makes `configuracao` find
#: `configuração`. Headings of Portuguese pages asked for as questions, nDCG@10 typed with / without accents: folded first
#: .752 / .752, after the stemmer .752 / .721. German, Nordic, Hungarian and Turkish letters are rarely left out.
_FOLDED_FIRST = frozenset({"en", "pt", "es", "fr", "it"})

#: The language whose rules apply to Latin script when nothing better is known.
DEFAULT = "en"


def _stemmed(code: str, name: str, script: Script = Script.LATIN, *, stop: bool = True) -> Language:
    return Language(
        code=code, script=script, stemmer=name, stop_words=name if stop else None, fold_first=code in _FOLDED_FIRST
    )


_ALL = (
    _stemmed("en", "english"),
    _stemmed("pt", "portuguese"),
    _stemmed("es", "spanish"),
    _stemmed("fr", "french"),
    _stemmed("de", "german"),
    _stemmed("it", "italian"),
    _stemmed("nl", "dutch"),
    _stemmed("sv", "swedish"),
    _stemmed("da", "danish"),
    _stemmed("no", "norwegian"),
    _stemmed("fi", "finnish"),
    _stemmed("hu", "hungarian"),
    _stemmed("ro", "romanian", stop=False),
    _stemmed("tr", "turkish", stop=False),
    _stemmed("ru", "russian", Script.CYRILLIC),
    _stemmed("el", "greek", Script.GREEK, stop=False),
    _stemmed("ar", "arabic", Script.ARABIC, stop=False),
    _stemmed("ta", "tamil", Script.TAMIL, stop=False),
    *(
        Language(code=code, script=Script.LATIN)
        for code in ("pl", "cs", "sk", "hr", "sl", "lt", "lv", "et", "ca", "vi", "id", "sq", "is", "eu", "ga", "cy")
    ),
    *(Language(code=code, script=Script.CYRILLIC) for code in ("uk", "bg", "be", "sr", "mk", "kk", "mn")),
    *(Language(code=code, script=Script.ARABIC) for code in ("fa", "ur")),
    *(Language(code=code, script=Script.DEVANAGARI) for code in ("hi", "mr", "ne")),
    *(Language(code=code, script=Script.CONTINUOUS) for code in ("zh", "ja", "ko", "th", "lo", "km")),
    Language(code="he", script=Script.HEBREW),
    Language(code="bn", script=Script.BENGALI),
    Language(code="ka", script=Script.GEORGIAN),
    Language(code="hy", script=Script.ARMENIAN),
)

LANGUAGES: Mapping[str, Language] = MappingProxyType({language.code: language for language in _ALL})

_THREE_LETTERS = (  # ISO 639-2, both sorts
    "eng=en por=pt spa=es fra=fr fre=fr deu=de ger=de ita=it nld=nl dut=nl swe=sv dan=da nor=no fin=fi hun=hu ron=ro rum=ro "
    "tur=tr rus=ru ell=el gre=el ara=ar tam=ta pol=pl ces=cs cze=cs ukr=uk bul=bg zho=zh chi=zh jpn=ja kor=ko tha=th "
    "heb=he hin=hi fas=fa per=fa"
)
_SYNONYMS = {"nb": "no", "nn": "no", "iw": "he", "in": "id", "cmn": "zh", "yue": "zh"}
_SYNONYMS.update((pair[:3], pair[4:]) for pair in _THREE_LETTERS.split())


def language_code(tag: str | None) -> str | None:
    """The code of a BCP 47 or ISO 639 tag (`pt-BR`, `por`, `PT_br`), or None where clew does not know the language."""
    if not tag:
        return None
    primary = tag.strip().lower().replace("_", "-").split("-", 1)[0]
    code = _SYNONYMS.get(primary, primary)
    return code if code in LANGUAGES else None
