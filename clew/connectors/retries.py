"""What is tried again when storage fails, how long, and which error it becomes in the end.

Transient: throttling and server errors (429, 500, 502, 503, 504, `SlowDown`), timeouts, broken connections. Never
transient: 403, 404, a failed precondition. Waits are random up to an exponentially growing bound ("full jitter",
Brooker 2015, https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/), so that a fleet that was
throttled together does not come back together.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from clew.errors import ClewError, StorageError

T = TypeVar("T")

_TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 509})
_TRANSIENT_CODES = frozenset(
    {
        "SlowDown",
        "ServiceUnavailable",
        "InternalError",
        "RequestTimeout",
        "RequestTimeoutException",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottled",
        "RequestThrottledException",
        "TooManyRequestsException",
        "PriorRequestNotComplete",
        "TransactionInProgressException",
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "OperationAborted",
        "ConditionalRequestConflict",
    }
)
#: Answers that say the request was refused before it did anything.
_REFUSED_STATUS = frozenset({425, 429, 503, 509})
_TRANSIENT_ERRNO = frozenset(
    {
        errno.EAGAIN,
        errno.EINTR,
        errno.ETIMEDOUT,
        errno.ECONNRESET,
        errno.ECONNREFUSED,
        errno.ECONNABORTED,
        errno.EPIPE,
        errno.ENETUNREACH,
        errno.EHOSTUNREACH,
        errno.ENETDOWN,
        errno.ENETRESET,
        errno.ESTALE,
    }
)
#: Classes of libraries that are not imported here, by (first part of the module, name).
_TRANSIENT_CLASSES = frozenset(
    {
        ("botocore", "HTTPClientError"),
        ("botocore", "IncompleteReadError"),
        ("botocore", "ConnectionError"),
        ("botocore", "ResponseStreamingError"),
        ("botocore", "BotoCoreStreamingError"),
        ("urllib3", "HTTPError"),
        ("aiohttp", "ClientConnectionError"),
        ("aiohttp", "ClientPayloadError"),
        ("aiohttp", "ServerTimeoutError"),
        ("requests", "ConnectionError"),
        ("requests", "Timeout"),
        ("requests", "ChunkedEncodingError"),
        ("azure", "ServiceRequestError"),
        ("azure", "ServiceResponseError"),
        ("paramiko", "SSHException"),
        ("http", "IncompleteRead"),
        ("http", "RemoteDisconnected"),
    }
)
#: Of those, what no second attempt can mend.
_LASTING_CLASSES = frozenset(
    {
        ("botocore", "SSLError"),
        ("botocore", "ProxyConnectionError"),
        ("aiohttp", "ClientConnectorCertificateError"),
        ("aiohttp", "InvalidURL"),
        ("requests", "SSLError"),
        ("paramiko", "AuthenticationException"),
        ("paramiko", "BadHostKeyException"),
        ("urllib3", "LocationValueError"),
    }
)


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """How often and how long to try."""

    attempts: int = 9
    first: float = 0.1  # seconds: bound of the first wait; it doubles with each
    longest: float = 20.0  # seconds: bound of one wait
    total: float = 180.0  # seconds after which no new attempt is made


DEFAULT_POLICY = RetryPolicy()


def http_status(error: BaseException) -> int | None:
    """The HTTP status that an error of any of the storage libraries carries."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return int(status) if status is not None else None
    for holder in (error, response):
        for name in ("status", "status_code", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, bool) or value is None or not str(value).isdigit():
                continue
            if 100 <= int(value) <= 599:
                return int(value)
    return None


def error_code(error: BaseException) -> str:
    """The service's word for what went wrong (`SlowDown`), or ''."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict):
        return str(response.get("Error", {}).get("Code", ""))
    return ""


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed a moment later."""
    if isinstance(error, ClewError | FileNotFoundError | PermissionError | FileExistsError | NotADirectoryError):
        return False
    if _is_one_of(error, _LASTING_CLASSES):
        return False
    if error_code(error) in _TRANSIENT_CODES:
        return True
    status = http_status(error)
    if status is not None:
        return status in _TRANSIENT_STATUS
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _TRANSIENT_ERRNO
    return _is_one_of(error, _TRANSIENT_CLASSES)


def was_refused(error: BaseException) -> bool:
    """Whether a transient failure certainly came before the request did anything (throttling, no connection)."""
    if http_status(error) in _REFUSED_STATUS or error_code(error) in ("SlowDown", "ConditionalRequestConflict"):
        return True
    if isinstance(error, ConnectionRefusedError):
        return True
    return _is_one_of(error, frozenset({("botocore", "EndpointConnectionError"), ("botocore", "ConnectTimeoutError")}))


