"""Tests that a value passes or fails, and how they run over Arrow columns.

Case: paths, names and record ids are compared as written, as file systems and buckets do; everything else ignores case.
A predicate gives null or no where there is no value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clew.query.candidates import Mask
from clew.query.catalog import mask_of
from clew.query.glob import Glob
from clew.query.moments import Age, Day, Moment, Period, read_moment

Predicate = Callable[[pa.Array], pa.Array]
Operator = Literal["=", ">", ">=", "<", "<="]
Value = int | float | Period | Day | Age

#: Names that people use for the kinds that extractors go by.
TYPE_ALIASES: dict[str, str] = {
    **dict.fromkeys(("md", "mdx"), "markdown"),
    **dict.fromkeys(("htm", "xhtml", "web"), "html"),
    **dict.fromkeys(("txt", "plain"), "text"),
    **dict.fromkeys(("word", "doc"), "docx"),
    **dict.fromkeys(("powerpoint", "ppt", "slides"), "pptx"),
    **dict.fromkeys(("excel", "xls", "spreadsheet"), "xlsx"),
    **dict.fromkeys(("eml", "mail", "e-mail", "message"), "email"),
    **dict.fromkeys(("ipynb", "jupyter"), "notebook"),
    **dict.fromkeys(("adoc", "asc"), "asciidoc"),
    **dict.fromkeys(("ndjson", "ldjson"), "jsonl"),
    "tsv": "csv",
    "ebook": "epub",
    "restructuredtext": "rst",
    "source": "code",
}
#: Kinds, and the extensions that stand for them while a file has not been read.
TYPE_EXTENSIONS: dict[str, tuple[str, ...]] = {
    "markdown": ("md", "markdown", "mdx", "mkd"),
    "html": ("html", "htm", "xhtml"),
    "text": ("txt", "text", "log"),
    "docx": ("docx", "docm"),
    "pptx": ("pptx", "pptm"),
    "xlsx": ("xlsx", "xlsm"),
    "email": ("eml",),
    "notebook": ("ipynb",),
    "asciidoc": ("adoc", "asciidoc"),
    "jsonl": ("jsonl", "ndjson"),
    "csv": ("csv", "tsv"),
    "code": (),
    **{kind: (kind,) for kind in ("pdf", "rst", "odt", "ods", "odp", "epub", "json", "parquet")},
}

_NUMBER = r"^\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*$"
_INT64 = np.iinfo(np.int64)


# --- What a value is held against -------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Like:
    """`field:pattern`."""

    glob: Glob

    def __str__(self) -> str:
        return str(self.glob)

    def describe(self) -> str:
        return ("fits " if self.glob.wild else "is ") + self.glob.text


@dataclass(frozen=True, kw_only=True, slots=True)
class Exactly:
    """`field=text`, no wildcards."""

    text: str

    def __str__(self) -> str:
        return str(Glob.literal(self.text))

    def describe(self) -> str:
        return f"is exactly {self.text}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """`field>value`. A period compares as a whole: `>2025-01` is from February on. An age counts back: `<7d` is younger."""

    operator: Operator
    value: Value

    def __str__(self) -> str:
        return _value_text(self.value)

    def describe(self) -> str:
        if isinstance(self.value, Age):
            return ("older than " if self.operator in (">", ">=") else "within the last ") + str(self)
        return f"{self.operator} {self}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Between:
    """`field:low..high`, both ends included; one of them may be missing."""

    low: Value | None
    high: Value | None

    def __str__(self) -> str:
        return "..".join("" if end is None else _value_text(end) for end in (self.low, self.high))

    def describe(self) -> str:
        return f"between {self}" if None not in (self.low, self.high) else f"in {self}"


TextTest = Like | Exactly
RangeTest = Compared | Between
Test = TextTest | RangeTest


def _value_text(value: Value) -> str:
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)


# --- Over columns ---------


def _fits(regex: str) -> Predicate:
    return lambda column: pc.match_substring_regex(column, f"(?s)^(?:{regex})$")


def folded(test: TextTest) -> Predicate:
    """The test over a column, without regard to case."""
    if isinstance(test, Like) and test.glob.wild:
        fits = _fits(_lowered(test.glob).flat_regex())
        return lambda column: fits(pc.utf8_lower(column))
    text = _lower(test.text if isinstance(test, Exactly) else test.glob.text)
    return lambda column: pc.equal(pc.utf8_lower(column), text)


def _lower(text: str) -> str:
    """As Arrow lowers columns, which is not quite as Python does."""
    return str(pc.utf8_lower(pa.scalar(text, pa.string())).as_py())


def _lowered(glob: Glob) -> Glob:
    return Glob(parts=tuple(_lower(part) if isinstance(part, str) else part for part in glob.parts))


def cased(test: TextTest) -> Predicate:
    """The test over a column, as written."""
    if isinstance(test, Like) and test.glob.wild:
        return _fits(test.glob.flat_regex())
    text = test.text if isinstance(test, Exactly) else test.glob.text
    return lambda column: pc.equal(column, text)


def path_test(test: TextTest) -> Predicate:
    """A pattern over the whole path; without wildcards it names a file, or a folder with all that is below it."""
    if isinstance(test, Exactly):
        return lambda column: pc.equal(column, test.text)
    glob = test.glob.stripped()
    below = test.glob.text.endswith("/")
    if not glob.parts or glob.text == ".":
        return _present
    if glob.wild:
        return _fits(glob.path_regex() + ("/.+" if below else ""))
    if below:
        return lambda column: pc.starts_with(column, glob.text + "/")
    return lambda column: pc.or_(pc.equal(column, glob.text), pc.starts_with(column, glob.text + "/"))


def directory_test(test: TextTest) -> Predicate:
    """`dir:x` is in x or below it, `dir=x` directly in it; `dir=.` is the top."""
    if isinstance(test, Exactly):
        folder = Glob.literal(test.text).stripped()
        if not folder.parts or folder.text == ".":
            return _fits("[^/]*")
        return _fits(folder.path_regex() + "/[^/]*")
    glob = test.glob.stripped()
    if not glob.parts or glob.text == ".":
        return _present
    if not glob.wild:
        return lambda column: pc.starts_with(column, glob.text + "/")
    return _fits(glob.path_regex() + "/.+")


def extension_mask(files: pa.Table, test: TextTest) -> Mask:
    """`ext:md`, `ext:.md`; `ext:tar.gz` looks at the end of the name."""
    if isinstance(test, Like) and test.glob.wild:
        return mask_of(files["extension"], folded(test))
    text = _lower((test.text if isinstance(test, Exactly) else test.glob.text).lstrip("."))
    if "." in text:
        return mask_of(files["name"], lambda column: pc.ends_with(pc.utf8_lower(column), "." + text))
    return mask_of(files["extension"], lambda column: pc.equal(column, text))


def type_mask(files: pa.Table, test: TextTest) -> Mask:
    """A kind by name or alias; a media type where there is a slash; else an extension (`type:py`)."""
    text = _lower(test.text if isinstance(test, Exactly) else test.glob.text)
    if "/" in text:
        return mask_of(files["media_type"], folded(test))
    if isinstance(test, Like) and test.glob.wild:
        return mask_of(files["kind"], folded(test))
    kind = TYPE_ALIASES.get(text, text)
    found = mask_of(files["kind"], lambda column: pc.equal(column, kind))
    if kind not in TYPE_EXTENSIONS:
        return found | mask_of(files["extension"], lambda column: pc.equal(column, kind))
    if files["kind"].null_count:
        unread = mask_of(files["kind"], pc.is_null)
        extensions = pa.array(TYPE_EXTENSIONS[kind], pa.string())
        found |= unread & mask_of(files["extension"], lambda column: pc.is_in(column, extensions))
    return found


def language_test(test: TextTest) -> Predicate:
    """`lang:pt` takes in pt-BR; `lang=pt` does not."""
    whole = folded(test)
    if isinstance(test, Exactly) or test.glob.wild:
        return whole
    text = _lower(test.glob.text).replace("_", "-")
    return lambda column: pc.or_(
        pc.equal(pc.utf8_lower(column), text), pc.starts_with(pc.utf8_lower(column), text + "-")
    )


def title_test(test: TextTest) -> Predicate:
    """`title:words` is somewhere in the title, `title=words` is the title."""
    if isinstance(test, Exactly):
        return folded(test)
    if test.glob.wild:
        regex = f"(?s){_lowered(test.glob).flat_regex()}"
        return lambda column: pc.match_substring_regex(pc.utf8_lower(column), regex)
    text = _lower(test.glob.text)
    return lambda column: pc.match_substring(pc.utf8_lower(column), text)


def value_mask(values: pa.Array, test: Test, now: int) -> Mask:
    """Over metadata values, which are all text: numbers compare as numbers, dates as dates, where they read as such."""
    if isinstance(test, Like | Exactly):
        return mask_of(pa.chunked_array([values]), folded(test))
    if isinstance(test, Compared):
        numeric = isinstance(test.value, int | float)
    else:
        numeric = isinstance(test.low if test.low is not None else test.high, int | float)
    if numeric:
        where = np.flatnonzero(
            mask_of(pa.chunked_array([values]), lambda column: pc.match_substring_regex(column, _NUMBER))
        )
        text = pc.replace_substring_regex(pc.utf8_trim_whitespace(values.take(pa.array(where))), r"^\+", "")
        column = pc.cast(text, pa.float64())
    else:
        encoded = values.dictionary_encode()
        moments = [None if text is None else read_moment(text.strip()) for text in encoded.dictionary.to_pylist()]
        starts = [None if moment is None else _clipped(moment.span(now)[0]) for moment in moments]
        column = pa.array(starts, pa.int64()).take(encoded.indices)
        where = np.arange(len(values))
    mask = np.zeros(len(values), dtype=np.bool_)
    mask[where] = mask_of(pa.chunked_array([column]), bounds(test, now))
    return mask


def _present(column: pa.Array) -> pa.Array:
    return pc.is_valid(column)


def _clipped(instant: int) -> int:
    return min(max(instant, _INT64.min), _INT64.max)


def bounds(test: RangeTest, now: int) -> Predicate:
    """A range as a predicate over a column of numbers, or of nanoseconds."""
    if isinstance(test, Compared):
        return _compared(test.operator, test.value, now)
    low, high = test.low, test.high
    if isinstance(low, Age) or isinstance(high, Age):
        low, high = high, low  # the greater age is the earlier time
    above = None if low is None else _compared("<=" if isinstance(low, Age) else ">=", low, now)
    below = None if high is None else _compared(">=" if isinstance(high, Age) else "<=", high, now)
    if above is not None and below is not None:
        return lambda column: pc.and_(above(column), below(column))
    if above is None and below is None:
        return _present
    return cast(Predicate, above or below)


def _compared(operator: Operator, value: Value, now: int) -> Predicate:
    if isinstance(value, Age):
        instant = _clipped(value.instant(now))
        compare = {"<": pc.greater, "<=": pc.greater_equal, "=": pc.greater_equal, ">": pc.less, ">=": pc.less_equal}
        return lambda column: compare[operator](column, instant)
    if isinstance(value, Moment):
        start, end = (_clipped(at) for at in value.span(now))
        match operator:
            case "=":
                return lambda column: pc.and_(pc.greater_equal(column, start), pc.less(column, end))
            case ">":
                return lambda column: pc.greater_equal(column, end)
            case ">=":
                return lambda column: pc.greater_equal(column, start)
            case "<":
                return lambda column: pc.less(column, start)
            case "<=":
                return lambda column: pc.less(column, end)
    plain = {"<": pc.less, "<=": pc.less_equal, "=": pc.equal, ">": pc.greater, ">=": pc.greater_equal}
    return lambda column: plain[operator](column, value)
