"""Jupyter notebooks: Markdown cells as Markdown, code cells as code, textual results within bounds.

4 MB a CPU-second where nearly all is Markdown and code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from clew.errors import BrokenFileError, EmptyFileError, TooLargeError
from clew.indexer.extract.document import BlockKind, Document, Extraction, Kind, Source
from clew.indexer.extract.encoding import open_text
from clew.indexer.extract.front_matter import language_tag
from clew.indexer.extract.html import render_fragment
from clew.indexer.extract.json_faults import json_fault
from clew.indexer.extract.markdown import Slugs, render_into
from clew.indexer.extract.text_builder import TextBuilder, clean_prose, split_document

_MAX_BYTES = 256 << 20  # parsed as a whole; nearly all of a large notebook are pictures
_MAX_RESULT = 10_000  # characters of one cell's results: the rest are logs and tables without end
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # colours of tracebacks


def extract(source: Source, kind: Kind) -> Extraction:
    """The notebook as one document; a cell is a location, counted from 1. The title is the first heading of level 1."""
    if source.size > _MAX_BYTES:
        raise TooLargeError(f"{source.path} is a notebook of {source.size:,} bytes (at most {_MAX_BYTES:,} are read)")
    text = open_text(source)
    return Extraction(kind=kind, encoding=text.encoding, documents=_documents(text.read(), source))


class _CellBuilder(TextBuilder):
    """Locations are cells: lines of a cell are none."""

    __slots__ = ()

    def open_block(self, kind: BlockKind = BlockKind.PARAGRAPH, line: int | None = None, *, level: int = 0) -> None:
        """See TextBuilder; `line` is not recorded."""
        super().open_block(kind, None, level=level)


def _documents(text: str, source: Source) -> Iterator[Document]:
    book = _parse(text, source)
    builder = _CellBuilder()
    slugs = Slugs()
    title: str | None = None
    written = False
    for number, cell in enumerate(_cells(book), start=1):
        if not isinstance(cell, dict):
            continue
        builder.close_block()
        builder.location("cell", str(number))
        if isinstance(identifier := cell.get("id"), str):
            builder.anchor(identifier)
        content = _joined(cell.get("source", cell.get("input", "")))
        kind = cell.get("cell_type")
        if kind == "markdown":
            first = render_into(builder, content, line=0, slugs=slugs, nesting=source.limits.nesting)
            title = title or first
        elif kind == "heading":  # until format 3
            level = cell.get("level")
            builder.open_block(BlockKind.HEADING, level=level if isinstance(level, int) and 1 <= level <= 6 else 1)
            builder.text(content)
        elif kind == "code":
            _write_code(content, builder)
            _write_results(cell.get("outputs"), builder, source)
        else:  # raw
            _write_code(content, builder)
        builder.close_block()
        written = written or bool(content.strip())
    if not written:
        raise EmptyFileError(f"{source.path} is a notebook without any text")
    metadata = book.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    known = metadata.get("title")
    document = builder.finish(
        title=clean_prose(known) if isinstance(known, str) and known.strip() else title,
        meta=_meta(metadata),
        language=language_tag(metadata["lang"]) if isinstance(metadata.get("lang"), str) else None,
    )
    yield from split_document(document, source.limits.part)


def _parse(text: str, source: Source) -> dict[str, Any]:
    try:
        book = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BrokenFileError(f"{source.path} is not a notebook: it is no JSON ({json_fault(error)})") from error
    if not isinstance(book, dict) or not isinstance(book.get("cells", book.get("worksheets")), list):
        raise BrokenFileError(f"{source.path} is not a notebook: it has no cells")
    return book


def _cells(book: Mapping[str, Any]) -> Iterator[Any]:
    if isinstance(book.get("cells"), list):
        yield from book["cells"]
        return
    for sheet in book["worksheets"]:  # until format 3
        if isinstance(sheet, dict) and isinstance(sheet.get("cells"), list):
            yield from sheet["cells"]


def _joined(written: object) -> str:
    """A multi-line string is a string or a list of lines."""
    if isinstance(written, str):
        return written
    if isinstance(written, list):
        return "".join(line for line in written if isinstance(line, str))
    return ""


def _write_code(content: str, builder: TextBuilder) -> None:
    if content.strip():
        builder.open_block(BlockKind.CODE)
        builder.code(content)
        builder.close_block()


def _write_results(outputs: object, builder: TextBuilder, source: Source) -> None:
    left = _MAX_RESULT
    for output in outputs if isinstance(outputs, list) else ():
        if left <= 0 or not isinstance(output, dict):
            return
        data = output.get("data")
        data = data if isinstance(data, dict) else output
        if markdown := _joined(data.get("text/markdown")):
            render_into(builder, markdown[:left], slugs=None, nesting=source.limits.nesting)
            left -= len(markdown)
            continue
        text = _joined(output.get("text")) or _joined(data.get("text/plain"))
        html = _joined(data.get("text/html"))
        if html and ("<a " in html or not text):  # a table is read better from its plain form
            builder.open_block()
            render_fragment(html[: 4 * left], builder, nesting=source.limits.nesting)
            builder.close_block()
            left -= len(html) // 4
            continue
        if output.get("output_type") == "error":
            text = f"{output.get('ename', '')}: {output.get('evalue', '')}"
        text = _ESCAPES.sub("", text[:left])
        _write_code(text, builder)
        left -= len(text)


def _meta(metadata: Mapping[str, Any]) -> dict[str, str | tuple[str, ...]]:
    meta: dict[str, str | tuple[str, ...]] = {}
    for section, key, name in (
        ("kernelspec", "display_name", "kernel"),
        ("language_info", "name", "programming_language"),
    ):
        found = metadata.get(section)
        if isinstance(found, dict) and isinstance(found.get(key), str):
            meta[name] = clean_prose(found[key])
    authors = metadata.get("authors")
    if isinstance(authors, list):
        names = tuple(
            clean_prose(author["name"])
            for author in authors
            if isinstance(author, dict) and isinstance(author.get("name"), str)
        )
        if names:
            meta["author"] = names
    return meta
