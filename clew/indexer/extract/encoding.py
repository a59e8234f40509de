"""Finds out in which encoding a text is written, and decodes it, whole or as a stream.

In this order: an encoding forced by settings, a byte order mark, UTF-16/32 by where NUL bytes lie, ISO-2022 escapes,
UTF-8 (strict, or with a few damaged bytes in it), a declared charset that decodes, statistics.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import BinaryIO

from clew.indexer.extract.document import Source
from clew.indexer.extract.letters import latin_code_page, script_code_page

SAMPLE_BYTES = 64 << 10
_CHUNK = 1 << 20  # bytes read and decoded at once in a stream

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# The name that is reported, and Python's codec behind it: the superset that files of that name really use
# (https://encoding.spec.whatwg.org/#names-and-labels).
_CODECS = {
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
    "big5": "big5hkscs",
    "iso-8859-1": "cp1252",
    "iso-8859-9": "cp1254",
    "iso-8859-11": "cp874",
}
_NAMES = {
    "ascii": "utf-8",
    "utf-8-sig": "utf-8",
    "gb2312": "gbk",
    "gbk": "gbk",
    "gb18030": "gbk",
    "hz": "hz",
    "cp932": "shift_jis",
    "shift_jis": "shift_jis",
    "shift_jis_2004": "shift_jis",
    "shift_jisx0213": "shift_jis",
    "euc_jp": "euc-jp",
    "euc_jis_2004": "euc-jp",
    "euc_kr": "euc-kr",
    "cp949": "euc-kr",
    "johab": "johab",
    "big5": "big5",
    "big5hkscs": "big5",
    "cp950": "big5",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "koi8_r": "koi8-r",
    "koi8_u": "koi8-u",
    "tis-620": "cp874",
}
_DECLARABLE = re.compile(
    r"(?:utf-8|ascii|gb\w+|hz|cp\d+|shift_jis\w*|euc_\w+|johab|big5\w*|iso8859-\d+|iso2022_\w+|koi8[_-]\w|mac-\w+|tis-620)"
)
# Where charset-normalizer may look; its other candidates decode the same bytes to rarer readings.
_CANDIDATES = [
    *("cp1251", "koi8_r", "koi8_u", "cp866", "iso8859_5", "mac_cyrillic", "cp1252", "cp1250", "iso8859_2", "cp1253"),
    *("iso8859_7", "cp1254", "cp1255", "cp1256", "cp1257", "cp874", "gb18030", "big5", "cp932", "euc_jp", "cp949"),
]
_MULTI_BYTE = frozenset(("gbk", "big5", "shift_jis", "euc-jp", "euc-kr"))

_ISO_2022 = (
    (re.compile(rb"\x1b\$\)C"), "iso2022_kr"),
    (re.compile(rb"\x1b(?:\$[@B]|\$\(D|\(J)"), "iso2022_jp_2"),
)
_HTML_CHARSET = re.compile(rb"<meta[^>]{1,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"\A\s*<\?xml[^>]{1,200}?encoding\s*=\s*[\"']([A-Za-z0-9_.:-]{2,40})[\"']")
_CSS_CHARSET = re.compile(rb"\A@charset \"([A-Za-z0-9_.:-]{2,40})\";")
_CODING_LINE = re.compile(rb"\A(?:[^\n]*\n)?[ \t\f]*(?:#|//|/\*|;|--|%|\"\"|<!--).{0,80}?coding[:=][ \t]*([-\w.]+)")


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text file whose encoding is known."""

    encoding: str
    _stream: BinaryIO
    _whole: bytes | None  # the content, where it is short

    def pieces(self, size: int) -> Iterator[str]:
        """The text in pieces of about `size` characters (one, where the file is short), with `\\n` line ends."""
        if self._whole is not None:
            yield _decode_whole(self._whole, self.encoding)
            return
        self._stream.seek(0)
        gathered: list[str] = []
        length = 0
        for text in decode_stream(self._stream, self.encoding):
            gathered.append(text)
            length += len(text)
            if length >= size:
                yield "".join(gathered)
                gathered, length = [], 0
        if gathered:
            yield "".join(gathered)

    def read(self) -> str:
        """The whole text."""
        return "".join(self.pieces(1 << 62))


def open_text(source: Source, *, declared: str | None = None, whole: int = 4 << 20) -> TextFile:
    """Find out the encoding of a source. `declared` tells where it may be declared: `html`, `xml`.

    Files up to `whole` bytes are read once; of longer ones every byte is looked at here, and again in `pieces`.
    """
    stream = source.stream
    stream.seek(0)
    head = stream.read(whole + 1)
    if len(head) <= whole:
        encoding = _forced(source.encoding) or detect_encoding(head, declared=declared)
        return TextFile(encoding, stream, head)
    encoding = _forced(source.encoding) or _detect_in_stream(stream, head[:SAMPLE_BYTES], declared)
    return TextFile(encoding, stream, None)


