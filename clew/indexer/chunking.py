"""Documents to chunks: windows that slide over sentences.

A document is cut into *units*: sentences, headings, table rows, code blocks. A unit longer than the window is divided
at clauses (code: at lines), then at words, then hard. Windows take units greedily, repeat whole units up to the
overlap, never cross a heading of `section_level` or above unless the section before it is tiny, and never end with
a heading. Everything is measured in the tokens of the generation's embedder.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from clew.indexer.chunks import Chunk, TokenCounter
from clew.indexer.extract.document import BlockKind, Document, Heading
from clew.indexer.links.fragments import canonical_fragment, heading_fragments
from clew.indexer.sentences import (
    Span,
    clause_spans,
    hard_cut,
    line_spans,
    paragraph_spans,
    sentence_spans,
    trim,
    word_spans,
)
from clew.indexer.settings import ChunkSettings
from clew.indexer.token_estimate import estimate_tokens

__all__ = [
    "Outline",
    "chunk_document",
    "chunk_documents",
    "estimate_tokens",
    "join_chunks",
    "join_spans",
    "outline_after",
]

#: The headings that are open at some place: (level, text), outermost first.
Outline = tuple[tuple[int, str], ...]

_LONGEST_HEADING = 300  # characters of a heading that go into heading paths
_NO_LEVEL = 99  # a heading block without a heading record bounds no section


@dataclass(slots=True)
class _Units:
    """Columns of units. `ends[i] <= starts[i + 1]`, and only white space lies between."""

    starts: list[int]
    ends: list[int]
    levels: list[int]  # of a heading; 0 for text
    costs: list[int]  # tokens, the white space behind the unit included


def chunk_document(
    document: Document,
    settings: ChunkSettings,
    count: TokenCounter,
    prefix_tokens: int = 0,
    *,
    above: Outline = (),
) -> list[Chunk]:
    """The chunks of a document, or of one part of a long one, in order.

    `prefix_tokens` is what the embedder will put before each chunk (its title); it takes at most half a window.
    `above` are the headings that earlier parts left open (`outline_after`). Offsets are those of the whole document.
    `join_chunks` gives the text back. White space that begins a part stays with its first chunk; a text of nothing
    but white space has no chunk.
    """
    text = document.text
    budget = max(settings.tokens - prefix_tokens, settings.tokens // 2, 1)
    overlap = int(budget * settings.overlap)
    segments = list(_segments(document))
    units = _cut_units(document, segments, count, budget, overlap)
    if not units.starts:
        return []
    spans, costs = _windows_that_fit(text, units, settings, count, budget, overlap)
    return _assemble(document, spans, costs, above)


def chunk_documents(
    documents: Iterable[Document], settings: ChunkSettings, count: TokenCounter, prefix_tokens: int = 0
) -> Iterator[tuple[Document, list[Chunk]]]:
    """Each document or part with its chunks; heading paths go on from part to part."""
    above: Outline = ()
    for document in documents:
        above = above if document.char_offset else ()
        yield document, chunk_document(document, settings, count, prefix_tokens, above=above)
        above = outline_after(document, above)


def outline_after(document: Document, above: Outline = ()) -> Outline:
    """The headings open at the end of this part."""
    outline = list(above)
    for heading in document.headings:
        _open(outline, heading, document.text)
    return tuple(outline)


def join_chunks(chunks: Iterable[Chunk]) -> str:
    """The document's text, from all its chunks in order (of all parts). A part of white space comes back as spaces."""
    return join_spans((chunk.char_start, chunk.text, chunk.tail) for chunk in chunks)


def join_spans(spans: Iterable[tuple[int, str, str]]) -> str:
    """`join_chunks` of (char_start, text, tail), as the chunks table holds them."""
    pieces: list[str] = []
    length = 0
    for char_start, text, tail in spans:
        if char_start > length:
            pieces.append(" " * (char_start - length))
            length = char_start
        fresh = text[length - char_start :] + tail
        pieces.append(fresh)
        length += len(fresh)
    return "".join(pieces)


# --- Units -------------------------------------------------------------------------------------


def _segments(document: Document) -> Iterator[tuple[int, int, BlockKind, int]]:
    """(start, end, kind, heading level) in order, free of overlap, covering everything but white space."""
    text = document.text
    headings = document.headings
    starts = [heading.char_start for heading in headings]
    position = 0
    for block in document.blocks:
        start, end = max(block.char_start, position), min(block.char_end, len(text))
        if end <= start:
            continue
        if start > position:
            yield from _divide(text, position, start, BlockKind.PARAGRAPH, headings, starts)
        yield from _divide(text, start, end, block.kind, headings, starts)
        position = end
    if position < len(text):
        yield from _divide(text, position, len(text), BlockKind.PARAGRAPH, headings, starts)


