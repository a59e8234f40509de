"""What a `where` expression is once read: a tree of small records, each of which turns documents into a mask.

A value that is not there fits no condition, and therefore every negated one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.query import predicates
from clew.query.candidates import Mask
from clew.query.catalog import Catalog, mask_of
from clew.query.predicates import Compared, Exactly, RangeTest, Test, TextTest

TAG_KEYS = ("tags", "tag", "keywords", "categories", "labels")
#: Fields of text: where they lie.
_FILE_TEXTS = {"owner": "owner", "state": "state", "reason": "reason", "encoding": "encoding", "media": "media_type"}
_QUANTITIES = {"size": "size", "chunks": "chunk_count", "records": "records"}
_TIMES = {"modified": "mtime_ns", "indexed": "indexed_ns"}
TEXT_FIELDS = ("path", "dir", "name", "ext", "type", "lang", "title", "record", "tag", *_FILE_TEXTS)
QUANTITY_FIELDS = tuple(_QUANTITIES)
TIME_FIELDS = tuple(_TIMES)


# --- Conditions -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Everything:
    """No condition."""

    def mask(self, catalog: Catalog, now: int) -> Mask:
        return np.ones(len(catalog), dtype=np.bool_)

    def __str__(self) -> str:
        return ""

    def describe(self) -> str:
        return "every document"


@dataclass(frozen=True, kw_only=True, slots=True)
class TextTerm:
    """A field of text fits one of several tests."""

    field: str  # one of TEXT_FIELDS
    tests: tuple[TextTest, ...]

    def mask(self, catalog: Catalog, now: int) -> Mask:
        return _any(_text_mask(catalog, self.field, test) for test in self.tests)

    def __str__(self) -> str:
        return _term_text(self.field, self.tests)

    def describe(self) -> str:
        return _term_description(self.field, self.tests)


@dataclass(frozen=True, kw_only=True, slots=True)
class QuantityTerm:
    """A size in bytes, or a count, lies in one of several ranges."""

    field: str  # one of QUANTITY_FIELDS
    tests: tuple[RangeTest, ...]

    def mask(self, catalog: Catalog, now: int) -> Mask:
        column = catalog.files[_QUANTITIES[self.field]]
        return catalog.of_files(_any(mask_of(column, predicates.bounds(test, now)) for test in self.tests))

    def __str__(self) -> str:
        return _term_text(self.field, self.tests)

    def describe(self) -> str:
        return _term_description(self.field, self.tests)


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeTerm:
    """A time lies in one of several spans."""

    field: str  # one of TIME_FIELDS
    tests: tuple[RangeTest, ...]

    def mask(self, catalog: Catalog, now: int) -> Mask:
        column = catalog.files[_TIMES[self.field]]
        return catalog.of_files(_any(mask_of(column, predicates.bounds(test, now)) for test in self.tests))

    def __str__(self) -> str:
        return _term_text(self.field, self.tests)

    def describe(self) -> str:
        return _term_description(self.field, self.tests)


@dataclass(frozen=True, kw_only=True, slots=True)
class MetaTerm:
    """One of the values under a key of the metadata passes one of several tests."""

    space: Literal["meta", "tag"]  # `tag.KEY` is an object's tag, or a front matter's `tags: {KEY: …}`
    key: str  # lower case
    tests: tuple[Test, ...]

    def mask(self, catalog: Catalog, now: int) -> Mask:
        keys = [self.key] if self.space == "meta" else [f"tag.{self.key}", f"tags.{self.key}"]
        rows, values = catalog.meta_values(lambda column: pc.is_in(column, pa.array(keys)))
        return _rows_mask(len(catalog), rows, _any(predicates.value_mask(values, test, now) for test in self.tests))

    def __str__(self) -> str:
        return _term_text(f"{self.space}.{_key_text(self.key)}", self.tests)

    def describe(self) -> str:
        return _term_description(f"{self.space}.{self.key}", self.tests)


@dataclass(frozen=True, kw_only=True, slots=True)
class Not:
    """Everything but."""

    part: Filter

    def mask(self, catalog: Catalog, now: int) -> Mask:
        return ~self.part.mask(catalog, now)

    def __str__(self) -> str:
        return f"-({self.part})" if isinstance(self.part, AllOf | AnyOf) else f"-{self.part}"

    def describe(self) -> str:
        return f"not ({self.part.describe()})"


@dataclass(frozen=True, kw_only=True, slots=True)
class AllOf:
    """All conditions at once."""

    parts: tuple[Filter, ...]

    def mask(self, catalog: Catalog, now: int) -> Mask:
        return reduce(np.logical_and, (part.mask(catalog, now) for part in self.parts))

    def __str__(self) -> str:
        return " ".join(f"({part})" if isinstance(part, AnyOf) else str(part) for part in self.parts)

    def describe(self) -> str:
        return " and ".join(
            f"({part.describe()})" if isinstance(part, AnyOf) else part.describe() for part in self.parts
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class AnyOf:
    """At least one of the conditions."""

    parts: tuple[Filter, ...]

    def mask(self, catalog: Catalog, now: int) -> Mask:
        return _any(part.mask(catalog, now) for part in self.parts)

    def __str__(self) -> str:
        return " OR ".join(str(part) for part in self.parts)

    def describe(self) -> str:
        return " or ".join(part.describe() for part in self.parts)


#: Every one has `mask(catalog, now)` (now: nanoseconds since 1970), `describe()`, and a `str` that reads back as itself.
Filter = Everything | TextTerm | QuantityTerm | TimeTerm | MetaTerm | Not | AllOf | AnyOf


def negation(part: Filter) -> Filter:
    """Not, without doubling."""
    return part.part if isinstance(part, Not) else Not(part=part)


def conjunction(parts: Iterable[Filter]) -> Filter:
    """All of them, flat; conditions that say nothing fall away."""
    flat: list[Filter] = []
    for part in parts:
        if not isinstance(part, Everything):
            flat.extend(part.parts if isinstance(part, AllOf) else (part,))
    if len(flat) > 1:
        return AllOf(parts=tuple(flat))
    return flat[0] if flat else Everything()


def disjunction(parts: Iterable[Filter]) -> Filter:
    """Any of them, flat."""
    flat: list[Filter] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, AnyOf) else (part,))
    if any(isinstance(part, Everything) for part in flat):
        return Everything()
    return AnyOf(parts=tuple(flat)) if len(flat) > 1 else flat[0]


# --- As text ----------------------------------------------------------------------------------


def _key_text(key: str) -> str:
    if re.fullmatch(r"[\w.-]+", key):
        return key
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _operator(test: Test) -> str:
    if isinstance(test, Exactly):
        return "="
    if isinstance(test, Compared):
        return test.operator
    return ""


def _term_text(field: str, tests: tuple[Test, ...]) -> str:
    operators = {_operator(test) for test in tests}
    if len(operators) == 1:
        return field + (operators.pop() or ":") + ",".join(str(test) for test in tests)
    return f"{field}:" + ",".join(_operator(test) + str(test) for test in tests)


def _term_description(field: str, tests: tuple[Test, ...]) -> str:
    return f"{field} " + " or ".join(test.describe() for test in tests)


# --- Masks ------------------------------------------------------------------------------------


def _any(masks: Iterable[Mask]) -> Mask:
    return reduce(np.logical_or, masks)


def _rows_mask(length: int, rows: NDArray[np.int32], keep: Mask) -> Mask:
    mask = np.zeros(length, dtype=np.bool_)
    mask[rows[keep]] = True
    return mask


def _text_mask(catalog: Catalog, field: str, test: TextTest) -> Mask:
    files, documents = catalog.files, catalog.documents
    match field:
        case "path":
            return catalog.of_files(mask_of(files["path"], predicates.path_test(test)))
        case "dir":
            return catalog.of_files(mask_of(files["path"], predicates.directory_test(test)))
        case "name":
            return catalog.of_files(mask_of(files["name"], predicates.cased(test)))
        case "ext":
            return catalog.of_files(predicates.extension_mask(files, test))
        case "type":
            return catalog.of_files(predicates.type_mask(files, test))
        case "record":
            return mask_of(documents["record"], predicates.cased(test))
        case "lang":
            return mask_of(documents["language"], predicates.language_test(test))
        case "title":
            return mask_of(documents["title"], predicates.title_test(test))
        case "tag":
            rows, values = catalog.meta_values(lambda column: pc.is_in(column, pa.array(TAG_KEYS)))
            return _rows_mask(len(catalog), rows, mask_of(pa.chunked_array([values]), predicates.folded(test)))
        case _:
            return catalog.of_files(mask_of(files[_FILE_TEXTS[field]], predicates.folded(test)))
