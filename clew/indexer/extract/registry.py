"""Which module extracts which kind. A new format is one line here and one module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import cast

from clew.errors import (
    BrokenFileError,
    ClewError,
    EmptyFileError,
    EncryptedFileError,
    MemoryLimitError,
    UnsupportedKindError,
)
from clew.indexer.extract.document import Document, Extraction, Extractor, Kind, Source
from clew.indexer.extract.kinds import HEAD_BYTES, TAIL_BYTES, detect, unlike_its_name

# Imported on first use: a run over Markdown never pays for lxml or pdfium.
EXTRACTORS: dict[str, str] = {
    "markdown": "clew.indexer.extract.markdown:extract",
    "html": "clew.indexer.extract.html:extract",
    "rst": "clew.indexer.extract.restructured:extract",
    "asciidoc": "clew.indexer.extract.asciidoc:extract",
    "text": "clew.indexer.extract.plain:extract",
    "code": "clew.indexer.extract.plain:extract",
    "pdf": "clew.indexer.extract.pdf:extract",
    "docx": "clew.indexer.extract.ooxml:extract",
    "pptx": "clew.indexer.extract.ooxml:extract",
    "xlsx": "clew.indexer.extract.ooxml:extract",
    "odt": "clew.indexer.extract.odf:extract",
    "ods": "clew.indexer.extract.odf:extract",
    "odp": "clew.indexer.extract.odf:extract",
    "epub": "clew.indexer.extract.epub:extract",
    "email": "clew.indexer.extract.message:extract",
    "notebook": "clew.indexer.extract.notebook:extract",
    "json": "clew.indexer.extract.records:extract",
    "jsonl": "clew.indexer.extract.records:extract",
    "csv": "clew.indexer.extract.records:extract",
    "parquet": "clew.indexer.extract.records:extract",
}


@cache
def extractor(name: str) -> Extractor:
    """The extractor of a kind. Raises KeyError where there is none."""
    module, _, attribute = EXTRACTORS[name].partition(":")
    return cast("Extractor", getattr(import_module(module), attribute))


def extract(source: Source, kind: Kind | None = None) -> Extraction:
    """Turn a file into documents; the kind is detected where it is not given.

    Raises an `ExtractionError`: at once, or while the documents are read. Whatever else a parser raises becomes
    `BrokenFileError` (`MemoryLimitError` for lack of memory), with the cause in its message.
    """
    if source.size == 0:
        raise EmptyFileError(f"{source.path} is empty (0 bytes)")
    kind = kind or detect_source(source)
    if kind.name == "encrypted-office":
        raise EncryptedFileError(f"{source.path} is an encrypted Office document; save it without a password")
    if kind.name not in EXTRACTORS:
        source.stream.seek(0)
        unlike = unlike_its_name(source.path, source.stream.read(HEAD_BYTES))
        why = f": its name says text, but {unlike}" if unlike is not None else ""
        raise UnsupportedKindError(f"{source.path} is {kind.media_type}, for which clew has no extractor{why}")
    try:
        source.stream.seek(0)
        extraction = extractor(kind.name)(source, kind)
    except Exception as error:
        raise _as_extraction_error(error, source, kind) from error
    return replace(extraction, documents=_guarded(extraction.documents, source, extraction.kind))


def detect_source(source: Source) -> Kind:
    """The kind of a source, by its first and last bytes and, for archives, its directory."""
    stream = source.stream
    stream.seek(0)
    head = stream.read(HEAD_BYTES)
    tail = None
    if source.size > len(head):
        stream.seek(max(0, source.size - TAIL_BYTES))
        tail = stream.read(TAIL_BYTES)
    kind = detect(source.path, head, source.size, tail=tail, stream=stream)
    stream.seek(0)
    return kind


def _guarded(documents: Iterator[Document], source: Source, kind: Kind) -> Iterator[Document]:
    try:
        yield from documents
    except Exception as error:
        raise _as_extraction_error(error, source, kind) from error


def _as_extraction_error(error: Exception, source: Source, kind: Kind) -> ClewError:
    if isinstance(error, ClewError):
        return error
    if isinstance(error, MemoryError):
        return MemoryLimitError(f"{source.path} ({kind.media_type}) needs more memory than extraction may use")
    return BrokenFileError(f"{source.path} cannot be read as {kind.media_type}: {type(error).__name__}: {error}")
