"""Reports by a language model: it names a community and chooses what to say first. It writes no statement of its own.

What it is shown are the statements that extraction would take, more of them; what it gives back are a title and numbers. So every line
of its report is a span of a passage too, and nothing it makes up can become one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from clew.indexer.graph.names import tidy
from clew.indexer.graph.reports import MOST_STATEMENTS, Source, input_hash, report
from clew.indexer.llm.prompts import Filled, fenced, prompt
from clew.indexer.llm.session import Session

SHOWN = 40  # statements
LONGEST_SHOWN = 400  # characters of a statement
LONGEST_TITLE = 120  # characters
MAX_TOKENS = 300
_WORD = re.compile(r"\w{3,}")


class Choice(BaseModel):
    """A model's reply on a community."""

    title: str
    chosen: list[int]


@dataclass(frozen=True, kw_only=True)
class ModelAuthor:
    """Writes reports with a model, as far as its session goes."""

    session: Session

    @property
    def id(self) -> str:
        """Model and version of the prompt."""
        return f"{self.session.model.id}:{prompt('report').version[:8]}"

    def write(
        self, sources: Sequence[Source], built_ns: int, told: Callable[[int], None] = lambda _: None
    ) -> list[dict[str, Any] | None]:
        """A row of the table of reports for each source; None where there is nothing to choose, or no answer.

        `told`: hears how many more were asked for, as replies come.
        """
        shown = [report(source, built_ns, SHOWN) for source in sources]
        rows: list[dict[str, Any] | None] = [None] * len(sources)
        if self.session.stopped is not None:
            return rows
        asked = [place for place, row in enumerate(shown) if row["summary"]]
        outcomes = self.session.ask_each((_question(shown[place]) for place in asked), Choice)
        for place, outcome in zip(asked, outcomes, strict=False):
            told(1)
            if outcome.value is not None:
                rows[place] = self._row(sources[place], shown[place], outcome.value)
        return rows

    def _row(self, source: Source, shown: dict[str, Any], choice: Choice) -> dict[str, Any]:
        statements = shown["summary"]
        numbers = [number for number in dict.fromkeys(choice.chosen) if 1 <= number <= len(statements)]
        if not numbers:
            numbers = list(range(1, len(statements) + 1))
        title = tidy(choice.title)[:LONGEST_TITLE].rstrip()
        told = {word.casefold() for one in statements for word in _WORD.findall(f"{one['subject']} {one['statement']}")}
        said = {word.casefold() for word in _WORD.findall(title)}
        return {
            **shown,
            "summary": [statements[number - 1] for number in numbers[:MOST_STATEMENTS]],
            # A title none of whose words the statements know is about something else.
            "title": title if said & told else shown["title"],
            "author": self.id,
            "input_hash": input_hash(source, self.id),
        }


def _question(row: dict[str, Any]) -> Filled:
    lines = [
        f"{number}. {one['subject']}: {one['statement'][:LONGEST_SHOWN]}"
        for number, one in enumerate(row["summary"], 1)
    ]
    return prompt("report").fill(
        max_tokens=MAX_TOKENS, statements=fenced("\n".join(lines), "statements"), most=str(MOST_STATEMENTS)
    )
