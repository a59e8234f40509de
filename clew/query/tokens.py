"""Counting tokens as a named tokenizer does: what budgets of contexts are measured in.

=============== ==========================================================================================
`minilm`        WordPiece with 30,522 English pieces, of the built-in embedder; the default, always there
`wordllama`     BPE with 32,000 pieces, as Llama 2 counts; comes with `clew[fast]`
`chars/4`       a quarter of the characters, rounded up: what is often taken where no tokenizer is at hand
`tiktoken:NAME` an encoding of tiktoken (`o200k_base`), where that package and its vocabulary are installed
`file:PATH`     any `tokenizer.json` on this machine, as models on the Hugging Face hub carry
=============== ==========================================================================================

Counts are those of plain text: no special tokens, no template of a chat.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from clew.errors import ConfigurationError, OptionError

DEFAULT = "minilm"
_CHARACTERS = re.compile(r"chars/([1-9][0-9]?)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tokenizer:
    """A way to count. Safe to share between threads."""

    name: str
    count: Callable[[Sequence[str]], list[int]]  # tokens of each text

    def of(self, text: str) -> int:
        """Tokens of one text."""
        return self.count([text])[0]


def open_tokenizer(name: str = DEFAULT) -> Tokenizer:
    """The tokenizer of this name; packaged ones are loaded once a process.

    Raises OptionError for a name that does not exist or needs a package that is missing here, ConfigurationError for
    a file that holds no tokenizer.
    """
    if match := _CHARACTERS.fullmatch(name):
        share = int(match[1])
        return Tokenizer(name=name, count=lambda texts: [-(-len(text) // share) for text in texts])
    kind, _, argument = name.partition(":")
    if name in ("minilm", "wordllama"):
        return _packaged(name)
    if kind == "tiktoken" and argument:
        return _tiktoken(name, argument)
    if kind == "file" and argument:
        try:
            content = Path(argument).read_bytes()
        except OSError as error:
            raise OptionError(f"Reading the tokenizer {argument}: {error.strerror}.") from error
        return _from_json(name, content)
    raise OptionError(
        f"There is no tokenizer {name!r}; there are minilm, wordllama, chars/4, tiktoken:ENCODING, file:tokenizer.json."
    )


@cache
def _packaged(name: str) -> Tokenizer:
    if name == "minilm":
        from clew.indexer.embedders.minilm import TOKENIZER
    else:
        from clew.indexer.embedders.static import TOKENIZER
    return _from_json(name, TOKENIZER.read())


def _from_json(name: str, content: bytes) -> Tokenizer:
    from tokenizers import Tokenizer as Loaded

    try:
        loaded: Any = Loaded.from_buffer(content)
    except Exception as error:  # the library raises bare ones
        raise ConfigurationError(f"The tokenizer {name} cannot be read: {error}.") from error
    loaded.no_padding()
    loaded.no_truncation()

    def count(texts: Sequence[str]) -> list[int]:
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]  # lone surrogates
        return [len(one) for one in loaded.encode_batch_fast(clean, add_special_tokens=False)]

    return Tokenizer(name=name, count=count)


def _tiktoken(name: str, encoding: str) -> Tokenizer:
    try:
        import tiktoken
    except ImportError:
        # An option that whoever asks chose: where a service lacks the package, it has not failed.
        raise OptionError(f"The tokenizer {name} needs the package tiktoken: pip install tiktoken") from None
    try:
        opened = tiktoken.get_encoding(encoding)
    except ValueError as error:
        raise OptionError(f"tiktoken knows no encoding {encoding!r}: {error}") from error
    except Exception as error:  # it fetches the vocabulary, in whatever way that may fail
        raise OptionError(
            f"tiktoken could not load {encoding!r} ({error}); it fetches vocabularies once, into TIKTOKEN_CACHE_DIR."
        ) from error
    return Tokenizer(name=name, count=lambda texts: [len(opened.encode(text, disallowed_special=())) for text in texts])
