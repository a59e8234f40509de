"""What an embedder is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Protocol, runtime_checkable

import numpy as np
import orjson
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fingerprint:
    """What decides a vector: two embedders with one fingerprint may mix their vectors, others never."""

    model: str  # all-MiniLM-L6-v2
    revision: str  # sha256 of the weights, or the service's own version
    dimension: int
    pooling: str  # mean | cls | none | static
    query_prefix: str = ""
    passage_prefix: str = ""
    normalized: bool = True
    max_tokens: int = 256
    quantization: str = "none"

    @property
    def id(self) -> str:
        """A short stable name: the model, and 12 hexadecimal digits over all fields."""
        digest = sha256(orjson.dumps(asdict(self), option=orjson.OPT_SORT_KEYS)).hexdigest()
        return f"{self.model}-{digest[:12]}"


@dataclass(frozen=True, slots=True)
class TokenStates:
    """What a model makes of each token of one text, in its context."""

    spans: tuple[tuple[int, int], ...]  # where the tokens stand in the text, in code points
    states: Vectors  # (tokens, dimension) float32, each row L2-normalised


@runtime_checkable
class LateInteraction(Protocol):
    """An embedder that can also compare texts token by token, quickly enough to do so for every question."""

    def token_states(self, texts: Sequence[str]) -> list[TokenStates]:
        """Of each text. A text's states must not depend on the texts that travel with it."""
        ...


@runtime_checkable
class Embedder(Protocol):
    """Texts to vectors. A text's vector must not depend on the texts that travel with it."""

    @property
    def fingerprint(self) -> Fingerprint: ...

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """(n, dimension) float32, L2-normalised rows."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """(dimension,) float32, L2-normalised."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text without special tokens, untruncated."""
        ...
