"""The example collection: the handbook of a made-up company, with questions and judgements about it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def handbook() -> Path:
    """The folder of the handbook: about seventy small linked documents in many formats and three languages."""
    return _folder() / "handbook"


def questions() -> Path:
    """The questions about the handbook, as BEIR's `queries.jsonl`: `_id`, `text`, and in `metadata` language and kind."""
    return _folder() / "questions.jsonl"


def judgements() -> Path:
    """Which documents answer them, as BEIR's `qrels.tsv`: query-id, corpus-id (a path in the handbook), score."""
    return _folder() / "qrels.tsv"


def routes() -> Path:
    """Questions with the routes that answer them, in English and Portuguese; for `clew graph eval`."""
    return _folder() / "routes.yaml"


def _folder() -> Path:
    return Path(str(files(__name__)))