def decode(data: bytes | BinaryIO, hint: str | None = None) -> tuple[str, str]:
    """The text of some bytes, with `\\n` line ends, and the name of the encoding they are in.

    `hint` is a charset that something outside declares (an e-mail's header), or where to look for one: `html`, `xml`.
    Bytes that cannot be decoded become U+FFFD.
    """
    content = data if isinstance(data, bytes) else data.read()
    declared = hint if hint in ("html", "xml") else None
    encoding = None
    if hint and not declared and not bom_encoding(content):
        encoding = declared_encoding(hint, content)
    encoding = encoding or detect_encoding(content, declared=declared)
    return _decode_whole(content, encoding), encoding


def decode_stream(stream: BinaryIO, encoding: str) -> Iterator[str]:
    """Decode from the stream's position on, a mebibyte at a time, with `\\n` line ends."""
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(_codec(encoding))("replace"), translate=True)
    first = True
    while True:
        chunk = stream.read(_CHUNK)
        text = decoder.decode(chunk, final=not chunk)
        if first and text:
            text = text.removeprefix("\ufeff")
            first = False
        if text:
            yield text
        if not chunk:
            return


def _decode_whole(data: bytes, encoding: str) -> str:
    text = data.decode(_codec(encoding), "replace")
    if text[:1] == "\ufeff":
        text = text[1:]
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


# --- Detection --------------------------------------------------------------------------------------------------------


def detect_encoding(data: bytes, *, declared: str | None = None) -> str:
    """The encoding of a text that is at hand as a whole."""
    encoding = bom_encoding(data)
    if encoding is not None:
        return encoding
    wide = wide_encoding(data[:SAMPLE_BYTES])
    if wide is not None:
        return wide
    if data.isascii():
        return _escaped(data) or "utf-8"
    if _is_utf8(data):
        return "utf-8"
    return _declared(data[:SAMPLE_BYTES], declared, data) or guess_encoding(_telling(data))


def bom_encoding(head: bytes) -> str | None:
    """The encoding that a byte order mark declares."""
    return next((name for bom, name in _BOMS if head.startswith(bom)), None)


def wide_encoding(head: bytes) -> str | None:
    """UTF-16 or UTF-32 without a byte order mark, by NUL and control bytes, and by the characters that come out."""
    head = head[: 4 << 10]
    quarter = len(head) // 4
    if quarter == 0 or not (b"\0" in head or _CONTROL.search(head)):
        return None
    by_place = [head[place::4].count(0) for place in range(4)]
    for name, outer, inner in (("utf-32-le", 3, 2), ("utf-32-be", 0, 1)):
        if by_place[outer] >= quarter and by_place[inner] >= quarter * 0.9 and _wide_share(head, name, 4) >= 0.9:
            return name
    scores = [(_wide_share(head, name, 2), name) for name in ("utf-16-le", "utf-16-be")]
    best, worse = max(scores), min(scores)
    return best[1] if best[0] >= 0.95 and best[0] > worse[0] else None


_CONTROL = re.compile(b"[\x01-\x08\x0b\x0e-\x1a]")
# What most of the world's text is made of; a wrong byte order scatters over everything else.
_COMMON = re.compile(
    "[\t\n\r\f -~\u00a0-\u024f\u0370-\u06ff\u0900-\u097f\u0e00-\u0e5b\u1e00-\u1eff\u2010-\u2044\u20ac\u2116\u3000-\u30ff"
    "\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff9f\U0001f300-\U0001faff]"
)


def _wide_share(head: bytes, name: str, unit: int) -> float:
    """The share of common characters that bytes give in a wide encoding; 0 where they are not in it."""
    whole = len(head) - len(head) % unit
    try:
        text = head[:whole].decode(name)
    except UnicodeDecodeError as error:
        if error.start < whole - unit:  # not just a surrogate pair cut in two
            return 0.0
        text = head[: error.start].decode(name)
    return len(_COMMON.findall(text)) / len(text) if text else 0.0


def declared_encoding(name: str, data: bytes) -> str | None:
    """A declared charset, under the name that clew reports, if there is such a one and the bytes are in it."""
    try:
        found = codecs.lookup(name.strip().lower()).name
    except (LookupError, ValueError):
        return None
    if not _DECLARABLE.fullmatch(found):
        return None
    encoding = _NAMES.get(found, found.replace("iso8859", "iso-8859"))
    try:
        data.decode(_codec(encoding))
    except UnicodeDecodeError as error:
        if error.start < len(data) - 4 or not error.reason.startswith(("incomplete", "unexpected end")):
            return None
    return encoding


def guess_encoding(sample: bytes) -> str:
    """The encoding of bytes that are not UTF-8, by the letters that come out.

    charset-normalizer tells scripts apart well, but takes half of all Portuguese paragraphs for cp1250; so Western and
    Central European code pages are told apart by alphabets (`letters`), the others by letter frequencies where those
    speak clearly.
    """
    family = _euc_family(sample)
    if family is not None:
        return family
    latin = latin_code_page(sample)
    if latin is not None:
        return latin
    script = script_code_page(sample)
    if script is not None:
        return script
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=_CANDIDATES).best()
    if best is not None:
        found = codecs.lookup(best.encoding).name
        encoding = _NAMES.get(found, found.replace("iso8859", "iso-8859"))
        if encoding in _MULTI_BYTE or not encoding.startswith(("cp125", "iso-8859")) or encoding in _NON_LATIN:
            return encoding
    return latin_code_page(sample, least=-9.0) or "cp1252"


