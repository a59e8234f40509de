"""Writes text to be placed later: a footnote behind its paragraph, a title before the shapes that precede it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from clew.indexer.extract.document import BlockKind, LinkKind
from clew.indexer.extract.text_builder import TextBuilder


class Writer(Protocol):
    """The part of `TextBuilder` that office formats write to; `Recording` has it too."""

    def open_block(self, kind: BlockKind = ..., line: int | None = ..., *, level: int = ...) -> None:
        """See TextBuilder."""

    def close_block(self) -> str:
        """See TextBuilder."""

    def break_group(self) -> None:
        """See TextBuilder."""

    def text(self, run: str) -> None:
        """See TextBuilder."""

    def line_break(self) -> None:
        """See TextBuilder."""

    def cell_break(self) -> None:
        """See TextBuilder."""

    def link_start(self, href: str, kind: LinkKind = ...) -> None:
        """See TextBuilder."""

    def link_end(self) -> None:
        """See TextBuilder."""

    def link(self, href: str, kind: LinkKind = ..., text: str = ...) -> None:
        """See TextBuilder."""

    def anchor(self, name: str) -> None:
        """See TextBuilder."""

    def location(self, unit: str, value: str) -> None:
        """See TextBuilder."""


class Recording:
    """Remembers calls; `replay` makes them on another writer."""

    __slots__ = ("_calls", "has_text")

    def __init__(self) -> None:
        self._calls: list[Callable[[Writer], object]] = []
        self.has_text = False

    def open_block(self, kind: BlockKind = BlockKind.PARAGRAPH, line: int | None = None, *, level: int = 0) -> None:
        """See TextBuilder."""
        self._calls.append(lambda writer: writer.open_block(kind, line, level=level))

    def close_block(self) -> str:
        """See TextBuilder; always gives ''."""
        self._calls.append(lambda writer: writer.close_block())
        return ""

    def break_group(self) -> None:
        """See TextBuilder."""
        self._calls.append(lambda writer: writer.break_group())

    def text(self, run: str) -> None:
        """See TextBuilder."""
        if not self.has_text and run.strip():
            self.has_text = True
        self._calls.append(lambda writer: writer.text(run))

    def line_break(self) -> None:
        """See TextBuilder."""
        self._calls.append(lambda writer: writer.line_break())

    def cell_break(self) -> None:
        """See TextBuilder."""
        self._calls.append(lambda writer: writer.cell_break())

    def link_start(self, href: str, kind: LinkKind = LinkKind.HYPERLINK) -> None:
        """See TextBuilder."""
        self._calls.append(lambda writer: writer.link_start(href, kind))

    def link_end(self) -> None:
        """See TextBuilder."""
        self._calls.append(lambda writer: writer.link_end())

    def link(self, href: str, kind: LinkKind = LinkKind.HYPERLINK, text: str = "") -> None:
        """See TextBuilder."""
        self._calls.append(lambda writer: writer.link(href, kind, text))

    def anchor(self, name: str) -> None:
        """See TextBuilder."""
        self._calls.append(lambda writer: writer.anchor(name))

    def location(self, unit: str, value: str) -> None:
        """See TextBuilder."""
        self._calls.append(lambda writer: writer.location(unit, value))

    def replay(self, writer: Writer) -> None:
        """Make the remembered calls."""
        for call in self._calls:
            call(writer)


def is_writer(builder: TextBuilder) -> Writer:
    """A builder as a writer; here so that a type checker compares the two."""
    return builder
