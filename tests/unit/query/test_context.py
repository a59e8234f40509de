"""What becomes of hits under a budget; without these a passage could be cited wrongly, stand twice or cost too much."""

from __future__ import annotations

from clew.query.context import Piece, Selection, cut, fill, joined, reading_order, window_tokens
from clew.query.tokens import Tokenizer

WORDS = Tokenizer(name="words", count=lambda texts: [len(text.split()) for text in texts])
TEXT = "One two three. Four five six seven. Eight nine. Ten eleven twelve thirteen.\n\nNew paragraph here."


def piece(start: int, end: int, *, place: int, document: int = 0, text: str = TEXT, tail: str = "") -> Piece:
    return Piece(place=place, document=document, start=start, end=end, text=text[start:end], tail=tail)


def test_overlapping_neighbours_become_one_passage() -> None:
    selection = Selection(WORDS, 100)
    assert selection.take(piece(0, 35, place=5))
    assert selection.take(piece(15, 48, place=6))
    (run,) = selection.runs
    assert (run.start, run.end, run.text) == (0, 48, TEXT[0:48])
    assert selection.tokens == run.tokens == 9  # the four words that both hold are counted once


def test_touching_neighbours_are_joined_with_the_white_space_between() -> None:
    selection = Selection(WORDS, 100)
    assert selection.take(piece(36, 47, place=6, tail=" "))
    assert selection.take(piece(48, 75, place=7, tail="\n\n"))
    assert selection.take(piece(15, 35, place=5, tail=" "))  # the one before comes last
    assert [run.text for run in selection.runs] == [TEXT[15:75]]


def test_next_place_of_another_document_stays_apart() -> None:
    selection = Selection(WORDS, 100)
    assert selection.take(piece(48, 75, place=5, document=0))
    assert selection.take(piece(0, 14, place=6, document=1))
    assert len(selection.runs) == 2


def test_same_text_of_two_documents_is_taken_once() -> None:
    selection = Selection(WORDS, 100)
    assert selection.take(piece(0, 14, place=1, document=0))
    assert selection.holds(piece(0, 14, place=9, document=4))
    assert selection.take(piece(0, 14, place=9, document=4))
    assert len(selection.runs) == 1


def test_what_does_not_fit_leaves_everything_as_it_was() -> None:
    selection = Selection(WORDS, 8)
    assert selection.take(piece(0, 35, place=5))  # seven words
    assert not selection.take(piece(36, 75, place=6))
    assert [run.text for run in selection.runs] == [TEXT[0:35]]
    assert (selection.tokens, selection.room) == (7, 1)


def test_overhead_is_left_free_for_every_passage() -> None:
    assert not Selection(WORDS, 12, overhead=6).take(piece(0, 35, place=5))
    selection = Selection(WORDS, 13, overhead=6)
    assert selection.take(piece(0, 35, place=5))
    assert selection.room == -6  # a second passage's overhead alone would be too much


def test_part_of_a_hit_is_those_sentences_that_hold_most_of_what_is_asked() -> None:
    whole = piece(0, len(TEXT), place=3)

    def worth(text: str) -> dict[str, float]:
        return {word: 1.0 for word in ("nine", "twelve") if word in text}

    part = cut(whole, 6, WORDS, worth)
    assert part is not None
    assert (part.text, TEXT[part.start : part.end]) == ("Eight nine. Ten eleven twelve thirteen.",) * 2


def test_without_a_sentence_that_fits_the_first_words_are_taken() -> None:
    part = cut(piece(0, 35, place=3), 2, WORDS, lambda text: {})
    assert part is not None
    assert part.text == "One two"
    assert cut(piece(0, 35, place=3), 0, WORDS, lambda text: {}) is None


def test_first_hit_that_does_not_fit_ends_the_selection() -> None:
    """A small hit far down must not take the room of a good one: a larger budget would then lose it again."""
    selection = Selection(WORDS, 4)
    taken = fill(selection, [piece(0, 35, place=1), piece(36, 47, place=9)], lambda piece: lambda text: {})
    assert taken == [0]
    assert [run.text for run in selection.runs] == ["Four five six seven."]  # the longest that fits


def test_joined_text_is_the_documents_text() -> None:
    parts = [piece(0, 35, place=1), piece(15, 47, place=2, tail=" "), piece(48, 75, place=3)]
    assert joined(parts) == TEXT[0:75]


def test_documents_are_read_behind_what_led_to_them() -> None:
    assert reading_order([7, 3, 9, 7, 5], {}) == [7, 3, 9, 5]
    assert reading_order([7, 3, 9, 5], {9: 7, 5: 9}) == [7, 9, 5, 3]
    assert reading_order([7, 3], {3: 7, 7: 3}) == [7, 3]  # a circle begins at its best
    assert reading_order([7, 3], {7: 3, 3: 8}) == [7, 3]  # what led there is not among the passages, or stands below


def test_windows_around_seeds_count_what_they_share_once() -> None:
    pieces = [100] * 50
    assert window_tokens(pieces, [25], 1000) == 1000
    assert window_tokens(pieces, [0], 1000) == window_tokens(pieces, [49], 1000) == 1000  # shifted at the ends
    assert window_tokens(pieces, [25, 26], 1000) == 1100
    assert window_tokens(pieces, [5, 40], 1000) == 2000
    assert window_tokens([100] * 3, [1, 2], 1000) == 300  # a small file is its own window
    assert window_tokens([2000, 10], [0], 1000) == 2000  # never less than the seed
    assert window_tokens([], [], 1000) == 0
