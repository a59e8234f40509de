"""Segments to one searchable index: unpacked into a local cache, then linked together.

tantivy's files are immutable. The files of all segments linked into one directory, under one meta.json, are one index:
its BM25 takes document counts and lengths over all segments, so every score is exactly what a single index of the same
chunks would give. No tantivy writer is ever opened on it: merge policies would rewrite it, and replicas would disagree.

    cache/segments/<id>/         one unpacked segment
    cache/assemblies/<hash>/     links to the files of a set of segments, and their combined meta.json

Both appear by an atomic rename, so any number of processes may do the same work at once, and one killed half-way leaves
nothing that another one could take for whole.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import tantivy
from numpy.typing import NDArray
from pydantic import ValidationError

from clew.errors import DamagedIndexError, FormatVersionError
from clew.indexer.damage import damage
from clew.indexer.lexical.postings import Postings
from clew.indexer.lexical.segment import (
    KEY_FIELD,
    KEYS,
    META,
    POSTINGS_FILE,
    SEGMENT_FORMAT,
    TANTIVY,
    SegmentStatistics,
    file_id,
    lexical_schema,
    register_tokenizers,
)
from clew.indexer.snapshots import content_of

_REMOVE = "; remove that folder and try again"
_PARTIAL = ".partial-"


class Segment:
    """One unpacked segment, mapped, not read."""

    def __init__(self, part: Path) -> None:
        self.path = part
        self.statistics = _statistics(part)
        self.keys = _keys(part)  # (documents,) int64, in the order of rows
        self.postings = Postings(part / POSTINGS_FILE)


@dataclass(frozen=True, kw_only=True, slots=True)
class LexicalIndex:
    """All lexical segments of one snapshot, ready for both legs."""

    index: tantivy.Index
    segments: tuple[Segment, ...]

    @property
    def documents(self) -> int:
        """Chunks in the segments, deleted ones included until their segment is merged."""
        return sum(segment.statistics.documents for segment in self.segments)

    @property
    def languages(self) -> dict[str, int]:
        """Code, or "und" → chunks: what `questions.analyze_question` wants to know."""
        counts: Counter[str] = Counter()
        for segment in self.segments:
            counts.update(segment.statistics.languages)
        return dict(sorted(counts.items()))


def open_lexical(parts: Sequence[Path], cache_dir: Path) -> LexicalIndex:
    """Open unpacked segments as one index. Raises DamagedIndexError where a part is missing, cut short or unreadable."""
    return LexicalIndex(index=assemble(parts, cache_dir), segments=tuple(Segment(part) for part in parts))


def unpack(source: bytes | Path, cache_dir: Path, *, segment_id: str) -> Path:
    """Unpack a segment into the cache, or find it there. `source` is its file or its bytes.

    The bytes must hash to what `segment_id` begins with. A segment found in the cache is trusted when every file is there with its size.
    Raises DamagedIndexError, FormatVersionError.
    """
    home = cache_dir / "segments"
    place = home / segment_id
    if is_unpacked(cache_dir, segment_id):
        return place
    if segment_identity(source) != content_of(segment_id):
        raise DamagedIndexError(
            f"unpacking the lexical segment {segment_id}: its content is not what was written; "
            "run `clew check`, then `clew index --full`"
        )
    home.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=home))
    try:
        with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
            archive.extractall(work)
        _check_sizes(work, _statistics(work))
    except (zipfile.BadZipFile, OSError) as error:
        shutil.rmtree(work, ignore_errors=True)
        raise damage(f"unpacking the lexical segment {segment_id} into {home}", error) from error
    except DamagedIndexError:
        shutil.rmtree(work, ignore_errors=True)
        raise
    _install(work, place, lambda: is_unpacked(cache_dir, segment_id))
    return place


def is_unpacked(cache_dir: Path, segment_id: str) -> bool:
    """Whether a segment lies whole in the cache, so that it need not be fetched."""
    place = cache_dir / "segments" / segment_id
    try:
        _check_sizes(place, _statistics(place))
    except DamagedIndexError:
        return False
    return True


def assemble(parts: Sequence[Path], cache_dir: Path) -> tantivy.Index:
    """One tantivy index over unpacked segments (each part's directory name is its segment id).

    The directory is named by the set of segments, made once and used again by later processes. Raises DamagedIndexError.
    """
    if not parts:
        return _open(None)
    names = sorted(part.name for part in parts)
    if len(set(names)) != len(names):
        raise DamagedIndexError(f"assembling lexical segments: one is named twice in {names}")
    digest = hashlib.blake2b("\n".join([str(SEGMENT_FORMAT), *names]).encode(), digest_size=16).hexdigest()
    home = cache_dir / "assemblies"
    place = home / digest
    files = _component_files(parts)
    if not _holds(place, files):
        home.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=home))
        for path, _ in files:
            _link(path, work / path.name)
        (work / "meta.json").write_text(json.dumps(_combined_meta(parts), sort_keys=True), encoding="utf-8")
        _install(work, place, lambda: _holds(place, files))
    return _open(place)


def _open(place: Path | None) -> tantivy.Index:
    try:
        index = tantivy.Index(lexical_schema()) if place is None else tantivy.Index.open(str(place))
        index.config_reader(reload_policy="manual")  # the directory never changes
        register_tokenizers(index)
        index.reload()
    except (OSError, ValueError) as error:
        raise damage(f"opening the lexical index in {place}", error, _REMOVE) from error
    return index


def _component_files(parts: Iterable[Path]) -> list[tuple[Path, int]]:
    """(file, bytes) of tantivy's files in all parts, each checked to be there and whole."""
    files: list[tuple[Path, int]] = []
    for part in parts:
        statistics = _statistics(part)
        _check_sizes(part, statistics)
        meta = f"{TANTIVY}/meta.json"
        files.extend(
            (part / name, size)
            for name, size in statistics.sizes.items()
            if name.startswith(f"{TANTIVY}/") and name != meta
        )
    return files


def _holds(place: Path, files: Sequence[tuple[Path, int]]) -> bool:
    """Whether an assembly is there with all its files, whole."""
    try:
        sizes = {entry.name: entry.stat().st_size for entry in os.scandir(place)}
    except OSError:
        return False
    return "meta.json" in sizes and all(sizes.get(path.name) == size for path, size in files)


def _combined_meta(parts: Sequence[Path]) -> dict[str, object]:
    parts = sorted(parts, key=lambda part: part.name)
    metas = [json.loads((part / TANTIVY / "meta.json").read_text(encoding="utf-8")) for part in parts]
    first = metas[0]
    for part, meta in zip(parts, metas, strict=True):
        if meta["schema"] != first["schema"] or meta["index_settings"] != first["index_settings"]:
            raise FormatVersionError(f"the lexical segment {part.name} has another schema than {parts[0].name}")
    return {**first, "segments": [segment for meta in metas for segment in meta["segments"]], "opstamp": 0}


def _link(source: Path, target: Path) -> None:
    """A hard link; a symbolic one or a copy where the file system has none (other devices, some network mounts)."""
    try:
        target.hardlink_to(source)
    except OSError:
        try:
            target.symlink_to(source.resolve())
        except OSError:
            shutil.copyfile(source, target)


def _install(work: Path, place: Path, is_whole: Callable[[], bool]) -> None:
    """Give a finished directory its final name, unless another process was first."""
    for _ in range(3):
        try:
            work.rename(place)
        except OSError:
            if is_whole():  # another process was first
                break
            _discard(place)  # what stands there is damaged
        else:
            return
    shutil.rmtree(work, ignore_errors=True)
    if not is_whole():
        raise DamagedIndexError(f"the cache folder {place} is damaged and cannot be replaced; remove it and try again")


def _discard(place: Path) -> None:
    """Move a damaged directory aside at once, then remove it: nobody sees it half removed."""
    aside = place.with_name(f"{_PARTIAL}{place.name}-{os.getpid()}")
    try:
        place.rename(aside)
    except OSError:
        return
    shutil.rmtree(aside, ignore_errors=True)


def segment_identity(source: bytes | Path) -> str:
    """The id that a segment of this content has: blake2b-128 of its file, hex."""
    if isinstance(source, bytes):
        return hashlib.blake2b(source, digest_size=16).hexdigest()
    try:
        return file_id(source)
    except OSError as error:
        raise damage(f"reading the lexical segment {source}", error) from error


def _statistics(part: Path) -> SegmentStatistics:
    try:
        statistics = SegmentStatistics.model_validate_json((part / META).read_bytes())
    except (OSError, ValidationError) as error:
        raise damage(f"reading the lexical segment in {part}", error, _REMOVE) from error
    if statistics.format != SEGMENT_FORMAT:
        raise FormatVersionError(
            f"the lexical segment {part.name} has format {statistics.format}, this clew reads {SEGMENT_FORMAT}; "
            "rebuild with `clew index --full`"
        )
    return statistics


def _check_sizes(part: Path, statistics: SegmentStatistics) -> None:
    for name, size in statistics.sizes.items():
        try:
            found = (part / name).stat().st_size
        except OSError:
            found = -1
        if found != size:
            state = "missing" if found < 0 else f"{found} bytes long instead of {size}"
            raise DamagedIndexError(
                f"the file {name} of the lexical segment in {part} is {state}; remove that folder and try again"
            )


def _keys(part: Path) -> NDArray[np.int64]:
    try:
        table = pa.ipc.open_file(pa.memory_map(str(part / KEYS))).read_all()
        keys: NDArray[np.int64] = table.column(KEY_FIELD).combine_chunks().to_numpy()
    except (OSError, pa.ArrowInvalid, KeyError) as error:
        raise damage(f"reading the keys of the lexical segment in {part}", error) from error
    return keys
