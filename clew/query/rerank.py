"""A model that reads question and passage together, as an optional last look at the first hits: off unless it is named.

None comes with clew: no cross-encoder was found in a package that brings its weights along, and what there is would cost
more than the whole search (docs/design/0012-reranking.md). A package offers one as an entry point of the group
`clew.rerankers`, a program by `register`; a search names it: `--rerank NAME`. Names alone are taken from a request, never
a module's path: what a request says must not decide what code is loaded.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Protocol, runtime_checkable

import numpy as np

from clew.errors import OptionError, ServiceError
from clew.query.candidates import Scores

GROUP = "clew.rerankers"
DEPTH = 50  # hits that are read again; it does not depend on the page asked for, so pages agree
WEIGHT = 1.0  # of the passage that the model likes best; fused scores of good hits lie between .5 and 1.5

_registered: dict[str, Callable[[], Reranker]] = {}
_opened: dict[str, Reranker] = {}
_lock = threading.Lock()


@runtime_checkable
class Reranker(Protocol):
    """Scores passages for a question. Called from several threads."""

    @property
    def fingerprint(self) -> str:
        """What decides its scores: model, version, quantisation. Shown in the explanation of a hit."""

    def score(self, question: str, passages: Sequence[str]) -> Sequence[float]:
        """One finite number a passage, higher is better, on any scale. The same input gives the same numbers."""


def register(name: str, make: Callable[[], Reranker]) -> None:
    """Offer a reranker of this process under a name; it is made when it is first asked for."""
    with _lock:
        _registered[name] = make
        _opened.pop(name, None)


def open_reranker(name: str) -> Reranker:
    """By the name that it was registered or installed under. OptionError where there is none, or it cannot be opened."""
    with _lock:
        if name not in _opened:
            _opened[name] = _made(name)
        return _opened[name]


def _made(name: str) -> Reranker:
    if name in _registered:
        return _registered[name]()
    installed = {point.name: point for point in entry_points(group=GROUP)}
    if name not in installed:
        known = ", ".join(sorted({*_registered, *installed})) or "none"
        raise OptionError(
            f"There is no reranker '{name}'; there are: {known}. Install a package that offers one (entry points of the "
            f"group {GROUP}), register it with `clew.query.rerank.register`, or search without --rerank."
        )
    try:
        made = installed[name].load()()
    except Exception as error:
        raise OptionError(f"Opening the reranker '{name}' ({installed[name].value}): {error!r}.") from error
    if not isinstance(made, Reranker):
        raise OptionError(f"The reranker '{name}' ({installed[name].value}) has no `score` and `fingerprint`.")
    return made


def bonuses(reranker: Reranker, question: str, passages: Sequence[str]) -> Scores:
    """What each passage gains: `WEIGHT` for the best, 0 for the worst, by their places in between; (n,).

    A reranker that likes all alike changes nothing. ServiceError where it does not do what it promises.
    """
    if not passages:
        return np.empty(0, dtype=np.float64)
    try:
        said = [float(value) for value in reranker.score(question, passages)]
    except Exception as error:
        raise ServiceError(f"Reranking {len(passages)} passages with {reranker.fingerprint}: {error!r}.") from error
    if len(said) != len(passages) or not all(map(math.isfinite, said)):
        raise ServiceError(
            f"Reranking {len(passages)} passages with {reranker.fingerprint}: it gave {len(said)} scores, or some that are "
            "no numbers."
        )
    values = np.array(said, dtype=np.float64)
    low, high = float(values.min()), float(values.max())
    if not high > low:
        return np.zeros(len(values))
    return np.asarray(WEIGHT * ((values - low) / (high - low)), dtype=np.float64)
