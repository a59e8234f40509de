"""Fault points: the numbered steps at which a test kills the process, to see that nothing is lost, doubled or half-visible.

`CLEW_FAULT=commit.after-chunks` in the environment kills the process (SIGKILL: no handler, no clean-up) when it comes by that
point the first time, `CLEW_FAULT=publish.after-put:3` the third time. Without the variable a point costs 60 ns, and a run
comes by a few dozen of them.
"""

from __future__ import annotations

import os
import signal

#: Every point, in the order in which a run comes by them, and what has happened when it does.
POINTS: dict[str, str] = {
    "lease.claimed": "the epoch is claimed; no heartbeat is written yet",
    "create.after-generation": "a new generation's settings are written; it has no tables",
    "create.after-tables": "its empty tables are there; no snapshot names them",
    "fence.before-put": "the new owner has read the newest snapshot; the fence is not published",
    "fence.after-put": "the fence is published; what its predecessor had committed and not published is still there",
    "restore.after-table": "one table is back at the snapshot's version; others may not be",
    "restore.after-tables": "all tables are back; the snapshot that says so is not published",
    "forget.after-documents": "rows of removed files are gone from the table of documents alone",
    "forget.after-chunks": "… and from the chunks",
    "forget.after-links": "… and from the links",
    "forget.after-files": "… and from the files, renamed ones are moved; nothing is published",
    "commit.after-fragments": "a batch's fragments are written; no version names them",
    "commit.after-segments": "… and its lexical segments",
    "commit.after-documents": "the batch is committed to the table of documents alone",
    "commit.after-chunks": "… and to the chunks",
    "commit.after-links": "… and to the links",
    "commit.after-files": "… and to the files",
    "commit.after-edges": "the edges of replaced files are written off; the batch is not published",
    "links.after-fragments": "links are resolved and written; no version names them",
    "links.after-commit": "they are committed",
    "links.after-edges": "their edge file is written; nothing is published",
    "vectors.after-refill": "vectors of known contents are committed; nothing is published",
    "vectors.after-commit": "embedded vectors are committed; nothing is published",
    "weights.after-commit": "weights of links are committed",
    "weights.after-edges": "their edge file is written; nothing is published",
    "publish.before-put": "everything that a snapshot names is written; the snapshot is not",
    "publish.after-put": "the snapshot is there; the tags of plain Lance readers still name the version before",
    "publish.after-tags": "… and they have moved",
    "release.before": "the run is done; its lease is still held",
    "release.after": "the lease is given back",
}

_wanted, _, _count = os.environ.get("CLEW_FAULT", "").partition(":")
_left = int(_count) if _count.isdigit() else 1


def reach(point: str) -> None:
    """Die here when the environment says so."""
    global _left
    if point != _wanted:
        return
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)


def arm(point: str, count: int = 1) -> None:
    """Like the environment variable, for a process that is running already."""
    global _wanted, _left
    _wanted, _left = point, count
