"""Whatever is written in whatever order, offsets stay true: without this, one odd run would shift every citation."""

from __future__ import annotations

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from clew.indexer.extract.document import BlockKind, LinkKind
from clew.indexer.extract.text_builder import TextBuilder, compose, split_document
from clew.testing.documents import check_document, check_documents, link_table

# Letters that compose, combining marks, Hangul pieces, white space, controls, lone surrogates.
ALPHABET = "ae\u0301\u0308\u0323A\u030aо\u0306\u1100\u1161\u11a8\u0b47\u0b3e=\u0338 \t\n\r\u00a0\u3000\x00\x85\ud800\ufeff\u00adz"
RUNS = st.text(alphabet=ALPHABET, max_size=8)
STEPS = st.one_of(
    st.tuples(st.just("text"), RUNS),
    st.tuples(st.just("code"), RUNS),
    st.tuples(st.just("open"), st.sampled_from(list(BlockKind)), st.integers(0, 3)),
    st.tuples(st.just("close")),
    st.tuples(st.just("start")),
    st.tuples(st.just("end")),
    st.tuples(st.just("link"), RUNS),
    st.tuples(st.just("anchor")),
    st.tuples(st.just("break"), st.sampled_from(["line", "cell", "group"])),
    st.tuples(st.just("location")),
)


def written(steps: list[tuple[object, ...]]) -> TextBuilder:
    """A builder after some steps."""
    builder = TextBuilder()
    for number, (step, *details) in enumerate(steps):
        match step:
            case "text":
                builder.text(*details)  # type: ignore[arg-type]
            case "code":
                builder.code(*details)  # type: ignore[arg-type]
            case "open":
                kind, level = details
                level = level if kind is BlockKind.HEADING else 0
                builder.open_block(kind, number + 1, level=level)  # type: ignore[arg-type]
            case "close":
                builder.close_block()
            case "start":
                builder.link_start(f"start{number}")
            case "end":
                builder.link_end()
            case "link":
                builder.link(f"link{number}", LinkKind.EMBED, *details)  # type: ignore[arg-type]
            case "anchor":
                builder.anchor(f"anchor{number}")
            case "location":
                builder.location("page", str(number))
            case "break":
                {"line": builder.line_break, "cell": builder.cell_break, "group": builder.break_group}[
                    str(details[0])
                ]()
    return builder


@settings(max_examples=200, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_any_sequence_of_steps_gives_a_sound_document(steps: list[tuple[object, ...]]):
    document = written(steps).finish(title="t")
    check_document(document)
    assert document.text == document.text.strip()
    hrefs = {href for _, href, _ in link_table(document)}
    for number, (step, *_) in enumerate(steps):
        if step in ("start", "link"):
            assert f"{step}{number}" in hrefs, "no link is lost"
        elif step == "anchor":
            assert f"anchor{number}" in {anchor.name for anchor in document.anchors}, "no anchor is lost"


@settings(max_examples=100, deadline=None)
@given(st.lists(STEPS, max_size=40), st.integers(1, 60))
def test_any_document_splits_into_sound_parts(steps: list[tuple[object, ...]], size: int):
    document = written(steps).finish()
    parts = list(split_document(document, size))
    check_documents(parts)
    assert "".join(part.text for part in parts) == document.text
    assert [row for part in parts for row in link_table(part)] == link_table(document)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=30), st.lists(st.integers(0, 30), max_size=8))
def test_composing_piecewise_equals_composing_the_whole(text: str, offsets: list[int]):
    places = sorted({min(offset, len(text)) for offset in offsets})
    composed, moved = compose(text, places)
    assert composed == unicodedata.normalize("NFC", text)
    ordered = [moved[place] for place in places]
    assert ordered == sorted(ordered)
    assert all(0 <= place <= len(composed) for place in ordered)


def test_no_pair_of_characters_composes_over_a_cut():
    """Every canonical composition that Unicode knows, cut in front of its second character."""
    for code in range(0x110000):
        decomposed = unicodedata.normalize("NFD", chr(code)) if not 0xD800 <= code < 0xE000 else ""
        if len(decomposed) == 2:
            composed, moved = compose(f"x{decomposed}y", [0, 2, 4])
            assert composed == unicodedata.normalize("NFC", f"x{decomposed}y")
            assert moved[4] == len(composed)
