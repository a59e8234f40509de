"""Small lexical indexes, built by the same code as real ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from clew.indexer.lexical.analysis import analyze_chunks
from clew.indexer.lexical.assembly import LexicalIndex, open_lexical, unpack
from clew.indexer.lexical.segment import SegmentBuilder, SegmentFile
from clew.query.candidates import Universe


@dataclass(frozen=True, kw_only=True)
class Built:
    """An index over texts; chunk i of the texts has key 10 i + 7."""

    lexical: LexicalIndex
    universe: Universe


@pytest.fixture
def segment(tmp_path: Path) -> Callable[..., SegmentFile]:
    """segment(texts, titles, language, first, directory): one finished segment; its keys begin at 10 * first + 7."""

    def make(
        texts: Sequence[str],
        titles: Sequence[str | None] | None = None,
        language: str | Sequence[str] | None = "en",
        first: int = 0,
        directory: Path = tmp_path,
    ) -> SegmentFile:
        languages = [language] * len(texts) if language is None or isinstance(language, str) else language
        analyzed = analyze_chunks(titles or [None] * len(texts), texts, languages)
        with SegmentBuilder(directory) as builder:
            builder.add(
                chunk_keys=np.arange(first, first + len(texts), dtype=np.int64) * 10 + 7,
                titles=analyzed.titles,
                bodies=analyzed.bodies,
                idents=analyzed.idents,
                languages=analyzed.languages,
            )
            return builder.finish()

    return make


@pytest.fixture
def build(segment: Callable[..., SegmentFile], tmp_path: Path) -> Callable[..., Built]:
    """build(texts, titles, language, parts, dead): an index of so many segments, `dead` positions not in its universe."""

    def make(
        texts: Sequence[str],
        titles: Sequence[str | None] | None = None,
        language: str | Sequence[str] | None = "en",
        parts: int = 1,
        dead: Sequence[int] = (),
    ) -> Built:
        titles = titles or [None] * len(texts)
        cache = tmp_path / "cache"
        places = []
        borders = np.linspace(0, len(texts), parts + 1).astype(int).tolist()
        for low, high in pairwise(borders):
            part = language if language is None or isinstance(language, str) else language[low:high]
            file = segment(texts[low:high], titles[low:high], part, low)
            places.append(unpack(file.path, cache, segment_id=file.id))
        alive = np.setdiff1d(np.arange(len(texts), dtype=np.int64), np.array(dead, dtype=np.int64))
        keys = alive * 10 + 7
        universe = Universe(keys=keys, tie=np.arange(len(keys), dtype=np.int64)[::-1].copy())
        return Built(lexical=open_lexical(places, cache), universe=universe)

    return make
