"""Without these, scores would depend on how chunks were split into segments, and a damaged cache would be trusted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.errors import DamagedIndexError, FormatVersionError
from clew.indexer.lexical.assembly import LexicalIndex, assemble, is_unpacked, open_lexical, unpack
from clew.indexer.lexical.segment import SegmentFile

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
TEXTS = [" ".join(WORDS[(i * j) % 8] for j in range(1, 4 + i % 7)) for i in range(200)]


@pytest.fixture
def unpacked(segment: Callable[..., SegmentFile], tmp_path: Path) -> Path:
    file = segment(TEXTS[:20])
    return unpack(file.path, tmp_path / "cache", segment_id=file.id)


def component(part: Path) -> Path:
    return next((part / "tantivy").glob("*.idx"))


def test_segment_unpacks_from_a_file_and_from_bytes(segment: Callable[..., SegmentFile], tmp_path: Path) -> None:
    file = segment(TEXTS[:3])
    a = unpack(file.path, tmp_path / "a", segment_id=file.id)
    b = unpack(file.path.read_bytes(), tmp_path / "b", segment_id=file.id)
    files = sorted(path.relative_to(a) for path in a.rglob("*"))
    assert files == sorted(path.relative_to(b) for path in b.rglob("*"))
    assert all((a / path).read_bytes() == (b / path).read_bytes() for path in files if (a / path).is_file())


def test_altered_segment_is_refused(segment: Callable[..., SegmentFile], tmp_path: Path) -> None:
    file = segment(TEXTS[:3])
    content = bytearray(file.path.read_bytes())
    content[len(content) // 2] ^= 1
    with pytest.raises(DamagedIndexError, match=file.id):
        unpack(bytes(content), tmp_path / "cache", segment_id=file.id)
    assert not is_unpacked(tmp_path / "cache", file.id)


def test_segment_is_not_read_again_when_it_lies_in_the_cache(
    segment: Callable[..., SegmentFile], tmp_path: Path
) -> None:
    file = segment(TEXTS[:3])
    unpack(file.path, tmp_path / "cache", segment_id=file.id)
    assert unpack(b"never read", tmp_path / "cache", segment_id=file.id).name == file.id


def test_damaged_cache_entry_is_replaced(segment: Callable[..., SegmentFile], tmp_path: Path) -> None:
    """A full disk leaves short files; what can be fetched again must heal."""
    file = segment(TEXTS[:3])
    part = unpack(file.path, tmp_path / "cache", segment_id=file.id)
    component(part).write_bytes(b"")
    assert not is_unpacked(tmp_path / "cache", file.id)
    assert is_unpacked(tmp_path / "cache", unpack(file.path, tmp_path / "cache", segment_id=file.id).name)
    assert [path.name for path in (tmp_path / "cache" / "segments").iterdir()] == [file.id]


@pytest.mark.parametrize("damage", ["missing", "truncated", "gone"])
def test_damaged_part_is_an_error_before_anything_is_searched(unpacked: Path, tmp_path: Path, damage: str) -> None:
    if damage == "missing":
        component(unpacked).unlink()
    elif damage == "truncated":
        component(unpacked).write_bytes(component(unpacked).read_bytes()[:-1])
    else:
        shutil.rmtree(unpacked)
    with pytest.raises(DamagedIndexError, match=unpacked.name):
        open_lexical([unpacked], tmp_path / "cache")


def test_damaged_assembly_is_made_anew(unpacked: Path, tmp_path: Path) -> None:
    assemble([unpacked], tmp_path / "cache")
    place = next((tmp_path / "cache" / "assemblies").iterdir())
    (place / component(unpacked).name).unlink()
    assert assemble([unpacked], tmp_path / "cache").searcher().num_docs == 20
    assert [path.name for path in (tmp_path / "cache" / "assemblies").iterdir()] == [place.name]


def test_other_format_is_named(unpacked: Path, tmp_path: Path) -> None:
    meta = unpacked / "segment.json"
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "format": 99}))
    with pytest.raises(FormatVersionError, match="99"):
        open_lexical([unpacked], tmp_path / "cache")


def test_assembly_is_used_again_and_not_written_to(unpacked: Path, tmp_path: Path) -> None:
    """Later processes must open what is there: an assembly of 300 segments is thousands of links."""
    assemble([unpacked], tmp_path / "cache")
    place = next((tmp_path / "cache" / "assemblies").iterdir())
    before = {path.name: path.stat().st_mtime_ns for path in place.iterdir()}
    assemble([unpacked], tmp_path / "cache")
    assert {path.name: path.stat().st_mtime_ns for path in place.iterdir()} == before


def test_parts_are_linked_not_copied(unpacked: Path, tmp_path: Path) -> None:
    assemble([unpacked], tmp_path / "cache")
    place = next((tmp_path / "cache" / "assemblies").iterdir())
    assert os.path.samefile(place / component(unpacked).name, component(unpacked))


def test_file_system_without_links_gets_copies(unpacked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("not supported here")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    monkeypatch.setattr(Path, "symlink_to", refuse)
    assert assemble([unpacked], tmp_path / "cache").searcher().num_docs == 20


def test_no_segments_are_an_empty_index(tmp_path: Path) -> None:
    lexical = open_lexical([], tmp_path)
    assert (lexical.documents, lexical.languages, lexical.index.searcher().num_docs) == (0, {}, 0)


def test_empty_segment_joins_others(segment: Callable[..., SegmentFile], unpacked: Path, tmp_path: Path) -> None:
    """A batch of files without words still writes one."""
    file = segment([])
    part = unpack(file.path, tmp_path / "cache", segment_id=file.id)
    assert open_lexical([part, unpacked], tmp_path / "cache").index.searcher().num_docs == 20


def test_segment_named_twice_is_refused(unpacked: Path, tmp_path: Path) -> None:
    with pytest.raises(DamagedIndexError, match="twice"):
        assemble([unpacked, unpacked], tmp_path / "cache")


def test_many_processes_may_unpack_and_assemble_at_once(segment: Callable[..., SegmentFile], tmp_path: Path) -> None:
    """Searches start together after a reboot; one must not see another's half."""
    files = [segment(TEXTS[i : i + 40], first=i) for i in range(0, 200, 40)]
    script = (
        "from pathlib import Path\n"
        "from clew.indexer.lexical.assembly import open_lexical, unpack\n"
        f"cache = Path({str(tmp_path / 'cache')!r})\n"
        f"parts = [unpack(Path(p), cache, segment_id=i) for p, i in {[(str(f.path), f.id) for f in files]!r}]\n"
        "print(open_lexical(parts, cache).index.searcher().num_docs)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )
        for _ in range(4)
    ]
    answers = [process.communicate() for process in processes]
    assert [out.strip() for out, _ in answers] == [b"200"] * 4, answers
    left = [path.name for path in (tmp_path / "cache").rglob(".partial-*")]
    assert left == []


def test_languages_add_up_over_segments(segment: Callable[..., SegmentFile], tmp_path: Path) -> None:
    files = [segment(["red"], language="en"), segment(["azul", "verde"], language="pt", first=1)]
    parts = [unpack(file.path, tmp_path / "cache", segment_id=file.id) for file in files]
    lexical: LexicalIndex = open_lexical(parts, tmp_path / "cache")
    assert (lexical.documents, lexical.languages) == (3, {"en": 1, "pt": 2})
