"""What a language model must do. Everything that asks one imports this module and `session`, and these interfaces stay.

A model answers one request at a time and is called from several threads. It knows nothing of budgets, caches and shapes: the
`Session` around it does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant"]
_PIECE = re.compile(r"\w+|[^\w\s]")
_PIECE_CHARACTERS = 6  # a longer word is several tokens
_MESSAGE_TOKENS = 4  # of a message's frame, in the chat templates that are common


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One turn."""

    role: Role
    content: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What a model is asked. `schema`: JSON schema of the reply, for services that can hold a model to one."""

    messages: tuple[Message, ...]
    max_tokens: int = 1024  # of the reply
    schema: Mapping[str, Any] | None = None
    temperature: float = 0.0
    seed: int = 0
    seconds: float | None = None  # for all attempts together; None: as the model is set


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What a model said. Tokens as the service counts them, estimated where it does not."""

    text: str
    tokens_in: int
    tokens_out: int
    whole: bool = True  # False: cut at `max_tokens`


class ChatModel(Protocol):
    """A language model."""

    @property
    def id(self) -> str:
        """Model, revision and where it is served: replies kept under another id are not its own. Holds no secret."""
        ...

    def complete(self, request: Request) -> Reply:
        """The reply. Raises LanguageModelError after retries, ConfigurationError where the service refuses for good."""
        ...


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has, without its model's tokenizer: rather too many than too few.

    Words of more than six characters count as several, and at least every four bytes count: so Cyrillic, at about two
    characters a token, is not taken for half of what it costs.
    """
    pieces = sum(-(-len(piece) // _PIECE_CHARACTERS) for piece in _PIECE.findall(text))
    return max(pieces, len(text.encode("utf-8", "surrogatepass")) // 4)


def request_tokens(messages: tuple[Message, ...]) -> int:
    """About how many tokens go in with these messages."""
    return sum(estimated_tokens(message.content) + _MESSAGE_TOKENS for message in messages)