def _is_one_of(error: BaseException, classes: frozenset[tuple[str, str]]) -> bool:
    return any((family.__module__.partition(".")[0], family.__name__) in classes for family in type(error).__mro__)


def retry(
    call: Callable[[], T],
    *,
    policy: RetryPolicy = DEFAULT_POLICY,
    when: Callable[[BaseException], bool] = is_transient,
) -> T:
    """The result of `call`, tried again while it fails transiently; the last error is raised as it is."""
    try:
        return call()
    except Exception as error:
        if not when(error):
            raise
        failed = [error]
    import tenacity  # only loaded once something failed

    def attempt() -> T:
        if failed:
            raise failed.pop()
        return call()

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(when),
        wait=tenacity.wait_random_exponential(multiplier=policy.first, max=policy.longest),
        stop=tenacity.stop_after_attempt(policy.attempts) | tenacity.stop_after_delay(policy.total),
        reraise=True,
    )
    return retrying(attempt)


def reason(error: BaseException) -> str:
    """What went wrong in one line: the service's code and message, or the class and text of the error."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict) and response.get("Error"):
        details = response["Error"]
        status = http_status(error)
        return f"{details.get('Code', 'error')} ({status}): {details.get('Message', '') or 'no message'}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


_IN_WORDS = re.compile(r"\(os error (\d+)\)|\bOs \{ code: (\d+),|\[errno (\d+)\]", re.IGNORECASE)
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_PLACES = "the index (--index), the page cache (XDG_CACHE_HOME) or temporary files (TMPDIR)"
_AGAIN = "then run the command again. What was published stands."
#: What to do about what a system says of a disk or of a limit; never that something is damaged.
_ADVICE = {
    **dict.fromkeys(_FULL, f"The disk is full: make room, or choose another one for {_PLACES}; {_AGAIN}"),
    errno.EFBIG: f"A limit of this user (`ulimit -f`) or of the file system allows no larger file: raise it, or choose another "
    f"disk for {_PLACES}; {_AGAIN}",
    **dict.fromkeys((errno.EACCES, errno.EPERM), "Give this user the right to it."),
    errno.EROFS: f"This disk can only be read: mount it for writing, or choose another one for {_PLACES}.",
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), f"Too many files are open: raise the limit (`ulimit -n`); {_AGAIN}"),
    errno.EIO: "The disk failed: see what the system's log says of it.",
}


def system_error(error: BaseException) -> int | None:
    """The system's number of an error; Lance, Arrow and tantivy tell it in words alone. None where it is none of the system's."""
    number = getattr(error, "errno", None)
    if isinstance(number, int):
        return number
    found = _IN_WORDS.search(str(error))
    return int(next(filter(None, found.groups()))) if found is not None else None


def is_full(error: BaseException) -> bool:
    """Whether a disk is full, or a quota used up, by what this error or those that it comes from say."""
    one: BaseException | None = error
    while one is not None:
        if system_error(one) in _FULL or "No space left on device" in str(one):
            return True
        one = one.__cause__
    return False


def system_advice(error: BaseException) -> str | None:
    """What to do next about an error of the system; None where it is none, or tells of nothing that can be done."""
    number = errno.ENOSPC if is_full(error) else system_error(error)
    return _ADVICE.get(number) if number is not None else None


def advice(error: BaseException) -> str:
    """What to do next about a storage error."""
    status, code = http_status(error), error_code(error)
    of_a_service = isinstance(error, PermissionError) and error.filename is None
    if of_a_service or status in (401, 403) or type(error).__name__ == "NoCredentialsError":
        return "Check the credentials and permissions."
    if code == "NoSuchBucket":
        return "Check the bucket's name."
    if (known := system_advice(error)) is not None:
        return known
    if is_transient(error):
        return "Storage kept failing; try again later."
    return "Check the path and the storage options."


@contextmanager
def storage_errors(doing: str, what: str, kind: type[StorageError] = StorageError) -> Iterator[None]:
    """Turn any foreign error inside the block into `kind`, naming what was being done to what.

    Errors of clew pass through.
    """
    try:
        yield
    except ClewError:
        raise
    except Exception as error:
        raise kind(f"Storage failed while {doing} {what}: {reason(error)}. {advice(error)}") from error
