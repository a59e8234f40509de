"""Calls to services over HTTP that may fail in passing: which failures pass, how long to wait, what the service said.

Shared by the embedding service and the language models.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")


class PassingFailure(Exception):
    """The service or the way to it failed in a way that may pass. `retry_after`: seconds, where the service named them."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


def passes(status: int) -> bool:
    """Whether an answer of this HTTP status may be another one later."""
    return status in (408, 409, 425, 429) or status >= 500


def retried(
    call: Callable[[], T],
    *,
    attempts: int,
    longest_wait: float,
    seconds: float | None = None,
    shortest_wait: float = 0.5,
) -> T:
    """The result of a call that is tried again while it fails in passing. Raises the last PassingFailure.

    Waits grow at random up to `longest_wait` seconds (what the service asks for comes first); after `seconds` no new
    attempt begins.
    """
    from tenacity import (
        Retrying,
        retry_if_exception_type,
        stop_after_attempt,
        stop_before_delay,
        wait_random_exponential,
    )

    backoff = wait_random_exponential(multiplier=shortest_wait, max=longest_wait)

    def wait(state: Any) -> float:
        error = state.outcome.exception()
        asked = error.retry_after if isinstance(error, PassingFailure) else None
        return min(asked, longest_wait) if asked is not None else float(backoff(state))

    stop: Any = stop_after_attempt(attempts)
    if seconds is not None:
        stop = stop | stop_before_delay(seconds)
    for attempt in Retrying(retry=retry_if_exception_type(PassingFailure), stop=stop, wait=wait, reraise=True):
        with attempt:
            return call()
    raise AssertionError("unreachable")


def said(response: httpx.Response) -> str:
    """What the service says of a failure, at most 300 characters."""
    try:
        body = response.json()
        told = body.get("error", body) if isinstance(body, dict) else body
        return str(told.get("message", told) if isinstance(told, dict) else told)[:300]
    except ValueError:
        return response.text[:300].strip() or response.reason_phrase


def retry_after(header: str | None) -> float | None:
    """Seconds to wait, from a number or a date (RFC 9110, 10.2.3)."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return None
