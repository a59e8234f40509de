"""A log of what was asked and where it was sent, for whoever wants to evaluate the router on real questions.

Questions are private, so nothing is logged unless `CLEW_ASK_LOG` says where: `on` for a file in this machine's cache, or a path. A line is
a JSON object: when, the question, the route with its reason and signals, and what the answer cost; neither statements nor passages. The file can be
read by its owner alone, and begins anew at 10 MB, with the one before beside it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from clew.query.cache import cache_directory
from clew.query.inspection import moment
from clew.query.pinned import PinnedIndex
from clew_client.answers import Answer

VARIABLE = "CLEW_ASK_LOG"
LARGEST = 10_000_000  # bytes


def log_of(pinned: PinnedIndex) -> Callable[[Answer], None] | None:
    """What tells a log of answers; None where none is wanted."""
    setting = os.environ.get(VARIABLE, "").strip()
    if not setting or setting.lower() == "off":
        return None
    path = (
        cache_directory() / "decisions" / f"{pinned.generation.id}.jsonl" if setting.lower() == "on" else Path(setting)
    )
    return lambda answer: tell(path, answer)


def tell(path: Path, answer: Answer) -> None:
    """Add a line. A log that cannot be written costs no answer."""
    told = {
        "at": moment(time.time_ns()),
        "snapshot": answer.snapshot,
        "question": answer.question,
        "route": answer.route,
        "reason": answer.reason,
        "signals": answer.signals,
        "abstained": answer.abstained,
        "statements": len(answer.statements),
        "reports": [one.id for one in answer.reports_used if one.statements],
        "cost": answer.cost.model_dump(),
        "took_ms": answer.took_ms,
    }
    line = orjson.dumps(told) + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > LARGEST:
            path.replace(path.with_suffix(path.suffix + ".1"))
        # One write of a line in append mode: processes that log side by side do not tear each other's lines.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)
    except OSError:
        return
