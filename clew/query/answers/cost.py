"""What answers cost, as they are made: calls of a model, tokens, characters, money by the prices given."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from clew_client.answers import AnswerCost


@dataclass(kw_only=True)
class Meter:
    """Of one question."""

    seconds: float  # after so long no further step is begun
    model_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    context_chars: int = 0
    passage_chars: int = 0
    money: float | None = None
    stopped: str | None = None  # why no further step was begun
    began: float = field(default_factory=time.monotonic)

    def may_go_on(self) -> bool:
        """Whether another step may begin; says why not in `stopped`."""
        if self.stopped is None and time.monotonic() - self.began >= self.seconds:
            self.stopped = f"stopped after {self.seconds:g} s; what there is by then is given"
        return self.stopped is None

    def report(self) -> AnswerCost:
        """As it travels."""
        return AnswerCost(
            model_calls=self.model_calls, tokens_in=self.tokens_in, tokens_out=self.tokens_out,
            context_chars=self.context_chars, passage_chars=self.passage_chars,
            chars_saved=max(0, self.passage_chars - self.context_chars), money=self.money,
        )  # fmt: skip
