"""Asking a model: one by one or many side by side, within a budget, from the cache where it can be, in a given shape.

session = Session(open_model("gpt-5-mini@https://…"), budget=Budget(tokens=200_000), replies=KeptReplies(path))
answer = session.ask(prompt("extract").fill(passage=text), Extraction)      # an Extraction, or an error
for outcome in session.ask_each(filled, Extraction): ...                    # in order; ends where the budget ends
session.spent, session.stopped
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pydantic import BaseModel

from clew.errors import BudgetSpentError, ClewError, LanguageModelError, MalformedReplyError
from clew.indexer.llm.budget import Budget, Meter, Prices, Spent
from clew.indexer.llm.kept_replies import KeptReplies
from clew.indexer.llm.prompts import Filled, prompt
from clew.indexer.llm.protocol import ChatModel, Message, Reply, Request, request_tokens
from clew.indexer.llm.shapes import ShapeError, read, strict_schema

T = TypeVar("T", bound=BaseModel)
TRIES = 3
LONGEST_ECHO = 4000  # characters of a malformed reply that the model is shown again


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome(Generic[T]):
    """One question's answer, or why there is none."""

    value: T | None = None
    error: ClewError | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """What questions would cost at most, when every reply is as long as allowed and none is kept from before."""

    calls: int
    tokens_in: int
    tokens_out: int
    money: float | None


@dataclass(frozen=True, slots=True)
class _Held:
    """Tokens set aside."""

    tokens_in: int
    tokens_out: int


