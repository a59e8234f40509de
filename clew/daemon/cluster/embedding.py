"""An embedder whose work is done by actors of a cluster, with GPUs where there are some."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from clew.daemon.cluster.extractor import Vectorizer
from clew.daemon.cluster.settings import StageSettings
from clew.errors import EmbedderMismatchError, EmbedderServiceError
from clew.indexer.embedders.protocol import Embedder, Fingerprint, Vectors

SHARE = 64  # texts that an actor gets at a time
MOST_LOSSES = 5  # of one share


class ClusterEmbedder:
    """Satisfies `Embedder`. A text's vector does not depend on its neighbours, so neither on how texts are shared out."""

    def __init__(self, name: str, here: Embedder, settings: StageSettings) -> None:
        """`here`: the same embedder in this process, for tokens and questions."""
        self._name = name
        self._here = here
        self._settings = settings
        self._class: Any = None
        self._actors: list[Any] = []

    def __enter__(self) -> Self:
        import ray

        self._class = ray.remote(Vectorizer).options(**self._settings.options(), max_restarts=-1, max_task_retries=0)
        count = max(self._settings.minimum, self._settings.maximum or self._settings.minimum)
        self._actors = [self._class.remote(self._name) for _ in range(count)]
        try:
            found = ray.get([actor.fingerprint.remote() for actor in self._actors])
        except ray.exceptions.RayError as error:
            self.close()
            raise EmbedderServiceError(
                f"Embedding on the cluster: {self._name} cannot be opened there: {error}."
            ) from error
        others = {one.id for one in found} - {self._here.fingerprint.id}
        if others:
            self.close()
            raise EmbedderMismatchError(
                f"The embedder {self._name} is {self._here.fingerprint.id} here and {', '.join(sorted(others))} on the "
                "cluster; install the same model everywhere."
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the actors."""
        import ray

        actors, self._actors = self._actors, []
        for actor in actors:
            with contextlib.suppress(ray.exceptions.RayError, RuntimeError):
                ray.kill(actor)

    @property
    def fingerprint(self) -> Fingerprint:
        """See Embedder."""
        return self._here.fingerprint

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """See Embedder. A share whose actor is lost goes to the next one."""
        import ray

        shares = [list(texts[start : start + SHARE]) for start in range(0, len(texts), SHARE)]
        if not shares:
            return self._here.embed_passages(texts)
        refs = [self._actors[n % len(self._actors)].embed.remote(share) for n, share in enumerate(shares)]
        found: list[Vectors] = []
        for number, share in enumerate(shares):
            for attempt in range(MOST_LOSSES):
                try:
                    found.append(ray.get(refs[number]))
                    break
                except ray.exceptions.RayTaskError as error:
                    raise EmbedderServiceError(f"Embedding on the cluster with {self._name}: {error.cause}.") from error
                except ray.exceptions.RayError as error:
                    if attempt == MOST_LOSSES - 1:
                        raise EmbedderServiceError(f"Embedding on the cluster with {self._name}: {error}.") from error
                    refs[number] = self._actors[(number + attempt + 1) % len(self._actors)].embed.remote(share)
        return np.concatenate(found)

    def embed_query(self, text: str) -> Vectors:
        """See Embedder."""
        return self._here.embed_query(text)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """See Embedder."""
        return self._here.count_tokens(texts)
