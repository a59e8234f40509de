"""What a client raises: grouped by what the caller does about it."""

from __future__ import annotations

from clew_client.service import Problem


class ClientError(Exception):
    """Asking the service failed.

    `problem` is what the service said (RFC 9457), where it did; `status` the HTTP status, `request_id` what its log knows
    the request by.
    """

    def __init__(
        self, message: str, *, problem: Problem | None = None, status: int | None = None, request_id: str | None = None
    ) -> None:
        super().__init__(message)
        self.problem = problem
        self.status = status
        self.request_id = request_id

    @property
    def kind(self) -> str | None:
        """The stable name of the problem: `where`, `no-such-document` …"""
        return None if self.problem is None else self.problem.type.removeprefix("urn:clew:problem:")


# --- The request is wrong: change it -----------------------------------------------------------


class InvalidRequestError(ClientError):
    """An option, the filter or the form of the request cannot be used (400, 413, 422)."""


class AuthenticationError(ClientError):
    """The service wants a valid key, and this is none (401)."""


class PermissionDeniedError(ClientError):
    """The key does not allow this (403), or the service does not answer under this name (421)."""


class NotFoundError(ClientError):
    """There is no such collection, document, passage or snapshot (404)."""


class ConflictError(ClientError):
    """It cannot be done now, or not by this service (409)."""


class ExpiredError(ClientError):
    """The snapshot that a list was read from is gone (410); begin the list again."""


# --- Something is in the way: try again later -------------------------------------------------


class RetryableError(ClientError):
    """The service could not answer now; it was asked again as often as allowed."""


class TooManyRequestsError(RetryableError):
    """More is asked at once than the service, or the key, allows (429)."""


class UnavailableError(RetryableError):
    """The service is not ready, or what it stands on does not answer (502, 503)."""


class ConnectionFailedError(RetryableError):
    """No answer came: the service cannot be reached, or took longer than the client's timeout."""


class TimeLimitError(ClientError):
    """The question took longer than the service allows (408, 504); ask less."""


class ServerError(ClientError):
    """The service failed (500); its log tells more under `request_id`."""


_BY_STATUS: dict[int, type[ClientError]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    408: TimeLimitError,
    409: ConflictError,
    410: ExpiredError,
    413: InvalidRequestError,
    421: PermissionDeniedError,
    422: InvalidRequestError,
    429: TooManyRequestsError,
    502: UnavailableError,
    503: UnavailableError,
    504: TimeLimitError,
}


def error_class(status: int) -> type[ClientError]:
    """The class for an HTTP status."""
    return _BY_STATUS.get(status, ServerError if status >= 500 else InvalidRequestError)
