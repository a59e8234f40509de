"""A model over HTTP. Deleted, a busy service would end a run, a plain one would be unusable, and a key could turn up in a log."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Iterator

import pytest

from clew.errors import ConfigurationError, LanguageModelError, OptionError
from clew.indexer.llm.protocol import Message, Request
from clew.indexer.llm.service import ModelSettings, ServiceModel, open_model
from tests.integration.llm.chat_service import Chat, chat_service

SECRET = "sk-not-to-be-seen"
ASKED = Request(messages=(Message(role="user", content="Well?"),), schema={"type": "object"}, max_tokens=9)


@pytest.fixture
def chat() -> Chat:
    return Chat()


@pytest.fixture
def url(chat: Chat) -> Iterator[str]:
    with chat_service(chat) as address:
        yield address


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLEW_LLM_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def model(url: str, **options: object) -> ServiceModel:
    return open_model(f"small@{url}", attempts=3, longest_wait=0.01, **options)


def test_a_reply_and_its_tokens_come_back(url: str, chat: Chat) -> None:
    reply = model(url).complete(ASKED)
    assert (reply.text, reply.tokens_in, reply.tokens_out, reply.whole) == ('{"ok": true}', 11, 7, True)
    sent = chat.requests[0]
    assert (sent["model"], sent["max_tokens"], sent["temperature"], sent["seed"]) == ("small", 9, 0.0, 0)
    assert sent["response_format"]["json_schema"]["schema"] == {"type": "object"}


def test_a_busy_service_is_asked_again(url: str, chat: Chat) -> None:
    chat.answers = [(503, {}, "busy"), (429, {"Retry-After": "0"}, "slower")]
    assert model(url).complete(ASKED).text == '{"ok": true}'
    assert len(chat.requests) == 3


@pytest.mark.parametrize("body", ["<html>", "{}", '{"choices": []}', '{"choices": [{"message": null}]}'])
def test_an_answer_that_is_none_is_asked_for_again_and_then_said(url: str, chat: Chat, body: str) -> None:
    chat.answers = [(200, {}, body)] * 3
    with pytest.raises(LanguageModelError, match="not one"):
        model(url).complete(ASKED)


def test_an_empty_reply_is_a_reply(url: str, chat: Chat) -> None:
    content = {"choices": [{"message": {"content": None}, "finish_reason": "length"}]}
    chat.answers = [(200, {}, json.dumps(content))]
    reply = model(url).complete(ASKED)
    assert (reply.text, reply.whole) == ("", False)
    assert reply.tokens_in > 0


def test_what_a_service_does_not_know_is_left_out_once_for_all(url: str, chat: Chat) -> None:
    chat.refuses = ("max_tokens", "temperature", "json_schema", "json_object")
    one = model(url)
    assert one.complete(ASKED).text == '{"ok": true}'
    before = len(chat.requests)
    assert one.complete(ASKED).text == '{"ok": true}'
    assert len(chat.requests) == before + 1
    last = chat.requests[-1]
    assert last["max_completion_tokens"] == 9
    assert not {"max_tokens", "temperature", "seed", "response_format"} & set(last)


def test_a_refusal_for_good_is_not_tried_again(url: str, chat: Chat) -> None:
    chat.answers = [(404, {}, '{"error": {"message": "no model small"}}')]
    with pytest.raises(ConfigurationError, match="no model small"):
        model(url).complete(ASKED)
    assert len(chat.requests) == 1


def test_the_key_goes_to_its_service_and_nowhere_else(
    url: str, chat: Chat, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    model(url).complete(ASKED)
    assert chat.authorizations == [None]  # OpenAI's key is for OpenAI alone
    monkeypatch.setenv("CLEW_LLM_API_KEY", SECRET)
    one = model(url)
    one.complete(ASKED)
    assert chat.authorizations[-1] == f"Bearer {SECRET}"
    chat.key = "another"
    with pytest.raises(ConfigurationError) as refused:
        model(url).complete(ASKED)
    told = [str(refused.value), repr(one), one.id, caplog.text, repr(pickle.dumps(one))]
    told.append(repr(ModelSettings(model="m", key=SECRET)))
    assert not [text for text in told if SECRET in text]


def test_a_service_that_is_not_there_is_said_with_what_to_do() -> None:
    with pytest.raises(LanguageModelError, match="run the command again"):
        model("http://127.0.0.1:9/v1").complete(ASKED)


@pytest.mark.parametrize("name", ["@http://127.0.0.1:9/v1", "m@http:///v1", "m@http://user:word@127.0.0.1/v1"])
def test_addresses_that_cannot_be_are_refused(name: str) -> None:
    with pytest.raises(OptionError):
        open_model(name)
