"""Answers put together by a language model, which may weigh, choose and word, and never be a source.

It is shown numbered statements that were found already, and whatever it says is held against them: a sentence without the number of a
statement is left out, and so is one with a figure that none of its sources holds. Where nothing is left, or the model fails, or its budget is
spent, the extracted answer stands as it is, and `degraded` says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from clew.errors import ServiceError
from clew.indexer.llm.prompts import Filled, fenced, prompt
from clew.indexer.llm.session import Session
from clew.query.answers.evidence import ReportMap
from clew.query.answers.findings import Composed
from clew_client.answers import AnswerStatement

T = TypeVar("T", bound=BaseModel)

MOST_SHOWN = 24  # statements that a model is shown at once
LONGEST_SHOWN = 600  # characters of one
_FIGURE = re.compile(r"\d+(?:[.,:/-]\d+)*")


class _Shape(BaseModel):
    model_config = ConfigDict(extra="ignore")


class Weighed(_Shape):
    """Points of one statement."""

    number: int
    points: float = Field(ge=0, le=100)


class Points(_Shape):
    """The reply to `answer_points`."""

    points: list[Weighed]


class Sentence(_Shape):
    """A sentence with its sources."""

    text: str
    sources: list[int]


class Sentences(_Shape):
    """The reply to `answer_write`."""

    statements: list[Sentence]


class Questions(_Shape):
    """The reply to `answer_follow_ups`."""

    questions: list[str]


@dataclass(kw_only=True)
class Writer:
    """A model at work on one question. `failed`: why a step was done without it."""

    session: Session
    question: str
    failed: dict[str, str] = field(default_factory=dict)
    dropped: int = 0  # sentences without a source, or with a figure that none holds

    @property
    def author(self) -> str:
        """The model's id."""
        return self.session.model.id

    def weighed(self, maps: Sequence[ReportMap]) -> list[ReportMap]:
        """The map step: reports with the points that the model gives their entries, all reports side by side.

        A report that it has no reply for keeps the points that it has.
        """
        asked = [
            prompt("answer_points").fill(
                question=self.question,
                statements=_shown([(entry.subject, entry.statement) for entry in one.entries]),
                max_tokens=512,
            )
            for one in maps
        ]
        weighed = list(maps)
        for at, outcome in enumerate(self.session.ask_each(asked, Points)):
            if outcome.value is None:
                self.failed["map"] = str(outcome.error)
                continue
            points = {one.number: one.points for one in outcome.value.points}
            entries = [replace(entry, points=points.get(n, 0.0)) for n, entry in enumerate(maps[at].entries, start=1)]
            entries.sort(key=lambda entry: (-entry.points, entry.source))
            weighed[at] = replace(maps[at], entries=tuple(entries))
        if self.session.stopped is not None:
            self.failed["map"] = self.session.stopped
        weighed.sort(key=lambda one: (-one.points, -one.documents, one.community_key))
        return weighed

    def follow_ups(self, primer: Composed, most: int) -> list[str] | None:
        """Questions that a first look left open; None where the model had no reply."""
        if not most:
            return []
        filled = prompt("answer_follow_ups").fill(
            question=self.question, most=str(most), statements=_statements(primer), max_tokens=512
        )
        reply = self._asked("follow-ups", filled, Questions)
        if reply is None:
            return None
        asked = dict.fromkeys(" ".join(one.split())[:500] for one in reply.questions if one.strip())
        return [one for one in asked if one.casefold() != self.question.casefold()][:most]

    def written(self, composed: Composed, most: int) -> tuple[AnswerStatement, ...] | None:
        """The statements of an answer in the model's words, each with the citations that it stands on; None: none is left."""
        if not composed.statements:
            return None
        filled = prompt("answer_write").fill(
            question=self.question, most=str(most), statements=_statements(composed), max_tokens=1024
        )
        reply = self._asked("writing", filled, Sentences)
        if reply is None:
            return None
        written = []
        for one in reply.statements[:most]:
            sources = sorted({n for n in one.sources if 1 <= n <= min(MOST_SHOWN, len(composed.statements))})
            text = " ".join(one.text.split())
            found = [composed.statements[n - 1] for n in sources]
            if (
                not text
                or not found
                or not _figures_stand(text, [f"{each.subject or ''} {each.text}" for each in found])
            ):
                self.dropped += 1
                continue
            cited = sorted({n for each in found for n in each.citations})
            told = tuple(dict.fromkeys(source for each in found for source in each.sources))
            written.append(
                AnswerStatement(
                    subject=found[0].subject if len(found) == 1 else None, text=text, citations=tuple(cited), sources=told,
                    report=found[0].report,
                )
            )  # fmt: skip
        return tuple(written) or None

    def _asked(self, step: str, filled: Filled, shape: type[T]) -> T | None:
        try:
            return self.session.ask(filled, shape)
        except ServiceError as error:  # the budget is spent, too
            self.failed[step] = str(error)
            return None


def _statements(composed: Composed) -> str:
    return _shown([(one.subject or "", one.text) for one in composed.statements])


def _shown(statements: Sequence[tuple[str, str]]) -> str:
    lines = []
    for number, (subject, text) in enumerate(statements[:MOST_SHOWN], start=1):
        led = f"{subject}: " if subject and subject.casefold() not in text.casefold() else ""
        lines.append(f"{number}. {led}{' '.join(text.split())[:LONGEST_SHOWN]}")
    return fenced("\n".join(lines), "statements")


def _figures_stand(text: str, sources: Sequence[str]) -> bool:
    """Whether every figure of a sentence stands in one of its sources, or in the question's own words there."""
    held = {figure for source in sources for figure in _FIGURE.findall(source)}
    return all(figure in held for figure in _FIGURE.findall(text))
