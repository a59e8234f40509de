"""A language model that says what it is told to: for tests of whatever asks one.

    model = ScriptedModel(lambda request: '{"entities": []}')
    session = Session(model)

A reply is a function of the request alone, so it does not depend on which of several questions is asked first. Give a function, or
pairs of (what a request must contain, the reply); a list of replies answers the first, second, … time that it matches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from clew.errors import ClewError, LanguageModelError
from clew.indexer.llm.protocol import Reply, Request, estimated_tokens, request_tokens

__all__ = ["ScriptedModel"]

Said = str | ClewError
Script = Callable[[Request], Said] | Sequence[tuple[str, Said | Sequence[Said]]]


@dataclass
class ScriptedModel:
    """Deterministic replies; what was asked stands in `requests`. A reply longer than `max_tokens` is cut, as models do."""

    script: Script
    name: str = "scripted"
    requests: list[Request] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _times: dict[int, int] = field(default_factory=dict, repr=False)

    @property
    def id(self) -> str:
        """The name given."""
        return self.name

    def complete(self, request: Request) -> Reply:
        """The reply of the script. LanguageModelError where it has none."""
        with self._lock:
            self.requests.append(request)
            said = self.script(request) if callable(self.script) else self._matching(self.script, request)
        if isinstance(said, ClewError):
            raise said
        text = said
        if estimated_tokens(text) > request.max_tokens:
            text = text[: request.max_tokens * 4]
        return Reply(
            text=text, tokens_in=request_tokens(request.messages), tokens_out=estimated_tokens(text), whole=text == said
        )

    def _matching(self, pairs: Sequence[tuple[str, Said | Sequence[Said]]], request: Request) -> Said:
        asked = "\n".join(message.content for message in request.messages)
        for place, (wanted, said) in enumerate(pairs):
            if wanted in asked:
                if isinstance(said, str | ClewError):
                    return said
                time = self._times.get(place, 0)
                self._times[place] = time + 1
                return said[min(time, len(said) - 1)]
        raise LanguageModelError(f"The script has no reply to: {asked[-200:]!r}")
