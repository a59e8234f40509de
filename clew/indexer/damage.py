"""Tells a part of the index that is damaged from one that is only kept from being read.

A rebuild mends the one, and would be in vain, or fail, for the other: a disk that is full, missing rights, a limit.
"""

from __future__ import annotations

from clew.connectors.retries import reason, system_advice
from clew.errors import ClewError, DamagedIndexError, StorageError


def damage(doing: str, error: Exception, next_step: str = "") -> ClewError:
    """What became of reading a part: damage, with what to do about it, unless the system says what else it is."""
    if (known := system_advice(error)) is not None:
        return StorageError(f"{doing}: {reason(error)}. {known}")
    return DamagedIndexError(f"{doing}: {error}{next_step}")