_NON_LATIN = frozenset(("cp1251", "iso-8859-5", "cp1253", "iso-8859-7", "cp1255", "cp1256", "cp874"))


def _euc_family(sample: bytes) -> str | None:
    """GBK, EUC-KR or EUC-JP where they speak clearly: all high bytes in pairs, from the rows of common characters.

    Rows 16-40 of KS X 1001 are Hangul, rows 16-55 of GB 2312 the common Han characters, rows 4 and 5 of JIS X 0208 kana.
    """
    runs = _HIGH_RUN.findall(sample[:4096])
    if len(sample) > 4096 and runs:
        runs.pop()  # may be cut in two
    if sum(len(run) & 1 for run in runs) > 0:
        return None
    pairs = b"".join(runs)
    leads, trails = pairs[::2], pairs[1::2]
    if len(leads) < 12 or min(trails) < 0xA1 or min(leads) < 0xA1:
        return None
    in_rows = [0] * 256
    for lead in leads:
        in_rows[lead] += 1
    count = len(leads)
    if sum(in_rows[0xA4:0xA6]) >= count * 0.2:
        return "euc-jp"
    if sum(in_rows[0xB0:0xC9]) >= count * 0.93:
        return "euc-kr"
    punctuation = in_rows[0xA1] + in_rows[0xA3]
    if sum(in_rows[0xB0:0xD8]) + punctuation >= count * 0.9 and sum(in_rows[0xC9:0xD8]) >= count * 0.1:
        return "gbk"
    return None


_HIGH_RUN = re.compile(rb"[\x80-\xff]+")


def _forced(name: str | None) -> str | None:
    if not name:
        return None
    found = codecs.lookup(name).name
    return _NAMES.get(found, found)


@cache
def _codec(encoding: str) -> str:
    return _CODECS.get(encoding, encoding)


def _escaped(data: bytes) -> str | None:
    if b"\x1b" not in data:
        return None
    for pattern, name in _ISO_2022:
        if pattern.search(data):
            try:
                data.decode(name)
            except UnicodeDecodeError:
                continue
            return name
    return None


def _is_utf8(data: bytes) -> bool:
    """Strictly, or all but for one damaged sequence in twenty."""
    try:
        data.decode()
    except UnicodeDecodeError:
        pass
    else:
        return True
    text = data.decode("utf-8", "replace")
    damaged = text.count("\ufffd")
    sound = len(text) - damaged - len(data.translate(None, _HIGH_BYTES))
    return sound >= 20 * damaged


_HIGH_BYTES = bytes(range(0x80, 0x100))


def _declared(head: bytes, where: str | None, data: bytes) -> str | None:
    patterns = {"html": (_XML_ENCODING, _HTML_CHARSET), "xml": (_XML_ENCODING,)}.get(where or "")
    for pattern in patterns or (_XML_ENCODING, _CSS_CHARSET, _CODING_LINE):
        found = pattern.search(head)
        if found is not None:
            encoding = declared_encoding(found[1].decode("ascii"), data)
            if encoding is not None and encoding != "utf-8":
                return encoding
    return None


def _telling(data: bytes) -> bytes:
    """The lines that hold anything but ASCII, up to `SAMPLE_BYTES / 4`: they alone tell encodings apart."""
    lines: list[bytes] = []
    length = 0
    for line in data.splitlines(keepends=True):
        if not line.isascii():
            lines.append(line)
            length += len(line)
            if length >= SAMPLE_BYTES // 4:
                break
    return b"".join(lines)[: SAMPLE_BYTES // 2]


def _detect_in_stream(stream: BinaryIO, head: bytes, declared: str | None) -> str:
    encoding = bom_encoding(head) or wide_encoding(head)
    if encoding is not None:
        return encoding
    escape = _escaped(head)
    if escape is not None:
        return escape
    stream.seek(0)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    damaged = sound = 0
    telling = b""
    for chunk in chain(iter(lambda: stream.read(_CHUNK), b""), (b"",)):
        if chunk.isascii() and not damaged:
            decoder.decode(chunk, not chunk)
            continue
        text = decoder.decode(chunk, not chunk)
        damaged += text.count("\ufffd")
        sound += max(0, len(text) - text.count("\ufffd") - len(chunk.translate(None, _HIGH_BYTES)))
        if len(telling) < SAMPLE_BYTES:
            telling += _telling(chunk)
        elif damaged and sound < 20 * damaged:
            break
    if sound >= 20 * damaged:
        return "utf-8"
    return _declared(head, declared, telling) or guess_encoding(telling[:SAMPLE_BYTES])
