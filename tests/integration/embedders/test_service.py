"""Without these a busy, slow or confused embedding service would end a run, or put vectors beside the wrong texts."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from clew.errors import ConfigurationError, EmbedderServiceError, OptionError
from clew.indexer.embedders.hashing import HashingEmbedder
from clew.indexer.embedders.protocol import Embedder
from clew.indexer.embedders.registry import open_embedder
from clew.indexer.embedders.service import ServiceEmbedder, ServiceSettings, _key
from clew.testing.embedders import TEXTS, EmbedderConformance
from tests.integration.embedders.fake_service import Behaviour, service

TOO_MANY: tuple[int, dict[str, str], str] = (
    429,
    {"Retry-After": "0.05"},
    json.dumps({"error": {"message": "Rate limit reached"}}),
)
BROKEN: tuple[int, dict[str, str], str] = (503, {}, "overloaded")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's own keys stay out of this."""
    monkeypatch.delenv("CLEW_EMBEDDER_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def behaviour() -> Behaviour:
    """What the service of a test does."""
    return Behaviour()


@pytest.fixture
def url(behaviour: Behaviour) -> Iterator[str]:
    """A running service."""
    with service(behaviour) as address:
        yield address


def opened(url: str, model: str = "small", **options: Any) -> Embedder:
    """An embedder that waits little between attempts."""
    embedder = open_embedder(f"openai:{model}@{url}", **{"longest_wait": 0.2, **options})
    assert embedder is not None
    return embedder


class TestServiceConformance(EmbedderConformance):
    """A service in good health is an embedder like any other."""

    @pytest.fixture
    def embedder(self, url: str) -> Embedder:
        return opened(url)


def test_vectors_come_in_the_order_of_the_texts_whatever_the_order_of_the_answer(
    url: str, behaviour: Behaviour
) -> None:
    """The fake answers backwards, and requests run side by side."""
    texts = [f"text number {n} of many {n * n}" for n in range(500)]
    vectors = opened(url, texts_per_request=7, requests_at_once=8).embed_passages(texts)
    np.testing.assert_allclose(vectors, HashingEmbedder(32).embed_passages(texts), atol=1e-6)
    assert max(len(request["input"]) for request in behaviour.requests) == 7


def test_requests_are_bounded_in_characters(url: str, behaviour: Behaviour) -> None:
    """Services bound the size of a request, not only its number of texts."""
    opened(url, characters_per_request=1_000, dimension=32).embed_passages(["x" * 400] * 10)
    assert [len(request["input"]) for request in behaviour.requests] == [2] * 5


def test_too_large_request_is_split_until_the_service_takes_it(url: str, behaviour: Behaviour) -> None:
    """Limits differ between services and cannot be asked for."""
    behaviour.most_texts = 3
    texts = [f"text {n}" for n in range(40)]
    vectors = opened(url).embed_passages(texts)
    np.testing.assert_allclose(vectors, HashingEmbedder(32).embed_passages(texts), atol=1e-6)


def test_text_longer_than_the_model_reads_is_cut_not_failed(url: str, behaviour: Behaviour) -> None:
    """One long text must not fail its batch; the others keep their own vectors."""
    behaviour.most_characters = 1_000
    texts = ["short one", "word " * 1_000, "short two"]
    vectors = opened(url).embed_passages(texts)
    expected = HashingEmbedder(32).embed_passages(texts)
    np.testing.assert_allclose(vectors[[0, 2]], expected[[0, 2]], atol=1e-6)
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize("answer", [TOO_MANY, BROKEN, (500, {}, "{}"), (200, {}, "no JSON"), (200, {}, '{"data": []}')])
def test_passing_failures_are_tried_again(url: str, behaviour: Behaviour, answer: tuple[int, Any, str]) -> None:
    """Half of all service failures are over after a second."""
    behaviour.answers = [answer, answer]
    vector = opened(url).embed_query("keys")
    np.testing.assert_allclose(vector, HashingEmbedder(32).embed_query("keys"), atol=1e-6)
    assert len(behaviour.requests) == 3


def test_retry_after_is_kept(url: str, behaviour: Behaviour) -> None:
    """A service that says when to come back is believed."""
    behaviour.answers = [(429, {"Retry-After": "0.4"}, "later")]
    opened(url, longest_wait=5.0).embed_query("keys")
    first, second = behaviour.times
    assert second - first >= 0.4


def test_retry_after_never_waits_longer_than_allowed(url: str, behaviour: Behaviour) -> None:
    """A day's wait would look like a hang."""
    behaviour.answers = [
        (429, {"Retry-After": "86400"}, "later"),
        (429, {"Retry-After": "Fri, 31 Dec 2100 23:59:59 GMT"}, ""),
    ]
    opened(url, longest_wait=0.05).embed_query("keys")
    assert len(behaviour.requests) == 3


def test_service_that_stays_away_is_an_error_that_says_so(url: str, behaviour: Behaviour) -> None:
    """After the last attempt: which service, how often, what it said; exit status 3."""
    behaviour.answers = [BROKEN] * 10
    with pytest.raises(EmbedderServiceError, match=r"failed 3 times.*503.*overloaded") as caught:
        opened(url, attempts=3).embed_query("keys")
    assert caught.value.exit_code == 3
    assert len(behaviour.requests) == 3


def test_dead_address_is_an_error_that_says_so() -> None:
    """Nobody listens there: the server was never started, or is gone."""
    with service(Behaviour()) as gone:
        pass
    with pytest.raises(EmbedderServiceError, match="Connect"):
        opened(gone, attempts=2).embed_query("keys")


def test_service_that_never_answers_is_given_up(url: str, behaviour: Behaviour) -> None:
    """No request without a time limit."""
    behaviour.hang = threading.Event()
    with pytest.raises(EmbedderServiceError, match="Timeout"):
        opened(url, seconds=0.2, attempts=2).embed_query("keys")


def test_refusals_are_said_at_once(url: str, behaviour: Behaviour, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong key or model does not get better by asking again."""
    with pytest.raises(ConfigurationError, match="'unknown' does not exist"):
        opened(url, model="unknown").embed_query("keys")
    behaviour.key = "right"
    monkeypatch.setenv("CLEW_EMBEDDER_API_KEY", "wrong")
    with pytest.raises(ConfigurationError, match="CLEW_EMBEDDER_API_KEY"):
        opened(url).embed_query("keys")
    assert len(behaviour.requests) == 2
    monkeypatch.setenv("CLEW_EMBEDDER_API_KEY", "right")
    assert opened(url).embed_query("keys").shape == (32,)


def test_openai_key_is_sent_to_openai_alone(monkeypatch: pytest.MonkeyPatch, url: str, behaviour: Behaviour) -> None:
    """A key in the environment must not reach whatever address a configuration names."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    opened(url).embed_query("keys")
    assert behaviour.authorizations == [None]
    assert _key("https://api.openai.com/v1") == "secret"
    assert _key("https://api.openai.com.example.org/v1") is None


def test_key_is_not_pickled(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Embedders travel through queues and logs of a cluster."""
    monkeypatch.setenv("CLEW_EMBEDDER_API_KEY", "secret")
    embedder = opened(url)
    embedder.embed_query("keys")
    assert b"secret" not in pickle.dumps(embedder)


def test_dimension_that_changes_is_refused(url: str, behaviour: Behaviour) -> None:
    """The model behind a name was exchanged: its vectors do not fit the index."""
    embedder = opened(url)
    assert embedder.fingerprint.dimension == 32
    behaviour.dimension = 48
    with pytest.raises(ConfigurationError, match="48 dimensions"):
        embedder.embed_query("keys")
    with pytest.raises(ConfigurationError, match="expected"):
        opened(url, dimension=32).embed_passages(["keys"])


def test_prefixes_are_written_and_belong_to_the_fingerprint(url: str, behaviour: Behaviour) -> None:
    """E5 and its kin want to be told what is a question."""
    embedder = opened(url, query_prefix="query: ", passage_prefix="passage: ", dimension=32)
    embedder.embed_query("keys")
    embedder.embed_passages(["locks"])
    assert [request["input"] for request in behaviour.requests] == [["query: keys"], ["passage: locks"]]
    assert embedder.fingerprint != opened(url, dimension=32).fingerprint


def test_empty_texts_are_asked_for_as_a_space(url: str) -> None:
    """OpenAI refuses an empty input, and with it the whole batch."""
    assert np.isfinite(opened(url).embed_passages(["", *TEXTS])).all()


def test_address_that_is_none_is_refused() -> None:
    """Before anything is indexed."""
    with pytest.raises(OptionError, match="http"):
        ServiceEmbedder(ServiceSettings(model="m", url="localhost:8000"))
