"""Language models on the command line: which one, what it may cost, and where its replies are kept."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from clew.indexer.llm.session import Session

MODEL_VARIABLE = "CLEW_LLM_MODEL"
REPLIES = "replies.sqlite"  # in the cache folder

Model = Annotated[
    str | None,
    typer.Option("--model", metavar="MODEL[@URL]", help=f"A model behind OpenAI's API; else {MODEL_VARIABLE}."),
]
BudgetOption = Annotated[
    str | None,
    typer.Option(
        "--budget", metavar="B", help="Stop there: 200ktokens, 1.50 (money), 20m (time), or several with commas."
    ),
]
PriceIn = Annotated[float | None, typer.Option("--price-in", min=0, help="Money for a million tokens in.")]
PriceOut = Annotated[float | None, typer.Option("--price-out", min=0, help="Money for a million tokens out.")]
AtOnce = Annotated[int, typer.Option("--at-once", min=1, max=64, help="Calls of the model side by side.")]


def open_session(
    model: str | None, budget: str | None, price_in: float | None, price_out: float | None, at_once: int = 4
) -> Session:
    """A session with this model. OptionError where none is named, or a budget in money has no prices."""
    from clew.errors import OptionError
    from clew.indexer.llm.budget import Prices, parse_budget
    from clew.indexer.llm.kept_replies import KeptReplies
    from clew.indexer.llm.service import open_model
    from clew.indexer.llm.session import Session
    from clew.query.cache import cache_directory

    name = model or os.environ.get(MODEL_VARIABLE)
    if not name:
        raise OptionError(f"Which language model? Give --model MODEL@URL, or set {MODEL_VARIABLE}.")
    prices = None
    if price_in is not None or price_out is not None:
        prices = Prices(tokens_in=price_in or 0.0, tokens_out=price_out or 0.0)
    return Session(
        open_model(name),
        budget=parse_budget(budget) if budget else None,
        prices=prices,
        replies=KeptReplies(cache_directory() / REPLIES),
        at_once=at_once,
    )
