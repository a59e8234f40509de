"""No text that people type is a mistake; without these a quotation mark or a Chinese word could end in an error or in nothing."""

from __future__ import annotations

import pytest

import clew
from clew_client.types import PATHS
from tests.integration.scenarios.collections import build, paths, write

FILES = {
    "waldo.md": "# Waldo\n\nWaldo is the keeper of the lighthouse; he doesn't sleep. His desk is 36\" wide.\n",
    "code.md": "# Code\n\nCall `f(x)` with {0} and {name}; a & b, a | b, !c. See https://x.y/z and C:\\temp, foo:bar.\n",
    "prices.md": "# Prices\n\nThe price rose by 5 % to $100 (tax included) -- or -x, +y, ~z, >>> or <<<, [1 TO 5], AND, OR, NOT.\n",
    "zh.md": "# 密钥\n\n签名密钥每年轮换一次。旧密钥在三十天内仍然有效。\n",
    "ja.md": "# 鍵\n\n署名鍵は毎年交換します。タービンの整備では弁と油を確認してください。\n",
    "ko.md": "# 열쇠\n\n서명 열쇠는 매년 바꿉니다.\n",
    "th.md": "# กุญแจ\n\nเปลี่ยนกุญแจทุกปี\n",
}

#: Each was an error in another search engine.
TYPED = (
    'who is "waldo"?', "{0}", "a & b", "(foo", "foo)", "https://x.y/z", ">>>", "<<<", '36"', "don't", "-x", "+y", "~z", "*", "?",
    "^", "/", "//", "\\", "\\\\", "[1 TO 5]", "{a TO b}", "AND", "OR", "NOT", "AND OR NOT", "a AND", "field:value", "foo:", ":",
    "title:(a b", '"', '""', '"unclosed', '"a" "b', "'", "`", "!c", "a || b", "a && b", "$100", "5 %", "%", "@", "#", "C:\\temp",
    "foo~2", "foo^3", "foo*", "*foo", "<script>", "'; DROP TABLE files; --", "\x00", "\x1b[31m", "\ud800", "\u200b", "\u202e", "🔑",
    "🔑 waldo", "a\nb", "a\tb", "é" * 300, "waldo " * 500, "x" * 5000, "-", "--", "...", "_", "(((((((((((", ")" * 50,
)  # fmt: skip


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> clew.Index:
    """Documents full of what query languages take for operators."""
    root = tmp_path_factory.mktemp("syntax") / "documents"
    root.mkdir()
    build(write(root, FILES))
    return clew.open(str(root))


def test_quoted_word_in_a_question_is_found(index: clew.Index) -> None:
    """Q1: `who is "waldo"?` is a question, not a syntax error; what is quoted must stand so."""
    found = index.search('who is "waldo"?', paths=["bm25", "tfidf"])
    assert paths(found) == ["waldo.md"]
    assert paths(index.search('"keeper of the lighthouse"', paths=["bm25"])) == ["waldo.md"]


@pytest.mark.parametrize("text", TYPED, ids=ascii)
def test_any_text_is_a_question(index: clew.Index, text: str) -> None:
    """Q2: on all paths together and on each alone an answer comes, never an error; dense always has one."""
    together = index.search(text, k=5)
    assert together.hits
    assert together.degraded == {}
    for path in PATHS:
        for hit in index.search(text, k=5, paths=[path]).hits:
            assert set(hit.sources) == {path}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("doesn't sleep", "waldo.md"),
        ('36" wide', "waldo.md"),
        ("https://x.y/z", "code.md"),
        ("{name}", "code.md"),
        ("f(x)", "code.md"),
        ("foo:bar", "code.md"),
        ("C:\\temp", "code.md"),
        ("$100 (tax", "prices.md"),
        ("-price +rose", "prices.md"),
        ("(lighthouse", "waldo.md"),
    ],
)
def test_words_among_signs_are_still_found(index: clew.Index, text: str, path: str) -> None:
    """Q2: signs are set aside and the words beside them count; a leading minus excludes nothing."""
    assert paths(index.search(text, paths=["bm25"]))[0] == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("密钥", "zh.md"),
        ("旧密钥什么时候失效", "zh.md"),
        ("三十天", "zh.md"),
        ("署名鍵", "ja.md"),
        ("タービン", "ja.md"),
        ("タービンの弁", "ja.md"),
        ("열쇠", "ko.md"),
        ("กุญแจ", "th.md"),
    ],
)
def test_words_of_languages_without_spaces_are_found(index: clew.Index, text: str, path: str) -> None:
    """Q4: Chinese, Japanese, Korean and Thai questions have lexical hits."""
    for one in ("bm25", "tfidf"):
        found = paths(index.search(text, paths=[one]))
        assert found, one
        assert found[0] == path
