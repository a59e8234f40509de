"""`where`: without these, a filter could quietly keep too much or too little, or an expression change its meaning on a round trip."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clew.errors import WhereError
from clew.query.conditions import (
    QUANTITY_FIELDS,
    TEXT_FIELDS,
    TIME_FIELDS,
    AllOf,
    AnyOf,
    Everything,
    Filter,
    MetaTerm,
    Not,
    QuantityTerm,
    TextTerm,
    TimeTerm,
    conjunction,
    disjunction,
    negation,
)
from clew.query.glob import Glob, Wild
from clew.query.moments import Age, Day, nanoseconds, read_moment
from clew.query.predicates import Between, Compared, Exactly, Like
from clew.query.where import parse
from tests.unit.query.documents import Row, catalog_of

NOW = nanoseconds(datetime(2026, 3, 15, 12, tzinfo=UTC))
DAY = 86400 * 10**9

# --- strategies ---

texts = st.text(
    alphabet=st.one_of(st.sampled_from("ab /.*?,()\"'\\<>=!-_:éЖ\n"), st.characters(exclude_categories=["Cs"])),
    max_size=8,
)
globs = st.lists(st.one_of(texts.filter(bool), st.sampled_from(Wild)), min_size=1, max_size=4).map(
    lambda parts: Glob.of([char for part in parts for char in (part if isinstance(part, str) else [part])])
)
operators = st.sampled_from(["=", ">", ">=", "<", "<="])
counts = st.integers(0, 10**15)
moments = st.one_of(
    st.integers(0, 7_258_118_400).flatmap(
        lambda at: st.sampled_from(["%Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%SZ"]).map(datetime.fromtimestamp(at, UTC).strftime)
    ).map(read_moment),
    st.sampled_from([Day(ago=0), Day(ago=1)]),
    st.builds(Age, count=st.integers(0, 5000), unit=st.sampled_from(["s", "min", "h", "d", "w", "mo", "y"])),
)  # fmt: skip
text_terms = st.builds(
    TextTerm,
    field=st.sampled_from([field for field in TEXT_FIELDS if field != "state"]),
    tests=st.lists(st.one_of(st.builds(Like, glob=globs), st.builds(Exactly, text=texts)), min_size=1, max_size=3).map(
        tuple
    ),
)
quantity_tests = st.one_of(
    st.builds(Compared, operator=operators, value=counts),
    st.tuples(counts, counts).map(lambda pair: Between(low=min(pair), high=max(pair))),
    st.builds(Between, low=counts, high=st.none()),
    st.builds(Between, low=st.none(), high=counts),
)
quantity_terms = st.builds(
    QuantityTerm,
    field=st.sampled_from(QUANTITY_FIELDS),
    tests=st.lists(quantity_tests, min_size=1, max_size=3).map(tuple),
)
time_terms = st.builds(
    TimeTerm,
    field=st.sampled_from(TIME_FIELDS),
    tests=st.lists(st.builds(Compared, operator=operators, value=moments), min_size=1, max_size=2).map(tuple),
)
meta_terms = st.builds(
    MetaTerm,
    space=st.sampled_from(["meta", "tag"]),
    key=texts.filter(bool).map(str.lower).filter(lambda key: key == key.lower()),
    tests=st.lists(
        st.one_of(
            st.builds(Like, glob=globs),
            st.builds(Exactly, text=texts),
            st.builds(
                Compared,
                operator=st.sampled_from([">", ">=", "<", "<="]),
                value=st.floats(-1e20, 1e20).filter(lambda value: value != 0 or str(value) == "0.0"),
            ),
        ),
        min_size=1,
        max_size=2,
    ).map(tuple),
)
filters = st.recursive(
    st.one_of(text_terms, quantity_terms, time_terms, meta_terms),
    lambda inner: st.one_of(
        inner.map(negation),
        st.lists(inner, min_size=2, max_size=3).map(conjunction),
        st.lists(inner, min_size=2, max_size=3).map(disjunction),
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(filters)
def test_an_expression_written_out_reads_back_as_itself(condition: Filter) -> None:
    assert parse(str(condition)) == condition
    assert condition.describe()


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=40), st.text(alphabet="pathsize:=<>()-\"'\\,.*? ORNT19MB", max_size=40)))
@example("(" * 5000)
@example("-" * 5000 + "type:pdf")
@example("path:" + "*" * 5000)
@example("size:" + "9" * 5000)
def test_any_text_is_a_filter_or_an_error_that_points_into_it(text: str) -> None:
    try:
        condition = parse(text)
    except WhereError as error:
        refused = error
    else:
        assert parse(str(condition)) == condition
        return
    assert refused.expression == text
    assert 0 <= refused.column <= len(text)


# --- against brute force ---

names = st.sampled_from(["a", "b", "Report", "key-rotation", "x (1)", "été", "[draft]", "a,b"])
paths = st.tuples(st.lists(names, max_size=3), names, st.sampled_from(["", ".md", ".PDF", ".tar.gz"])).map(
    lambda parts: "/".join([*parts[0], parts[1] + parts[2]])
)
values = st.lists(
    st.sampled_from(["ana", "Ana", "bob", "10", "9.5", "-3", "2025-03-01", "2024", "", "a b"]), max_size=2
)
rows = st.builds(
    Row,
    path=paths,
    record=st.sampled_from([None, "1", "a"]),
    title=st.sampled_from([None, "Key Rotation", "Überblick", "keys"]),
    language=st.sampled_from([None, "pt", "pt-BR", "en", "PT"]),
    meta=st.dictionaries(st.sampled_from(["author", "Author", "year", "tags", "tag.team"]), values, max_size=3),
    kind=st.sampled_from([None, "markdown", "pdf", "html"]),
    size=st.integers(0, 3000),
    mtime_ns=st.one_of(st.none(), st.integers(NOW - 500 * DAY, NOW + DAY)),
    owner=st.sampled_from([None, "root", "Ana"]),
    state=st.sampled_from(["indexed", "indexed", "failed", "skipped"]),
)
collections = st.lists(rows, min_size=1, max_size=12, unique_by=lambda row: row.path)

patterns = st.lists(
    st.sampled_from(
        ["a", "b", "report", "Report", "/", "/", "*", "**", "**/", "?", ".md", "-", "été", "[draft]", "x (1)"]
    ),
    min_size=1,
    max_size=5,
).map("".join)


def glob_fits(pattern: str, path: str) -> bool:
    """The meaning of a path pattern, by plain recursion."""
    if pattern == "":
        return path == ""
    if pattern == "**":
        return True
    if pattern.startswith("**/"):
        rest = pattern[3:]
        cuts = [0, *(i + 1 for i, char in enumerate(path) if char == "/")]
        return any(glob_fits_inside(rest, path[cut:], True) for cut in cuts)
    return glob_fits_inside(pattern, path, True)


def glob_fits_inside(pattern: str, path: str, at_segment: bool) -> bool:
    if at_segment and pattern.startswith("**/"):
        cuts = [0, *(i + 1 for i, char in enumerate(path) if char == "/")]
        return any(glob_fits_inside(pattern[3:], path[cut:], True) for cut in cuts)
    if at_segment and pattern == "**":
        return path != ""
    if not pattern:
        return not path
    char = pattern[0]
    if char == "*":
        rest = pattern.lstrip("*")
        ends = [0]
        for i, found in enumerate(path):
            if found == "/":
                break
            ends.append(i + 1)
        return any(glob_fits_inside(rest, path[end:], False) for end in ends)
    if not path:
        return False
    if char == "?":
        return path[0] != "/" and glob_fits_inside(pattern[1:], path[1:], False)
    return path[0] == char and glob_fits_inside(pattern[1:], path[1:], char == "/")


def value_fits(test: object, value: str | None) -> bool:
    """A text test that ignores case."""
    if value is None:
        return False
    if isinstance(test, Exactly):
        return value.lower() == test.text.lower()
    assert isinstance(test, Like)
    regex = "".join(
        re.escape(part.lower()) if isinstance(part, str) else {"*": ".*", "?": "."}[part.value]
        for part in test.glob.parts
    )
    return re.fullmatch(regex, value.lower(), re.DOTALL) is not None


def brute(condition: Filter, row: Row) -> bool:
    """Row by row, in plain Python."""
    missing = row.state != "indexed"
    match condition:
        case Everything():
            return True
        case Not():
            return not brute(condition.part, row)
        case AllOf():
            return all(brute(part, row) for part in condition.parts)
        case AnyOf():
            return any(brute(part, row) for part in condition.parts)
        case QuantityTerm(field="size"):
            return any(number_fits(test, row.size) for test in condition.tests)
        case TimeTerm(field="modified"):
            return row.mtime_ns is not None and any(time_fits(test, row.mtime_ns) for test in condition.tests)
        case MetaTerm():
            if missing:
                return False
            keys = [condition.key] if condition.space == "meta" else [f"tag.{condition.key}", f"tags.{condition.key}"]
            found = [value for key, values in row.meta.items() if key.lower() in keys for value in values]
            return any(meta_fits(test, value) for test in condition.tests for value in found)
        case TextTerm(field="tag"):
            found = [
                value for key, values in row.meta.items() if key.lower() == "tags" and not missing for value in values
            ]
            return any(value_fits(test, value) for test in condition.tests for value in found)
        case TextTerm(field="owner"):
            return any(value_fits(test, row.owner) for test in condition.tests)
        case TextTerm(field="state"):
            return any(value_fits(test, row.state) for test in condition.tests)
        case TextTerm(field="lang"):
            language = None if missing else row.language
            return language is not None and any(
                value_fits(test, language)
                or (isinstance(test, Like) and language.lower().startswith(f"{test.glob.text.lower()}-"))
                for test in condition.tests
            )
    raise AssertionError(condition)


def number_fits(test: object, number: float) -> bool:
    match test:
        case Compared(operator=operator, value=value):
            assert isinstance(value, int | float)
            outcomes = {
                "=": number == value,
                ">": number > value,
                ">=": number >= value,
                "<": number < value,
                "<=": number <= value,
            }
            return outcomes[operator]
        case Between(low=low, high=high):
            assert low is None or isinstance(low, int | float)
            assert high is None or isinstance(high, int | float)
            return (low is None or number >= low) and (high is None or number <= high)
    raise AssertionError(test)


def time_fits(test: object, instant: int) -> bool:
    assert isinstance(test, Compared)
    if isinstance(test.value, Age):
        hours = {"s": 1 / 3600, "min": 1 / 60, "h": 1, "d": 24, "w": 168, "mo": 720, "y": 8760}[test.value.unit]
        age = NOW - instant
        limit = round(hours * test.value.count * 3600) * 10**9
        return {"=": age <= limit, "<=": age <= limit, "<": age < limit, ">": age > limit, ">=": age >= limit}[
            test.operator
        ]
    assert not isinstance(test.value, int | float)
    start, end = test.value.span(NOW)
    return {
        "=": start <= instant < end,
        ">": instant >= end,
        ">=": instant >= start,
        "<": instant < start,
        "<=": instant < end,
    }[test.operator]


def meta_fits(test: object, value: str) -> bool:
    if isinstance(test, Like | Exactly):
        return value_fits(test, value)
    try:
        return number_fits(test, float(value))
    except ValueError:
        return False


checked = st.recursive(
    st.one_of(
        st.builds(QuantityTerm, field=st.just("size"), tests=st.lists(
            st.builds(Compared, operator=operators, value=st.integers(0, 3000)), min_size=1, max_size=2).map(tuple)),
        st.builds(TimeTerm, field=st.just("modified"), tests=st.lists(
            st.builds(Compared, operator=operators, value=moments), min_size=1, max_size=2).map(tuple)),
        st.builds(MetaTerm, space=st.sampled_from(["meta", "tag"]), key=st.sampled_from(["author", "year", "team"]), tests=st.lists(
            st.one_of(
                st.sampled_from(["ana", "a b", "2024", ""]).map(lambda text: Exactly(text=text)),
                st.sampled_from(["a*", "?ob", "*"]).map(lambda text: Like(glob=Glob.of([Wild(c) if c in "*?" else c for c in text]))),
                st.builds(Compared, operator=st.sampled_from([">", ">=", "<", "<="]), value=st.sampled_from([9.5, 10.0, -3.0])),
            ), min_size=1, max_size=2).map(tuple)),
        st.builds(TextTerm, field=st.sampled_from(["owner", "state", "lang", "tag"]), tests=st.lists(
            st.one_of(
                st.sampled_from(["ana", "ROOT", "pt", "failed"]).map(lambda text: Exactly(text=text)),
                st.sampled_from(["pt", "a*", "*"]).map(lambda text: Like(glob=Glob.of([Wild(c) if c in "*?" else c for c in text]))),
            ), min_size=1, max_size=2).map(tuple)),
    ),
    lambda inner: st.one_of(inner.map(negation), st.lists(inner, min_size=2, max_size=3).map(conjunction),
                            st.lists(inner, min_size=2, max_size=3).map(disjunction)),
    max_leaves=5,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(collections, checked)
def test_a_filter_keeps_exactly_what_plain_python_keeps(collection: list[Row], condition: Filter) -> None:
    catalog = catalog_of(collection)
    mask = condition.mask(catalog, NOW)
    assert mask.tolist() == [brute(condition, row) for row in collection]
    assert np.array_equal(negation(condition).mask(catalog, NOW), ~mask)


@settings(max_examples=300, deadline=None)
@given(st.lists(paths, min_size=1, max_size=8, unique=True), patterns)
def test_path_patterns_mean_what_plain_recursion_says(found: list[str], pattern: str) -> None:
    catalog = catalog_of([Row(path=path) for path in found])
    glob = Glob.of([Wild(char) if char in "*?" else char for char in pattern])
    stripped = glob.stripped()
    mask = TextTerm(field="path", tests=(Like(glob=glob),)).mask(catalog, NOW)
    for path, kept in zip(found, mask.tolist(), strict=True):
        text = stripped.text
        if not text:
            expected = True
        elif not stripped.wild:
            expected = path.startswith(text + "/") or (path == text and not pattern.endswith("/"))
        elif pattern.endswith("/"):
            expected = any(glob_fits(text, path[:i]) for i, char in enumerate(path) if char == "/")
        else:
            expected = glob_fits(text, path)
        assert kept == expected, (path, pattern)


def test_periods_end_where_the_next_one_begins() -> None:
    """Months and years differ in length; an off-by-one here shifts every dated filter."""
    for text, following in [
        ("2024", "2025"),
        ("2024-02", "2024-03"),
        ("2023-12", "2024-01"),
        ("2024-02-28", "2024-02-29"),
    ]:
        period, after = read_moment(text), read_moment(following)
        assert period is not None
        assert after is not None
        assert period.span(NOW)[1] == after.span(NOW)[0]
    assert read_moment("2025-02-29") is None
    today = Day(ago=0).span(NOW)
    assert today == (nanoseconds(datetime(2026, 3, 15, tzinfo=UTC)), nanoseconds(datetime(2026, 3, 16, tzinfo=UTC)))
    assert Day(ago=1).span(NOW)[1] == today[0]
    assert nanoseconds(datetime(1970, 1, 1, tzinfo=UTC) - timedelta(seconds=1)) == -(10**9)
