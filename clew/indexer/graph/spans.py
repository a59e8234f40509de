"""Names in running text, by their shape: capitalised runs, identifiers, norms, cases, dates; each with the type its place gives it.

A name is found by one regular expression over the passage; only what it finds is looked at in Python, so the cost follows the
number of names and not of words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from clew.indexer.graph.lexicon import FIRST_NAMES, GAZETTEER, HONORIFICS, LAW, ORGANISATION, PLACE, Lexicon, lexicon


@dataclass(frozen=True, kw_only=True, slots=True)
class Name:
    """A name at text[start:end]."""

    start: int
    end: int
    text: str
    type: str  # '' where nothing tells
    sure: bool  # whether a word says so; else it is a guess by shape, right more often than not
    kind: str  # name | identifier


def _class(category: str) -> str:
    """A character class of all letters of a category in the first planes of alphabets: Latin, Greek, Cyrillic, Armenian, …"""
    letters = [n for n in range(0x2000) if unicodedata.category(chr(n)) == category]
    parts: list[str] = []
    first = last = letters[0]
    for one in [*letters[1:], -1]:
        if one == last + 1:
            last = one
            continue
        parts.append(re.escape(chr(first)) + ("-" + re.escape(chr(last)) if last > first else ""))
        first = last = one
    return "".join(parts)


_UP, _LOW = _class("Lu"), _class("Ll")
_WORD = rf"(?:[{_UP}][\w]*(?:[’'&.\-‑][\w]+)*[+#]*|[{_LOW}]{{1,3}}[{_UP}][\w]+)"
_JOIN = r"(?:of the|for the|of|for|the|and|&|de la|de los|de las|de|da|do|das|dos|del|e|y|von|van der|van|di|du|и|по)"
_RUN = re.compile(
    rf"(?<![\w@#/\\.\-_'’])(?:{_WORD})(?:[ \u00a0](?:{_JOIN}[ \u00a0](?={_WORD}))?(?:{_WORD}|\d{{1,4}}[A-Za-z]?(?![\w./:%-])))*"
)
_PIECE = re.compile(r"[^ \u00a0]+")
_SENTENCE_END = re.compile(r"(?:^|[.!?…:;\n\"“«>|*•]|[-–—(]\s)[\s\"'“«(\[*_#>-]*$")

#: Names of programs, files, options and symbols: parts joined by - _ . / :, or with digits or inner capitals.
_IDENTIFIER = re.compile(
    rf"(?<![\w@#/\\.\-])(?:[a-z]+(?:-[a-z0-9]+){{1,4}}(?=`)|[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+|[a-z]\w+(?:\.\w+)+\(\)|[{_UP}][a-z0-9]+(?:[{_UP}][a-z0-9]+)+|"
    r"(?<=`)[a-z][\w.-]{2,40}(?=`)|[a-z][a-z0-9]*(?:-[a-z0-9]+)*\.(?:ya?ml|json|conf|py|go|js|ts|sh|toml|md)\b)(?![\w/\\])"
)
_NUMBER = r"n\s?\.?\s?[º°o]?\s?\.?\s?"
_CODE = r"(?:CLT|CPC|CPP|CPM|CPPM|CDC|CTN|CF(?:\s?/\s?(?:19)?88)?|CC|CP|ECA|LEP|CE|RISTF|RITCU|RIST[A-Z]|ADCT|CTB|LC)"
_LAW_NAME = (
    rf"(?:(?:Lei|LEI|Decreto|DECRETO|Resolução|RESOLUÇÃO|Portaria|PORTARIA|Emenda Constitucional|EC|LC|MP|Medida Provisória|Instrução Normativa|"
    rf"Lei Complementar|LEI COMPLEMENTAR|Decreto-Lei|Decreto-lei|DL|Leis)(?:[ ](?:[{_UP}][\w-]+))*\s(?:{_NUMBER})?\d[\d.]*(?:-\d+)?(?:\s?[/⁄]\s?\d{{2,4}})?(?:-[A-Z]{{2}})?"
    rf"|Constituição(?: (?:Federal|da República|Estadual|FEDERAL))*(?: de 1988)?|CONSTITUIÇÃO FEDERAL|(?:Código|CÓDIGO)(?: (?:de|DE|do|da) [{_UP}]\w+| [{_UP}]\w+)+|Lei [{_UP}][\w]+(?:(?: da| de)? [{_UP}]\w+)*|{_CODE}\b)"
)
_ARTICLE = r"(?:[Aa]rt(?:s|igo|igos)?\b\s?\.?\s?\d[\d.]*(?:\s?[º°o]\b)?(?:-[A-Z]\b)?)"
# Atomic and possessive: lists of articles have many readings, and a name is worth the first alone.
_ARTICLE_PART = r"(?>\s?,?\s?(?:e\s|c/c\s)?(?:§+\s?\d+\s?[º°o]?|inc(?:iso|\s?\.)\s?[IVXLC]+|[IVXLC]+\b|al[íi]nea\s?[\"“']?\s?[a-z]\s?[\"”']?|caput|[\"“]\s?[a-z]\s?[\"”]|parágrafo único|\d[\d.]*\s?[º°o]?)){0,40}+"
_LAWS = re.compile(rf"(?<!\w)(?:{_ARTICLE}{_ARTICLE_PART}\s?,?\s?(?:tod[oa]s?\s)?d[aoe]s?\s)?{_LAW_NAME}(?!\w)")
_CASE = re.compile(
    rf"(?<!\w)(?:(?:[A-Z][A-Za-z]{{1,6}}-){{0,4}}(?:AgRg|AgR|AgInt|EDcl|ED|EI|RR|AIRR|REsp|RESP|REspe|RE|ARE|AREsp|HC|RHC|MS|RMS|ADI|ADIN|ADPF|ADC|ADO|AI|AC|APL|Rcl|RCL|Pet|SL|SS|STA|MC|QO|"
    rf"Súmula|SÚMULA|Acórdão|ACÓRDÃO|Acórdãos|Autos|Processo|PROCESSO|HABEAS CORPUS|Habeas Corpus|Apelação Cível|Apelação|Recurso Especial|Recurso Extraordinário)"
    rf"(?:[ -](?:AgRg|AgR|AgInt|EDcl|ED|no|na|nos|em|REsp|RE|AREsp|HC|MS|RR|AI|Al|PC|Vinculante|A GR)){{0,6}})\s?(?:{_NUMBER})?\d[\d.\-⁄/]*\d(?:\s?[/-]\s?[A-Z]{{2}}(?![a-z]))?(?: d[oa] (?:TST|STJ|STF|TSE|TCU))?"
    rf"|(?<![\w.])(?:Súmula|SÚMULA)\s(?:{_NUMBER})?\d+(?: d[oa] (?:TST|STJ|STF|TSE|TCU))?|(?<![\w./-])\d{{4,7}}-?\d{{2}}\.\d{{4}}\.\d\.\d{{2}}\.\d{{4}}(?:/\d+)?"
)
_MONTH = (
    r"(?:janeiro|fevereiro|março|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro|"
    r"enero|febrero|marzo|mayo|junio|julio|septiembre|octubre|noviembre|diciembre|"
    r"January|February|March|April|May|June|July|August|September|October|November|December|"
    r"января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|ноября|декабря)"
)
_DATE = re.compile(
    rf"(?<![\w./-])(?:\d{{1,2}}[º°o]?\s(?:de\s)?{_MONTH}(?:\s(?:de\s)?\d{{4}})?|{_MONTH}\s(?:\d{{1,2}},?\s)?(?:de\s)?\d{{4}}|\d{{1,2}}\s?[/⁄.]\s?\d{{1,2}}\s?[/⁄.]\s?\d{{4}}|\d{{4}}-\d{{2}}-\d{{2}})(?![\w/-])",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?:(?<=\bem )|(?<=\bde )|(?<=\bEm )|(?<=\bano )|(?<=\bEM ))(?:19|20)\d\d(?![\w./⁄-])")


def names(text: str, language: str | None) -> list[Name]:
    """Names in a text, by position; none lies within another."""
    words = lexicon(language)
    found: list[Name] = []
    taken: list[tuple[int, int]] = []
    for pattern, kind in _patterns(language):
        for match in pattern.finditer(text):
            start, end = match.span()
            if not any(start < b and a < end for a, b in taken):
                taken.append((start, end))
                found.append(Name(start=start, end=end, text=match.group(), type=kind, sure=True, kind="name"))
    for match in _IDENTIFIER.finditer(text):
        start, end = match.span()
        if not any(start < b and a < end for a, b in taken):
            taken.append((start, end))
            found.append(
                Name(start=start, end=end, text=match.group(), type="identifier", sure=True, kind="identifier")
            )
    taken.sort()
    shouted = _shouting(text)
    for match in _RUN.finditer(text):
        run = _of_run(text, match.start(), match.end(), words, shouted)
        found += [name for name in run if not any(name.start < b and a < name.end for a, b in taken)]
    return sorted(found, key=lambda name: (name.start, name.end))


def _patterns(language: str | None) -> Iterator[tuple[re.Pattern[str], str]]:
    if language == "pt":
        yield _LAWS, "law"
        yield _CASE, "case"
    yield _DATE, "date"
    if language == "pt":
        yield _YEAR, "date"


def _shouting(text: str) -> bool:
    """Whether most of a text is in capitals: then they tell nothing."""
    upper = sum(1 for c in text if c.isupper())
    return upper > 0.6 * sum(1 for c in text if c.isalpha())


def _of_run(text: str, start: int, end: int, words: Lexicon, shouted: bool) -> Iterator[Name]:
    """The names in a run of capitalised words: without ordinary words in front, titles and joining words at its ends."""
    pieces = [(start + m.start(), start + m.end(), m.group()) for m in _PIECE.finditer(text[start:end])]
    opens = _SENTENCE_END.search(text[max(0, start - 12) : start]) is not None
    group: list[tuple[int, int, str]] = []
    honoured = False
    out: list[Name] = []

    def close() -> None:
        nonlocal group, honoured
        while group and group[0][2].lower() in _SMALL:
            group = group[1:]
        while group and (group[-1][2].lower() in _SMALL or (group[-1][2].isdigit() and len(group) == 1)):
            group = group[:-1]
        if group:
            name = _named(text, group, words, honoured=honoured, opens=opens and group[0][0] == start)
            if name is not None:
                out.append(name)
        group, honoured = [], False

    for index, (a, b, word) in enumerate(pieces):
        low = word.lower().rstrip(".")
        if low in HONORIFICS and not group:
            honoured = True
            continue
        ordinary = low in words.common
        capital = word.isupper() and len(word) > 1
        if ordinary and not group and ((opens and index == 0) or capital or shouted or low in words.articles):
            continue
        if ordinary and capital and len(word) > 3 and low not in _SMALL:
            close()
            continue
        if group and word[0].isdigit() and (group[-1][2].isupper() or group[-1][2].lower() in words.common):
            continue  # "TCP 80" is no name, "Xbox 360" is one
        group.append((a, b, word))
    close()
    yield from out


_SMALL = frozenset(
    [
        "of",
        "for",
        "the",
        "and",
        "&",
        "de",
        "la",
        "los",
        "las",
        "da",
        "do",
        "das",
        "dos",
        "del",
        "e",
        "y",
        "von",
        "van",
        "der",
        "di",
        "du",
        "и",
        "по",
        "a",
        "o",
        "os",
        "as",
        "um",
        "uma",
        "no",
        "na",
        "nos",
        "nas",
        "em",
    ]
)


def _named(text: str, group: list[tuple[int, int, str]], words: Lexicon, *, honoured: bool, opens: bool) -> Name | None:
    start, end = group[0][0], group[-1][1]
    name = text[start:end].rstrip(".'’-&").removesuffix("'s").removesuffix("’s")
    if len(name) > 3:
        name = name.rstrip("+#")
    end = start + len(name)
    low = [word.lower().rstrip(".,") for _, _, word in group]
    if len(group) == 1 and (len(name) < 2 or (low[0] in words.common and not honoured)):
        return None
    if _ROMAN.fullmatch(name):
        return None
    if len(group) == 1 and _NOISE.search(name):
        return None  # keys, hashes and other encoded text
    if len(group) == 1 and name[:2].islower() and not name.islower():
        return Name(start=start, end=end, text=name, type="identifier", sure=True, kind="identifier")
    kind, sure = _type(text, start, end, low, group, honoured=honoured)
    if (not kind or low[0] in ORGANISATION) and opens and len(group) == 1 and name[1:].islower():
        return None  # an ordinary word that no list has, as a rule; or what a thing is ("Banco de horas"), not its name
    shouted = name.isupper() and (len(group) > 1 or len(name) > 7)
    if shouted and kind in ("", "person") and not honoured and low[0] not in FIRST_NAMES:
        return None  # a heading in capitals: what it names is known by its words alone
    return Name(start=start, end=end, text=name, type=kind, sure=sure, kind="name")


_NOISE = re.compile(r"[A-Za-z0-9]{24}|(?=\w*\d\w*\d)(?=\w*[a-z])(?=\w*[A-Z]\w*[A-Z])\w{9}")
_ROMAN = re.compile(r"[IVXLC]+(?:-[A-Z])?")
_IN = re.compile(r"\b(?:in|at|from|near|to|em|no|na|para|desde|en|в|из|под|во)\s$", re.IGNORECASE)


def _type(
    text: str, start: int, end: int, low: list[str], group: list[tuple[int, int, str]], *, honoured: bool
) -> tuple[str, bool]:
    """(what a name names, whether a word says so), by its words and the one before it; ('', False) where nothing tells."""
    if low[0] in LAW:
        return "law", True
    if any(word in ORGANISATION for word in low):
        return "organisation", len(low) > 1
    if honoured:
        return "person", True
    if len(low) > 1 and (low[0] in PLACE or low[-1] in PLACE):
        return "place", True
    if low[0] in FIRST_NAMES:
        return "person", len(low) > 1
    if all(word in GAZETTEER for word in low) or (low[0] in GAZETTEER and len(low) <= 2) or " ".join(low) in _PLACES:
        return "place", True
    if any(c.isdigit() for c in text[start:end]):
        return "product", False
    shaped = all(word[:1].isupper() and word[1:].islower() for _, _, word in group)
    if 2 <= len(group) <= 3 and shaped:
        return ("place" if _IN.search(text[max(0, start - 6) : start]) else "person"), False
    if len(group) == 1 and _IN.search(text[max(0, start - 6) : start]):
        return "place", False
    return "", False


_PLACES = frozenset(
    {
        "new york", "los angeles", "san francisco", "united states", "united kingdom", "hong kong", "south africa", "new zealand",
        "saudi arabia", "sri lanka", "são paulo", "rio de janeiro", "minas gerais", "distrito federal", "santa catarina",
        "espírito santo", "mato grosso", "rio grande do sul", "rio grande do norte", "belo horizonte", "porto alegre", "rio branco",
        "estados unidos", "новосибирская область", "российская федерация", "российской федерации", "нижний новгород",
    }
)  # fmt: skip