class Session:
    """A model with a budget. Used from several threads; closed by whoever opened it."""

    def __init__(
        self,
        model: ChatModel,
        *,
        budget: Budget | None = None,
        prices: Prices | None = None,
        replies: KeptReplies | None = None,
        at_once: int = 4,
        tries: int = TRIES,
    ) -> None:
        self.model = model
        self.meter = Meter(budget, prices)
        self._replies = replies
        self._at_once = at_once
        self._tries = tries
        #: Why asking ended before everything was asked; None while it has not.
        self.stopped: str | None = None

    def close(self) -> None:
        """Let connections and files go; for whoever opened the model for this session alone."""
        close = getattr(self.model, "close", None)
        if close is not None:
            close()
        if self._replies is not None:
            self._replies.close()

    @property
    def spent(self) -> Spent:
        """So far."""
        return self.meter.spent

    def forecast(self, questions: Iterable[Filled]) -> Forecast:
        """What these would cost at most. Nothing is asked."""
        calls = tokens_in = tokens_out = 0
        for one in questions:
            calls += 1
            tokens_in += request_tokens(one.messages)
            tokens_out += one.max_tokens
        money = self.meter.prices.of(tokens_in, tokens_out) if self.meter.prices is not None else None
        return Forecast(calls=calls, tokens_in=tokens_in, tokens_out=tokens_out, money=money)

    def text(self, question: Filled) -> str:
        """The reply as it comes. Raises BudgetSpentError, LanguageModelError."""
        request = Request(messages=question.messages, max_tokens=question.max_tokens)
        kept = self._kept(question, request)
        reply = kept or self._called(request)
        if kept is None and reply.whole:
            self._keep(question, request, reply)
        return reply.text.strip()

    def ask(self, question: Filled, shape: type[T]) -> T:
        """The reply in this shape. Raises BudgetSpentError, LanguageModelError; MalformedReplyError after all tries."""
        return self._asked(question, shape, None)

    def ask_each(self, questions: Iterable[Filled], shape: type[T]) -> Iterator[Outcome[T]]:
        """The replies in order, as many at once as the session allows.

        A malformed reply is an outcome with its error. Where the budget is spent, or the service fails after retries, the
        iterator ends early and `stopped` says why: what came before is whole, and is the same however many are asked at once.
        """
        waiting: deque[Future[Outcome[T]]] = deque()
        with ThreadPoolExecutor(self._at_once) as pool:
            for question in questions:
                held = None
                if self._kept(question, self._request(question, shape), count=False) is None:
                    held = self._held(question, waiting)
                    if held is None:
                        break
                waiting.append(pool.submit(self._outcome, question, shape, held))
                while len(waiting) >= 2 * self._at_once:
                    yield from self._next(waiting)
                if self.stopped is not None:
                    break
            while waiting:
                yield from self._next(waiting)

    # --- parts ---------------------------------------------------------------------------------

    def _next(self, waiting: deque[Future[Outcome[T]]]) -> Iterator[Outcome[T]]:
        """The first of those under way; nothing where it has no answer for good, and then all behind it are let go."""
        outcome = waiting.popleft().result()
        passing = isinstance(outcome.error, MalformedReplyError)
        if outcome.error is None or passing:
            yield outcome
            return
        self.stopped = self.stopped or str(outcome.error)
        for one in waiting:
            one.cancel()
        wait(waiting)  # what is under way ends: it was paid for, and its replies are kept
        waiting.clear()

    def _held(self, question: Filled, waiting: Iterable[Future[Outcome[T]]]) -> _Held | None:
        """Set tokens aside in the order of the questions; where too few are left, once more when all calls have settled."""
        held = _Held(request_tokens(question.messages), question.max_tokens)
        for last in (False, True):
            try:
                self.meter.reserve(held.tokens_in, held.tokens_out)
                return held
            except BudgetSpentError as error:
                if last:
                    self.stopped = str(error)
                    break
                wait(waiting)
        return None

    def _outcome(self, question: Filled, shape: type[T], held: _Held | None) -> Outcome[T]:
        try:
            return Outcome(value=self._asked(question, shape, held))
        except (BudgetSpentError, LanguageModelError) as error:
            return Outcome(error=error)

    def _request(self, question: Filled, shape: type[BaseModel]) -> Request:
        return Request(messages=question.messages, max_tokens=question.max_tokens, schema=strict_schema(shape))

    def _asked(self, question: Filled, shape: type[T], held: _Held | None) -> T:
        request = self._request(question, shape)
        kept = self._kept(question, request)
        if kept is not None:
            try:
                value = read(kept.text, shape)
                if held is not None:
                    self.meter.settle((held.tokens_in, held.tokens_out), None)
                return value
            except ShapeError:
                pass  # kept by a version that read it otherwise
        current = request
        problem = ""
        for number in range(self._tries):
            reply = self._called(current, held)
            held = None
            try:
                value = read(reply.text, shape)
            except ShapeError as error:
                problem = str(error)
                if number + 1 < self._tries:
                    self.meter.count("mended")
                    current = replace(request, messages=(*request.messages, *_mending(reply, problem)))
                continue
            if reply.whole:
                self._keep(question, request, reply)
            else:
                self.meter.count("cut")
            return value
        self.meter.count("malformed")
        raise MalformedReplyError(
            f"The model {self.model.id} was asked {self._tries} times for {shape.__name__} ({question.name}) and never gave "
            f"one: {problem}"
        )

    def _called(self, request: Request, held: _Held | None = None) -> Reply:
        if held is None:
            held = _Held(request_tokens(request.messages), request.max_tokens)
            self.meter.reserve(held.tokens_in, held.tokens_out)
        reserved = (held.tokens_in, held.tokens_out)
        try:
            reply = self.model.complete(replace(request, seconds=self.meter.remaining_seconds))
        except BaseException:
            self.meter.settle(reserved, None)
            raise
        self.meter.settle(reserved, (reply.tokens_in, reply.tokens_out))
        return reply

    def _kept(self, question: Filled, request: Request, *, count: bool = True) -> Reply | None:
        if self._replies is None:
            return None
        reply = self._replies.get(self.model.id, question.version, request)
        if reply is not None and count:
            self.meter.count("cached")
        return reply

    def _keep(self, question: Filled, request: Request, reply: Reply) -> None:
        if self._replies is not None:
            self._replies.put(self.model.id, question.version, request, reply)


def _mending(reply: Reply, problem: str) -> Sequence[Message]:
    """The malformed reply, and what is wrong with it."""
    said = reply.text[:LONGEST_ECHO] or "(nothing)"
    return (Message(role="assistant", content=said), *prompt("repair").fill(problem=problem).messages[1:])