def _divide(
    text: str, start: int, end: int, kind: BlockKind, headings: Sequence[Heading], heading_starts: Sequence[int]
) -> Iterator[tuple[int, int, BlockKind, int]]:
    """The stretch without its outer white space, divided where headings stand in it."""
    start, end = trim(text, start, end)
    if start >= end:
        return
    level = _NO_LEVEL if kind is BlockKind.HEADING else 0
    for heading in headings[bisect_left(heading_starts, start) : bisect_left(heading_starts, end)]:
        first, last = trim(text, max(heading.char_start, start), min(heading.char_end, end))
        if first >= last:
            continue
        before = trim(text, start, first)
        if before[0] < before[1]:
            yield *before, kind, level
        yield first, last, BlockKind.HEADING, max(heading.level, 1)
        start = last
    start, end = trim(text, start, end)
    if start < end:
        yield start, end, kind, level


def _cut_units(
    document: Document,
    segments: Sequence[tuple[int, int, BlockKind, int]],
    count: TokenCounter,
    budget: int,
    overlap: int,
) -> _Units:
    text = document.text
    language = (document.language or "en").split("-")[0].lower()
    starts: list[int] = []
    ends: list[int] = []
    levels: list[int] = []
    code: list[bool] = []
    for start, end, kind, level in segments:
        spans: Iterable[Span]
        if kind is BlockKind.HEADING or kind is BlockKind.CODE or kind is BlockKind.ROW:
            spans = ((start, end),)
        elif document.blocks:
            spans = sentence_spans(text, start, end, language)
        else:
            spans = (
                span
                for first, last in paragraph_spans(text, start, end)
                for span in sentence_spans(text, first, last, language)
            )
        for first, last in spans:
            starts.append(first)
            ends.append(last)
            levels.append(level)
            code.append(kind is BlockKind.CODE)
    costs = _count_spans(text, starts, ends, len(text), count)
    units = _Units(starts, ends, levels, costs)
    if costs and max(costs) > budget:
        _divide_long(text, units, code, count, budget, overlap)
    return units


def _count_spans(text: str, starts: Sequence[int], ends: Sequence[int], stop: int, count: TokenCounter) -> list[int]:
    """Tokens of each span with the gap behind it, so that the figures add up for counters that count white space."""
    del ends
    if not starts:
        return []
    return count([text[start:after] for start, after in zip(starts, [*starts[1:], stop], strict=True)])


def _divide_long(
    text: str, units: _Units, code: Sequence[bool], count: TokenCounter, budget: int, overlap: int
) -> None:
    """Replaces units above `budget` by pieces. Small pieces are joined up to the overlap, so that windows over a
    text without punctuation overlap too; a piece between overlap and budget stays as it is."""
    goal = max(overlap, 1) if overlap else budget
    long = [index for index, cost in enumerate(units.costs) if cost > budget]
    stops = [*units.starts[1:], len(text)]
    pieces = [(units.starts[i], units.ends[i], stops[i], units.costs[i], index) for index, i in enumerate(long)]
    for level, cut in enumerate(_CUTS):
        pieces = _cut_level(text, pieces, cut, count, budget, goal, code=[code[i] for i in long], level=level)
    pieces = _cut_hard(text, pieces, count, budget, goal)
    by_unit: dict[int, list[tuple[int, int, int, int, int]]] = {}
    for piece in pieces:
        by_unit.setdefault(long[piece[4]], []).append(piece)
    starts, ends, levels, costs = [], [], [], []
    for i in range(len(units.starts)):
        for start, end, _, cost, _ in by_unit.get(i, [(units.starts[i], units.ends[i], 0, units.costs[i], 0)]):
            starts.append(start)
            ends.append(end)
            levels.append(units.levels[i])
            costs.append(cost)
    units.starts, units.ends, units.levels, units.costs = starts, ends, levels, costs


_Piece = tuple[int, int, int, int, int]  # start, end, start of what follows, tokens, index of the long unit
_Cut = Callable[[str, int, int], Iterator[Span]]
#: Lines for code alone; clauses; words.
_CUTS: tuple[_Cut, ...] = (line_spans, clause_spans, word_spans)


