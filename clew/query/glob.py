"""Patterns as file people write them: `*` and `?` stay inside a path segment, `**` crosses them.

`**/` stands for any number of folders, none included; `/**` at the end for everything below. Brackets and braces are
ordinary characters: they occur in names. Quotes and backslashes make any character literal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

#: Characters that end, open or steer a value where they are not quoted; `str(Glob)` escapes them.
SPECIAL = frozenset(" \t\r\n\f\v,()\"'\\*?<>=!")


class Wild(Enum):
    """A wildcard."""

    STAR = "*"
    ANY = "?"


@dataclass(frozen=True, kw_only=True, slots=True)
class Glob:
    """A pattern: literal text and wildcards in turn; two stars that touch are `**`."""

    parts: tuple[str | Wild, ...]

    @classmethod
    def literal(cls, text: str) -> Glob:
        """The pattern that only this very text fits."""
        return cls(parts=(text,) if text else ())

    @classmethod
    def of(cls, characters: list[str | Wild]) -> Glob:
        """From single characters and wildcards, neighbouring characters joined."""
        parts: list[str | Wild] = []
        for part in characters:
            if isinstance(part, str) and parts and isinstance(last := parts[-1], str):
                parts[-1] = last + part
            else:
                parts.append(part)
        return cls(parts=tuple(parts))

    @property
    def wild(self) -> bool:
        """Whether there is a wildcard in it."""
        return any(isinstance(part, Wild) for part in self.parts)

    @property
    def text(self) -> str:
        """The pattern's characters, wildcards as they are written."""
        return "".join(part if isinstance(part, str) else part.value for part in self.parts)

    def __str__(self) -> str:
        """As it can be read again: special characters behind a backslash; an empty one in quotes."""
        if not self.parts:
            return '""'
        return "".join(
            part.value
            if isinstance(part, Wild)
            else "".join(f"\\{char}" if char in SPECIAL or char.isspace() else char for char in part).replace(
                "..", "\\.."
            )
            for part in self.parts
        )

    def stripped(self) -> Glob:
        """Without `/` or `./` at the start and `/` at the end: paths here are relative to the root."""
        parts = list(self.parts)
        if parts and isinstance(first := parts[0], str):
            parts[0] = re.sub(r"^(?:\./|/)+", "", first)
        if parts and isinstance(last := parts[-1], str):
            parts[-1] = last.rstrip("/")
        return Glob(parts=tuple(part for part in parts if part != ""))

    def flat_regex(self) -> str:
        """An RE2 pattern for plain text: `*` any characters, `?` one."""
        return "".join(
            _escape(part) if isinstance(part, str) else (".*" if part is Wild.STAR else ".") for part in self.parts
        )

    def path_regex(self) -> str:
        """An RE2 pattern for paths, to be anchored and given `(?s)` by the caller."""
        source: list[str | Wild] = []
        for part in self.parts:
            source.extend(part if isinstance(part, str) else (part,))
        out: list[str] = []
        index = 0
        while index < len(source):
            part = source[index]
            if part is not Wild.STAR:
                out.append("[^/]" if part is Wild.ANY else _escape(str(part)))
                index += 1
                continue
            end = index
            while end < len(source) and source[end] is Wild.STAR:
                end += 1
            starts = index == 0 or source[index - 1] == "/"
            if end - index == 2 and starts and end < len(source) and source[end] == "/":
                out.append("(?:[^/]+/)*")
                end += 1
            elif end - index == 2 and starts and end == len(source):
                out.append(".+" if out else ".*")
            else:
                out.append("[^/]*")
            index = end
        return "".join(out)


def _escape(text: str) -> str:
    """For RE2 as for Python: a backslash before ASCII punctuation, everything else as it is."""
    return re.sub(r"([^\w\s]|[\\])", lambda match: f"\\{match[0]}" if match[0].isascii() else match[0], text)
