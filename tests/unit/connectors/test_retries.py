"""Without these, a passing hiccup could end a run of hours, or a refusal be repeated until an account is locked."""

from __future__ import annotations

import errno
from typing import Any

import botocore.exceptions as aws
import pytest

from clew.connectors.retries import RetryPolicy, advice, is_transient, reason, retry, storage_errors, was_refused
from clew.errors import DamagedIndexError, ListingError, ObjectMissingError, StorageError
from clew.indexer.damage import damage

QUICK = RetryPolicy(attempts=4, first=0.001, longest=0.002)


def answer(status: int, code: str) -> aws.ClientError:
    response: Any = {"Error": {"Code": code, "Message": "said so"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return aws.ClientError(response, "GetObject")


TRANSIENT = [
    answer(503, "SlowDown"),
    answer(500, "InternalError"),
    answer(429, "TooManyRequestsException"),
    answer(409, "ConditionalRequestConflict"),
    TimeoutError("timed out"),
    ConnectionResetError(errno.ECONNRESET, "reset"),
    OSError(errno.ESTALE, "stale"),
    aws.ReadTimeoutError(endpoint_url="http://x"),
    aws.EndpointConnectionError(endpoint_url="http://x"),
    aws.IncompleteReadError(actual_bytes=1, expected_bytes=2),
]
LASTING = [
    answer(403, "AccessDenied"),
    answer(404, "NoSuchKey"),
    answer(412, "PreconditionFailed"),
    FileNotFoundError(errno.ENOENT, "no such file"),
    PermissionError(errno.EACCES, "denied"),
    OSError(errno.EIO, "broken disk"),
    ValueError("a defect"),
    ObjectMissingError(),
    aws.SSLError(endpoint_url="https://x", error="certificate"),
]


@pytest.mark.parametrize("error", TRANSIENT, ids=repr)
def test_hiccups_are_tried_again(error: Exception) -> None:
    assert is_transient(error)
    pending = [error, error]

    def call() -> str:
        if pending:
            raise pending.pop()
        return "done"

    assert retry(call, policy=QUICK) == "done"


@pytest.mark.parametrize("error", LASTING, ids=repr)
def test_refusals_are_not(error: Exception) -> None:
    calls = []

    def call() -> None:
        calls.append(1)
        raise error

    with pytest.raises(type(error)):
        retry(call, policy=QUICK)
    assert len(calls) == 1


def test_trying_ends() -> None:
    calls = []

    def call() -> None:
        calls.append(1)
        raise TimeoutError("still")

    with pytest.raises(TimeoutError):
        retry(call, policy=QUICK)
    assert len(calls) == QUICK.attempts


def test_what_was_certainly_not_done_is_told_from_what_may_have_been() -> None:
    assert was_refused(answer(503, "SlowDown"))
    assert was_refused(answer(409, "ConditionalRequestConflict"))
    assert was_refused(aws.EndpointConnectionError(endpoint_url="http://x"))
    assert not was_refused(answer(500, "InternalError"))
    assert not was_refused(aws.ReadTimeoutError(endpoint_url="http://x"))
    assert not was_refused(aws.ConnectionClosedError(endpoint_url="http://x"))


def test_errors_say_what_was_done_to_what_and_what_to_do() -> None:
    expected = r"while listing s3://b/p: AccessDenied \(403\): said so. Check the cred"
    with pytest.raises(ListingError, match=expected), storage_errors("listing", "s3://b/p", ListingError):
        raise answer(403, "AccessDenied")
    with pytest.raises(ObjectMissingError), storage_errors("reading", "x"):
        raise ObjectMissingError
    with (
        pytest.raises(StorageError, match=r"No space left on device. The disk is full: make room"),
        storage_errors("writing", "x"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert reason(ValueError("two\nlines")) == "ValueError: two lines"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("LanceError(IO): File too large (os error 27), src/x.rs:12:3"), "allows no larger file"),
        (OSError(f"LanceError(IO): Disk quota exceeded (os error {errno.EDQUOT})"), "The disk is full"),
        (ValueError('IoError { io_error: Os { code: 28, kind: StorageFull, message: "" } }'), "The disk is full"),
        (OSError(errno.EROFS, "Read-only file system", "x"), "can only be read"),
        (ValueError("External error: LanceError(IO): Too many open files (os error 24)"), "ulimit -n"),
        (PermissionError(errno.EACCES, "Permission denied", "x"), "Give this user the right"),
        (PermissionError("Access Denied"), "Check the credentials"),
        (OSError("LanceError(IO): Object not found (os error 2)"), "Check the path"),
    ],
)
def test_what_to_do_is_told_of_the_systems_errors_whoever_words_them(error: Exception, said: str) -> None:
    """Lance, Arrow and tantivy tell the system's number in words alone: 'try again' helps nobody with a full quota."""
    assert said in advice(error)


@pytest.mark.parametrize(
    ("error", "kind"), [(OSError(errno.EIO, "I/O"), StorageError), (KeyError("x"), DamagedIndexError)]
)
def test_part_that_is_kept_from_being_read_is_told_from_a_damaged_one(error: Exception, kind: type[Exception]) -> None:
    assert type(damage("reading x", error)) is kind
