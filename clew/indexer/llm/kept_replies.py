"""Replies kept on this machine: what was asked once, word for word, of the same model is not paid for again.

One SQLite file, shared by processes. A damaged or unwritable file costs the savings and nothing else.
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import orjson
import xxhash

from clew.indexer.llm.protocol import Reply, Request

MOST_REPLIES = 200_000  # about 2 kB each; the longest unused tenth goes when there are more


class KeptReplies:
    """A cache by content: model, version of the prompt, messages, schema, sampling."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._base: sqlite3.Connection | None = None
        self._broken = False

    def get(self, model: str, version: str, request: Request) -> Reply | None:
        """The reply to this request, or None."""
        key = _key(model, version, request)
        rows = self._run("UPDATE replies SET used = unixepoch() WHERE key = ? RETURNING text, tin, tout, whole", (key,))
        if not rows:
            return None
        text, tokens_in, tokens_out, whole = rows[0]
        return Reply(text=text, tokens_in=tokens_in, tokens_out=tokens_out, whole=bool(whole))

    def put(self, model: str, version: str, request: Request, reply: Reply) -> None:
        """Keep a reply."""
        values = (_key(model, version, request), reply.text, reply.tokens_in, reply.tokens_out, reply.whole)
        self._run("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, unixepoch())", values)

    def close(self) -> None:
        """Let the file go; what is kept stays."""
        with self._lock:
            if self._base is not None:
                self._base.close()
                self._base = None

    def _run(self, statement: str, values: tuple[object, ...]) -> list[tuple[str, int, int, int]]:
        with self._lock:
            if self._broken:
                return []
            try:
                if self._base is None:
                    self._base = self._opened()
                with self._base:
                    rows: list[tuple[str, int, int, int]] = self._base.execute(statement, values).fetchall()
                return rows
            except (sqlite3.Error, OSError):
                self._broken = True
                return []

    def _opened(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        base = sqlite3.connect(self._path, timeout=10.0, check_same_thread=False)
        self._path.chmod(0o600)  # it holds what the collection says
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA synchronous = NORMAL")
        base.execute(
            "CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, text TEXT, tin INT, tout INT, whole INT, used INT) "
            "WITHOUT ROWID"
        )
        if base.execute("SELECT count(*) FROM replies").fetchone()[0] > MOST_REPLIES:
            base.execute(
                "DELETE FROM replies WHERE key IN (SELECT key FROM replies ORDER BY used, key LIMIT ?)",
                (MOST_REPLIES // 10,),
            )
        base.commit()
        return base


def forget_replies(path: Path) -> None:
    """Remove the file: replies quote texts, and which text a reply quotes is not known to it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _key(model: str, version: str, request: Request) -> bytes:
    content = orjson.dumps(
        [
            model, version, [[message.role, message.content] for message in request.messages], request.schema,
            request.max_tokens, request.temperature, request.seed,
        ],
        option=orjson.OPT_SORT_KEYS,
    )  # fmt: skip
    return xxhash.xxh3_128_digest(content)
