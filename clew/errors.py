"""The tree of errors: grouped by what the caller does about them.

Every message says what was being done, to what, and what to do next. Errors cross process and
cluster boundaries, so every class pickles with all of its fields.
"""

from __future__ import annotations


class ClewError(Exception):
    """clew could not do what was asked."""

    exit_code = 3

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or type(self).default_message())

    @classmethod
    def default_message(cls) -> str:
        """The first line of the class's docstring."""
        return (cls.__doc__ or cls.__name__).strip().splitlines()[0]

    def __reduce__(self) -> tuple[object, ...]:
        return (_restore, (type(self), self.args, self.__dict__.copy()))


def _restore(kind: type[ClewError], args: tuple[object, ...], state: dict[str, object]) -> ClewError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


# --- The request is wrong: change it (exit 2) -------------------------------------------------


class RequestError(ClewError):
    """The request cannot be carried out as it stands; change it."""

    exit_code = 2


class RootNotFoundError(RequestError):
    """The root to be indexed or searched does not exist."""


class NoIndexError(RequestError):
    """There is no index at this place; build one with `clew index`."""


class NoGraphError(RequestError):
    """The index has no graph; build one with `clew graph build`."""


class NoSuchDocumentError(RequestError):
    """The index holds no document of this name."""


class NoSuchSnapshotError(RequestError):
    """The snapshot asked for does not exist, or is no longer kept."""


class CursorExpiredError(NoSuchSnapshotError):
    """The snapshot of a cursor is no longer kept; begin again without one."""


class NoUpkeepError(RequestError):
    """This service answers for the collection and does not index it; run `clew index`."""


class OptionError(RequestError):
    """An option has a value that is not allowed."""


class WhereError(RequestError):
    """The `where` expression cannot be read.

    `column` is the 0-based position in `expression` where reading stopped.
    """

    def __init__(self, message: str, *, expression: str = "", column: int = 0) -> None:
        pointer = f"\n  {expression}\n  {' ' * column}^" if expression else ""
        super().__init__(f"{message} (column {column + 1}){pointer}")
        self.expression = expression
        self.column = column


class UnsignedRequestError(RequestError):
    """The request carries no valid signature or secret; nothing of it was kept."""


class NoSuchCollectionError(RequestError):
    """The service has no collection of this name, or none that this key may see."""


class NoSuchKeyError(RequestError):
    """There is no key of this id."""


class InvalidKeyError(RequestError):
    """The request carries no valid key: none, an unknown, an expired or a revoked one."""


class AccessDeniedError(RequestError):
    """The key is valid, and does not allow this."""


class InvalidCursorError(RequestError):
    """The cursor is not one of this service, or belongs to another question."""


class MassDeleteError(RequestError):
    """Most of the indexed files would vanish; nothing was deleted."""


# --- The configuration or the index does not fit: fix or rebuild (exit 2) ---------------------


class ConfigurationError(RequestError):
    """The configuration does not allow this."""


class MissingPartError(ConfigurationError):
    """An optional part is not installed."""


class EmbedderMismatchError(ConfigurationError):
    """The index was built with another embedder than the one asked for."""


class FormatVersionError(ConfigurationError):
    """The index was written in a format that this version of clew does not read."""


class NoConditionalPutError(ConfigurationError):
    """This object store has no conditional put, so two writers could overwrite each other."""


class DamagedIndexError(ConfigurationError):
    """Parts of the index are missing or altered; it is not trusted."""


# --- Somebody or something else is in the way: try again (exit 3) -----------------------------


class ServiceError(ClewError):
    """Storage or a service did not do its part, after retries; try again later."""


class StorageError(ServiceError):
    """Storage failed while reading or writing."""

    ambiguous = False  # whether what was to be written may be there all the same


class AmbiguousWriteError(StorageError):
    """No answer came to a write: it may have been done or not."""

    ambiguous = True


class ListingError(StorageError):
    """A listing failed half-way; nothing was concluded from it."""


class ObjectChangedError(StorageError):
    """An object changed while it was being read."""


class ObjectExistsError(StorageError):
    """The object to be created is there already (a conditional put lost its race)."""


class ObjectMissingError(StorageError):
    """An object that should be there is not."""


class WriterBusyError(ServiceError):
    """Another writer holds this index."""


class FencedWriterError(ServiceError):
    """Another writer took this index over; what this one had not published is dropped."""


class WriterLostError(ServiceError):
    """The process that writes died in mid-run; what it published stands."""


class CollectionNotReadyError(ServiceError):
    """The collection serves no snapshot yet."""


class OverloadedError(ServiceError):
    """More is being asked at once, or by this key, than is allowed; try again later."""

    def __init__(self, message: str | None = None, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds


class RequestTimeError(ServiceError):
    """The request took longer than is allowed, and was stopped."""


class EmbedderServiceError(ServiceError):
    """The embedding service failed after retries."""


class LanguageModelError(ServiceError):
    """The language model's service failed after retries."""


class MalformedReplyError(LanguageModelError):
    """A language model's reply did not have the shape asked for, however often it was asked to mend it."""


class BudgetSpentError(ServiceError):
    """The budget for language models is used up; what was done so far is kept."""


# --- One file could not be read: a ledger line, never the end of a run ------------------------


class ExtractionError(ClewError):
    """A file could not be turned into text.

    `reason` is a short stable word for the ledger and for filters, such as ``encrypted``.
    """

    reason = "unreadable"
    state = "failed"


class BrokenFileError(ExtractionError):
    """The file is damaged or is not of the kind that it claims to be."""

    reason = "broken"


class EncryptedFileError(ExtractionError):
    """The file is encrypted; its text needs a password."""

    reason = "encrypted"


class TimeLimitError(ExtractionError):
    """Extraction was stopped at its time limit."""

    reason = "time limit"


class MemoryLimitError(ExtractionError):
    """Extraction was stopped at its memory limit."""

    reason = "memory limit"


class OutputLimitError(ExtractionError):
    """Extraction was stopped because it produced too much (a decompression bomb?)."""

    reason = "output limit"


class CrashedParserError(ExtractionError):
    """The parser's process died while reading this file."""

    reason = "parser crashed"


class UnreadableFileError(ExtractionError):
    """The file could not be opened or read from storage."""

    reason = "unreadable"


class SkippedFileError(ExtractionError):
    """The file holds nothing that can be indexed; it is skipped, not failed."""

    reason = "skipped"
    state = "skipped"


class EmptyFileError(SkippedFileError):
    """The file is empty."""

    reason = "empty"


class NoTextLayerError(SkippedFileError):
    """The file has pages but no text layer (a scan?); clew does no optical character recognition."""

    reason = "no text layer"


class UnsupportedKindError(SkippedFileError):
    """clew has no extractor for this kind of file."""

    reason = "unsupported kind"


class TooLargeError(SkippedFileError):
    """The file is larger than the limit in the settings."""

    reason = "too large"
