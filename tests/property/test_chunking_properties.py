"""Chunks of any document cover it, give it back and stay within the window. Without these tests a passage could be
lost, cited at the wrong place or cut off by the embedder."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clew.indexer.chunking import chunk_document, chunk_documents, estimate_tokens, join_chunks
from clew.indexer.extract.document import Anchor, Block, BlockKind, Document, Heading, Location
from clew.indexer.settings import ChunkSettings

Counter = Callable[[Sequence[str]], list[int]]


def count_words(texts: Sequence[str]) -> list[int]:
    """White-space separated words."""
    return [len(text.split()) for text in texts]


def count_characters(texts: Sequence[str]) -> list[int]:
    """A counter that counts white space as well."""
    return [len(text) for text in texts]


def count_jointly(texts: Sequence[str]) -> list[int]:
    """A counter by which the whole is more than its parts."""
    return [len(text.split()) + text.count(" ") // 3 + text.count("\n") for text in texts]


PIECES = st.one_of(
    st.sampled_from(
        ["Dr. Who left.", "Why? ", "a, b; c", "你好。这是句子。", "الكلمة، ثم؛", "x" * 70, "\u0301", "e\u0301" * 40]
    ),
    st.sampled_from([" ", "\n", "\n\n", "\u2003", "\x1c", "\u200b", "\U0001f469\u200d\U0001f4bb", "\ud800"]),
    st.text(max_size=30),
    st.text(alphabet="ab .;,\n", max_size=60),
)
TEXTS = st.lists(PIECES, max_size=25).map("".join)
SETTINGS = st.builds(
    ChunkSettings,
    tokens=st.sampled_from([16, 17, 24, 64]),
    overlap=st.sampled_from([0.0, 0.2, 0.5, 0.89]),
    section_level=st.integers(0, 6),
    tiny_section=st.sampled_from([0, 3, 32]),
)
COUNTERS = st.sampled_from([count_words, count_characters, count_jointly, estimate_tokens])


@st.composite
def documents(draw: st.DrawFn, *, texts: st.SearchStrategy[str] = TEXTS) -> Document:
    """Documents whose blocks, headings and anchors lie anywhere, also where no good extractor would put them."""
    text = draw(texts)
    size = len(text)
    cuts = sorted(draw(st.lists(st.integers(0, size), max_size=10)))
    kinds = draw(st.lists(st.sampled_from(list(BlockKind)), min_size=len(cuts), max_size=len(cuts)))
    spans = list(pairwise(cuts))
    blocks = tuple(
        Block(kind=kind, char_start=start, char_end=end)
        for (start, end), kind in zip(spans, kinds, strict=False)
        if start < end and draw(st.booleans())
    )
    headings = tuple(
        Heading(level=draw(st.integers(1, 6)), char_start=start, char_end=end)
        for start, end in spans
        if text[start:end].strip() and draw(st.integers(0, 3)) == 0
    )
    places = sorted(draw(st.lists(st.integers(0, size), max_size=5)))
    return Document(
        text=text,
        blocks=blocks,
        headings=headings,
        anchors=tuple(Anchor(name=f"a{place}", char_start=place) for place in places),
        locations=tuple(Location(char_start=place, unit="page", value=str(n)) for n, place in enumerate(places)),
    )


@given(documents(), SETTINGS, COUNTERS, st.integers(0, 20))
@settings(max_examples=150, deadline=None)
def test_chunks_give_the_text_back_and_stay_within_the_window(
    document: Document, chunking: ChunkSettings, count: Counter, prefix: int
) -> None:
    """Offsets, order, coverage, window and anchors hold for any document and counter."""
    chunks = chunk_document(document, chunking, count, prefix)
    text = document.text
    assert bool(chunks) == bool(text.strip())
    assert join_chunks(chunks) == (text if chunks else "")
    budget = max(chunking.tokens - prefix, chunking.tokens // 2)
    covered = 0
    for number, chunk in enumerate(chunks):
        assert text[chunk.char_start : chunk.char_end] == chunk.text
        assert chunk.char_start < chunk.char_end
        assert not chunk.text[-1].isspace()
        assert number == 0 or not chunk.text[0].isspace()
        assert number == 0 or (chunks[number - 1].char_start, chunks[number - 1].char_end) < (
            chunk.char_start,
            chunk.char_end,
        )
        assert chunk.char_end > covered, "a chunk without anything new"
        assert not text[covered : chunk.char_start].strip(), "text between two chunks"
        covered = chunk.char_end
        if number:
            assert chunk.token_count == count([chunk.text])[0] <= budget
    assert not text[covered:].strip()
    names = [name for chunk in chunks for name in chunk.anchors]
    for anchor in document.anchors if chunks else ():
        owner = next(chunk for chunk in chunks if anchor.name in chunk.anchors)
        later = [chunk for chunk in chunks if chunk.char_start <= anchor.char_start]
        assert owner == (later[-1] if later else chunks[0])
        assert names.count(anchor.name) == 1


@given(documents(), SETTINGS)
@settings(max_examples=60, deadline=None)
def test_headings_bound_windows_and_name_them(document: Document, chunking: ChunkSettings) -> None:
    """No chunk of several units ends with a heading; the heading path is that of the chunk's first character.

    For headings that stand apart, as those of every extractor do: a span in the middle of a word heads nothing.
    """
    assume(all(_stands_apart(document.text, heading) for heading in document.headings))
    chunks = chunk_document(document, chunking, estimate_tokens)
    for number, chunk in enumerate(chunks):
        start = chunk.char_start + (len(chunk.text) - len(chunk.text.lstrip()) if number == 0 else 0)
        stack: list[Heading] = []
        for heading in document.headings:
            if heading.char_start <= start:
                stack = [open_ for open_ in stack if open_.level < heading.level] + [heading]
        titles = [" ".join(document.text[h.char_start : h.char_end][:300].split()) for h in stack]
        assert list(chunk.heading_path) == [title for title in titles if title]
        if number + 1 < len(chunks):
            for heading in document.headings:
                end = document.text[: heading.char_end].rstrip()
                if len(end) == chunk.char_end and heading.char_start > chunk.char_start:
                    between = document.text[chunk.char_start : heading.char_start]
                    assert not re.search(r"\S", between) or _only_headings(document, chunk.char_start, chunk.char_end)


def _stands_apart(text: str, heading: Heading) -> bool:
    before, after = text[: heading.char_start][-1:], text[heading.char_end :][:1]
    return (not before or before.isspace()) and (not after or after.isspace())


def _only_headings(document: Document, start: int, end: int) -> bool:
    covered = set()
    for heading in document.headings:
        covered.update(range(heading.char_start, heading.char_end))
    for block in document.blocks:
        if block.kind is BlockKind.HEADING:
            covered.update(range(block.char_start, block.char_end))
    return all(document.text[at].isspace() or at in covered for at in range(start, end))


@given(st.lists(documents(), min_size=1, max_size=4), SETTINGS)
@settings(max_examples=50, deadline=None)
def test_parts_of_a_long_text_join_to_the_text(parts: list[Document], chunking: ChunkSettings) -> None:
    """Absolute offsets and tails carry over the borders of parts."""
    whole = "".join(part.text for part in parts)
    offset, placed = 0, []
    for number, part in enumerate(parts):
        placed.append(
            Document(
                text=part.text,
                blocks=part.blocks,
                headings=part.headings,
                char_offset=offset,
                last=number + 1 == len(parts),
            )
        )
        offset += len(part.text)
    chunks = [chunk for _, made in chunk_documents(placed, chunking, estimate_tokens) for chunk in made]
    joined = join_chunks(chunks)
    assert len(joined) <= len(whole)
    for chunk in chunks:
        assert whole[chunk.char_start : chunk.char_end] == chunk.text == joined[chunk.char_start : chunk.char_end]
    if all(part.text.strip() for part in parts):
        assert joined == whole
