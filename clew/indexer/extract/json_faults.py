"""Says what is wrong with JSON in a reader's words: Python's own speak of its interpreter and of its settings."""

from __future__ import annotations


def json_fault(error: ValueError | RecursionError) -> str:
    """What a JSON parser found, as the rest of a sentence."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if "sys.set_int_max_str_digits" in str(error):
        return "a number of thousands of digits"
    return str(error)
