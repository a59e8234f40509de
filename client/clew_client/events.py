"""An answer as it comes: server-sent events read line by line into what they are."""

from __future__ import annotations

from typing import TypeAlias

from pydantic import ValidationError

from clew_client.answers import Answer, AnswerStatement, Citation
from clew_client.calls import Call
from clew_client.errors import ClientError
from clew_client.service import Problem, RouteChosen

#: In this order: a route (again where another one is taken instead), statements, citations, the whole answer.
AnswerEvent: TypeAlias = RouteChosen | AnswerStatement | Citation | Answer

_KINDS: dict[str, type[RouteChosen] | type[AnswerStatement] | type[Citation] | type[Answer]] = {
    "route": RouteChosen,
    "statement": AnswerStatement,
    "citation": Citation,
    "done": Answer,
}


class EventReader:
    """Lines of a stream to events. The service writes an event as `event:` and one `data:` line."""

    def __init__(self, call: Call[Answer]) -> None:
        self._call = call
        self._name = ""
        self.done = False  # whether the whole answer has come

    def line(self, text: str) -> AnswerEvent | None:
        """The event that a line completes. ClientError where the answer ends in one, or is no answer of the service."""
        field, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._name = value
        if field != "data":
            return None
        if self._name == "error":
            problem = Problem.model_validate_json(value)
            raise self._call.error(problem.status, value.encode(), {"x-request-id": problem.instance or ""})
        kind = _KINDS.get(self._name)
        if kind is None:  # a later service may tell of more
            return None
        try:
            event = kind.model_validate_json(value)
        except ValidationError as error:
            raise ClientError(f"{self._call.path}: an event {self._name!r} that cannot be read.") from error
        self.done = isinstance(event, Answer)
        return event

    def end(self) -> None:
        """ClientError where the stream ended before the answer did."""
        if not self.done:
            raise ClientError(f"{self._call.path}: the stream ended before the answer was whole; ask again.")
