"""Writes one long text as parts of bounded size, so that memory does not grow with the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clew.errors import OutputLimitError
from clew.indexer.extract.document import Document, Source
from clew.indexer.extract.text_builder import TextBuilder


class PartWriter:
    """Hands out a `TextBuilder`; `take` gives what it holds as a part and begins the next one.

    Cut only between blocks, and set the location again afterwards: a part knows nothing of the one before it.
    `text_builder.join_parts` turns the parts into one document.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._written = 0  # code points in parts that were taken
        self._finished: list[Document] = []
        self.builder = self.new_builder()
        self.title: str | None = None
        self.meta: Mapping[str, str | tuple[str, ...]] = {}
        self.language: str | None = None

    def new_builder(self) -> TextBuilder:
        """The builder of the next part; subclasses give one of their own."""
        return TextBuilder()

    @property
    def full(self) -> bool:
        """Whether the part has reached its size. Raises OutputLimitError when the whole text is too long."""
        position = self.builder.position
        limits = self._source.limits
        if self._written + position > limits.text:
            raise OutputLimitError(
                f"{self._source.path} holds more than {limits.text:,} characters; split it, or raise the limit"
            )
        return position >= limits.part

    def cut(self) -> bool:
        """Call between two blocks: sets the part aside where it has reached its size, and tells whether it did."""
        if not self.full:
            return False
        self._finished.append(self.take())
        return True

    def drain(self) -> Iterator[Document]:
        """The parts that were set aside."""
        finished, self._finished = self._finished, []
        yield from finished

    def take(self) -> Document:
        """The part written so far."""
        document = self.builder.finish(title=self.title, meta=self.meta, language=self.language)
        self._written += len(document.text)
        self.builder = self.new_builder()
        return document
