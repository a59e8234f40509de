"""The `where` language: `type:pdf path:contracts/** -path:**/archive/** size:>1MB modified:>2025-01-01 tag.team=ops`.

    expression = group { "OR" group }            group = condition { ["AND"] condition }
    condition  = ["-" | "NOT"] ( "(" expression ")" | field operator value { "," value } )
    operator   = ":" | "=" | "!=" | ">" | ">=" | "<" | "<="      (after ":" each value may have its own)

A comma means or; `low..high` is a range with both ends; quotes or a backslash make characters literal.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Protocol, cast

from clew.errors import WhereError
from clew.query.conditions import (
    QUANTITY_FIELDS,
    TEXT_FIELDS,
    TIME_FIELDS,
    Everything,
    Filter,
    MetaTerm,
    QuantityTerm,
    TextTerm,
    TimeTerm,
    conjunction,
    disjunction,
    negation,
)
from clew.query.glob import Glob, Wild
from clew.query.moments import Age, Day, Period, read_age, read_moment
from clew.query.predicates import Between, Compared, Exactly, Like, Operator, RangeTest, Test, TextTest, Value

__all__ = ["FIELDS", "Filter", "parse"]

#: Other names of fields.
ALIASES = {
    "directory": "dir", "folder": "dir", "in": "dir", "filename": "name", "file": "name", "extension": "ext",
    "kind": "type", "language": "lang", "mtime": "modified", "date": "modified", "changed": "modified", "id": "record",
    "tags": "tag", "status": "state", "user": "owner", "bytes": "size", "mime": "media",
}  # fmt: skip
FIELDS = (*TEXT_FIELDS, *QUANTITY_FIELDS, *TIME_FIELDS, "tag.NAME", "meta.NAME")
STATES = ("indexed", "failed", "skipped")

_MAX_DEPTH = 50  # parentheses in parentheses
_MAX_CONDITIONS = 500  # each is a pass over the documents
_MAX_WILDCARDS = 40  # in one pattern
_OPERATORS = ("!=", ">=", "<=", ":", "=", ">", "<")
_SIZE = re.compile(r"(\d{1,19}(?:\.\d{1,6})?)\s*(?:([kmgtp])(i?)b?|b|bytes)?", re.IGNORECASE | re.ASCII)
_NUMBER = re.compile(r"[-+]?(?:\d{1,30}\.?\d{0,30}|\.\d{1,30})(?:[eE][-+]?\d{1,3})?", re.ASCII)
_MAX_QUANTITY = 1 << 62


def parse(text: str) -> Filter:
    """Read an expression; an empty one is no condition. Raises WhereError, which points at the column."""
    return _Parser(text).whole()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Word:
    """A value as it was written."""

    glob: Glob  # what was quoted is literal here
    column: int
    plain: bool  # nothing in it was quoted

    @property
    def text(self) -> str:
        return self.glob.text


class _Reader(Protocol):
    def __call__(self, field: str, text: str, column: int) -> Value: ...


class _Parser:
    """Recursive descent over one expression."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.conditions = 0

    def error(self, message: str, column: int) -> WhereError:
        return WhereError(message, expression=self.text, column=column)

    # --- structure ---

    def whole(self) -> Filter:
        self.space()
        if self.at == len(self.text):
            return Everything()
        result = self.alternatives()
        if self.at < len(self.text):
            raise self.error("this ')' closes nothing", self.at)
        return result

    def alternatives(self) -> Filter:
        parts = [self.group()]
        while self.keyword("OR"):
            parts.append(self.group())
        return disjunction(parts)

    def group(self) -> Filter:
        parts = [self.condition()]
        while True:
            joined = self.keyword("AND")
            if not joined and (self.at == len(self.text) or self.text[self.at] == ")" or self.ahead("OR")):
                return conjunction(parts)
            parts.append(self.condition())

    def condition(self) -> Filter:
        self.space()
        start = self.at
        negative = False
        while self.keyword("NOT") or self.minus():
            negative = not negative
        if self.at == len(self.text):
            raise self.error("a condition is missing here, such as type:pdf", start if negative else self.at)
        if self.text[self.at] == "(":
            result = self.parenthesised()
        elif self.text[self.at] == ")" or self.ahead("OR") or self.ahead("AND"):
            raise self.error("a condition is missing here, such as type:pdf", self.at)
        else:
            result = self.term()
        self.space()
        return negation(result) if negative else result

    def parenthesised(self) -> Filter:
        opening = self.at
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.error(f"more than {_MAX_DEPTH} parentheses inside each other", opening)
        self.at += 1
        result = self.alternatives()
        if self.at == len(self.text):
            raise self.error("this '(' is not closed", opening)
        self.at += 1
        self.depth -= 1
        return result

    def space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def ahead(self, word: str) -> bool:
        end = self.at + len(word)
        after = self.text[end : end + 1]
        return self.text.startswith(word, self.at) and (not after or after.isspace() or after == "(")

    def keyword(self, word: str) -> bool:
        self.space()
        if not self.ahead(word):
            return False
        self.at += len(word)
        self.space()
        return True

    def minus(self) -> bool:
        if not self.text.startswith("-", self.at):
            return False
        self.at += 1
        return True

    # --- field operator value, value ---

    def term(self) -> Filter:
        self.conditions += 1
        if self.conditions > _MAX_CONDITIONS:
            raise self.error(f"more than {_MAX_CONDITIONS} conditions", self.at)
        start = self.at
        field = self.field()
        operator = self.operator()
        if operator is None:
            raise self.error(self.bare(field), start)
        field = self.known(field, start)
        tests: list[Test] = []
        while True:
            own = operator
            if operator == ":" and not self.text.startswith(":", self.at) and (found := self.operator()) is not None:
                if found == "!=":
                    raise self.error("write -field:value for not", self.at - len(found))
                own = found
            tests.append(self.test(field, own, self.word()))
            if not self.text.startswith(",", self.at):
                break
            self.at += 1
        result = self.make(field, tuple(tests))
        return negation(result) if operator == "!=" else result

    def field(self) -> str:
        characters: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                characters.extend(self.quoted(char))
            elif char.isspace() or char in "(),:=<>!":
                break
            else:
                characters.append(char)
                self.at += 1
        return "".join(characters)

    def operator(self) -> str | None:
        for operator in _OPERATORS:
            if self.text.startswith(operator, self.at):
                self.at += len(operator)
                return operator
        return None

    def bare(self, word: str) -> str:
        if word in ("or", "and", "not"):
            return f"write {word.upper()} in capital letters"
        shown = word[:40] or self.text[self.at : self.at + 1]
        return f"'{shown}' is no condition; conditions look like field:value, such as name:*{shown.strip('*')}*"

    def known(self, written: str, column: int) -> str:
        name, dot, key = written.partition(".")
        field = ALIASES.get(name.lower(), name.lower())
        if dot and field in ("meta", "tag"):
            if not key:
                raise self.error(f"a name is missing behind '{field}.', such as meta.author", column + len(name) + 1)
            return f"{field}.{key.lower()}"
        if not dot and field in (*TEXT_FIELDS, *QUANTITY_FIELDS, *TIME_FIELDS):
            return field
        if field == "meta":
            raise self.error("'meta' takes a name: meta.author=ana", column)
        near = difflib.get_close_matches(written.lower(), (*FIELDS, *ALIASES), n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ";"
        raise self.error(f"there is no field '{written[:40]}'{hint} Fields: {', '.join(FIELDS)}", column)

    def word(self) -> _Word:
        """A value: up to white space, a comma, or a parenthesis that it did not open."""
        start, opened = self.at, 0
        characters: list[str | Wild] = []
        quoted = False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"' or (char == "'" and self.at == start):
                characters.extend(self.quoted(char))
                quoted = True
                continue
            if char.isspace() or char == "," or (char == ")" and not opened):
                break
            if char == "\\":
                if self.at + 1 == len(self.text):
                    raise self.error("a character is missing behind this backslash", self.at)
                self.at += 1
                characters.append(self.text[self.at])
                quoted = True
            else:
                opened += {"(": 1, ")": -1}.get(char, 0)
                characters.append({"*": Wild.STAR, "?": Wild.ANY}.get(char, char))
            self.at += 1
        if not characters and not quoted:
            raise self.error("a value is missing here", start)
        if opened:
            raise self.error("a parenthesis in this value is not closed; put the value in quotes", start)
        glob = Glob.of(characters)
        if sum(isinstance(part, Wild) for part in glob.parts) > _MAX_WILDCARDS:
            raise self.error(f"more than {_MAX_WILDCARDS} wildcards in one pattern", start)
        return _Word(glob=glob, column=start, plain=not quoted)

    def quoted(self, quote: str) -> str:
        """What stands between quotes; in double ones a backslash keeps a quote or a backslash."""
        opening = self.at
        self.at += 1
        characters: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\" and quote == '"' and self.text[self.at + 1 : self.at + 2] in ('"', "\\"):
                self.at += 1
                characters.append(self.text[self.at])
            elif char == quote:
                self.at += 1
                return "".join(characters)
            else:
                characters.append(char)
            self.at += 1
        raise self.error("this quote is not closed", opening)

    # --- values by field ---

    def test(self, field: str, operator: str, word: _Word) -> Test:
        if field in QUANTITY_FIELDS:
            return self.range(field, operator, word, self.quantity)
        if field in TIME_FIELDS:
            return self.range(field, operator, word, self.time)
        if operator in (">", ">=", "<", "<="):
            if "." not in field:
                raise self.error(f"'{field}' is text: it takes ':' (pattern) and '=' (exactly)", word.column)
            value = _free_value(word.text)
            if value is None:
                raise self.error(f"'{operator}' takes a number or a date, and '{word.text[:40]}' is none", word.column)
            return Compared(operator=cast(Operator, operator), value=value)
        if operator in ("=", "!="):
            return Exactly(text=word.text)
        if "." in field and word.plain and (free := _free_range(word.text)) is not None:
            return free
        if field == "state" and not word.glob.wild and word.text.lower() not in STATES:
            near = difflib.get_close_matches(word.text.lower(), STATES, n=1)
            hint = f" did you mean '{near[0]}'?" if near else ""
            raise self.error(f"there is no state '{word.text[:40]}';{hint} States: {', '.join(STATES)}", word.column)
        return Like(glob=word.glob)

    def range(self, field: str, operator: str, word: _Word, read: _Reader) -> RangeTest:
        low, dots, high = word.text.partition("..")
        if dots:
            if operator != ":":
                raise self.error(f"a range stands behind ':', as in {field}:{word.text[:40]}", word.column)
            if not low and not high:
                raise self.error("a range needs at least one end", word.column)
            first = read(field, low, word.column) if low else None
            last = read(field, high, word.column + len(low) + 2) if high else None
            self.ordered(first, last, word.column)
            return Between(low=first, high=last)
        value = read(field, word.text, word.column)
        return Compared(operator=cast(Operator, "=" if operator in (":", "!=") else operator), value=value)

    def ordered(self, low: Value | None, high: Value | None, column: int) -> None:
        if low is None or high is None:
            return
        if isinstance(low, Age) != isinstance(high, Age):
            raise self.error("a range has dates at both ends, or ages at both", column)
        if _backwards(low, high):
            raise self.error("this range runs backwards", column)

    def quantity(self, field: str, text: str, column: int) -> Value:
        match = _SIZE.fullmatch(text)
        if match is None or (field != "size" and not text.isdecimal()):
            example = (
                "a size, such as 500, 20KB, 1.5MB (1000s) or 1MiB (1024s)" if field == "size" else "a whole number"
            )
            raise self.error(f"'{text[:40]}' is not {example}", column)
        number, prefix, binary = match.groups()
        power = " kmgtp".index(prefix.lower()) if prefix else 0
        value = round(float(number) * (1024 if binary else 1000) ** power) if "." in number or power else int(number)
        if value > _MAX_QUANTITY:
            raise self.error(f"'{text[:40]}' is too large", column)
        return value

    def time(self, field: str, text: str, column: int) -> Value:
        moment = read_moment(text) or read_age(text)
        if moment is None:
            if re.fullmatch(r"\d+m", text):
                raise self.error(f"is '{text}' months or minutes? Write {text}o or {text}in", column)
            raise self.error(
                f"'{text[:40]}' is no date; write 2025, 2025-03, 2025-03-01, 2025-03-01T10:00Z, today, "
                "or an age such as 7d (s, min, h, d, w, mo, y)",
                column,
            )
        return moment

    def make(self, field: str, tests: tuple[Test, ...]) -> Filter:
        if field in QUANTITY_FIELDS:
            return QuantityTerm(field=field, tests=cast(tuple[RangeTest, ...], tests))
        if field in TIME_FIELDS:
            return TimeTerm(field=field, tests=cast(tuple[RangeTest, ...], tests))
        space, dot, key = field.partition(".")
        if dot:
            return MetaTerm(space="meta" if space == "meta" else "tag", key=key, tests=tests)
        return TextTerm(field=field, tests=cast(tuple[TextTest, ...], tests))


def _free_value(text: str) -> Value | None:
    """A metadata value's other side: a number first (2025), then a date (2025-03)."""
    return float(text) if _NUMBER.fullmatch(text) else read_moment(text)


def _free_range(text: str) -> Between | None:
    """`2020..2022` where both ends are numbers, or both are dates; otherwise it is text with dots in it."""
    low, dots, high = text.partition("..")
    if not dots or not (low or high):
        return None
    first, last = _free_value(low) if low else None, _free_value(high) if high else None
    if (low and first is None) or (high and last is None):
        return None
    if first is not None and last is not None:
        if isinstance(first, float) != isinstance(last, float):
            first, last = read_moment(low), read_moment(high)
        if first is None or last is None or _backwards(first, last):
            return None
    return Between(low=first, high=last)


def _backwards(low: Value, high: Value) -> bool:
    match low, high:
        case (int() | float(), int() | float()):
            return high < low
        case (Age(), Age()):
            return low.instant(0) < high.instant(0)
        case (Period(), Period()):
            return high.start < low.start
        case (Day(), Day()):
            return high.ago > low.ago
    return False
