"""How a service speaks on stderr: sentences for people, or JSON lines for whatever collects them."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

#: What records of requests carry beside their message.
_EXTRAS = ("request_id", "trace_id", "client", "key", "method", "path", "status", "ms", "refused")


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


class Sentences(logging.Formatter):
    """Time, level where it is more than information, and what happened."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; a traceback below it."""
        level = f"{record.levelname.lower()}: " if record.levelno > logging.INFO else ""
        line = f"{_moment(record)} {level}{record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLines(logging.Formatter):
    """One object a line: at, level, logger, message; of requests who asked what, and how long it took; error where there
    is a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        import orjson

        line: dict[str, object] = {
            "at": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name in _EXTRAS:
            if (value := getattr(record, name, None)) is not None:
                line[name] = value
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()
