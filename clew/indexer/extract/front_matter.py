"""What authors write above a page: YAML between `---`, TOML between `+++`, or a JSON object.

Values stay as they are written (no dates, no booleans): they end up as filterable strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from clew.indexer.extract.text_builder import clean_prose

_MAX_BYTES = 256 << 10  # a longer one is no front matter
_MAX_VALUES = 1000  # aliases in YAML can unfold without end
_MAX_DEPTH = 4
_MAX_VALUE = 4096  # characters

_FENCED = re.compile(r"(---|\+\+\+)[ \t]*\n(.*?)^(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_PLAIN_LINE = re.compile(
    r"""([A-Za-z_][\w.-]*):[ \t]*(?:"([^"\\]*)"|'([^']*)'|([^\s"'\[\]{}>|*&!%#`@,?:-](?:[^\s:#]|[:#](?=\S)(?<=\S.)|[ \t](?![\s#]))*)?)[ \t]*"""
)
_LENIENT_LINE = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*))?$")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8}){0,3}")
_URL_KEYS = ("slug", "permalink", "url", "canonical", "canonical_url", "aliases", "alias", "redirect_from")
_LANGUAGE_KEYS = ("lang", "language", "locale")


@dataclass(frozen=True, kw_only=True, slots=True)
class FrontMatter:
    """What a front matter tells of its page."""

    title: str | None = None
    language: str | None = None
    urls: tuple[str, ...] = ()
    meta: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)


NOTHING = FrontMatter()


def split(source: str) -> tuple[FrontMatter, int, int]:
    """The front matter of a source, where the page proper begins (code points), and how many lines lie before."""
    first = source[:3]
    start = 0
    if first[:1] == "\ufeff":
        start, first = 1, source[1:4]
    if first in ("---", "+++"):
        found = _FENCED.match(source, start, start + _MAX_BYTES)
        if found is None:
            return NOTHING, start, 0
        values = _toml(found[2]) if first == "+++" else _yaml(found[2])
        if values is None:
            return NOTHING, start, 0
        return _facts(values), found.end(), source.count("\n", 0, found.end())
    if first[:1] == "{" and re.match(r"\{\s*\"", source[start : start + 256]):
        return _json(source, start)
    return NOTHING, start, 0


def language_tag(value: str) -> str | None:
    """A language as BCP 47 writes it, or None where the value is none."""
    value = value.strip()
    return value.replace("_", "-") if _LANGUAGE.fullmatch(value) else None


def _json(source: str, start: int) -> tuple[FrontMatter, int, int]:
    """An object, and then a page on a new line: a JSON file is no page with a front matter."""
    try:
        values, end = json.JSONDecoder().raw_decode(source[start : start + _MAX_BYTES])
    except (ValueError, RecursionError):
        return NOTHING, start, 0
    end += start
    rest = source[end : end + 1]
    if not isinstance(values, dict) or rest != "\n" or not source[end:].strip():
        return NOTHING, start, 0
    return _facts(values), end + 1, source.count("\n", 0, end + 1)


def _toml(text: str) -> dict[str, Any] | None:
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return {}


def _yaml(text: str) -> dict[str, Any] | None:
    """The mapping; {} where there are only comments; None where this is prose between two rules."""
    values = _plain_yaml(text)
    if values is not None:
        return values
    import yaml

    try:
        loaded = yaml.load(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except (yaml.YAMLError, RecursionError, ValueError):
        return _lenient_yaml(text)
    if loaded is None or loaded == "":
        return {}
    return loaded if isinstance(loaded, dict) else None


def _plain_yaml(text: str) -> dict[str, Any] | None:
    """The usual case, `key: value` lines alone, ten times as fast as libyaml; None for anything else."""
    values: dict[str, Any] = {}
    for line in text.splitlines():
        found = _PLAIN_LINE.fullmatch(line)
        if found is None:
            return None
        key, double, single, plain = found.groups()
        if double is None and single is None and plain is None:
            return None  # a nested value follows, or null
        values[key] = double if double is not None else single if single is not None else plain
    return values


def _lenient_yaml(text: str) -> dict[str, Any] | None:
    """What can be saved of a mapping that YAML refuses: `title: Errors: what they mean`."""
    values: dict[str, Any] = {}
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    for line in lines:
        found = _LENIENT_LINE.match(line)
        if found is not None and found[2]:
            values[found[1]] = found[2].strip().strip("\"'")
    return values if lines and _LENIENT_LINE.match(lines[0]) else None


def _facts(values: Mapping[str, Any]) -> FrontMatter:
    meta: dict[str, str | tuple[str, ...]] = {}
    _flatten("", values, meta, 0)
    lowered = {key.lower(): value for key, value in meta.items()}
    title = lowered.get("title")
    language = next((lowered[key] for key in _LANGUAGE_KEYS if key in lowered), None)
    urls: list[str] = []
    for key in _URL_KEYS:
        value = lowered.get(key, ())
        urls.extend((value,) if isinstance(value, str) else value)
    return FrontMatter(
        title=title if isinstance(title, str) and title else None,
        language=language_tag(language) if isinstance(language, str) else None,
        urls=tuple(url for url in urls if url),
        meta=meta,
    )


def _flatten(prefix: str, value: Any, into: dict[str, str | tuple[str, ...]], depth: int) -> None:
    if len(into) >= _MAX_VALUES or depth > _MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            name = clean_prose(str(key))
            _flatten(f"{prefix}.{name}" if prefix else name, inner, into, depth + 1)
    elif isinstance(value, list):
        words = tuple(_scalars(value))
        if words:
            into[prefix] = words
    elif prefix and value is not None:
        text = clean_prose(_written(value))[:_MAX_VALUE]
        if text:
            into[prefix] = text


def _scalars(values: Iterable[Any]) -> Iterable[str]:
    for number, value in enumerate(values):
        if number >= _MAX_VALUES:
            return
        if not isinstance(value, (Mapping, list)) and value is not None:
            text = clean_prose(_written(value))[:_MAX_VALUE]
            if text:
                yield text


def _written(value: Any) -> str:
    if value is True or value is False:
        return "true" if value else "false"
    return str(value)