def _cut_level(
    text: str,
    pieces: Sequence[_Piece],
    cut: _Cut,
    count: TokenCounter,
    budget: int,
    goal: int,
    *,
    code: Sequence[bool],
    level: int,
) -> list[_Piece]:
    """Pieces above the budget cut one level finer; neighbours of one cut joined while they stay within `goal`."""
    fresh: list[tuple[int, int, int, int]] = []  # start, end, stop, position in `pieces`
    for position, (start, end, stop, cost, unit) in enumerate(pieces):
        if cost <= budget or (level == 0 and not code[unit]):
            continue
        spans = list(cut(text, start, end))
        following = [*(first for first, _ in spans[1:]), stop]
        fresh.extend((first, last, after, position) for (first, last), after in zip(spans, following, strict=True))
    if not fresh:
        return list(pieces)
    costs = count([text[start:stop] for start, _, stop, _ in fresh])
    cuts: dict[int, list[_Piece]] = {}
    for (start, end, stop, position), cost in zip(fresh, costs, strict=True):
        made = cuts.setdefault(position, [])
        if made and made[-1][3] + cost <= goal:
            first, _, _, sum_before, unit = made[-1]
            made[-1] = (first, end, stop, sum_before + cost, unit)
        else:
            made.append((start, end, stop, cost, pieces[position][4]))
    return [piece for position, whole in enumerate(pieces) for piece in cuts.get(position, (whole,))]


