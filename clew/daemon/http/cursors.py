"""Cursors: where the next page of a list begins, on which snapshot, and of which list.

A cursor is opaque to clients. It holds no secret and gives no right: what it points to is looked up with the key of the
request that brings it. It carries a hash of the question, so that it cannot be used with another one by mistake.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from clew.errors import InvalidCursorError

VERSION = 1
LONGEST = 512  # characters


def question_hash(operation: str, parameters: Mapping[str, Any]) -> str:
    """What identifies a list, whatever page of it."""
    data = orjson.dumps([operation, {name: value for name, value in parameters.items() if value is not None}],
                        option=orjson.OPT_SORT_KEYS)  # fmt: skip
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def write_cursor(*, snapshot: int, offset: int, question: str) -> str:
    """A cursor to the row `offset` of a list on a snapshot."""
    data = orjson.dumps([VERSION, snapshot, offset, question])
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def read_cursor(text: str, *, question: str) -> tuple[int, int]:
    """(snapshot, offset). InvalidCursorError where it is none of ours, or of another list."""
    try:
        if len(text) > LONGEST:
            raise ValueError
        data = orjson.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
        version, snapshot, offset, asked = data
        if version != VERSION or type(snapshot) is not int or type(offset) is not int:
            raise ValueError
        if not (0 < snapshot < 1 << 53 and 0 <= offset < 1 << 53):
            raise ValueError
    except (ValueError, TypeError):
        raise InvalidCursorError("This is no cursor that the service gave out; begin again without one.") from None
    if asked != question:
        raise InvalidCursorError("This cursor belongs to another list; give it with the options it came from.")
    return snapshot, offset
