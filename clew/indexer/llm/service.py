"""A model behind OpenAI's `/chat/completions`: OpenAI itself, vLLM, llama.cpp, Ollama, LM Studio, and the many that speak it too.

What a service does not understand (strict schemas, a name of a field, a temperature) it refuses with a 400 that says so; then it is
asked without, once for all.
"""

from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from clew.errors import ConfigurationError, LanguageModelError, OptionError
from clew.indexer.endpoint import PassingFailure, passes, retried, retry_after, said
from clew.indexer.llm.protocol import Reply, Request, estimated_tokens, request_tokens

if TYPE_CHECKING:
    import httpx

OPENAI_URL = "https://api.openai.com/v1"
KEY_VARIABLE = "CLEW_LLM_API_KEY"
_FORMATS = ("json_schema", "json_object", "none")
_ABOUT_FORMAT = re.compile(
    r"response_format|json_schema|json mode|json_object|structured|grammar|schema", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSettings:
    """How a model is called."""

    model: str
    url: str = OPENAI_URL
    revision: str = ""  # say one when the service changes the model under the same name
    attempts: int = 6
    seconds: float = 120.0  # of one call
    longest_wait: float = 60.0  # seconds between attempts, whatever Retry-After says
    key: str | None = field(default=None, repr=False)  # else from the environment


class ServiceModel:
    """A model over HTTP: retried, and called from several threads.

    The key comes from the environment: `CLEW_LLM_API_KEY`, or for OpenAI's own address `OPENAI_API_KEY` (which is sent
    nowhere else). It stands in no message, id or representation of this class. Redirections are not followed.
    """

    def __init__(self, settings: ModelSettings) -> None:
        parts = urlsplit(settings.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OptionError("The language model's address must begin with http:// or https:// and name a host.")
        if parts.username or parts.password:
            raise OptionError(
                f"The language model's address must not hold a name or password; set {KEY_VARIABLE} instead."
            )
        self._settings = settings
        self._client: httpx.Client | None = None
        self._lock = threading.Lock()
        self._format = 0  # into _FORMATS
        self._limit = "max_tokens"
        self._sampled = True  # whether temperature and seed are sent

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self._settings,))

    @property
    def id(self) -> str:
        """Model, revision and address."""
        one = self._settings
        revision = f"#{one.revision}" if one.revision else ""
        return f"{one.model}{revision}@{one.url.partition('?')[0].rstrip('/')}"

    def complete(self, request: Request) -> Reply:
        """The first choice's text. Raises LanguageModelError after retries, ConfigurationError where the service refuses."""
        settings = self._settings
        try:
            return retried(
                lambda: self._adapted(request), attempts=settings.attempts, longest_wait=settings.longest_wait,
                seconds=request.seconds,
            )  # fmt: skip
        except PassingFailure as error:
            raise LanguageModelError(
                f"The language model {self.id} failed, after {settings.attempts} attempts at most or when the time was up; "
                f"the last time: {error}. What is done stays; run the command again when the service is back."
            ) from None

    def close(self) -> None:
        """Let the connections go."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    # --- one attempt ---------------------------------------------------------------------------

    def _adapted(self, request: Request) -> Reply:
        """One attempt; asked again at once without what the service does not understand."""
        while True:
            state = (self._format, self._limit, self._sampled)
            response = self._sent(request)
            status = response.status_code
            if passes(status):
                raise PassingFailure(
                    f"HTTP {status}: {self._without_key(said(response))}",
                    retry_after(response.headers.get("retry-after")),
                )
            if status in (400, 404, 415, 422) and self._give_way(response.text, request, state):
                continue
            if status != 200:
                hint = f"; set {KEY_VARIABLE}" if status in (401, 403) else ""
                raise ConfigurationError(
                    f"The language model {self.id} refuses: HTTP {status}: {self._without_key(said(response))}{hint}"
                )
            return _reply(response, request)

    def _give_way(self, text: str, request: Request, state: tuple[int, str, bool]) -> bool:
        """Whether there is something to leave out, by what the refusal says."""
        with self._lock:
            if state != (self._format, self._limit, self._sampled):
                return True  # another thread found out meanwhile
            if "max_completion_tokens" in text and self._limit == "max_tokens":
                self._limit = "max_completion_tokens"
            elif self._sampled and re.search(r"temperature|\bseed\b", text):
                self._sampled = False
            elif request.schema is not None and self._format + 1 < len(_FORMATS) and _ABOUT_FORMAT.search(text):
                self._format += 1
            else:
                return False
            return True

    def _sent(self, request: Request) -> httpx.Response:
        import httpx

        body: dict[str, Any] = {
            "model": self._settings.model,
            "messages": [{"role": one.role, "content": one.content} for one in request.messages],
            self._limit: request.max_tokens,
        }
        if self._sampled:
            body |= {"temperature": request.temperature, "seed": request.seed}
        kind = _FORMATS[self._format]
        if request.schema is not None and kind == "json_schema":
            shape = {"name": "reply", "strict": True, "schema": dict(request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        elif request.schema is not None and kind == "json_object":
            body["response_format"] = {"type": "json_object"}
        limit = self._settings.seconds
        if request.seconds is not None:
            limit = max(0.001, min(limit, request.seconds))
        try:
            return self._http().post(
                "chat/completions", json=body, timeout=httpx.Timeout(limit, connect=min(10.0, limit))
            )
        except httpx.TransportError as error:
            raise PassingFailure(f"{type(error).__name__}: {self._without_key(str(error))}") from None

    def _http(self) -> httpx.Client:
        import httpx

        with self._lock:
            if self._client is None:
                headers = {}
                if key := self._key():
                    headers["Authorization"] = f"Bearer {key}"
                self._client = httpx.Client(base_url=self._settings.url.rstrip("/") + "/", headers=headers)
            return self._client

    def _key(self) -> str | None:
        if key := self._settings.key or os.environ.get(KEY_VARIABLE):
            return key
        host = urlsplit(self._settings.url).hostname or ""
        if host == "api.openai.com" or host.endswith(".openai.azure.com"):
            return os.environ.get("OPENAI_API_KEY")
        return None

    def _without_key(self, text: str) -> str:
        """A service may repeat the key it refuses."""
        key = self._key()
        return text.replace(key, "[key]") if key else text


def _reply(response: httpx.Response, request: Request) -> Reply:
    try:
        body = response.json()
        choice = body["choices"][0]
        text = choice["message"].get("content") or ""
        if isinstance(text, list):  # parts, as some services give them
            text = "".join(part.get("text") or "" for part in text)
        usage = body.get("usage") or {}
        tokens_in, tokens_out = usage.get("prompt_tokens"), usage.get("completion_tokens")
        return Reply(
            text=str(text),
            tokens_in=int(tokens_in) if tokens_in is not None else request_tokens(request.messages),
            tokens_out=int(tokens_out) if tokens_out is not None else estimated_tokens(str(text)),
            whole=choice.get("finish_reason") != "length",
        )
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise PassingFailure(f"an answer that is not one ({type(error).__name__}: {error})") from None


def open_model(name: str, **options: Any) -> ServiceModel:
    """The model that `MODEL[@URL]` describes; without an address, OpenAI's. `options`: fields of ModelSettings."""
    model, *url = re.split(r"@(?=https?://)", name, maxsplit=1)  # an address may hold an @ itself
    if url:
        options["url"] = url[0]
    if not model:
        raise OptionError("Write the language model as MODEL@URL; the model's name is missing.")
    return ServiceModel(ModelSettings(model=model, **options))