def _cut_hard(text: str, pieces: list[_Piece], count: TokenCounter, budget: int, goal: int) -> list[_Piece]:
    """Cuts what is left above the budget, single words, by characters, until everything fits or is one character."""
    share = goal
    while True:
        fresh: list[_Piece] = []
        for start, end, stop, cost, unit in pieces:
            if cost <= budget or end - start == 1:
                continue
            size = min(max(1, (end - start) * share // cost), end - start - 1)
            spans = list(hard_cut(text, start, end, size))
            following = [*(first for first, _ in spans[1:]), stop]
            fresh.extend((first, last, after, 0, unit) for (first, last), after in zip(spans, following, strict=True))
        if not fresh:
            return pieces
        costs = iter(count([text[start:stop] for start, _, stop, _, _ in fresh]))
        counted = {piece[0]: (*piece[:3], next(costs), piece[4]) for piece in fresh}
        kept = [piece for piece in pieces if piece[3] <= budget or piece[1] - piece[0] == 1]
        pieces = sorted([*kept, *counted.values()])
        share = max(1, share // 2)


# --- Windows -----------------------------------------------------------------------------------


def _windows_that_fit(
    text: str, units: _Units, settings: ChunkSettings, count: TokenCounter, budget: int, overlap: int
) -> tuple[list[Span], list[int]]:
    """Spans of the windows and their tokens. Figures are added up where the counter allows it, else counted again;
    a counter by which the whole is more than its parts gets smaller windows until every one fits."""
    torn = any(end == start for end, start in zip(units.ends, units.starts[1:], strict=False))
    additive = getattr(count, "additive", False) and not torn
    limit = budget
    while True:
        windows = _windows(units, settings, limit, overlap)
        spans = [(units.starts[first], units.ends[last - 1]) for first, last in windows]
        if additive:
            return spans, [sum(units.costs[first:last]) for first, last in windows]
        costs = count([text[start:end] for start, end in spans])
        over = max((cost for cost, (first, last) in zip(costs, windows, strict=True) if last - first > 1), default=0)
        if over <= budget:
            return spans, costs
        limit = max(1, min(limit - 1, limit * budget // over))


def _windows(units: _Units, settings: ChunkSettings, budget: int, overlap: int) -> list[Span]:
    """Windows as ranges of units."""
    windows: list[Span] = []
    for first, last in _groups(units, settings, budget):
        _slide(units, first, last, budget, overlap, windows)
    return windows


def _groups(units: _Units, settings: ChunkSettings, budget: int) -> list[Span]:
    """Ranges of units that windows may not leave: sections, the tiny ones joined with what follows.

    A tiny section at the very end joins the one before where both fit into one window.
    """
    size = len(units.levels)
    bounds = [i for i, level in enumerate(units.levels) if i and 0 < level <= settings.section_level]
    groups: list[Span] = []
    sums: list[int] = []
    tokens, first = 0, 0
    for start, stop in zip([0, *bounds], [*bounds, size], strict=True):
        tokens += sum(units.costs[start:stop])
        if tokens >= settings.tiny_section or stop == size:
            groups.append((first, stop))
            sums.append(tokens)
            tokens, first = 0, stop
    if len(groups) > 1 and sums[-1] < settings.tiny_section and sums[-2] + sums[-1] <= budget:
        groups[-2:] = [(groups[-2][0], groups[-1][1])]
    return groups


def _slide(units: _Units, first: int, last: int, budget: int, overlap: int, windows: list[Span]) -> None:
    costs, levels = units.costs, units.levels
    start, done = first, first  # units before `done` are in a window already
    while done < last:
        end, tokens = start, 0
        while end < last and (tokens + costs[end] <= budget or end == start):
            tokens += costs[end]
            end += 1
        if end < last:  # headings travel with the text they head
            back = end
            while back > start and levels[back - 1]:
                back -= 1
            if back > done:
                end = back
        windows.append((start, end))
        done = start = end
        if end >= last or levels[end]:
            continue  # what begins with a heading repeats nothing from before it
        tokens, room = 0, min(overlap, budget - costs[end])
        while start - 1 > windows[-1][0] and tokens + costs[start - 1] <= room and not levels[start - 1]:
            start -= 1
            tokens += costs[start]


# --- Chunks ------------------------------------------------------------------------------------


def _assemble(document: Document, spans: Sequence[Span], costs: Sequence[int], above: Outline) -> list[Chunk]:
    text, offset = document.text, document.char_offset
    starts = [start for start, _ in spans]
    starts[0] = 0  # white space at the start of a part stays with its first chunk
    outline = list(above)
    anchors = _anchors(document, starts)
    place = _Places(document)
    chunks = []
    opened = 0
    for index, (start, (_, end)) in enumerate(zip(starts, spans, strict=True)):
        while opened < len(document.headings) and document.headings[opened].char_start <= spans[index][0]:
            _open(outline, document.headings[opened], text)
            opened += 1
        following = starts[index + 1] if index + 1 < len(starts) else len(text)
        chunks.append(
            Chunk(
                text=text[start:end],
                tail=text[end:following],
                char_start=offset + start,
                char_end=offset + end,
                heading_path=tuple(title for _, title in outline),
                token_count=costs[index],
                location=place.at(spans[index][0]),
                anchors=anchors[index],
            )
        )
    return chunks


def _open(outline: list[tuple[int, str]], heading: Heading, text: str) -> None:
    while outline and outline[-1][0] >= heading.level:
        outline.pop()
    title = " ".join(text[heading.char_start : min(heading.char_end, heading.char_start + _LONGEST_HEADING)].split())
    if title:
        outline.append((heading.level, title))


def _anchors(document: Document, starts: Sequence[int]) -> list[tuple[str, ...]]:
    """The fragments that lead to each chunk: an anchor belongs to the last chunk that begins at or before it."""
    found: list[dict[str, None]] = [{} for _ in starts]
    for anchor in document.anchors:
        name = canonical_fragment(anchor.name)
        if name:
            found[max(bisect_right(starts, anchor.char_start) - 1, 0)][name] = None
    seen: dict[str, int] = {}
    for heading in document.headings:
        title = document.text[heading.char_start : min(heading.char_end, heading.char_start + _LONGEST_HEADING)]
        for name in heading_fragments(title):
            times = seen.get(name, 0)
            seen[name] = times + 1
            name = f"{name}-{times}" if times else name  # the second of a name is `name-1` on every site
            found[max(bisect_right(starts, heading.char_start) - 1, 0)][name] = None
    return [tuple(names) for names in found]


class _Places:
    """Where in the file a character stems from."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._starts = [location.char_start for location in document.locations]
        code = [block for block in document.blocks if block.kind is BlockKind.CODE]
        self._code = code
        self._code_starts = [block.char_start for block in code]

    def at(self, position: int) -> tuple[str, str] | None:
        index = bisect_right(self._starts, position) - 1
        if index < 0:
            return None
        location = self._document.locations[index]
        if location.unit == "line" and location.value.isdecimal():
            lines = self._lines_between(location.char_start, position)
            return location.unit, str(int(location.value) + lines)
        return location.unit, location.value

    def _lines_between(self, start: int, position: int) -> int:
        """Lines of the file between two places of its text, where text and file have the same lines."""
        if self._document.blocks:
            index = bisect_right(self._code_starts, position) - 1
            if index < 0 or position >= self._code[index].char_end:
                return 0
            start = max(start, self._code[index].char_start)
        return self._document.text.count("\n", start, position)
