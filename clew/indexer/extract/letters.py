"""Which code page makes sensible words out of bytes: alphabets for Latin scripts, letter frequencies for others."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

# Letters beyond ASCII of each language, by code page. Earlier ones win ties: where two readings are equally good, the
# text holds too little to tell, and the commoner encoding is the better guess.
_WESTERN = {
    "pt": "áàâãçéêíóôõúü",
    "es": "áéíñóúü",
    "fr": "àâæçèéêëîïôœùûüÿ",
    "de": "äöüß",
    "it": "àèéìíîòóùú",
    "nl": "áäéëèïíóöúü",
    "sv": "åäöé",
    "da": "æøåé",
    "is": "áðéíóúýþæö",
    "ca": "àçèéíïòóúü",
}
_CENTRAL = {
    "pl": "ąćęłńóśźż",
    "cs": "áčďéěíňóřšťúůýž",
    "sk": "áäčďéíĺľňóôŕšťúýž",
    "hu": "áéíóöőúüű",
    "ro": "ăâîşţșț",
    "hr": "čćđšž",
}
_TURKISH = {"tr": "çğıöşüâîû"}
_BALTIC = {"lt": "ąčęėįšųūž", "lv": "āčēģīķļņšūž", "et": "äöõüšž"}
_LATIN_PAGES: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("cp1252", "cp1252", _WESTERN),
    ("cp1250", "cp1250", _CENTRAL),
    ("iso-8859-2", "iso8859_2", _CENTRAL),
    ("cp1254", "cp1254", _TURKISH),
    ("cp1257", "cp1257", _BALTIC),
    ("iso-8859-15", "iso8859_15", _WESTERN),
    ("mac-roman", "mac_roman", _WESTERN),
    ("cp850", "cp850", _WESTERN),
    ("cp852", "cp852", _CENTRAL),
)
_BETWEEN_LETTERS = frozenset("’‘–—…·“”«»")
_RARE = frozenset(("mac_roman", "cp850", "cp852"))
# What stands between words, or at their ends, in any language.
_TYPOGRAPHY = frozenset("\u00a0«»‹›“”„‘’‚–—…•·°ºª§©®™€£¢¥±×÷²³½¼¾¿¡¶†‡‰µ´¨\u00ad")

# Share of each letter in running text, per cent.
_FREQUENCIES: dict[str, str] = {
    "cyrillic": "о10.5 е8.3 а8.0 и7.2 н6.7 т6.2 с5.4 р4.7 в4.5 л4.3 к3.5 м3.2 д3.0 п2.8 у2.6 я2.0 ы1.7 ь1.7 г1.7 з1.6 "
    "б1.6 ч1.4 й1.2 х1.0 ж.9 ш.7 ю.6 ц.5 щ.4 э.3 ф.3 ъ.1 ё.1 і1.5 ї.4 є.4 ґ.05 ў.1 ј.1 љ.1 њ.1 ћ.1 ђ.05 џ.02",
    "greek": "α10.0 ο9.0 ε7.5 ι7.5 τ7.9 ν6.5 σ5.0 ς4.0 η4.5 υ3.7 ρ4.1 π4.1 κ4.0 μ3.4 λ2.8 ω1.6 γ1.8 δ1.8 θ1.2 χ1.2 "
    "φ.9 β.8 ξ.5 ζ.4 ψ.2 ά1.5 ό1.6 έ1.6 ί1.9 ή1.5 ύ1.0 ώ.7 ϊ.1 ΐ.05",
    "hebrew": "י11.0 ה10.0 ו10.4 ל7.4 א6.3 ר5.6 ת5.0 ב4.7 ש4.4 מ5.8 ם2.5 ח2.5 נ2.9 ן1.4 ד2.6 כ2.3 ך.8 פ1.7 ף.3 ק2.1 "
    "צ1.2 ץ.2 ט1.2 ע3.2 ס1.5 ז1.3 ג1.2",
    "arabic": "ا14.0 ل12.0 ي7.0 م6.5 و6.0 ن6.0 ر5.0 ت5.0 ب4.0 ه3.5 ة3.0 ع3.5 د3.0 س2.8 ف2.8 ك2.3 ق2.3 أ2.5 ح2.0 ج1.5 "
    "ش1.0 ص1.0 ض.7 ط.8 خ1.0 ث.7 ذ.8 ز.6 ء.5 ى.9 غ.5 ظ.3 إ1.0 ئ.4 ؤ.2 آ.2",
}
# The last column: how much a reading must lose for its rarity (a text without capitals fits several code pages).
_SCRIPT_PAGES: tuple[tuple[str, str, str, float], ...] = (
    ("cp1251", "cp1251", "cyrillic", 1.0),
    ("koi8-r", "koi8_r", "cyrillic", 1.0),
    ("koi8-u", "koi8_u", "cyrillic", 0.98),
    ("cp866", "cp866", "cyrillic", 0.98),
    ("iso-8859-5", "iso8859_5", "cyrillic", 0.98),
    ("mac-cyrillic", "mac_cyrillic", "cyrillic", 0.97),
    ("cp1253", "cp1253", "greek", 1.0),
    ("iso-8859-7", "iso8859_7", "greek", 0.98),
    ("cp1255", "cp1255", "hebrew", 1.0),
    ("cp1256", "cp1256", "arabic", 1.0),
)
# Running text scores the sum of its squared letter frequencies, about 5.5; a wrong reading of it below 3.5.
_LEAST_SCRIPT_SCORE = 4.2
_LEAST_LATIN_SCORE = 0.85
_HIGH = re.compile(rb"[\x80-\xff]")
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_SCORED_BYTES = 4096  # enough; more only costs time


def latin_code_page(sample: bytes, *, least: float = _LEAST_LATIN_SCORE) -> str | None:
    """The code page in which the bytes beyond ASCII are letters of one Latin alphabet; None where none fits."""
    sample = sample[:_SCORED_BYTES]
    best: tuple[float, str] | None = None
    for name, codec, languages in _LATIN_PAGES:
        score = _latin_score(sample, codec, languages)
        if codec in _RARE:
            score -= 0.08
        if best is None or score > best[0] + 1e-9:
            best = (score, name)
    return best[1] if best is not None and best[0] >= least else None


def _latin_score(sample: bytes, codec: str, languages: dict[str, str]) -> float:
    """1 where every byte beyond ASCII is a letter of one language, where it can stand, or typography; less otherwise."""
    text = f" {sample.decode(codec, 'replace')} "
    total = 0.0
    count = 0
    letters: Counter[str] = Counter()
    for found in _HIGH.finditer(sample):
        at = found.start() + 1
        before, char, after = text[at - 1], text[at], text[at + 1]
        count += 1
        if char in _TYPOGRAPHY:
            total += 1.0 if char in _BETWEEN_LETTERS or not (before.isalpha() and after.isalpha()) else -0.5
        elif not char.isalpha():
            total -= 1.0 if char < "\xa0" or char == "\ufffd" else 0.3
        elif (char.isupper() and before.islower()) or (
            before > "\x7f" and after > "\x7f" and before.isalpha() and after.isalpha()
        ):
            total -= 0.5  # an upper-case letter inside a word; three accents in a row: another script
        else:
            letters[char.lower()] += 1
    if not count:
        return 0.0
    all_letters = letters.total()
    known = max(sum(letters[char] for char in alphabet) for alphabet in languages.values())
    return (total + known - 0.3 * (all_letters - known)) / count


def script_code_page(sample: bytes) -> str | None:
    """The code page in which the bytes are Cyrillic, Greek, Hebrew or Arabic text of the usual letter frequencies."""
    sample = sample[:_SCORED_BYTES]
    runs = _HIGH_RUN.findall(sample)
    count = sum(map(len, runs))
    if count < 2 * len(runs) or not runs:
        return None  # single accents among ASCII, or pairs of bytes
    histogram = Counter(b"".join(runs))
    best: tuple[float, str] | None = None
    for name, codec, script, rarity in _SCRIPT_PAGES:
        weights, misplaced = _page(codec, script)
        total = sum(times * weights[byte] for byte, times in histogram.items())
        score = (total - 20.0 * len(misplaced.findall(sample))) / count * rarity
        if best is None or score > best[0] + 1e-9:
            best = (score, name)
    return best[1] if best is not None and best[0] >= _LEAST_SCRIPT_SCORE else None


@cache
def _page(codec: str, script: str) -> tuple[list[float], re.Pattern[bytes]]:
    """The weight of each byte in a code page, and the pairs of bytes that no word contains."""
    frequencies = {item[0]: float(item[1:]) for item in _FREQUENCIES[script].split()}
    weights: list[float] = []
    upper, lower = bytearray(), bytearray()
    for byte in range(256):
        char = bytes((byte,)).decode(codec, "replace")
        if byte < 0x80:
            weights.append(0.0)
        elif char in _TYPOGRAPHY or char == "№":
            weights.append(4.0)  # neither for nor against
        elif char.isalpha():
            weights.append(frequencies.get(char.lower(), -2.0))
            (upper if char.isupper() else lower).append(byte)
        else:
            weights.append(-2.0)
    letters = _class(upper + lower)
    pairs = [rb"[A-Za-z]%b" % letters, rb"%b[A-Za-z]" % letters]
    if upper:
        pairs.append(rb"%b%b" % (_class(lower), _class(upper)))
    return weights, re.compile(b"|".join(pairs))


def _class(values: bytes | bytearray) -> bytes:
    return b"[" + b"".join(b"\\x%02x" % value for value in values) + b"]"
