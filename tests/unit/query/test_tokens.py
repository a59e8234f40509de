"""Counting by named tokenizers; without these a budget could be measured in anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clew.errors import ConfigurationError, MissingPartError, OptionError
from clew.query.tokens import open_tokenizer

TEXTS = ("", "Rotate the signing key.", "Ключ подписи меняют.", "naïve \ud800 text", "a" * 300)


def test_quarter_of_the_characters_is_rounded_up() -> None:
    assert open_tokenizer("chars/4").count(["", "abc", "abcd", "abcde", "ключ"]) == [0, 1, 1, 2, 1]
    assert open_tokenizer("chars/3").of("abcd") == 2


def test_packaged_tokenizer_counts_word_pieces() -> None:
    try:
        tokenizer = open_tokenizer("minilm")
    except MissingPartError as error:
        pytest.skip(str(error))
    assert tokenizer.of("Rotate the signing key.") == 5
    assert tokenizer.count(TEXTS) == [tokenizer.of(text) for text in TEXTS]  # nothing depends on what travels along
    assert tokenizer.of("word " * 5_000) == 5_000  # no truncation
    assert open_tokenizer() is tokenizer


def test_file_of_a_tokenizer_is_read_from_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    model = {"type": "WordLevel", "vocab": {"key": 0, "?": 1}, "unk_token": "?"}
    file.write_text(json.dumps({"version": "1.0", "model": model, "pre_tokenizer": {"type": "Whitespace"}}), "utf-8")
    assert open_tokenizer(f"file:{file}").of("key key lock") == 3


@pytest.mark.parametrize("name", ["", "gpt", "chars/0", "chars/", "tiktoken:", "file:", "minilm:x"])
def test_unknown_names_are_refused_with_what_there_is(name: str) -> None:
    with pytest.raises(OptionError, match=r"there are minilm, wordllama, chars/4"):
        open_tokenizer(name)


def test_files_that_hold_no_tokenizer_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text("{}", "utf-8")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        open_tokenizer(f"file:{file}")
    with pytest.raises(OptionError, match="No such file"):
        open_tokenizer(f"file:{tmp_path}/none.json")
